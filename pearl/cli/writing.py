"""Atomic output files that never overwrite inputs or files of other commands.

`OutputWriter` writes what a command was asked for; a trace, which is written as things happen, is a
`pearl.cli.growing.GrowingFile`. `new_file` is the part of it that asks nobody, for
commands whose purpose it is to change a file (`fmt`, `check --fix`).
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from pearl.cli.storing import opened_folder
from pearl.cli.terminal import data_stdout
from pearl.documents.digest import digest
from pearl.errors import DataError, StoreError, UsageError

if TYPE_CHECKING:
    from pearl.runs.store.outputs import Outputs

STDOUT = (None, "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")

TABLES = (".csv", ".tsv", ".parquet", ".xls", ".xlsx")

NEUTRAL = (
    "out", "trace", "page", "rows_out", "report", "force", "as_json", "verbose", "context_lines", "fresh", "store", "dry_run",
    "concurrency", "timeout_s", "requests_per_minute", "tokens_per_minute", "price", "prices",
    "seconds_per_call", "max_cost", "max_tokens", "max_time", "max_calls",
    "allow_outside", "unsandboxed",
)  # fmt: skip
"""Options that make no other command: where things go, how fast, how far, and with what leave."""

force_option = click.option(
    "--force", is_flag=True, help="Replace files that this command did not write, too."
)


class OutputWriter:
    """Writes the files of one command; other files are replaced only with `--force`.

    The store knows what was written where, by its digest: a file that was edited since, that another
    command wrote or that comes from elsewhere stays. An empty file holds nothing that could be lost.
    """

    def __init__(
        self, command: str, store: str | None, *, is_forced: bool = False, by: str = ""
    ) -> None:
        self._command = command
        self._by = by
        self._store = store
        self._is_forced = is_forced

    @classmethod
    def of_command(cls, store: str | None = None, *, is_forced: bool = False) -> OutputWriter:
        """That of the command that is being run: the same command is one with the same options."""
        context = click.get_current_context()
        said = {name: value for name, value in context.params.items() if name not in NEUTRAL}
        parts = (context.command_path, str(Path.cwd()), repr(sorted(said.items())))
        name = context.info_name or ""
        return cls(digest(parts).hex(), store, is_forced=is_forced, by=name)

    def check(self, *paths: str | None) -> None:
        """Check, before any call, that files can be written and may be replaced."""
        for path in paths:
            if path is not None and path not in STDOUT:
                _check_writable(path)
                self._check_own(path)

    @contextmanager
    def open(self, path: str | None) -> Iterator[IO[str]]:
        """A file to write, as `new_file`."""
        self.check(path)

        def before(target: Path, written: Path) -> None:
            self._check_own(str(path))  # somebody may have put it there meanwhile
            self.note(target, written)

        with new_file(path, before=before) as file:
            yield file

    def note(self, target: Path, written: Path, *, grows: bool = False) -> None:
        """Note that a path is this command's, where there is a store."""
        if (outputs := self._outputs) is not None:
            outputs.note(target, self._command, written, by=self._by, grows=grows)

    @property
    def _outputs(self) -> Outputs | None:
        """What the store knows; None for a user without a home, of whom nothing is known."""
        from pearl.runs.store.outputs import Outputs

        try:
            return Outputs(opened_folder(self._store))
        except StoreError:
            return None

    def _check_own(self, path: str) -> None:
        target = Path(path).resolve()
        if self._is_forced or not target.is_file() or not target.stat().st_size:
            return
        outputs = self._outputs
        if outputs is None or not outputs.wrote(target, self._command):
            raise UsageError(
                f"'{path}' is there, and is not what this command wrote",
                help="--force replaces it; or name another file",
            )


@contextmanager
def new_file(
    path: str | None, *, before: Callable[[Path, Path], None] | None = None
) -> Iterator[IO[str]]:
    """A file to write, or stdout; the file appears under its name only when all is written.

    Pipes and devices are written to as they are.
    """
    if path is None or path in STDOUT:
        yield data_stdout()
        return
    target = Path(path).resolve()  # a link stays one: what it points to is written
    if target.exists() and not target.is_file():
        with _os_errors_reported(path), target.open("w", encoding="utf-8") as device:
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
        raise unwritable(path, error) from None
    try:
        with _os_errors_reported(path):
            with handle:
                yield handle
            Path(handle.name).chmod(rights(target))
            if before is not None:
                before(target, Path(handle.name))
            Path(handle.name).replace(target)
    finally:
        Path(handle.name).unlink(missing_ok=True)


def rights(target: Path) -> int:
    """Permissions of the replaced file, or the default ones; a temporary file is private."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


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


def _check_writable(path: str) -> None:
    target = Path(path).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        return
    if target.is_dir():
        raise DataError("is a folder", path=path, help="name a file")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise unwritable(path, error) from None


def keep_inputs(outputs: Iterable[str | None], inputs: Iterable[str]) -> None:
    """Check that no output overwrites an input."""
    read = [Path(name) for name in inputs if Path(name).is_file()]
    for output in outputs:
        if output is not None and Path(output).is_file():
            for path in read:
                if path.samefile(output):
                    raise UsageError(f"'{output}' is an input", help="write to another file")


def keep_json_lines(out: str | None, help: str = "") -> None:
    """Reject JSON Lines output to a file with the suffix of a table."""
    if out is not None and Path(out).suffix.lower() in TABLES:
        named = f"name it {Path(out).with_suffix('.jsonl')}"
        raise UsageError(
            f"'{out}': rows are written as JSON lines", help="; ".join(filter(None, (named, help)))
        )
