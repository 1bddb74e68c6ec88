"""The store on the command line: its options, and results written from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from pearl.cli.escaping import escaped, to_json
from pearl.cli.writing import OutputWriter
from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from pearl.runs.store import Run

__all__ = [
    "FORMATS",
    "opened_folder",
    "run_options",
    "store_option",
    "write_rows",
    "write_table",
    "write_traces",
]

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("jsonl", "csv", "parquet")

_TEXTS = (
    "id", "status", "question", "document", "answer", "method", "model", "plan", "error_type",
    "error", "evidence", "unverified_quotes", "steps",
)  # fmt: skip
_NUMBERS = ("coverage", "duration_s")
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens")
_COLUMNS = (*_TEXTS, *_NUMBERS, *_TOKENS)
"""What every table has; fields of the input follow."""

_BATCH = 1_000
"""Rows of a Parquet file that are in memory at once."""

store_option = click.option(
    "--store",
    envvar="PEARL_STORE",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Where runs and replies are kept [default: pearl in $XDG_DATA_HOME or ~/.local/share].",
)


def run_options(command: Command) -> Command:
    """`--store`, `--fresh` and, for `pearl runs resume` alone, the hidden `--run`."""
    for option in (
        click.option("--run", hidden=True),
        click.option(
            "--fresh", is_flag=True, help="Start over: a new run, and replies asked for anew."
        ),
        store_option,
    ):
        command = option(command)
    return command


def opened_folder(store: str | None) -> Path:
    """The folder that `--store` stands for, as an absolute path.

    Raises:
        StoreError: None is named and there is no home.
    """
    from pearl.runs.store import default_folder

    return (default_folder() if store is None else Path(store)).absolute()


def write_rows(run: Run, path: str | None, writer: OutputWriter) -> int:
    """Write every row of a run once, in the order of the work, as JSON lines.

    Args:
        run: Read while it is written.
        path: A file, which appears when all is written; None for stdout.
        writer: What writes the file.

    Returns:
        The number of rows.

    Raises:
        DataError: The file cannot be written.
        UsageError: It may not be replaced.
        StoreError: The store cannot be read.
    """
    with writer.open(path) as file:
        return _write_lines(run.rows(), file)


def write_traces(traces: Iterable[str], path: str, writer: OutputWriter) -> None:
    """Write what happened in the tasks of a run, as JSON lines.

    Raises:
        DataError: The file cannot be written.
        UsageError: It may not be replaced.
    """
    with writer.open(path) as file:
        file.writelines(map(escaped, traces))


def write_table(
    rows: Callable[[], Iterator[dict[str, Any]]],
    path: str | None,
    form: str,
    writer: OutputWriter,
    *,
    raw_cells: bool = False,
) -> int:
    """Write the rows of a run as JSON lines, CSV or Parquet.

    Args:
        rows: Reads them, each time from the first; a table needs its columns before its rows.
        path: A file, which appears when all is written; None for stdout.
        form: One of `FORMATS`.
        writer: What writes the file.
        raw_cells: Leave texts of CSV as they are that a spreadsheet would compute.

    Returns:
        The number of rows.

    Raises:
        DataError: The file cannot be written.
        UsageError: It may not be replaced.
        StoreError: The store cannot be read.
    """
    with writer.open(path) as file:
        if form == "jsonl":
            return _write_lines(rows(), file)
        columns = _columns(rows())
        cells = ({name: cell(row) for name, cell in columns.items()} for row in rows())
        if form == "csv":
            return _write_csv(cells, list(columns), file, raw_cells=raw_cells)
        return _write_parquet(cells, list(columns), file)


def _write_lines(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> int:
    n_rows = 0
    for row in rows:
        file.write(to_json(row) + "\n")
        n_rows += 1
    return n_rows


def _write_csv(
    cells: Iterable[Mapping[str, Any]], names: Sequence[str], file: IO[str], *, raw_cells: bool
) -> int:
    import csv

    shown: Callable[[Any], Any] = (lambda cell: cell) if raw_cells else _inert
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(shown, names))
    n_rows = 0
    for row in cells:
        writer.writerow([shown(row[name]) for name in names])
        n_rows += 1
    return n_rows


_COMPUTED = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def _inert(cell: Any) -> Any:
    """A cell of which a spreadsheet makes no formula: an apostrophe says that it is text.

    After https://owasp.org/www-community/attacks/CSV_Injection; numbers stay numbers.

    Example:
        >>> [_inert(cell) for cell in ("=1+1", "-5", "- five", "a=b", -5, None)]
        ["'=1+1", '-5', "'- five", 'a=b', -5, None]
    """
    is_text = isinstance(cell, str) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_text and _COMPUTED.match(cell) else cell


def _write_parquet(cells: Iterator[Mapping[str, Any]], names: Sequence[str], file: IO[str]) -> int:
    require_extra("data", "writing Parquet", "pyarrow")
    import pyarrow
    from pyarrow import parquet

    types = {
        **dict.fromkeys(_NUMBERS, pyarrow.float64()),
        **dict.fromkeys(_TOKENS, pyarrow.int64()),
    }
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in names])
    n_rows = 0
    with parquet.ParquetWriter(file.buffer, schema) as writer:  # type: ignore[attr-defined]
        while batch := list(islice(cells, _BATCH)):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema))
            n_rows += len(batch)
    return n_rows


Cell = Callable[[Mapping[str, Any]], Any]
"""Reads one column of a row."""


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, Cell]:
    """The columns of a table: those every table has, then the fields of the input."""
    columns: dict[str, Cell] = {name: _own(name) for name in _COLUMNS}
    known = {*_COLUMNS, "usage"}
    fields: dict[str, None] = {}
    for row in rows:
        fields.update(dict.fromkeys(name for name in row if name not in known or name in _TOKENS))
    for name in fields:
        # A field of the input may be called as a column that is read from elsewhere.
        shown = name
        while shown in columns:
            shown += "_"
        columns[shown] = lambda row, name=name: _text(row.get(name))  # type: ignore[misc]
    return columns


def _own(name: str) -> Cell:
    if name in _TOKENS:
        return lambda row: _number(_part(row, "usage", name), int)
    if name in _NUMBERS:
        return lambda row: _number(row.get(name), float)
    if name == "error_type":
        return lambda row: _text(_part(row, "error", "type"))
    if name == "error":
        return lambda row: _text(_part(row, "error", "message"))
    return lambda row: _text(row.get(name))


def _part(row: Mapping[str, Any], name: str, part: str) -> Any:
    whole = row.get(name)
    return whole.get(part) if isinstance(whole, dict) else None


def _number(value: Any, kind: type[int] | type[float]) -> int | float | None:
    """The number in a cell; None for what is none, or none that a table has room for."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return kind(value) if is_number and abs(value) < 2**63 else None


def _text(value: Any) -> str | None:
    """A text as it is, anything else as JSON; lone surrogates, which no table holds, are replaced."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()
