"""Rows of runs → JSON Lines, CSV, Excel or Parquet, streamed to an open file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, Any, NamedTuple

from pearl.errors.escaping import inert, to_json
from pearl.interpreter.row import ResultRow, read_row
from pearl.plugins.extras import require_extra
from pearl.runs.workbook import Table, Workbook

FORMATS = ("jsonl", "csv", "xlsx", "parquet")

_BATCH = 1_000  # Rows per batch of a Parquet file
_MAX_OUTPUTS = 200  # Maximum output columns; `steps` has all outputs


class Column(NamedTuple):
    """A column of a results table: its type, and the function that reads its cell."""

    kind: type
    read: Callable[[ResultRow], Any]


def _field(*path: str, kind: type = str) -> Column:
    """A column with a field of rows; empty for rows without it."""

    def read(row: ResultRow) -> Any:
        value: Any = row.data
        read: Any = row.raw
        for name in path:
            if read is None or name not in read:
                return None
            value, read = value.get(name), read[name]
        if kind is not str or value is None:
            return value
        return _encodable(
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        )

    return Column(kind, read)


FIRST = {name: _field(name) for name in ("id", "document", "status", "question", "answer")}
LAST = {
    "method": _field("method"),
    "model": _field("model"),
    "plan": _field("plan"),
    "error_type": _field("error", "type"),
    "error": _field("error", "message"),
    "why": _field("why"),
    "evidence": _field("evidence"),
    "unverified_quotes": _field("unverified_quotes"),
    "notes": _field("notes"),
    "provenance": _field("provenance"),
    "steps": _field("steps"),
    "coverage": _field("coverage", kind=float),
    "duration_s": _field("duration_s", kind=float),
    "input_tokens": _field("usage", "input_tokens", kind=int),
    "output_tokens": _field("usage", "output_tokens", kind=int),
    "cached_tokens": _field("usage", "cached_tokens", kind=int),
}
"""The columns of every table before (`FIRST`) and after (`LAST`) the outputs; to add a column, add a line."""


def write_table(
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    file: IO[str],
    form: str,
    *,
    facts: Iterable[tuple[str, Any]] = (),
) -> int:
    """Write rows as JSON lines or as a table; return their number. `facts` describe a workbook."""
    if form == "jsonl":
        return write_rows(rows(), file)
    columns = _columns(rows())
    cells = (
        {name: column.read(row) for name, column in columns.items()}
        for row in map(read_row, rows())
    )
    table = ("results", {name: column.kind for name, column in columns.items()}, cells)
    if form != "xlsx":
        return write_sheet(table, file, form)
    passages = (
        source_row(each.to_dict(), document=row.id, field=", ".join(each.steps))
        for row in map(read_row, rows())
        if "answer" in row.raw  # Otherwise it only has fields of the input
        for each in row.evidence
    )
    return write_excel([table, ("Sources", SOURCES, passages)], file, facts)


def write_sheet(table: Table, file: IO[str], form: str) -> int:
    """Write a table; return its number of rows. In CSV, cells are escaped so that spreadsheets evaluate none."""
    _, columns, rows = table
    if form == "parquet":
        return _write_parquet(columns, rows, file)
    import csv

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(inert, columns))
    n_rows = 0
    for row in rows:
        writer.writerow([inert(row[name]) for name in columns])
        n_rows += 1
    return n_rows


def write_rows(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> int:
    """Write rows as JSON lines; return their number."""
    n_rows = 0
    for row in rows:
        file.write(to_json(row) + "\n")
        n_rows += 1
    return n_rows


_OF_ROW = ("id", "value", "text", "source", "page", "start", "end", "state", "quote")


def write_evidence(
    rows: Callable[[], Iterable[Mapping[str, Any]]], file: IO[str], suffix: str = ".csv"
) -> None:
    """Write the rows behind answers as CSV or `.xlsx`: value, text and position of each, and one column per field."""

    def behind() -> Iterator[tuple[Any, Mapping[str, Any]]]:
        for row in map(read_row, rows()):
            yield from ((row.id, each.to_dict()) for each in row.document_rows)

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
"""The columns of the sources sheet."""


def source_row(passage: Mapping[str, Any], **about: Any) -> dict[str, Any]:
    """A row of the sources sheet."""
    place = {name: passage.get(name) for name in ("source", "page", "start", "end")}
    return {**dict.fromkeys(SOURCES), **about, **place, "quote": passage.get("text")}


def write_excel(
    tables: Iterable[Table],
    file: IO[str],
    facts: Iterable[tuple[str, Any]] = (),
    columns: Iterable[tuple[str, str]] = (),
) -> int:
    """Write tables as sheets, followed by a sheet that describes them and their columns; return the number of rows of the first table."""
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
    """Check that the packages for a format are installed."""
    if form == "xlsx":
        require_extra("excel", "writing Excel", "openpyxl")
    elif form == "parquet":
        require_extra("data", "writing Parquet", "pyarrow")


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, Column]:
    """The columns of a table of results."""
    # Others, such as `input_tokens`, are columns of a part of a row: a field of the input may have their name.
    of_rows = {*ResultRow.__struct_fields__} & {*FIRST, *LAST}
    fixed = {*of_rows, "usage", "markdown", "parts", "v"}
    outputs: dict[str, None] = {}
    fields: dict[str, None] = {}
    counts: dict[str, None] = {}
    for data in rows:
        fields |= dict.fromkeys(name for name in data if name not in fixed)
        # Read only the parts of each row that name columns
        row = read_row({name: data[name] for name in ("v", "steps", "parts") if name in data})
        if len(outputs) < _MAX_OUTPUTS:
            outputs |= dict.fromkeys(step.output for step in row.steps)
        counts |= dict.fromkeys(part.output for part in row.parts if part.of is not None)
    return columns_of(outputs, fields, counts)


OF_COUNT = ("of", "not_stated", "undecided")
"""Properties of a count besides its value, each in its own column."""


def columns_of(
    outputs: Iterable[str], fields: Iterable[str], counts: Iterable[str] = ()
) -> dict[str, Column]:
    """The columns of a table: the answer, the outputs, the bases of their counts, other fixed columns, and the fields of the input."""
    columns: dict[str, Column] = {}
    for group in (
        FIRST,
        {name: _output(name) for name in islice(outputs, _MAX_OUTPUTS)},
        {f"{name}_{key}": _of_count(name, key) for name in counts for key in OF_COUNT},
        LAST,
        {name: _field(name) for name in fields},
    ):
        for name, column in group.items():
            # If an output or input field has the name of a fixed column, "_" is appended.
            label = name
            while label in columns or (label in LAST and group is not LAST):
                label += "_"
            columns[label] = column
    return columns


def _output(name: str) -> Column:
    """A column with the value of an output, or its state if it has no value."""

    def read(row: ResultRow) -> Any:
        step = next((each for each in row.steps if each.output == name), None)
        if step is None:
            return None
        if step.state != "found":
            return "nothing found" if step.state == "nothing" else step.state
        value: Any = step.value
        if isinstance(value, list):
            named = next((part.value for part in row.parts if part.output == name), None)
            if isinstance(named, list) and all(isinstance(each, str) for each in named):
                value = named  # Rows by their names
            value = "; ".join(map(str, value))
        return _encodable(value) if isinstance(value, str) else value

    return Column(str, read)


def _of_count(name: str, key: str) -> Column:
    return Column(
        str, lambda row: next((getattr(p, key) for p in row.parts if p.output == name), None)
    )


def _encodable(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode()
