"""Rows of an extraction → tables, a review file of undecided fields; a person's answers → rows.

A table has a row for each document and a column for each field; a list has a table of its own, with a row
for each entry.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from io import StringIO
from pathlib import Path
from typing import IO, Any

from pearl.documents.document import read_bytes
from pearl.documents.record import FieldScalar
from pearl.documents.rows import shortened
from pearl.dsl.fields import Field, parse_fields
from pearl.dsl.nodes import String
from pearl.dsl.parser import parse
from pearl.errors import DataError, PlanError
from pearl.errors.escaping import counted, inert
from pearl.errors.patterns import lazy_pattern
from pearl.runs.export import write_csv, write_excel, write_parquet, write_rows

UNDECIDED, NOT_STATED, PERSON = "undecided", "not stated", "person"
COMPLETE = "complete"
"""What a person says of a list whose entries are all there."""

Rows = Callable[[], Iterable[Mapping[str, Any]]]
"""Reads the rows of a run from the beginning."""

Opener = Callable[[str], AbstractContextManager[IO[str]]]

_TYPES: Mapping[str, type] = {"int": int, "number": float, "bool": bool}
_MAX_EXACT = 2**53
"""Integers from here on are not exact in a spreadsheet or a column of floats."""


@lru_cache(maxsize=100)
def fields_of_plan(text: str) -> tuple[Field, ...]:
    """The fields that a plan extracts; none if it is invalid or extracts nothing."""
    fields: dict[str, Field] = {}
    try:
        for step in parse(text).steps:
            _, *arguments = step.arguments if step.action == "EXTRACT" else [None]
            for argument in arguments:
                for field in parse_fields(argument.value if isinstance(argument, String) else ""):
                    # As in the record of an answer.
                    name = f"{step.output}.{field.name}" if field.name in fields else field.name
                    fields[name] = replace(field, name=name)
    except PlanError:
        return ()
    return tuple(fields.values())


def fields_of_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[Field, ...]:
    """The fields of a run, if every row with an answer has a record; else none."""
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


# --- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of an extraction: its columns with their types, and its rows."""

    name: str
    columns: Mapping[str, type]
    cells: Callable[[], Iterator[dict[str, Any]]]


def table_files(out: str, fields: Iterable[Field]) -> dict[str, str]:
    """The file of each table: of the documents, under "", and of every list, by its name."""
    path = Path(out)
    if path.suffix.lower() in ("", ".xlsx", ".jsonl", ".html"):
        return {"": out}
    files = {"": out}
    for field in fields:
        if field.is_list:
            name = path.with_suffix("." + re.sub(r"[^\w.-]", "_", field.name) + path.suffix)
            while str(name).casefold() in map(str.casefold, files.values()):
                name = name.with_stem(f"{name.stem}_")
            files[field.name] = str(name)
    return files


def write_tables(
    fields: Sequence[Field],
    rows: Rows,
    out: str,
    form: str,
    opened: Opener,
    *,
    raw_cells: bool = False,
) -> int:
    """Write the tables of an extraction, or its rows as JSON lines; returns the number of documents.

    In Parquet a field that is undecided or not stated is null, and `FIELD_state` tells which.
    """
    if form == "jsonl":
        with opened(out) as file:
            return write_rows(rows(), file)
    tables = _tables(fields, rows, form)
    if form == "xlsx":
        with opened(out) as file:
            sheets = ((each.name or "documents", each.columns, each.cells()) for each in tables)
            return write_excel(sheets, file)
    n_rows: list[int] = []
    for path, table in zip(table_files(out, fields).values(), tables, strict=False):
        with opened(path) as file:
            if form == "csv":
                written = write_csv(table.cells(), list(table.columns), file, raw_cells=raw_cells)
            else:
                written = write_parquet(table.cells(), table.columns, file)
            n_rows.append(written)
    return n_rows[0]


def _tables(fields: Sequence[Field], rows: Rows, form: str) -> list[_Table]:
    """The table of the documents, then one for each list."""

    def documents() -> Iterator[_Row]:
        for row in rows():
            yield (document_of(row),), _record(row), (row.get("status"), _why(row))

    def entries(field: Field) -> Iterator[_Row]:
        for row in rows():
            for number, entry in enumerate(_entries(_record(row).get(field.name)), start=1):
                yield (document_of(row), number), entry, ()

    last = (("status", str), ("why", str))
    return [
        _table("", (), fields, last, documents, form),
        *(
            _table(
                field.name,
                (("entry", int),),
                entry_fields(field),
                (),
                partial(entries, field),
                form,
            )
            for field in fields
            if field.is_list
        ),
    ]


_Row = tuple[tuple[Any, ...], Mapping[str, Any], tuple[Any, ...]]
"""The first cells of a row, the results of its fields, and its last cells."""


def _table(
    name: str, key: Sequence[tuple[str, type]], fields: Sequence[Field], last: Sequence[tuple[str, type]],
    rows: Callable[[], Iterator[_Row]], form: str,
) -> _Table:  # fmt: skip
    columns: dict[str, type] = {"document": str}
    for column, kind in (*key, *(c for field in fields for c in _columns(field, form)), *last):
        unused = column
        while unused in columns:  # a field may be called `status` or `age_source`
            unused += "_"
        columns[unused] = kind

    def cells() -> Iterator[dict[str, Any]]:
        for first, results, others in rows():
            own = (cell for f in fields for cell in _cells(f, results.get(f.name), form))
            yield dict(zip(columns, (*first, *own, *others), strict=True))

    return _Table(name, columns, cells)


def entry_fields(field: Field) -> tuple[Field, ...]:
    """The fields of each entry of a list."""
    return field.fields or (Field("value", field.type, labels=field.labels),)


def _columns(field: Field, form: str) -> Iterator[tuple[str, type]]:
    """The columns of a field."""
    yield field.name, int if field.is_list else _TYPES.get(field.type, str)
    if form == "parquet":
        yield f"{field.name}_state", str
    if not field.is_list:
        yield f"{field.name}_source", str


def _cells(field: Field, result: Mapping[str, Any] | None, form: str) -> Iterator[Any]:
    """The cells of the columns of a field; empty ones if the document failed."""
    result = result or {}
    state = result.get("state")
    if state == UNDECIDED:
        value: Any = None if form == "parquet" else UNDECIDED
    elif field.is_list:
        value = None if state != "found" else len(_entries(result))
    else:
        value = result.get("value")
    if isinstance(value, bool) and form == "csv":
        value = str(value).lower()
    elif isinstance(value, int) and abs(value) >= _MAX_EXACT and form != "csv":
        value, state = (None, "too large") if form == "parquet" else (str(value), state)
    yield value
    if form == "parquet":
        yield None if state is None else str(state).replace("_", " ")
    if not field.is_list:
        yield source_of(result)


def shown_value(result: Mapping[str, Any]) -> str:
    """A field in a few words."""
    value, n = result.get("value"), len(_entries(result))
    if value is None and result["state"] == "found":
        return f"{n} {'entry' if n == 1 else 'entries'}"
    return str(result["state"]).replace("_", " ") if value is None else _text(value)


def source_of(result: Mapping[str, Any]) -> str | None:
    """Where a value stands, `file:page:start-end`; of an undecided field, where its candidates stand."""
    if result.get("basis") == PERSON:
        return PERSON
    passages = [*result.get("evidence", ())]
    for candidate in result.get("candidates", ()):
        passages += candidate["evidence"]
    return "; ".join(dict.fromkeys(map(_place, passages))) or None


def _place(passage: Mapping[str, Any]) -> str:
    page = passage.get("page")
    where = [passage["source"], *([page] if page else []), f"{passage['start']}-{passage['end']}"]
    return ":".join(map(str, where))


def _record(row: Mapping[str, Any]) -> Mapping[str, Any]:
    record = row.get("record")
    return record if isinstance(record, Mapping) else {}


def _entries(result: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    entries: Sequence[Mapping[str, Any]] = (result or {}).get("entries", ())
    return entries


def _why(row: Mapping[str, Any]) -> str | None:
    """Why a document failed or has undecided fields."""
    error = row.get("error")
    return error.get("message") if isinstance(error, Mapping) else row.get("why")


# --- review -----------------------------------------------------------------------------------

MAX_QUOTE = 300
"""Maximum characters of a quote in a review file."""

_REVIEWED = ("document", "field", "entry", "why", "candidates", "value")


def write_review(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> int:
    """Write a line for each undecided field, with an empty `value` for a person; returns their number."""
    lines = (
        dict(zip(_REVIEWED, (document_of(row), *line, ""), strict=True))
        for row in rows
        for line in _undecided(_record(row))
    )
    return write_csv(lines, _REVIEWED, file)


def _undecided(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Path, entry, reason and candidates of each undecided field."""
    for path, entry, result in _results(record):
        if result.get("state") == UNDECIDED:
            candidates = [
                f"{_text(each['value'])}: {_quoted(each['evidence'])}"
                for each in result.get("candidates", ())
            ] or [_quoted(result.get("evidence", ()))]
            yield path, entry, result.get("why", ""), "; ".join(candidates)


def _quoted(passages: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(
        f'"{shortened(each["text"], MAX_QUOTE)}" ({_place(each)})' for each in passages
    )


def _results(record: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every field with its path and, within a list, its entry in words."""
    for name, result in record.items():
        yield name, "", result
        for i, entry in enumerate(_entries(result)):
            shown = _shown(entry)
            yield from ((f"{name}[{i}].{key}", shown, each) for key, each in entry.items())


def _shown(entry: Mapping[str, Any]) -> str:
    """An entry of a list as the model read it, by which a person recognises it."""
    read = {key: each for key, each in entry.items() if each.get("basis") != PERSON}
    return ", ".join(
        f"{key}: {_text(each['value'])}" for key, each in read.items() if each["state"] == "found"
    )


def _text(value: FieldScalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- a person's answers -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """What a person says about a field: its value, or that the document does not state it."""

    line: int
    path: str
    entry: str | None
    result: Mapping[str, Any]


def read_answers(
    path: str, fields: Sequence[Field], documents: Iterable[str]
) -> dict[str, list[PersonAnswer]]:
    """The filled-in lines of a review file, by document.

    Raises:
        DataError: A line has an unknown document or field, or a value of the wrong type.
    """
    known = {inert(name): name for name in documents}  # as `write_review` writes them
    answers: dict[str, list[PersonAnswer]] = {}
    lines: dict[tuple[str, str], int] = {}
    for line, row in _answer_lines(path):
        value = row["value"].strip()
        if not value or value.casefold() == UNDECIDED:
            continue
        document = known.get(row["document"])
        if document is None:
            raise _wrong(path, line, f"the run has no document '{row['document'][:80]}'")
        name = row["field"].strip()
        field = _field_at(name, fields)
        if field is None:
            names = ", ".join(field.name for field in fields)[:200]
            raise _wrong(path, line, f"no field '{name[:80]}'", f"fields: {names}")
        if (before := lines.setdefault((document, name), line)) != line:
            raise _wrong(path, line, f"'{name}' of '{document}' stands in line {before}, too")
        try:
            result = _given(field, value)
        except ValueError as error:
            raise _wrong(path, line, f"'{name}': '{value[:80]}' is not {error}") from None
        answers.setdefault(document, []).append(PersonAnswer(line, name, row.get("entry"), result))
    return answers


def _answer_lines(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        text = read_bytes(path, path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8 text", path=path, help="save it as 'CSV UTF-8'") from None
    head = text.partition("\n")[0]
    # Some spreadsheets write semicolons or tabs.
    delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=delimiter, restval="")
    if missing := {"document", "field", "value"} - set(reader.fieldnames or ()):
        raise DataError(
            f"no column {', '.join(sorted(missing))}", path=path, help="--review FILE writes such a file"
        )  # fmt: skip
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise _wrong(path, reader.line_num, f"not CSV: {error}") from None


def _wrong(path: str, line: int, message: str, help: str | None = None) -> DataError:
    return DataError(
        message, path=path, line=line, help=help or "correct the line, or empty its value"
    )


def _field_at(path: str, fields: Iterable[Field]) -> Field | None:
    """The field of a path such as `age` or `drugs[0].dose_mg`."""
    for field in fields:
        if path == field.name:
            return field
        in_list = re.fullmatch(re.escape(field.name) + r"\[\d{1,6}\]\.(.+)", path, re.S)
        if field.is_list and in_list:
            return next((leaf for leaf in entry_fields(field) if leaf.name == in_list[1]), None)
    return None


def _given(field: Field, value: str) -> dict[str, Any]:
    """The result of a field by a person; a `ValueError` says what the value has to be."""
    if value.casefold() == NOT_STATED and NOT_STATED not in field.labels:
        return {"state": "not_stated", "value": None, "basis": PERSON}
    if field.is_list:
        if value.casefold() != COMPLETE:
            raise ValueError(f"'{COMPLETE}' or '{NOT_STATED}', as a list has to be")
        return {"state": "found", "value": None, "basis": PERSON}
    return {"state": "found", "value": _typed(field, value), "basis": PERSON}


def _typed(field: Field, text: str) -> FieldScalar:
    match field.type:
        case "int":
            if not re.fullmatch(r"[+-]?\d{1,300}(\.0+)?", text, re.ASCII):
                raise ValueError("a whole number")
            return int(text.partition(".")[0])
        case "number":
            if not re.fullmatch(r"[+-]?\d{1,300}(\.\d+)?([eE][+-]?\d{1,2})?", text, re.ASCII):
                raise ValueError("a number such as 1250.5")
            return int(text) if text.lstrip("+-").isdigit() else float(text)
        case "bool":
            if text.casefold() not in ("true", "false", "yes", "no"):
                raise ValueError("true or false")
            return text.casefold() in ("true", "yes")
        case "date":
            try:
                return datetime.strptime(text, "%Y-%m-%d").date().isoformat()
            except ValueError:
                raise ValueError("a date such as 2024-05-31") from None
        case "label":
            labels = [label for label in field.labels if label.casefold() == text.casefold()]
            if len(labels) != 1 and text not in labels:
                raise ValueError(f"one of {', '.join(field.labels)}")
            return text if text in labels else labels[0]
    return text


class AnsweredRows:
    """Rows with the values that a person gave in place of the model's.

    Attributes:
        problems: Values that could not be taken: the entry of a list is another one now.
        statuses: How many of the rows have a status.
    """

    def __init__(self, rows: Rows, answers: Mapping[str, Sequence[PersonAnswer]]) -> None:
        self._rows, self._answers = rows, answers
        self.problems: dict[int, str] = {}
        self.statuses: Counter[str] = Counter()

    def __call__(self) -> Iterator[Mapping[str, Any]]:
        """The rows, from the beginning."""
        self.statuses.clear()
        for row in self._rows():
            answers = self._answers.get(document_of(row), ())
            taken = self._taken(row, answers) if answers else row
            self.statuses[str(taken.get("status"))] += 1
            yield taken

    def _taken(self, row: Mapping[str, Any], answers: Sequence[PersonAnswer]) -> Mapping[str, Any]:
        record = json.loads(json.dumps(_record(row)))
        entries = {path: entry for path, entry, _ in _results(record)}
        results = {path: result for path, _, result in _results(record)}
        for answer in answers:
            if answer.path not in results:
                self.problems[answer.line] = f"'{document_of(row)}' has no '{answer.path}' now"
            elif answer.entry not in (None, now := entries[answer.path], inert(now)):
                self.problems[answer.line] = f"'{answer.path}' belongs to another entry now: {now}"
            else:
                result = results[answer.path]
                parts = _entries(result) if answer.result["state"] == "found" else ()
                result.clear()
                result |= {**answer.result, **({"entries": parts} if parts else {})}
        if not _OF_FIELDS.search(str(row.get("why"))):
            return {**row, "record": record}
        n = sum(result["state"] == UNDECIDED for result in results.values())
        if n:
            return {**row, "record": record, "why": f"{counted(n, 'field')} undecided"}
        kept = {name: value for name, value in row.items() if name != "why"}
        return {**kept, "record": record, "status": "answered"}


_OF_FIELDS = lazy_pattern(r"\d fields? (?:is|are) undecided")
"""What `why` says of a record with undecided fields."""
