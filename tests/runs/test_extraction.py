"""Rows of an extraction as tables; what a person decides about them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pearl.documents.evidence import Evidence
from pearl.documents.record import Candidate, FieldResult
from pearl.dsl.fields import Field, parse_fields, print_fields
from pearl.errors import Span
from pearl.interpreter.row import FieldData, Passage
from pearl.runs.decisions import DecidedRows, Decision, Decisions, seen
from pearl.runs.extraction import fields_of_rows, results_of, write_tables
from pearl.runs.reviewing import by_path, field_at, items_of, person_result
from tests.skips import needs

FIELDS = (
    Field("patient"),
    Field("age", "int", is_optional=True),
    Field("address.city"),
    Field("smoker", "label", labels=("yes", "no", "unknown")),
    Field("fever", "bool"),
    Field("seen", "date"),
    Field("status"),
    Field("drugs", is_list=True, fields=(Field("name"), Field("dose_mg", "number"))),
    Field("tags", is_list=True),
)
PLAN = """1. record = EXTRACT(CTX, "patient: str, age: int?, address: {city: str}, smoker: yes|no|unknown, \
fever: bool, seen: date, status: str, drugs: [{name: str, dose_mg: number}], tags: [str]") : Read the fields"""


def quote(text: str, start: int, page: int | None = None) -> dict[str, Any]:
    span = Span(start, start + len(text))
    passage = Evidence(text, span, ("record",), "exact", "a.pdf", span)
    return {**Passage.of(passage).to_dict(), **({"page": page} if page else {})}


def result(value: Any, start: int = 0, page: int | None = None) -> dict[str, Any]:
    return {"state": "found", "value": value, "basis": "copied", "evidence": [quote("x" * 5, start, page)]}  # fmt: skip


NOT_STATED = FieldData.of(FieldResult("not_stated")).to_dict()
AGES = FieldData.of(
    FieldResult("undecided", why="two ages", candidates=(Candidate(54), Candidate(45)))
).to_dict()
AGES["candidates"][0]["evidence"] = [quote("54 years", 30, 2)]
ROWS: list[dict[str, Any]] = [
    {
        "id": "a.pdf", "document": "a.pdf", "status": "degraded", "why": "2 of 9 fields are undecided",
        "answer": "...", "plan": PLAN,
        "record": {
            "patient": {**result("=1+1", 3, 1), "evidence": [quote("xxx", 3, 1), quote("xxx", 90, 2)]},
            "age": AGES,
            "address.city": NOT_STATED,
            "smoker": {"state": "not_stated", "value": "unknown"},
            "fever": result(False),
            "seen": result("2024-05-31"),
            "status": result("married"),
            "drugs": {"state": "found", "value": None, "entries": [
                {"name": result("ibuprofen"), "dose_mg": result(400)},
                {"name": result("aspirin"), "dose_mg": FieldData.of(FieldResult("undecided", why="no number")).to_dict()},
            ]},
            "tags": {"state": "found", "value": None},
        },
    },
    {"id": "b.pdf", "status": "failed", "error": {"type": "DataError", "message": "b.pdf: is encrypted"}},
]  # fmt: skip


@contextmanager
def opened(path: str) -> Any:
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        yield file


def written(folder: Path, form: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    out = folder / f"out.{form}"
    assert write_tables(FIELDS, lambda: rows, str(out), form, opened) == len(rows)
    return out


def lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


def test_a_row_for_each_document_and_for_each_entry_of_a_list(tmp_path: Path) -> None:
    out = written(tmp_path, "csv")
    first, second = lines(out)
    assert first == {
        "document": "a.pdf", "patient": "'=1+1", "patient_source": "a.pdf:1:3-6; a.pdf:2:90-93", "patient_basis": "copied",
        "age": "undecided", "age_source": "a.pdf:2:30-38", "age_basis": "", "address.city": "", "address.city_source": "", "address.city_basis": "",
        "smoker": "unknown", "smoker_source": "", "smoker_basis": "", "fever": "false", "fever_source": "a.pdf:0-5", "fever_basis": "copied",
        "seen": "2024-05-31", "seen_source": "a.pdf:0-5", "seen_basis": "copied", "status": "married", "status_source": "a.pdf:0-5", "status_basis": "copied",
        "drugs": "2", "tags": "0", "status_": "degraded", "why": "2 of 9 fields are undecided",
    }  # fmt: skip
    assert {name for name, cell in second.items() if cell} == {"document", "status_", "why"}
    assert second["why"] == "b.pdf: is encrypted"
    entries = lines(tmp_path / "out.drugs.csv")
    assert [(e["document"], e["entry"], e["name"], e["dose_mg"]) for e in entries] == [
        ("a.pdf", "1", "ibuprofen", "400"),
        ("a.pdf", "2", "aspirin", "undecided"),
    ]
    assert (
        tmp_path / "out.tags.csv"
    ).read_text() == "document,entry,value,value_source,value_basis\n"


@needs("pyarrow")
def test_numbers_are_numbers_in_excel_and_parquet(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(written(tmp_path, "xlsx"))
    assert book.sheetnames == ["documents", "drugs", "tags", "Sources", "README"]
    cells = [list(row) for row in book["drugs"].iter_rows(values_only=True)]
    assert cells[1][:6] == ["a.pdf", 1, "ibuprofen", "a.pdf:0-5", "copied", 400]
    assert book["documents"]["B2"].data_type == "s"

    from pyarrow import parquet

    table = parquet.read_table(written(tmp_path, "parquet"))
    assert str(table.schema.field("age").type) == "int64"
    assert str(table.schema.field("fever").type) == "bool"
    first = table.to_pylist()[0]
    assert (first["age"], first["age_state"]) == (None, "undecided")
    assert (first["address.city"], first["address.city_state"]) == (None, "not stated")
    doses = parquet.read_table(tmp_path / "out.drugs.parquet").column("dose_mg").to_pylist()
    assert doses == [400.0, None]


def test_the_fields_are_those_of_the_plan() -> None:
    assert fields_of_rows(ROWS) == FIELDS
    assert fields_of_rows([*ROWS, {"id": "c", "answer": "of a question"}]) == ()


NESTED = parse_fields(
    "orders: [{number: str, items: [{name: str, price: decimal, lots: [str]}]}], grid: [[int]], "
    "document: [{value: str, quote: str?}]"
)


def listed(*entries: dict[str, Any], **others: str) -> dict[str, Any]:
    return {"state": "found", "value": None, "entries": [*entries], **others}


def plain(*values: Any) -> dict[str, Any]:
    return listed(*({"value": result(each)} for each in values))


NO_PRICE = FieldData.of(
    FieldResult("undecided", why="two prices", candidates=(Candidate("0.10"),))
).to_dict()
NESTED_ROW: dict[str, Any] = {
    "id": "a.pdf", "document": "a.pdf", "status": "degraded", "why": "3 of 9 fields are undecided", "answer": "...",
    "plan": f'1. record = EXTRACT(CTX, "{print_fields(NESTED)}") : Read the fields',
    "record": {
        "orders": listed(
            {"number": result("A1"), "items": listed(
                {"name": result("bolt"), "price": result("0.10"), "lots": plain("x", "y")},
                {"name": result("nut"), "price": NO_PRICE, "lots": NOT_STATED},
            )},
            {"number": result("A2"), "items": {"state": "undecided", "value": None, "why": "broken off"}},
        ),
        "grid": listed(
            {"value": plain(1, 2)}, {"value": listed()}, {"value": {**plain(5), "state": "undecided", "why": "6 is missing"}},
        ),
        "document": listed({"value": result("v"), "quote": NOT_STATED}),
    },
}  # fmt: skip


def test_a_list_in_a_list_has_a_table_with_the_numbers_of_the_entries_around(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.csv"
    write_tables(NESTED, lambda: [NESTED_ROW], str(out), "csv", opened)
    tables = {
        name: [
            [cell for head, cell in row.items() if not head.endswith(("_source", "_basis"))]
            for row in lines(tmp_path / f"out.{name}.csv")
        ]
        for name in ("orders", "orders.items", "orders.items.lots", "grid", "document")
    }
    assert tables == {
        "orders": [["a.pdf", "1", "A1", "2"], ["a.pdf", "2", "A2", "undecided"]],
        "orders.items": [
            ["a.pdf", "1", "1", "bolt", "0.10", "2"], ["a.pdf", "1", "2", "nut", "undecided", ""],
        ],
        "orders.items.lots": [["a.pdf", "1", "1", "1", "x"], ["a.pdf", "1", "1", "2", "y"]],
        "grid": [
            ["a.pdf", "1", "1", "1"], ["a.pdf", "1", "2", "2"], ["a.pdf", "2", "", ""],
            ["a.pdf", "3", "1", "5"], ["a.pdf", "3", "", "undecided"],
        ],
        "document": [["a.pdf", "1", "v", ""]],
    }  # fmt: skip
    heads = {name: list(lines(tmp_path / f"out.{name}.csv")[0]) for name in tables}
    assert heads["orders.items.lots"][:5] == ["document", "orders", "items", "entry", "value"]
    assert heads["grid"][:4] == ["document", "row", "column", "value"]
    assert list(lines(out)[0]) == ["document", "orders", "grid", "document_", "status", "why"]


def test_names_of_entries_around_that_are_taken_have_a_mark(tmp_path: Path) -> None:
    fields = parse_fields("document: [{document: [{entry: str}]}], grid: [[[{cells: [int]}]]]")
    write_tables(fields, list, str(tmp_path / "out.csv"), "csv", opened)
    heads = {p.name: p.read_text("utf-8").split(",entry_source")[0] for p in tmp_path.iterdir()}
    assert heads["out.document.document.csv"] == "document,document_,entry,entry_"
    assert heads["out.grid.csv"] == "document,row,column,level 3,cells\n"
    assert heads["out.grid.cells.csv"].startswith(
        "document,grid row,grid column,grid level 3,entry,value,"
    )


def test_lists_with_long_names_have_files(tmp_path: Path) -> None:
    name = "🦪" * 300
    fields = parse_fields(f"'{name}': [str], '{name}2': [{{'{name}': [int]}}]")
    out = str(tmp_path / "out.csv")
    write_tables(fields, list, out, "csv", opened)
    assert len([*tmp_path.iterdir()]) == 4
    write_tables(fields, list, str(tmp_path / "out.xlsx"), "xlsx", opened)
    assert len(openpyxl.load_workbook(tmp_path / "out.xlsx").sheetnames) == 6


def test_amounts_keep_their_digits_in_a_workbook(tmp_path: Path) -> None:
    out = tmp_path / "out.xlsx"
    long = "0.12345678901234567890123"
    record = {"a": result("0.10"), "b": result(long), "c": result("1200")}
    rows = [{"document": "a", "record": record}]
    fields = parse_fields("a: decimal, b: decimal, c: decimal")
    write_tables(fields, lambda: rows, str(out), "xlsx", opened)
    sheet = openpyxl.load_workbook(out)["documents"]
    cells = {head.value: cell for head, cell in zip(sheet[1], sheet[2], strict=True)}
    assert (cells["a"].value, cells["a"].number_format) == (0.1, "0.00")
    assert (cells["b"].value, cells["c"].value) == (long, 1200)


def decided(
    folder: Path, row: dict[str, Any], said: dict[str, str], fields: Sequence[Field] = FIELDS
) -> Decisions:
    """What a person says of fields, by their paths."""
    decisions = Decisions.beside(folder / "out.jsonl")
    types = dict(by_path(fields))
    for path, entry, was in results_of(row["record"]):
        if path in said:
            field = field_at(types, path)
            assert field
            given = person_result(field, said[path])
            decisions.add(Decision(
                row=row["id"], path=path, entry=entry, what="corrected", was=seen(was), result=given,
                person="ada", time="now",
            ))  # fmt: skip
    return decisions


def test_persons_decide_about_entries_in_entries(tmp_path: Path) -> None:
    row = {**NESTED_ROW, "id": "a.pdf"}
    said = {
        "orders[0].items[1].price": "0.10", "orders[1].items": "not stated", "grid[2].value": "complete",
    }  # fmt: skip
    rows = DecidedRows(lambda: [row], decided(tmp_path, row, said, NESTED))
    [taken] = rows()
    orders, grid = taken["record"]["orders"]["entries"], taken["record"]["grid"]["entries"]
    price = orders[0]["items"]["entries"][1]["price"]
    assert (price["value"], price["basis"], price["decided_by"]) == ("0.10", "person", "ada")
    assert orders[1]["items"]["state"] == "not_stated"
    assert (grid[2]["value"]["state"], len(grid[2]["value"]["entries"])) == ("found", 1)
    assert (taken["status"], rows.problems) == ("answered", {})
    kinds = {item.path: (item.field.type, item.kind) for item in items_of(0, row)}
    assert kinds["orders[0].items[1].price"] == ("decimal", "undecided")
    assert kinds["grid[2].value"][1] == "undecided"


STAY, PRICE = parse_fields('stay: int {"maximum": 99}, price: decimal')


def typed(name: str) -> Field:
    field = field_at({**dict(by_path(FIELDS)), "stay": STAY, "price": PRICE}, name)
    assert field
    return field


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("age", "54.0", 54), ("fever", "TRUE", True), ("fever", "no", False), ("drugs[0].dose_mg", "2.5", 2.5),
        ("smoker", "Yes", "yes"), ("seen", "2024-05-31", "2024-05-31"), ("patient", "12", "12"),
    ],
)  # fmt: skip
def test_a_persons_value_has_the_type_of_its_field(name: str, text: str, value: object) -> None:
    given = person_result(typed(name), text)["value"]
    assert (given, type(given)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("age", "54 years", "'age': '54 years' is not a whole number"),
        ("drugs[0].dose_mg", "0,5", "not a number such as 1250.5"),
        ("fever", "maybe", "not true or false"),
        ("seen", "31.5.2024", "not a date"),
        ("seen", "2024-02-30", "not a date"),
        ("smoker", "sometimes", "not one of yes, no, unknown"),
        ("drugs", "ibuprofen", "not 'complete' or 'not stated'"),
        ("age", "5" * 100_000, "is not a whole number"),
        ("age", "[" * 100_000, "is not a whole number"),
        ("drugs[0].dose_mg", "1e999", "not a number"),
        ("price", "ten", "not a number"),
        ("stay", "200", 'the value 200 breaks "maximum": 99'),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        person_result(typed(name), text)


def test_a_value_is_not_put_into_another_entry(tmp_path: Path) -> None:
    decisions = decided(tmp_path, ROWS[0], {"drugs[1].dose_mg": "75"})
    drugs = ROWS[0]["record"]["drugs"]
    other = {**ROWS[0], "record": {"drugs": {**drugs, "entries": drugs["entries"][::-1]}}}
    rows = DecidedRows(lambda: [other], decisions)
    assert next(iter(rows()))["record"] == other["record"]
    assert "another entry now" in rows.problems[1]
