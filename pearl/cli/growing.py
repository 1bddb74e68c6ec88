"""A file that is written as things happen, line by line: what is there stays, whatever ends the command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pearl.cli.terminal import data_stdout
from pearl.cli.writing import STDOUT, OutputWriter, rights, unwritable
from pearl.errors import PearlError
from pearl.errors.escaping import escaped

if TYPE_CHECKING:
    from io import FileIO

    from pearl.runs.executors import Listener
    from pearl.trace import Event


class GrowingFile:
    """Appends lines; each is with the system as soon as it is written, and survives the end of the process.

    What was there before is replaced with the first line and not earlier: a command that comes to
    nothing leaves it as it is. Nothing waits for the disk. Pipes and devices are written to directly.

    An error while lines are written ends the writing, not the work that they tell of: it is raised
    on leaving the context, where nothing else is.
    """

    def __init__(
        self, writer: OutputWriter, path: str, beginning: Callable[[], Iterable[str]] = tuple
    ) -> None:
        writer.check(path)
        self._writer = writer
        self._path = path
        self._beginning = beginning
        self._target = Path(path).resolve()  # a link stays one: what it points to is written
        self._file: FileIO | None = None
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.write("")  # where nothing happened it is empty
        self.close()
        if kind is None and self._error is not None:
            raise self._error

    def append(self, id: str, event: Event) -> None:
        """Append an event of a trace, unless it is told to listeners alone."""
        if event.is_recorded:
            from pearl.trace import event_line

            self.write(escaped(event_line(id, event)))

    def write(self, lines: str) -> None:
        """Append whole lines."""
        if self._error is not None:
            return
        try:
            if self._path in STDOUT:
                stdout = data_stdout()
                stdout.write(lines)
                stdout.flush()
            elif self._file is None and is_plain(self._path):
                self._file = self._begin(lines)
            else:
                self._file = self._file or self._target.open("ab", buffering=0)
                _write(self._file, lines)
        except (BrokenPipeError, PearlError) as error:
            self._error = error
        except OSError as error:
            self._error = unwritable(self._path, error)

    def close(self) -> None:
        """End it; what was written stays."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # every write has told already
                file.close()
            if self._target.is_file():
                self._writer.note(self._target, self._target)

    def _begin(self, lines: str) -> FileIO:
        """Put a file with the first lines in the place of what was there, and open it for appending."""
        target = self._target
        number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(number)
        new = Path(name)
        # Every line is one write to the end, so that lines stay whole whoever else writes.
        file = new.open("ab", buffering=0)
        try:
            for line in chain(self._beginning(), [lines]):
                _write(file, line)
            new.chmod(rights(target))
            self._writer.check(self._path)
            self._writer.note(target, new, grows=True)
            new.replace(target)
        except BaseException:
            file.close()
            new.unlink(missing_ok=True)
            raise
        return file


def told_too(listener: Listener, events: GrowingFile | None) -> Listener:
    """A listener with the file of the trace before it, if there is one."""
    if events is None:
        return listener

    def tell(id: str, event: Event) -> None:
        events.append(id, event)
        listener(id, event)

    return tell


def is_plain(path: str) -> bool:
    """Whether a path is that of a file, there or not: not stdout, a pipe or a device."""
    target = Path(path).resolve()
    return path not in STDOUT and (target.is_file() or not target.exists())


def _write(file: FileIO, lines: str) -> None:
    left = memoryview(lines.encode("utf-8", "backslashreplace"))
    while left:
        left = left[file.write(left) :]
