"""The position at which a large input is read, kept each 5 %, so that a resumed run starts there and checks the tasks before it later."""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pearl.data.columns import Position
from pearl.documents.digest import DigestTable, sealed, unsealed
from pearl.plugins.persistence import write_private
from pearl.runs.executors import Task
from pearl.runs.tasks import DocumentTasks

MARGIN = 10_000
"""Executors hold fewer tasks than these; a position is not used until the tasks before it have rows."""

_SHARE = 20
_MAGIC = b"pearl position 2"


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


def _write(path: Path, work: bytes, place: int, position: Position, seen: DigestTable) -> None:
    data = io.BytesIO()
    data.write(array("Q", (place,)).tobytes())
    position.write(data)
    seen.write(data)
    write_private(path, sealed(_MAGIC + work, data.getvalue()))


def _read(path: Path, work: bytes) -> tuple[int, Position, DigestTable] | None:
    """Read the position from a file; None if the file is missing, damaged or belongs to other work."""
    place = array("Q")
    try:
        if (data := unsealed(_MAGIC + work, path.read_bytes())) is None:
            return None
        file = io.BytesIO(data)
        place.fromfile(file, 1)
        return place[0], Position.read(file), DigestTable.read(file)
    except (OSError, EOFError):
        return None
