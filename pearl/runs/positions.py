"""The position at which the input of a run is read, so that a resumed run starts there.

A run over a large file writes it beside the store, and again each time that 5 % more tasks were read. The same
run, resumed, first does the tasks after the position, and then those before it that have no row. So its first new row
comes within seconds, every task is still checked, and without the file the order of the work is all that changes.
"""

from __future__ import annotations

import io
import zlib
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pearl.data.columns import Position
from pearl.documents.digest import DigestTable
from pearl.runs.executors import Task
from pearl.runs.tasks import DocumentTasks

MARGIN = 10_000
"""Executors hold fewer tasks than these; a position is not used until the tasks before it have rows."""

_SHARE = 20
_MAGIC = b"pearl position 1"
_BLOCK = 1 << 20


def from_position(tasks: DocumentTasks, path: Path, work: bytes) -> Iterator[tuple[int, Task]]:
    """The tasks with their places: those after the position in a file, then those before it."""
    new = path.with_suffix(".new")
    start, position, seen = _read(path, work) or (0, Position(), DigestTable())
    place = saved = start
    for place, task in enumerate(tasks.after(position, seen), start):
        yield place, task
        n_more = place + 1 - saved
        if n_more == MARGIN and saved > start:
            with suppress(OSError):
                new.replace(path)
        if n_more > MARGIN and n_more > place // _SHARE and position.offset:
            saved = place + 1
            with suppress(OSError):
                _write(new, work, saved, position, seen)
    del position, seen
    yield from zip(range(start), tasks, strict=False)


class _Checked(io.BufferedWriter):
    """A file of which the checksum is known."""

    checksum = 0

    def write(self, data: Any) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return super().write(data)


def _write(path: Path, work: bytes, place: int, position: Position, seen: DigestTable) -> None:
    path.unlink(missing_ok=True)
    path.touch(0o600, exist_ok=False)
    with _Checked(io.FileIO(path, "wb")) as file:
        file.write(_MAGIC + work + array("Q", (place,)).tobytes())
        position.write(file)
        seen.write(file)
        file.write(array("Q", (file.checksum,)).tobytes())


def _read(path: Path, work: bytes) -> tuple[int, Position, DigestTable] | None:
    """Read the position from a file; None if the file is missing, damaged or belongs to other work."""
    place, checksum, head = array("Q"), array("Q"), _MAGIC + work
    try:
        with path.open("rb") as file:
            left, found = path.stat().st_size - checksum.itemsize, 0
            while left > 0 and (data := file.read(min(left, _BLOCK))):
                left, found = left - len(data), zlib.crc32(data, found)
            checksum.fromfile(file, 1)
            file.seek(0)
            if checksum[0] != found or file.read(len(head)) != head:
                return None
            place.fromfile(file, 1)
            return place[0], Position.read(file), DigestTable.read(file)
    except (OSError, EOFError):
        return None
