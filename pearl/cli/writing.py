"""Output files: written atomically, or line by line (`GrowingFile`), never over existing files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from pearl.cli.terminal import data_stdout
from pearl.errors import DataError, PearlError, UsageError
from pearl.errors.escaping import escaped

if TYPE_CHECKING:
    from io import FileIO

    from pearl.runs.executors import Listener
    from pearl.trace import Event

STDOUT = (None, "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")

TABLES = (".csv", ".tsv", ".parquet", ".xls", ".xlsx")


class OutputWriter:
    """Writes the files of one command; replaces existing files only with `--force` or if its run wrote them."""

    def __init__(self, *, is_forced: bool = False) -> None:
        self._is_forced = is_forced
        self._own: set[Path] = set()

    def owns(self, paths: Iterable[str | None]) -> None:
        """Let the command replace these files."""
        self._own |= {Path(path).resolve() for path in paths if path not in STDOUT and path}

    def check(self, *paths: str | None) -> None:
        """Check, before any call, that files can be written and may be replaced."""
        for path in paths:
            if path is None or path in STDOUT:
                continue
            target = Path(path).resolve()
            if target.is_dir():
                raise DataError("is a folder", path=path, help="name a file")
            if target.is_file() or not target.exists():  # neither a pipe nor a device
                import tempfile

                with _os_errors_reported(path), tempfile.TemporaryFile(dir=target.parent):
                    pass
            self._check_free(path)

    @contextmanager
    def open(self, path: str | None) -> Iterator[IO[str]]:
        """Open a file to write, as `new_file` does."""
        self.check(path)
        # Another program may create the file meanwhile.
        with new_file(path, before=lambda: self._check_free(str(path))) as file:
            yield file
        self.owns([path])

    def _check_free(self, path: str) -> None:
        target = Path(path).resolve()
        is_free = not target.is_file() or not target.stat().st_size
        if not (self._is_forced or is_free or target in self._own):
            raise UsageError(
                f"'{path}' exists already", help="--force replaces it; or name another file"
            )


@contextmanager
def new_file(path: str | None, *, before: Callable[[], None] | None = None) -> Iterator[IO[str]]:
    """Open a file or stdout to write. The file appears when it is complete; pipes and devices are written directly."""
    if path is None or path in STDOUT:
        yield data_stdout()
        return
    target = Path(path).resolve()  # keeps a link, and writes its target
    if target.exists() and not target.is_file():
        with _os_errors_reported(path), target.open("w", encoding="utf-8") as device:
            yield device
        return
    # Beside the target: a rename does not cross file systems.
    new = target.with_name(f".{target.name[:50]}.{os.urandom(8).hex()}")
    try:
        with _os_errors_reported(path):
            rights = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666
            number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights)
            with open(number, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:  # noqa: PTH123
                yield file
            if target.exists():
                import shutil

                shutil.copymode(target, new)
            if before is not None:
                before()
            new.replace(target)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _os_errors_reported(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: str, error: OSError) -> DataError:
    """The error of a file that cannot be written."""
    return DataError(
        f"cannot be written: {error.strerror}", path=path, help="name another file or folder"
    )


def make_folder(folder: Path) -> None:
    """Create a folder unless it exists."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be created: {error.strerror}", path=folder) from None


def refuse_overwriting_inputs(outputs: Iterable[str | None], inputs: Iterable[str]) -> None:
    """Check that no output overwrites an input."""
    for output in outputs:
        if output is not None and Path(output).is_file():
            for name in inputs:
                if Path(name).is_file() and Path(name).samefile(output):
                    raise UsageError(f"'{output}' is an input", help="write to another file")


def keep_json_lines(out: str | None, help: str = "") -> None:
    """Reject JSON Lines output to a file with the suffix of a table."""
    if out is not None and Path(out).suffix.lower() in TABLES:
        named = f"name it {Path(out).with_suffix('.jsonl')}"
        raise UsageError(
            f"'{out}' names a table, but rows are written as JSON lines",
            help="; ".join(filter(None, (named, help))),
        )


PRINTED = (".html", ".json", ".csv", ".xlsx", ".txt", ".md")
"""Suffixes of files that receive what is otherwise printed; a run is not stored."""


def is_for_printing(out: str) -> bool:
    """Whether the file name has a suffix of `PRINTED`."""
    from pearl.data.storage import is_address  # imported on use, as everywhere in commands

    return not is_address(out) and Path(out).suffix.lower() in PRINTED


def output_options(out: str | None, n_answers: int | None) -> dict[str, Any]:
    """The options that the suffix of an output file sets: a page, JSON, the rows behind an answer, or text."""
    form = "" if out is None or out in STDOUT else Path(out).suffix.lower()
    match form:
        case ".html":
            return {"page": out, "out": os.devnull}
        case ".json" | ".jsonl":
            return {"as_json": True, "as_lines": form == ".jsonl" or n_answers != 1}
        case ".csv" | ".xlsx":  # an answer may have no rows: it is printed
            if n_answers != 1:
                keep_json_lines(out)
            return {"rows_out": out, "out": None}
        case "" | ".txt" | ".md":
            return {}
    formats = ", ".join(each[1:] for each in (".jsonl", *PRINTED))
    raise UsageError(f"'{out}': unknown format", help=f"name it out.txt; formats: {formats}")


class GrowingFile:
    """Appends lines unbuffered; the first replaces an earlier file. Errors are raised when the context ends."""

    def __init__(
        self, writer: OutputWriter, path: str, beginning: Callable[[], Iterable[str]] = tuple
    ) -> None:
        writer.check(path)
        self._writer = writer
        self._path = path
        self._beginning = beginning
        self._target = Path(path).resolve()  # keeps a link, and writes its target
        self._file: FileIO | None = None
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.write("")  # creates an empty file if no event came
        self.close()
        if kind is None and self._error is not None:
            raise self._error

    def append(self, id: str, event: Event) -> None:
        """Append an event of a trace; events for listeners only are skipped."""
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
                return
            if self._file is None:
                if is_plain(self._path):
                    self._writer.check(self._path)
                    self._target.write_bytes(b"")
                    self._writer.owns([self._path])
                # Appending whole lines keeps them whole if another process writes, too.
                self._file = self._target.open("ab", buffering=0)
                for line in self._beginning():
                    _write(self._file, line)
            _write(self._file, lines)
        except (BrokenPipeError, PearlError) as error:
            self._error = error
        except OSError as error:
            self._error = unwritable(self._path, error)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # write errors are kept already
                file.close()


def traced_listener(listener: Listener, events: GrowingFile | None) -> Listener:
    """Return a listener that writes each event to the trace file, if there is one, and then calls `listener`."""
    if events is None:
        return listener

    def tell(id: str, event: Event) -> None:
        events.append(id, event)
        listener(id, event)

    return tell


def is_plain(path: str) -> bool:
    """Whether a path is a regular file or missing, not stdout, a pipe or a device."""
    target = Path(path).resolve()
    return path not in STDOUT and (target.is_file() or not target.exists())


def _write(file: FileIO, lines: str) -> None:
    left = memoryview(lines.encode("utf-8", "backslashreplace"))
    while left:
        left = left[file.write(left) :]
