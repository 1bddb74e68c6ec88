"""Rows of an extraction → tables of documents and of lists, a review file of undecided fields; a person's answers → rows."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from pearl.actions.operators import operators
from pearl.documents.document import read_bytes
from pearl.documents.record import PLAIN, FieldScalar
from pearl.documents.rows import shortened
from pearl.dsl.fields import ENTRY, Field, broken_rule, parse_fields
from pearl.dsl.nodes import String
from pearl.dsl.parser import parse
from pearl.errors import DataError, PlanError
from pearl.errors.escaping import counted, inert
from pearl.errors.patterns import lazy_pattern
from pearl.runs.export import SOURCES, source_row, write_excel, write_rows, write_sheet
from pearl.runs.workbook import Marked, Table, amount, day

if TYPE_CHECKING:
    from pearl.data.schemas import Schema

UNDECIDED, NOT_STATED, PERSON = "undecided", "not stated", "person"
COMPLETE = "complete"  # What a person says of a list whose entries are all there
ACCEPT = "accept proposed"  # What a person says of a field whose one proposed value is right
ANSWER = "answer"  # The path of a row without fields

Rows = Callable[[], Iterable[Mapping[str, Any]]]  # Reads the rows of a run from the beginning

Opener = Callable[[str], AbstractContextManager[IO[str]]]

COLUMN_TYPES: Mapping[str, type] = {"int": int, "number": float, "bool": bool}
"""Types of fields → types of their columns; of all others, text."""
_WANTED: Mapping[str, tuple[Sequence[type], str]] = {
    "int": ([int], "a whole number"),
    "number": ([int, float], "a number such as 1250.5"),
    "bool": ([bool], "true or false"),
}
"""What a person's value has to be, as JSON writes it."""
MAX_PART = 120  # Maximum bytes of the name of a list in the name of its file, which has 255
_MAX_EXACT = 2**53  # Integers from here on are not exact in a spreadsheet or a column of floats


@lru_cache(maxsize=100)
def fields_of_plan(text: str) -> tuple[Field, ...]:
    """The fields that a plan extracts; none if it is invalid or extracts nothing."""
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


def id_of(row: Mapping[str, Any]) -> str:
    """By what decisions about a row know it: the id of its task; what `ask --json` prints has its document alone."""
    return str(row.get("id") or row.get("document") or "")


# --- tables -----------------------------------------------------------------------------------


class ListTable(NamedTuple):
    """A list, named with those around it, whose entries are the rows of a table: the fields that lead to it, and columns with numbers of entries."""

    name: str
    steps: tuple[str, ...]
    keys: tuple[str, ...]
    field: Field
    number: int


def lists_of(fields: Iterable[Field]) -> Iterator[ListTable]:
    """The lists of fields in order, each before those in its entries; lists in lists are one table."""
    for number, field in enumerate(fields, start=1):
        yield from _lists(field, ListTable("", (), (), field, number))


def _lists(field: Field, around: ListTable) -> Iterator[ListTable]:
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
    table = around._replace(name=name, steps=(*around.steps, *steps), field=leaf)
    yield table._replace(keys=(*around.keys, *own))
    for each in leaf.fields:
        yield from _lists(each, table._replace(keys=(*around.keys, *inner)))


def _is_of_lists(field: Field) -> bool:
    return bool(field.fields) and field.fields[0].name == ENTRY


def table_files(out: str, fields: Iterable[Field]) -> dict[str, str]:
    """The file of each table: of the documents, under "", and of every list, by its name."""
    path, files = Path(out), {"": out}
    if path.suffix.lower() in ("", ".xlsx", ".jsonl", ".html"):
        return files
    for table in lists_of(fields):
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
    raw_cells: bool = False,
    facts: Iterable[tuple[str, Any]] = (),
    page: str = "",
) -> int:
    """Write the tables of an extraction, or its rows as JSON lines; returns the number of documents. `page` is that of the rows."""
    tables = _tables(fields, rows, form, _Links(out, page))
    if form in ("jsonl", "xlsx"):
        with opened(out) as file:
            if form == "jsonl":
                return write_rows(rows(), file)
            return write_excel(chain(tables, [_sources(rows())]), file, facts, explained(fields))
    n_rows: list[int] = []
    for path, table in zip(table_files(out, fields).values(), tables, strict=True):
        with opened(path) as file:
            n_rows.append(write_sheet(table, file, form, raw_cells=raw_cells))
    return n_rows[0]


def _tables(fields: Sequence[Field], rows: Rows, form: str, links: _Links) -> Iterator[Table]:
    """The table of the documents, then one for each list; each is read before the next."""
    documents = (
        ((document_of(row),), record_of(row), (row.get("status"), _why(row)), n)
        for n, row in enumerate(rows(), start=1)
    )
    numbers = range(1, len(fields) + 1)
    last = {"status": str, "why": str}
    yield _table("documents", (), fields, last, documents, form, links, numbers)
    for table in lists_of(fields):
        inner = table.field.inner
        of_list = [table.number] * len(inner)
        yield _table(
            table.name, table.keys, inner, {}, _numbered(rows(), table), form, links, of_list
        )


_KINDS: Mapping[str, str] = {
    "str": "text, as it stands in the document", "text": "text, perhaps a summary", "int": "whole number",
    "number": "number", "decimal": "number with its digits", "bool": "true or false", "date": "date",
}  # fmt: skip
_COLUMNS = (
    ("FIELD_source", "where the value stands: file, page and characters; person, if a person gave it"),
    ("FIELD_basis", "what the value rests on: copied or normalised from its quotes; checked: a model says that they "
     "say so; judged: no model was asked; person: a person gave it"),
    ("status, why", "of the document: answered if nothing is undecided; else what is"),
)  # fmt: skip


def explained(fields: Sequence[Field]) -> Iterator[tuple[str, str]]:
    """What each column of the tables is."""
    yield from _COLUMNS
    tables: list[tuple[str, Sequence[str], Sequence[Field]]] = [("documents", (), fields)]
    tables += [(each.name, each.keys, each.field.inner) for each in lists_of(fields)]
    for name, keys, columns in tables:
        if keys:
            of_keys = "number of the entry, and of those that it is in"
            yield f"{name}: {', '.join(keys)}", of_keys
        for field in columns:
            told = field_told(field)
            sheet = "number of entries, which have a sheet of their own; " if field.is_list else ""
            yield f"{name}: {field.name}", f"{sheet}{told}"


def field_told(field: Field) -> str:
    """The type, the rules and the description of a field in words."""
    kind = f"one of {', '.join(field.labels)}" if field.labels else _KINDS[field.type]
    if field.is_list:
        of_objects = "lists" if _is_of_lists(field) else "entries"
        kind = f"list of {of_objects if field.fields else kind}"
    rules = json.loads(field.rules) if field.rules else {}
    told = [kind, *(f"{name} {_text(value)}" for name, value in rules.items())]
    told += ["need not be stated"] if field.is_optional else []
    return f"{'; '.join(told)}{f'. {field.description}' if field.description else ''}"


_Row = tuple[tuple[Any, ...], Mapping[str, Any], tuple[Any, ...], int]
"""The first cells of a row, the results of its fields, its last cells, and the number of its document."""


def _numbered(rows: Iterable[Mapping[str, Any]], table: ListTable) -> Iterator[_Row]:
    first = table.field.inner[0].name
    for n, row in enumerate(rows, start=1):
        for numbers, entry in _reached(record_of(row), table.steps, first):
            yield (document_of(row), *numbers), entry, (), n


def _reached(
    results: Mapping[str, Any], steps: Sequence[str], first: str
) -> Iterator[tuple[tuple[int | None, ...], Mapping[str, Any]]]:
    """The entries to which steps lead, with their numbers; of a list in a list, also what else is to say of it."""
    step, *others = steps
    result = results.get(step or PLAIN)
    entries = _entries(result)
    for number, entry in enumerate(entries, start=1):
        for numbers, each in _reached(entry, others, first) if others else [((), entry)]:
            yield (number, *numbers), each
    if step == ENTRY and result and (not entries or result.get("state") == UNDECIDED):
        told = {**result, "entries": []} if result.get("state") == UNDECIDED else {}
        yield (None,) * len(steps), {first: told}


def _table(
    name: str, keys: Iterable[str], fields: Sequence[Field], last: Mapping[str, type], rows: Iterable[_Row],
    form: str, links: _Links, numbers: Sequence[int],
) -> Table:  # fmt: skip
    columns: dict[str, type] = {"document": str}
    for column, kind in (
        *((key, int) for key in keys),
        *(c for field in fields for c in field_columns(field, form)),
        *last.items(),
    ):
        columns[unused_name(column, columns)] = kind
    cells = (
        (
            *first,
            *(
                cell
                for number, f in zip(numbers, fields, strict=True)
                for cell in field_cells(f, results.get(f.name, {}), form, links.at(n, number))
            ),
            *others,
        )
        for first, results, others, n in rows
    )
    return name, columns, (dict(zip(columns, row, strict=True)) for row in cells)


def unused_name(name: str, used: Container[str]) -> str:
    """A name that no other column has: a field may be called `document`, `status` or `age_source`."""
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
    """The cells of the columns of a field; empty ones if the document failed. `link` gives the address of its source."""
    state, value = result.get("state"), result.get("value")
    if field.is_list and state == "found":
        value = len(_entries(result))
    elif state == UNDECIDED and form == "xlsx":
        told = [f"proposed: {_candidates(result)}"] if result.get("candidates") else []
        value = Marked(UNDECIDED, "\n".join([*told, str(result.get("why") or UNDECIDED)]))
    elif state == UNDECIDED and form != "parquet":
        value = UNDECIDED
    elif form == "xlsx" and field.type in ("date", "decimal"):
        value = day(value) if field.type == "date" else amount(value)
    if isinstance(value, bool) and form == "csv":
        value = _text(value)
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
    """The name of the page beside a workbook, if the same run wrote it; else ""."""
    page = Path(out).resolve().with_suffix(".html")
    is_own = page.is_file() and any(Path(name).resolve() == page for name in written)
    return page.name if is_own else ""


Linked = Callable[[Mapping[str, Any]], str]
"""Gives the address to which the source of a result leads."""


class _Links:
    """Addresses in the page beside a workbook; without a page, the files of sources that are there, a PDF at the page."""

    def __init__(self, out: str, page: str) -> None:
        self._folder, self._page = Path(out).resolve().parent, page

    def at(self, row: int, field: int) -> Linked:
        """The address of a result of a field of a row."""
        return partial(self._address, f"{quote(self._page)}#r{row}f{field}")

    def _address(self, place: str, result: Mapping[str, Any]) -> str:
        if self._page:
            return place
        passage = next(_passages(result), {})
        file, page = str(passage.get("source", "")), passage.get("page")
        if not os.path.isfile(file):  # noqa: PTH113 - also of names that are too long for a file
            return ""
        address = quote(os.path.relpath(os.path.realpath(file), self._folder))
        return f"{address}#page={page}" if page and file.lower().endswith(".pdf") else address


def _passages(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The passages of a result and of its candidates."""
    yield from result.get("evidence", ())
    for candidate in result.get("candidates", ()):
        yield from candidate["evidence"]


def _sources(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The passages of all values and candidates."""
    passages = (
        source_row(
            passage, document=document_of(row), field=path, value=_text(each["value"]),
            basis="candidate" if result["state"] == UNDECIDED else str(result.get("basis")),
        )
        for row in rows for path, _, result in results_of(record_of(row))
        for each in (result, *result.get("candidates", ())) for passage in each.get("evidence", ())
    )  # fmt: skip
    return "Sources", {**SOURCES}, passages


def shown_value(result: Mapping[str, Any]) -> str:
    """A field in a few words."""
    value, n = result.get("value"), len(_entries(result))
    if value is None and result["state"] == "found":
        return f"{n} {'entry' if n == 1 else 'entries'}"
    return str(result["state"]).replace("_", " ") if value is None else _text(value)


def source_of(result: Mapping[str, Any]) -> str | None:
    """Where a value stands, `file:page:start-end`; of an undecided field, where its candidates stand."""
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


def proposed(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The values that a result proposes, each with its evidence: that which is found, or its candidates."""
    if result.get("state") == "found":
        return [] if "entries" in result or result.get("value") is None else [result]
    return [each for each in result.get("candidates", ()) if isinstance(each, Mapping)]


def _entries(result: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    entries: Sequence[Mapping[str, Any]] = (result or {}).get("entries", ())
    return entries


def _why(row: Mapping[str, Any]) -> str | None:
    """Why a document failed or has undecided fields."""
    error = row.get("error")
    return error.get("message") if isinstance(error, Mapping) else row.get("why")


# --- review -----------------------------------------------------------------------------------

MAX_QUOTE = 300  # Maximum characters of a quote in a review file

_REVIEWED = ("document", "field", "entry", "why", "candidates", "value")


def write_review(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> int:
    """Write a line for each undecided field, with an empty `value` for a person; returns their number."""
    lines = (
        (document_of(row), path, entry, result.get("why"), _candidates(result), "")
        for row in rows
        for path, entry, result in results_of(record_of(row))
        if result["state"] == UNDECIDED
    )
    cells = (dict(zip(_REVIEWED, line, strict=True)) for line in lines)
    return write_sheet(("review", dict.fromkeys(_REVIEWED, str), cells), file, "csv")


def _candidates(result: Mapping[str, Any]) -> str:
    """The values that a field may have with their quotes, or the quotes alone."""
    candidates = [f"{_text(c['value'])}: {_quoted(c)}" for c in result.get("candidates", ())]
    return "; ".join(candidates) or _quoted(result)


def _quoted(result: Mapping[str, Any]) -> str:
    return ", ".join(
        f'"{shortened(passage["text"], MAX_QUOTE)}" ({_place(passage)})'
        for passage in result.get("evidence", ())
    )


def results_of(
    record: Mapping[str, Any], path: str = "", around: str = ""
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every field with its path and, within a list, its entry as the model read it, behind those around it."""
    for name, result in record.items():
        yield f"{path}{name}", around, result
        for i, entry in enumerate(_entries(result)):
            # By it a person recognises the entry.
            read = ", ".join(
                f"{key}: {_text(value['value'])}"
                for key, value in entry.items()
                if value["state"] == "found" and value.get("basis") != PERSON
                and value["value"] is not None
            )  # fmt: skip
            within = " / ".join(filter(None, (around, read)))
            yield from results_of(entry, f"{path}{name}[{i}].", within)


def _text(value: FieldScalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- a person's answers -----------------------------------------------------------------------


class PersonAnswer(NamedTuple):
    """What a person says about a field: its value, or that the document does not state it."""

    line: int
    path: str
    entry: str | None
    result: Mapping[str, Any]  # Empty for `ACCEPT`
    field: Field | None = None


def field_at(fields: Mapping[str, Field], path: str) -> Field | None:
    """The field at a path such as `orders[0].items[2].price`, of those of `by_path`."""
    return fields.get(path) or fields.get(_NUMBER.sub("[].", path))


_NUMBER = lazy_pattern(r"\[\d+\]\.")


def by_path(fields: Iterable[Field], path: str = "") -> Iterator[tuple[str, Field]]:
    """Fields by their paths without numbers: `orders[].items[].price`."""
    for field in fields:
        yield f"{path}{field.name}", field
        if field.is_list:
            yield from by_path(field.inner, f"{path}{field.name}[].")


def read_answers(
    path: str, fields: Sequence[Field], documents: Iterable[str]
) -> dict[str, list[PersonAnswer]]:
    """The filled-in lines of a review file, by document."""
    known = {inert(name): name for name in documents}  # as `write_review` writes them
    paths = dict(by_path(fields))
    answers: dict[str, list[PersonAnswer]] = {}
    lines: dict[tuple[str, str], int] = {}
    for line, row in _answer_lines(path):
        document, name, value = row["document"], row["field"].strip(), row["value"].strip()
        if not value or value.casefold() == UNDECIDED:
            continue
        field = field_at(paths, name)
        try:
            if document not in known:
                raise ValueError(f"the run has no document '{document[:80]}'")
            if field is None:
                names = ", ".join(field.name for field in fields)[:200]
                raise ValueError(f"no field '{name[:80]}'; fields: {names}")
            if (before := lines.setdefault((document, name), line)) != line:
                raise ValueError(f"'{name}' of '{document}' stands in line {before}, too")
            given = PersonAnswer(line, name, row.get("entry"), person_result(field, value), field)
        except ValueError as error:
            help = "correct the line, or empty its value"
            raise DataError(str(error), path=path, line=line, help=help) from None
        answers.setdefault(known[document], []).append(given)
    return answers


def is_filled_in(path: str) -> bool:
    """Whether a file is a review in which a person has written values."""
    with suppress(DataError):
        return any(row["value"].strip() for _, row in _answer_lines(path))
    return False


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
        raise DataError(f"not CSV: {error}", path=path, line=reader.line_num) from None


def person_result(field: Field, text: str) -> dict[str, Any]:
    """The result of a field by a person, empty for `ACCEPT`; a `ValueError` says what the value has to be."""
    if text.casefold() == ACCEPT and ACCEPT not in field.labels:
        return {}
    if text.casefold() == NOT_STATED and NOT_STATED not in field.labels:
        return {"state": "not_stated", "value": None, "basis": PERSON}
    value, wanted = _typed(field, text)
    if wanted:
        raise ValueError(f"'{field.name}': '{text[:80]}' is not {wanted}")
    judged: Any = Decimal(str(value)) if field.type == "decimal" and value else value
    if not field.is_list and (flaw := broken_rule(field.rules, judged)):
        raise ValueError(f"'{field.name}': {flaw}")
    return {"state": "found", "value": value, "basis": PERSON}


def _typed(field: Field, text: str) -> tuple[FieldScalar, str]:
    """The value of a text; or else what it has to be."""
    if field.is_list:
        return None, "" if text.casefold() == COMPLETE else f"'{COMPLETE}' or '{NOT_STATED}'"
    if field.type == "label":
        labels = {label.casefold(): label for label in field.labels}
        label = labels.get(text.casefold())
        return label, "" if label else f"one of {', '.join(field.labels)}"
    if field.type == "date":
        with suppress(ValueError):
            return datetime.strptime(text, "%Y-%m-%d").date().isoformat(), ""
        return None, "a date such as 2024-05-31"
    if field.type == "decimal":
        with suppress(InvalidOperation):
            if Decimal(text).is_finite():
                return text, ""
        return None, "a number such as 1250.50"
    if field.type not in _WANTED:
        return text, ""
    kinds, wanted = _WANTED[field.type]
    with suppress(ValueError, RecursionError):
        plain = re.sub(r"\.0+$", "", text.casefold())  # a spreadsheet writes TRUE and 54.0
        value = json.loads({"yes": "true", "no": "false"}.get(plain, plain))
        if type(value) in kinds and abs(value) < math.inf:
            return value, ""
    return None, wanted


class AnsweredRows:
    """Rows with the values that a person gave in place of the model's, in the form of a schema if there is one; `problems` could not be taken."""

    def __init__(self, rows: Rows, answers: Mapping[str, Sequence[PersonAnswer]]) -> None:
        self._rows, self.answers = rows, answers
        self.schema: Schema | None = None
        self.problems: dict[int, str] = {}
        self.statuses: Counter[str] = Counter()

    def __call__(self) -> Iterator[Mapping[str, Any]]:
        """The rows, from the beginning."""
        self.statuses.clear()
        for row in self._rows():
            taken = self.taken(row)
            taken = taken if self.schema is None else in_form(taken, self.schema)
            self.statuses[str(taken.get("status"))] += 1
            yield taken

    def taken(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row with what persons say about it."""
        answers = self.answers.get(id_of(row), ())
        if not answers:
            return row
        if "record" not in row:
            return _answered(row, answers) if isinstance(row.get("answer"), str) else row
        record = json.loads(json.dumps(record_of(row)))
        results = {path: (entry, result) for path, entry, result in results_of(record)}
        for line, path, entry, given, field in answers:
            now, result = results.get(path, ("", None))
            if result is None:
                self.problems[line] = f"'{document_of(row)}' has no '{path}' now"
            elif entry not in (None, now, inert(now)):
                self.problems[line] = f"'{path}' belongs to another entry now: {now}"
            elif not given and len(proposed(result)) != 1:
                n = len(proposed(result))
                self.problems[line] = f"'{path}' has {counted(n, 'proposed value')}, not one"
            else:
                try:
                    said = given or accepted(field, proposed(result)[0])
                except ValueError as error:
                    self.problems[line] = str(error)
                    continue
                entries = _entries(result) if said["state"] == "found" else ()
                result.clear()
                result |= {**said, **({"entries": entries} if entries else {})}
        taken = _told_again(row, record)
        n = sum(result["state"] == UNDECIDED for _, result in results.values())
        is_whole = all(_entries(r) or r.get("basis") == PERSON for _, r in results.values())
        if is_whole or _OF_FIELDS.search(str(row.get("why"))):
            taken.pop("why", None)
            taken |= {"why": f"{counted(n, 'field')} undecided"} if n else {"status": "answered"}
        return taken


def in_form(row: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    """A row with what its record says in the form of a schema: `value`, `undecided`, `reasons`, `partial`."""
    from pearl.interpreter.row import restored_record  # late: tables need no answers

    try:
        record = restored_record(row)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):  # not of this pearl
        record = None
    if record is None:
        return row
    said = schema.read(record).to_dict()
    if row.get("status") == "answered" and said["undecided"]:  # the model refuses something
        status = "undecided" if said["value"] is None else "degraded"
        said |= {"status": status, "why": said["reasons"][0]}
    return {**row, **said}


def accepted(field: Field | None, proposal: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a person who accepts a proposed value; a `ValueError` says what it should be."""
    value, evidence = proposal.get("value"), proposal.get("evidence")
    if field is not None:  # a reply may give a value of another type
        text = _text(value)
        value, wanted = _typed(field, text)
        if wanted:
            raise ValueError(f"'{field.name}': '{text[:80]}' is not {wanted}")
    of = {"state": "found", "value": value, "basis": PERSON}
    return {**of, **({"evidence": evidence} if evidence else {})}


def row_path(number: int, column: str) -> str:
    """The path of a row behind an answer, or of a column of it."""
    return f"row {number}.{column}" if column else f"row {number}"


def row_entry(row: Mapping[str, Any]) -> str:
    """What identifies a row behind an answer."""
    return shortened(row["text"] or row["value"] or "", MAX_QUOTE)


def _answered(row: Mapping[str, Any], answers: Sequence[PersonAnswer]) -> Mapping[str, Any]:
    """A row without fields, with the answer and the rows behind it that persons decided."""
    given = next((each.result for each in answers if each.path == ANSWER), None)
    by_path = {each.path: each for each in answers}
    evidence: list[Mapping[str, Any]] = []
    n_rows = 0
    for number, each in enumerate(row.get("evidence", ()), start=1):
        fields = dict(each.get("fields", ()))
        paths = {row_path(number, column): column for column in ("", *fields)}
        own = [by_path[path] for path in paths if path in by_path and by_path[path].entry == row_entry(each)]  # fmt: skip
        n_rows += bool(own)
        fields |= {column: _text(of.result["value"] or NOT_STATED) for of in own if (column := paths[of.path])}  # fmt: skip
        by = [*each.get("decided_by", ()), *(str(of.result["decided_by"]) for of in own)]
        state = UNDECIDED if None in fields.values() else "found"
        if not any(
            of.path == row_path(number, "") and of.result["value"] is not True for of in own
        ):
            evidence.append({**each, "fields": fields, "decided_by": by, "state": state} if own else each)  # fmt: skip
    notes = list(row.get("notes", ()))
    if n_rows and given is None:
        notes.append(f"persons decided {counted(n_rows, 'row')} after the answer was computed, which counts them as undecided")  # fmt: skip
    taken = {**row, "evidence": evidence, "notes": notes} if n_rows else row
    if given is None:
        return taken
    # What else it says of the answer is the model's, and goes.
    gone = ["why"]
    if given["value"] != row["answer"]:
        gone += ["value", "partial", "undecided", "reasons"]
        taken = {**taken, "markdown": "", "parts": []}
    kept = {name: value for name, value in taken.items() if name not in gone}
    status = "answered" if given["state"] == "found" else "nothing_found"
    notes.append(f"the answer was decided by a person: {given['decided_by']}, {given['decided_at']}")  # fmt: skip
    return {**kept, "status": status, "answer": given["value"] or NOT_STATED, "notes": notes}


def _told_again(row: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its new record, whose answer tells that, if it told the old one."""
    from pearl.interpreter.row import restored_record  # late: tables need no answers

    taken = {**row, "record": record}
    try:
        records = [restored_record(each) for each in (row, taken)]
    except (KeyError, TypeError, ValueError, AttributeError):  # a file of others
        return taken
    was, now = ([line for line, _ in each.lines] if each else [] for each in records)
    if row.get("answer") != "\n".join(was):
        return taken
    told = [f"- {line}" for line in now]
    marked = str(row.get("markdown", "")).splitlines()
    if len(was) == len(now) == len(marked):  # a line that says the same keeps its references
        told = [m if a == b else t for a, b, m, t in zip(was, now, marked, told, strict=True)]
    return {**taken, "parts": [], "answer": "\n".join(now), "markdown": "\n".join(told) + "\n"}


_OF_FIELDS = lazy_pattern(r"\d fields? (?:is|are) undecided")
"""What `why` says of a record with undecided fields."""
