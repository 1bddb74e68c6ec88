"""Rows of an extraction → tables of documents and of lists."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from pearl.actions.operators import operators
from pearl.documents.record import PLAIN, FieldScalar
from pearl.documents.rows import shortened
from pearl.dsl.fields import ENTRY, Field, parse_fields
from pearl.dsl.nodes import String
from pearl.dsl.parser import parse
from pearl.errors import PlanError
from pearl.runs.export import SOURCES, source_row, write_excel, write_rows, write_sheet
from pearl.runs.workbook import Marked, Table, amount, day

UNDECIDED, NOT_STATED, PERSON = "undecided", "not stated", "person"
ANSWER = "answer"  # The path of the answer of a row without fields

Rows = Callable[[], Iterable[Mapping[str, Any]]]  # Yields the rows of a run, from the beginning

Opener = Callable[[str], AbstractContextManager[IO[str]]]

COLUMN_TYPES: Mapping[str, type] = {"int": int, "number": float, "bool": bool}
"""Type of a field → type of its column; text for all others."""
MAX_PART = 120  # Maximum bytes of a list name within a file name, which may have 255
_MAX_EXACT = 2**53  # Larger integers are not exact in a spreadsheet or a column of floats


@lru_cache(maxsize=100)
def fields_of_plan(text: str) -> tuple[Field, ...]:
    """The fields that a plan extracts; () if it is invalid or extracts nothing."""
    fields: dict[str, Field] = {}
    try:
        for step in parse(text).steps:
            action = operators().get(step.action)
            is_record = action is not None and action.extracts and not action.extracts_all
            for argument in step.arguments[1:] if is_record else ():
                for field in parse_fields(argument.value if isinstance(argument, String) else ""):
                    # As in the record of an answer.
                    name = f"{step.output}.{field.name}" if field.name in fields else field.name
                    fields[name] = replace(field, name=name)
    except PlanError:
        return ()
    return tuple(fields.values())


def fields_of_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[Field, ...]:
    """The fields of a run, if every row with an answer has a record; else ()."""
    fields: dict[str, Field] = {}
    for row in rows:
        if isinstance(row.get("record"), Mapping):
            fields |= {field.name: field for field in fields_of_plan(str(row.get("plan")))}
        elif "answer" in row:
            return ()
    return tuple(fields.values())


def document_of(row: Mapping[str, Any]) -> str:
    """The name of the document of a row."""
    return str(row.get("document") or row.get("id") or "")


def id_of(row: Mapping[str, Any]) -> str:
    """The id by which decisions refer to a row: that of its task, or the document if there is none, as in `ask --json`."""
    return str(row.get("id") or row.get("document") or "")


# --- tables -----------------------------------------------------------------------------------


class FieldTable(NamedTuple):
    """The table of the documents or of a list: its full name, the fields that lead to it, the columns with entry numbers, and its fields."""

    name: str
    steps: tuple[str, ...]
    keys: tuple[str, ...]
    fields: Sequence[Field]
    number: int  # Of the outermost list among the fields of a document


def tables_of(fields: Iterable[Field]) -> Iterator[FieldTable]:
    """The table of the documents, and the lists in order, each before the lists in its entries; a list of lists is one table."""
    fields = tuple(fields)
    yield FieldTable("documents", (), (), fields, 0)
    for number, field in enumerate(fields, start=1):
        yield from _lists(field, FieldTable("", (), (), (), number))


def _lists(field: Field, around: FieldTable) -> Iterator[FieldTable]:
    if not field.is_list:
        return
    name = f"{around.name}.{field.name}" if around.name else field.name
    steps = [field.name]
    leaf = field
    while _is_of_lists(leaf):
        steps.append(ENTRY)
        leaf = leaf.fields[0]
    own, inner = ["entry"], [field.name]
    if len(steps) > 1:
        own = ["row", "column", *(f"level {i}" for i in range(3, len(steps) + 1))]
        inner = [f"{field.name} {level}" for level in own]
    table = around._replace(name=name, steps=(*around.steps, *steps), fields=leaf.inner)
    yield table._replace(keys=(*around.keys, *own))
    for each in leaf.fields:
        yield from _lists(each, table._replace(keys=(*around.keys, *inner)))


def _is_of_lists(field: Field) -> bool:
    return bool(field.fields) and field.fields[0].name == ENTRY


def table_files(out: str, fields: Iterable[Field]) -> dict[str, str]:
    """The file of each table: "" for the documents, and the name of each list."""
    path, files = Path(out), {"": out}
    if path.suffix.lower() in ("", ".xlsx", ".jsonl", ".html"):
        return files
    _, *lists = tables_of(fields)
    for table in lists:
        part = re.sub(r"[^\w.-]", "_", table.name).encode()[:MAX_PART].decode(errors="ignore")
        name = path.with_suffix(f".{part}{path.suffix}")
        while str(name).casefold() in map(str.casefold, files.values()):
            name = name.with_stem(f"{name.stem}_")
        files[table.name] = str(name)
    return files


def write_tables(
    fields: Sequence[Field],
    rows: Rows,
    out: str,
    form: str,
    opened: Opener,
    *,
    facts: Iterable[tuple[str, Any]] = (),
    page: str = "",
) -> int:
    """Write the tables of an extraction, or its rows as JSON lines; return the number of documents. `page` is the HTML page of the rows."""
    address = partial(_address, Path(out).resolve().parent, page)
    tables = (_table(each, rows, form, address) for each in tables_of(fields))
    if form in ("jsonl", "xlsx"):
        with opened(out) as file:
            if form == "jsonl":
                return write_rows(rows(), file)
            return write_excel(chain(tables, [_sources(rows())]), file, facts, explained(fields))
    n_rows: list[int] = []
    for path, table in zip(table_files(out, fields).values(), tables, strict=True):
        with opened(path) as file:
            n_rows.append(write_sheet(table, file, form))
    return n_rows[0]


_KINDS: Mapping[str, str] = {
    "str": "text, as it stands in the document", "text": "text, perhaps a summary", "int": "whole number",
    "number": "number", "decimal": "number with its digits", "bool": "true or false", "date": "date",
}  # fmt: skip
_COLUMNS = (
    ("FIELD_source", "where the value stands: file, page and characters; person, if a person gave it"),
    ("FIELD_basis", "what the value rests on: copied or normalised from its quotes; checked: a model says that they "
     "support it; judged: no model was asked; person: a person gave it"),
    ("status, why", "status of the document: answered if nothing is undecided, else why says what is"),
)  # fmt: skip


def explained(fields: Sequence[Field]) -> Iterator[tuple[str, str]]:
    """A description of each column of the tables."""
    yield from _COLUMNS
    for name, _, keys, columns, _ in tables_of(fields):
        if keys:
            of_keys = "number of the entry, and of those that it is in"
            yield f"{name}: {', '.join(keys)}", of_keys
        for field in columns:
            told = field_told(field)
            sheet = "number of entries, which have a sheet of their own; " if field.is_list else ""
            yield f"{name}: {field.name}", f"{sheet}{told}"


def field_told(field: Field) -> str:
    """The type, rules and description of a field in words."""
    kind = f"one of {', '.join(field.labels)}" if field.labels else _KINDS[field.type]
    if field.is_list:
        of_objects = "lists" if _is_of_lists(field) else "entries"
        kind = f"list of {of_objects if field.fields else kind}"
    rules = json.loads(field.rules) if field.rules else {}
    told = [kind, *(f"{name} {text_of(value)}" for name, value in rules.items())]
    told += ["need not be stated"] if field.is_optional else []
    return f"{'; '.join(told)}{f'. {field.description}' if field.description else ''}"


def _reached(
    results: Mapping[str, Any], steps: Sequence[str], first: str
) -> Iterator[tuple[tuple[int | None, ...], Mapping[str, Any]]]:
    """The entries to which steps lead, with their numbers; for a list of lists, also inner lists that are empty or undecided."""
    if not steps:
        yield (), results
        return
    step, *others = steps
    result = results.get(step or PLAIN)
    entries = entries_of(result)
    for number, entry in enumerate(entries, start=1):
        for numbers, each in _reached(entry, others, first):
            yield (number, *numbers), each
    if step == ENTRY and result and (not entries or result.get("state") == UNDECIDED):
        told = {**result, "entries": []} if result.get("state") == UNDECIDED else {}
        yield (None,) * len(steps), {first: told}


def _table(table: FieldTable, rows: Rows, form: str, address: Address) -> Table:
    last = {} if table.steps else {"status": str, "why": str}
    columns: dict[str, type] = {"document": str}
    for column, kind in (
        *((key, int) for key in table.keys),
        *(c for field in table.fields for c in field_columns(field, form)),
        *last.items(),
    ):
        columns[unused_name(column, columns)] = kind

    def lines() -> Iterator[dict[str, Any]]:
        for n, row in enumerate(rows(), start=1):
            error = row.get("error")
            why = error.get("message") if isinstance(error, Mapping) else row.get("why")
            ends = (row.get("status"), why) if last else ()
            for numbers, entry in _reached(record_of(row), table.steps, table.fields[0].name):
                cells = [document_of(row), *numbers]
                for number, field in enumerate(table.fields, start=1):
                    link = partial(address, f"r{n}f{table.number or number}")
                    cells += field_cells(field, entry.get(field.name, {}), form, link)
                yield dict(zip(columns, (*cells, *ends), strict=True))

    return table.name, columns, lines()


def unused_name(name: str, used: Container[str]) -> str:
    """A column name that is not in use: a field may be called `document`, `status` or `age_source`."""
    while name in used:
        name += "_"
    return name


def field_columns(field: Field, form: str) -> Iterator[tuple[str, type]]:
    """The columns of a field."""
    yield field.name, int if field.is_list else COLUMN_TYPES.get(field.type, str)
    if form == "parquet":
        yield f"{field.name}_state", str
    if not field.is_list:
        yield f"{field.name}_source", str
        yield f"{field.name}_basis", str


def field_cells(
    field: Field, result: Mapping[str, Any], form: str, link: Linked | None = None
) -> Iterator[Any]:
    """The cells in the columns of a field, empty if the document failed; `link` returns the address of the source."""
    state, value = result.get("state"), result.get("value")
    if field.is_list and state == "found":
        value = len(entries_of(result))
    elif state == UNDECIDED and form == "xlsx":
        proposed = [f"{text_of(c['value'])}: {_quoted(c)}" for c in result.get("candidates", ())]
        told = [f"proposed: {'; '.join(proposed)}"] if proposed else []
        value = Marked(UNDECIDED, "\n".join([*told, str(result.get("why") or UNDECIDED)]))
    elif state == UNDECIDED and form != "parquet":
        value = UNDECIDED
    elif form == "xlsx" and field.type in ("date", "decimal"):
        value = day(value) if field.type == "date" else amount(value)
    if isinstance(value, bool) and form == "csv":
        value = text_of(value)
    elif isinstance(value, int) and abs(value) >= _MAX_EXACT and form != "csv":
        value, state = (None, "too large") if form == "parquet" else (str(value), state)
    yield value
    if form == "parquet":
        yield state and str(state).replace("_", " ")
    if not field.is_list:
        source = source_of(result)
        yield Marked(source, link=link(result)) if source and link and form == "xlsx" else source
        yield result.get("basis") or None


def page_beside(out: str, written: Iterable[str]) -> str:
    """The name of the page next to a workbook, if the same run wrote it; else ""."""
    page = Path(out).resolve().with_suffix(".html")
    is_own = page.is_file() and any(Path(name).resolve() == page for name in written)
    return page.name if is_own else ""


Linked = Callable[[Mapping[str, Any]], str]
"""Returns the address of a result's source; "" for none."""
Address = Callable[[str, Mapping[str, Any]], str]
"""The same, for results of a field of a row: `r1f2`."""


def _address(folder: Path, page: str, place: str, result: Mapping[str, Any]) -> str:
    """The place in the page next to a workbook; without a page, an existing source file, for a PDF with the page number."""
    if page:
        return f"{quote(page)}#{place}"
    passage = next(_passages(result), {})
    file, number = str(passage.get("source", "")), passage.get("page")
    if not os.path.isfile(file):  # noqa: PTH113 - also of names that are too long for a file
        return ""
    address = quote(os.path.relpath(os.path.realpath(file), folder))
    return f"{address}#page={number}" if number and file.lower().endswith(".pdf") else address


def _passages(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The passages of a result and of its candidates."""
    yield from result.get("evidence", ())
    for candidate in result.get("candidates", ()):
        yield from candidate["evidence"]


def _sources(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The passages of all values and candidates."""
    passages = (
        source_row(
            passage, document=document_of(row), field=path, value=text_of(each["value"]),
            basis="candidate" if result["state"] == UNDECIDED else str(result.get("basis")),
        )
        for row in rows for path, _, result in results_of(record_of(row))
        for each in (result, *result.get("candidates", ())) for passage in each.get("evidence", ())
    )  # fmt: skip
    return "Sources", {**SOURCES}, passages


def shown_value(result: Mapping[str, Any]) -> str:
    """A field result as a short text."""
    value, n = result.get("value"), len(entries_of(result))
    if value is None and result["state"] == "found":
        return f"{n} {'entry' if n == 1 else 'entries'}"
    return str(result["state"]).replace("_", " ") if value is None else text_of(value)


def source_of(result: Mapping[str, Any]) -> str | None:
    """The location of a value, `file:page:start-end`; for an undecided field, the locations of its candidates."""
    places = "; ".join(dict.fromkeys(map(_place, _passages(result))))
    return places or (PERSON if result.get("basis") == PERSON else None)


def _place(passage: Mapping[str, Any]) -> str:
    page = passage.get("page")
    where = [passage["source"], *([page] if page else []), f"{passage['start']}-{passage['end']}"]
    return ":".join(map(str, where))


def record_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The results of the fields of a row, by their names."""
    record = row.get("record")
    return record if isinstance(record, Mapping) else {}


def entries_of(result: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    """The entries of a list; () for other results."""
    entries: Sequence[Mapping[str, Any]] = (result or {}).get("entries", ())
    return entries


MAX_QUOTE = 300  # Maximum characters of a quote in a cell


def _quoted(result: Mapping[str, Any]) -> str:
    return ", ".join(
        f'"{shortened(passage["text"], MAX_QUOTE)}" ({_place(passage)})'
        for passage in result.get("evidence", ())
    )


def results_of(
    record: Mapping[str, Any], path: str = "", around: str = ""
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every field with its path and result; within a list, also a description of the entries that contain it."""
    for name, result in record.items():
        yield f"{path}{name}", around, result
        for i, entry in enumerate(entries_of(result)):
            # This lets a person recognise the entry.
            read = ", ".join(
                f"{key}: {text_of(value['value'])}"
                for key, value in entry.items()
                if value["state"] == "found" and value.get("basis") != PERSON
                and value["value"] is not None
            )  # fmt: skip
            within = " / ".join(filter(None, (around, read)))
            yield from results_of(entry, f"{path}{name}[{i}].", within)


def text_of(value: FieldScalar) -> str:
    """A value as tables show it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
