"""Files that commands write: whole or not at all, and never over an input."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pearl.cli.terminal import data_stdout
from pearl.errors import DataError, UsageError

__all__ = ["keep_inputs", "keep_room", "new_file"]


@contextmanager
def new_file(path: str | None) -> Iterator[IO[str]]:
    """A file to write, or stdout; the file appears under its name only when all is written.

    Pipes and devices are written to as they are.

    Raises:
        DataError: It cannot be written.
    """
    if path in (None, "-", "/dev/stdout"):
        yield data_stdout()
        return
    target = Path(path).resolve()  # a link stays one: what it points to is written
    if target.exists() and not target.is_file():
        with _told(path), target.open("w", encoding="utf-8") as device:
            yield device
        return
    try:
        handle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below, on both ways
            "w",
            encoding="utf-8",
            errors="backslashreplace",
            dir=target.parent,
            prefix=f".{target.name}.",
            delete=False,
        )
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with _told(path):
            with handle:
                yield handle
            Path(handle.name).chmod(_rights(target))
            Path(handle.name).replace(target)
    finally:
        Path(handle.name).unlink(missing_ok=True)


def _rights(target: Path) -> int:
    """Those of the file that is replaced, or of any new file; a temporary one is private."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> DataError:
    return DataError(
        f"cannot be written: {error.strerror}", path=path, help="name another file or folder"
    )


def keep_room(path: str) -> None:
    """Make sure, before anything is paid for, that a file can be written.

    Raises:
        DataError: It cannot.
    """
    target = Path(path).resolve()
    if path == "-" or (target.exists() and not target.is_file() and not target.is_dir()):
        return
    if target.is_dir():
        raise DataError("is a folder", path=path, help="name a file")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from None


def keep_inputs(outputs: Iterable[str | None], inputs: Iterable[str]) -> None:
    """Make sure that no output is written over an input.

    Raises:
        UsageError: One would be.
    """
    read = [Path(name) for name in inputs if Path(name).is_file()]
    for output in outputs:
        if output is not None and Path(output).is_file():
            for path in read:
                if path.samefile(output):
                    raise UsageError(f"'{output}' is an input", help="write to another file")
