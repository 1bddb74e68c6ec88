"""Rows of runs → JSON Lines, CSV, Excel or Parquet, streamed to an open file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import IO, Any

from pearl.errors.escaping import inert, to_json
from pearl.plugins.extras import require_extra
from pearl.runs.workbook import Table, Workbook

FORMATS = ("jsonl", "csv", "xlsx", "parquet")

_FIRST = ("id", "document", "status", "question", "answer")
_TEXTS = (
    "method", "model", "plan", "error_type", "error", "why", "evidence", "unverified_quotes",
    "notes", "provenance", "steps",
)  # fmt: skip
_NUMBERS = ("coverage", "duration_s")
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens")
_BATCH = 1_000  # Rows per batch of a Parquet file
_MAX_OUTPUTS = 200  # Maximum columns for outputs of plans; `steps` has all of them
_TYPES: Mapping[str, type] = {**dict.fromkeys(_NUMBERS, float), **dict.fromkeys(_TOKENS, int)}


def write_table(
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    file: IO[str],
    form: str,
    *,
    raw_cells: bool = False,
    facts: Iterable[tuple[str, Any]] = (),
) -> int:
    """Write rows as JSON lines or as a table; returns their number. In a workbook, `facts` say what it is."""
    if form == "jsonl":
        return write_rows(rows(), file)
    columns = _columns(rows())
    cells = ({name: cell(row) for name, cell in columns.items()} for row in rows())
    table = ("results", column_types(columns), cells)
    if form == "xlsx":
        return write_excel([table, _sources(rows())], file, facts)
    return write_sheet(table, file, form, raw_cells=raw_cells)


def write_sheet(table: Table, file: IO[str], form: str, *, raw_cells: bool = False) -> int:
    """Write a table; returns its number of rows. As CSV, a spreadsheet evaluates no cell of it."""
    _, columns, rows = table
    if form == "parquet":
        return _write_parquet(columns, rows, file)
    import csv

    shown: Callable[[Any], Any] = (lambda cell: cell) if raw_cells else inert
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(shown, columns))
    n_rows = 0
    for row in rows:
        writer.writerow([shown(row[name]) for name in columns])
        n_rows += 1
    return n_rows


def write_rows(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> int:
    """Write rows as JSON lines; returns their number."""
    n_rows = 0
    for row in rows:
        file.write(to_json(row) + "\n")
        n_rows += 1
    return n_rows


_OF_ROW = ("id", "value", "text", "source", "page", "start", "end", "state", "quote")


def write_evidence(
    rows: Callable[[], Iterable[Mapping[str, Any]]], file: IO[str], suffix: str = ".csv"
) -> None:
    """Write the rows behind answers as CSV or `.xlsx`: value, text and place of each, and a column per field."""

    def behind() -> Iterator[tuple[Any, Mapping[str, Any]]]:
        for row in rows():
            found = _mappings(row.get("evidence"))
            yield from ((row.get("id"), each) for each in found if each.get("match") == "row")

    fields = list(dict.fromkeys(name for _, each in behind() for name in each["fields"]))
    named = [name if name not in _OF_ROW else f"{name} (field)" for name in fields]
    columns = [*_OF_ROW, *named]

    def lines() -> Iterator[dict[str, Any]]:
        for id, each in behind():
            own = {"page": "", "start": "", "end": "", "quote": "", **each, "id": id}
            cells = [*map(own.get, _OF_ROW), *(each["fields"].get(name, "") for name in fields)]
            told = ["undecided" if cell is None else cell for cell in cells]
            yield dict(zip(columns, told, strict=True))

    table = ("rows", dict.fromkeys(columns, str), lines())
    if suffix == ".xlsx":
        write_excel([table], file)
    else:
        write_sheet(table, file, "csv")


SOURCES: Mapping[str, type] = {
    "document": str, "field": str, "value": str, "basis": str, "quote": str, "source": str, "page": int, "start": int, "end": int,
}  # fmt: skip
"""The columns of the sheet of sources."""


def source_row(passage: Mapping[str, Any], **about: Any) -> dict[str, Any]:
    """A row of the sheet of sources."""
    place = {name: passage.get(name) for name in ("source", "page", "start", "end")}
    return {**dict.fromkeys(SOURCES), **about, **place, "quote": passage.get("text")}


def _sources(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The passages of answers."""
    passages = (
        source_row(each, document=row.get("id"), field=", ".join(each.get("steps", ())))
        for row in rows if "answer" in row  # else it has fields of the input, of any type
        for each in _mappings(row.get("evidence"))
    )  # fmt: skip
    return "Sources", {**SOURCES}, passages


def write_excel(
    tables: Iterable[Table],
    file: IO[str],
    facts: Iterable[tuple[str, Any]] = (),
    columns: Iterable[tuple[str, str]] = (),
) -> int:
    """Write tables as sheets, and last what is to say of them and their columns; returns the number of rows of the first."""
    book = Workbook()
    n_rows = [book.add(table) for table in tables]
    book.add_readme(facts, columns)
    book.save(file)
    return n_rows[0]


def _write_parquet(
    types: Mapping[str, type], cells: Iterable[Mapping[str, Any]], file: IO[str]
) -> int:
    check_format("parquet")
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in types.items()])
    texts = {name for name, kind in types.items() if kind is str}
    n_rows = 0
    rows = iter(cells)
    with parquet.ParquetWriter(file.buffer, schema) as writer:  # type: ignore[attr-defined]
        while batch := [
            {
                name: str(value) if name in texts and value is not None else value
                for name, value in row.items()
            }
            for row in islice(rows, _BATCH)
        ]:
            writer.write_table(pyarrow.Table.from_pylist(batch, schema))
            n_rows += len(batch)
    return n_rows


def arrow_type(kind: type) -> Any:
    """The Arrow type of a column."""
    import pyarrow

    types = {
        str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()
    }  # fmt: skip
    return types[kind]


def check_format(form: str) -> None:
    """Check that what writes a format is installed."""
    if form == "xlsx":
        require_extra("excel", "writing Excel", "openpyxl")
    elif form == "parquet":
        require_extra("data", "writing Parquet", "pyarrow")


def column_types(names: Iterable[str]) -> dict[str, type]:
    """The types of the columns of `columns_of`."""
    return {name: _TYPES.get(name, str) for name in names}


Cell = Callable[[Mapping[str, Any]], Any]  # Reads one column of a row


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, Cell]:
    """The columns of a table of rows."""
    known = {*_FIRST, *_TEXTS, *_NUMBERS, "usage", "markdown", "parts"}
    outputs: dict[str, None] = {}
    fields: dict[str, None] = {}
    counts: dict[str, None] = {}
    for row in rows:
        fields |= dict.fromkeys(name for name in row if name not in known)
        if len(outputs) < _MAX_OUTPUTS:
            outputs |= dict.fromkeys(_steps(row))
        counts |= dict.fromkeys(p["output"] for p in _mappings(row.get("parts")) if "of" in p)
    return columns_of(outputs, fields, counts)


OF_COUNT = ("of", "not_stated", "undecided")
"""What a count has besides its value, each in a column of its own."""


def columns_of(
    outputs: Iterable[str], fields: Iterable[str], counts: Iterable[str] = ()
) -> dict[str, Cell]:
    """The columns of a table: the answer, the outputs, of what their counts are, what else is kept, and the fields of the input."""
    first: dict[str, Cell] = {name: partial(_text, name) for name in _FIRST}
    last: dict[str, Cell] = {
        **{name: partial(_text, name) for name in _TEXTS},
        **{name: partial(_number, float, name) for name in _NUMBERS},
        **{name: partial(_number, int, name, within="usage") for name in _TOKENS},
        "error_type": partial(_text, "type", within="error"),
        "error": partial(_text, "message", within="error"),
    }
    columns: dict[str, Cell] = {}
    for cells in (
        first,
        {name: partial(_output, name) for name in islice(outputs, _MAX_OUTPUTS)},
        {f"{name}_{key}": partial(_of_count, name, key) for name in counts for key in OF_COUNT},
        last,
        {name: partial(_text, name) for name in fields},
    ):
        for name, cell in cells.items():
            # An output or a field of the input may have the name of a fixed column.
            shown = name
            while shown in columns or (shown in last and cells is not last):
                shown += "_"
            columns[shown] = cell
    return columns


def _steps(row: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The steps of a row by their outputs."""
    steps = row.get("steps")
    # A failed row may have a field of the input of this name.
    return {e["output"]: e for e in _mappings(steps) if isinstance(e.get("output"), str)}


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (e for e in value if isinstance(e, Mapping)) if isinstance(value, list) else ()


def _output(name: str, row: Mapping[str, Any]) -> Any:
    """The value of an output; without one, what became of it."""
    step = _steps(row).get(name)
    if step is None:
        return None
    state, value = step.get("state", "found"), step.get("value")
    if state not in ("found", "degraded"):
        return "nothing found" if state == "nothing" else state
    if isinstance(value, list):
        named = _of_count(name, "value", row)
        if isinstance(named, list) and all(isinstance(each, str) for each in named):
            value = named  # rows by what they are called
        value = "; ".join(map(str, value))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _of_count(name: str, key: str, row: Mapping[str, Any]) -> Any:
    parts = _mappings(row.get("parts"))
    return next((part.get(key) for part in parts if part.get("output") == name), None)


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
