"""Rows of runs → JSON Lines, CSV or Parquet, streamed to an open file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import IO, Any

from pearl.errors.escaping import inert, to_json
from pearl.plugins.extras import require_extra

FORMATS = ("jsonl", "csv", "parquet")

_TEXTS = (
    "id", "status", "question", "document", "answer", "method", "model", "plan", "error_type",
    "error", "why", "evidence", "unverified_quotes", "notes", "steps",
)  # fmt: skip
_NUMBERS = ("coverage", "duration_s")
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens")
_BATCH = 1_000
"""Rows per batch of a Parquet file."""


def write_table(
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    file: IO[str],
    form: str,
    *,
    raw_cells: bool = False,
) -> int:
    """Write rows as JSON lines, CSV or Parquet; returns their number."""
    if form == "jsonl":
        return write_rows(rows(), file)
    columns = _columns(rows())
    cells = ({name: cell(row) for name, cell in columns.items()} for row in rows())
    if form == "csv":
        return _write_csv(cells, list(columns), file, raw_cells=raw_cells)
    return _write_parquet(cells, list(columns), file)


def write_rows(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> int:
    """Write rows as JSON lines; returns their number."""
    n_rows = 0
    for row in rows:
        file.write(to_json(row) + "\n")
        n_rows += 1
    return n_rows


_OF_ROW = ("id", "value", "text", "source", "start", "end", "state")


def write_evidence(rows: Callable[[], Iterable[Mapping[str, Any]]], file: IO[str]) -> None:
    """Write the rows behind answers as CSV: value, text and place of each, and a column per field."""
    import csv

    def behind() -> Iterator[tuple[Any, Mapping[str, Any]]]:
        for row in rows():
            yield from ((row.get("id"), e) for e in row.get("evidence", ()) if e["match"] == "row")

    fields = list(dict.fromkeys(name for _, each in behind() for name in each["fields"]))
    named = [name if name not in _OF_ROW else f"{name} (field)" for name in fields]
    writer = csv.writer(file)
    writer.writerow(map(inert, [*_OF_ROW, *named]))
    for id, each in behind():
        own = {"start": "", "end": "", **each, "id": id}
        cells = [*map(own.get, _OF_ROW), *(each["fields"].get(name, "") for name in fields)]
        writer.writerow(inert("undecided" if cell is None else cell) for cell in cells)


def _write_csv(
    cells: Iterable[Mapping[str, Any]], names: Sequence[str], file: IO[str], *, raw_cells: bool
) -> int:
    import csv

    shown: Callable[[Any], Any] = (lambda cell: cell) if raw_cells else inert
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(shown, names))
    n_rows = 0
    for row in cells:
        writer.writerow([shown(row[name]) for name in names])
        n_rows += 1
    return n_rows


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
    """The columns of a table: the fixed columns, then the fields of the input."""
    columns: dict[str, Cell] = {
        **{name: partial(_text, name) for name in _TEXTS},
        **{name: partial(_number, float, name) for name in _NUMBERS},
        **{name: partial(_number, int, name, within="usage") for name in _TOKENS},
        "error_type": partial(_text, "type", within="error"),
        "error": partial(_text, "message", within="error"),
    }
    known = {*columns, "usage"} - {*_TOKENS}
    for name in dict.fromkeys(name for row in rows for name in row if name not in known):
        # A field of the input may have the name of a fixed column.
        shown = name
        while shown in columns:
            shown += "_"
        columns[shown] = partial(_text, name)
    return columns


def _value(row: Mapping[str, Any], name: str, within: str | None) -> Any:
    whole = row if within is None else row.get(within)
    return whole.get(name) if isinstance(whole, Mapping) else None


def _number(
    kind: type[int] | type[float], name: str, row: Mapping[str, Any], *, within: str | None = None
) -> int | float | None:
    """The number of a cell; None if it is not a number or exceeds the column type."""
    value = _value(row, name, within)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return kind(value) if is_number and abs(value) < 2**63 else None


def _text(name: str, row: Mapping[str, Any], *, within: str | None = None) -> str | None:
    """Text unchanged, other values as JSON; lone surrogates are replaced."""
    value = _value(row, name, within)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()
