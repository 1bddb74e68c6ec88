"""A program: one SQL statement over one table, in a process that can reach nothing else.

It is run on its own (`python -I -S sql_child.py ENGINE.py [FOLDER]`): it reads a line of JSON and a table from standard
input, writes a line when the table is there, a line of JSON, and ends. Before the statement is looked at, limits of the operating system
are set: no file can be opened, nothing written, and memory and processor time are bounded. The engine has locks of its own.
The parent kills it in the end.

The engine is a file beside this one with

- `dumped(table, columns)`: a table as bytes, for `opened`, and `folders()`: where its packages are; both for the parent;
- `opened(request, data)`: a connection to that table, before the limits are set;
- `answer(connection, request)`: columns and rows, or `refused` with a word for why.

This file and engines import the standard library only, for it is all that the program has; an engine its own packages, late.
"""

from __future__ import annotations

import json
import math
import signal
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MAX_CELL = 4_000  # maximum characters of a result cell; one more is written to mark a longer cell
MAX_REPLY = 64_000_000  # maximum characters of a result

GRACE_SECONDS = 0.25
"""After its time, before it is killed: SQLite stops most statements by itself, and says so."""

READY = b"\n"  # the line that marks the start of the statement's time


def main() -> None:
    """Serve one request."""
    sys.path += sys.argv[2:]
    engine = _loaded(sys.argv[1])
    request = json.loads(sys.stdin.buffer.readline())
    connection = engine.opened(request, sys.stdin.buffer.read())
    _confine(request["memory_bytes"], request["seconds"])
    sys.stdout.write(READY.decode())
    sys.stdout.flush()
    try:
        reply = engine.answer(connection, request)
        if "rows" in reply:
            reply["rows"] = [[_shown(value) for value in row] for row in reply["rows"]]
        said = json.dumps(reply)
        if len(said) > MAX_REPLY:
            said = '{"refused": "length"}'
    except MemoryError:
        said = '{"refused": "memory"}'
    sys.stdout.write(said)


def _loaded(path: str) -> ModuleType:
    spec = spec_from_file_location("engine", path)
    assert spec
    assert spec.loader
    engine = module_from_spec(spec)
    spec.loader.exec_module(engine)
    return engine


def _confine(memory_bytes: int, seconds: float) -> None:
    """From here on no file, socket or process can be opened, and memory and processor time are bounded."""
    if resource is None:
        return
    signal.setitimer(signal.ITIMER_PROF, seconds + GRACE_SECONDS)  # its signal kills
    most = _reserved() + memory_bytes
    for kind, limit in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError):  # macOS has RLIMIT_AS and refuses it
            continue


def _reserved() -> int:
    """Bytes of addresses that the process has now: an engine reserves more than it takes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return 0


def _shown(value: Any) -> str | int | float | None:
    """A value as JSON has it, the same for all engines."""
    if value is None or isinstance(value, int):
        return None if value is None else int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return (value.hex() if isinstance(value, bytes) else str(value))[: MAX_CELL + 1]


if __name__ == "__main__":
    main()
