"""Rows of an extraction as tables; a review of what is undecided, and a person's answers to it."""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pearl.documents.evidence import Evidence
from pearl.documents.record import Candidate, FieldResult
from pearl.dsl.fields import Field, parse_fields, print_fields
from pearl.errors import DataError, Span
from pearl.interpreter.row import FieldData, Passage
from pearl.runs.extraction import (
    AnsweredRows,
    fields_of_rows,
    read_answers,
    write_review,
    write_tables,
)
from pearl.runs.reviewing import items_of
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


def test_persons_answer_for_entries_in_entries(tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        assert write_review([NESTED_ROW], file) == 3
    rows = lines(path)
    assert [(row["field"], row["entry"]) for row in rows] == [
        ("orders[0].items[1].price", "number: A1 / name: nut"),
        ("orders[1].items", "number: A2"),
        ("grid[2].value", ""),
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        given = ("accept proposed", "not stated", "complete")
        writer.writerows({**row, "value": v} for row, v in zip(rows, given, strict=True))
    answers = read_answers(str(path), NESTED, ["a.pdf"])
    answered = AnsweredRows(lambda: [NESTED_ROW], answers)
    [row] = answered()
    orders, grid = row["record"]["orders"]["entries"], row["record"]["grid"]["entries"]
    price = orders[0]["items"]["entries"][1]["price"]
    assert (price["value"], price["basis"]) == ("0.10", "person")
    assert orders[1]["items"]["state"] == "not_stated"
    assert (grid[2]["value"]["state"], len(grid[2]["value"]["entries"])) == ("found", 1)
    assert (row["status"], answered.problems) == ("answered", {})
    kinds = {item.path: (item.field.type, item.kind) for item in items_of(0, NESTED_ROW)}
    assert kinds["orders[0].items[1].price"] == ("decimal", "undecided")
    assert kinds["grid[2].value"][1] == "undecided"


def reviewed(tmp_path: Path, filled: dict[str, str]) -> Path:
    """A review file, in which a person filled in values; spreadsheets may write semicolons."""
    path = tmp_path / "review.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        assert write_review(ROWS, file) == 2
    rows = lines(path)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows({**row, "value": filled.get(row["field"], "")} for row in rows)
    return path


def test_the_review_has_a_line_for_each_undecided_field(tmp_path: Path) -> None:
    file = io.StringIO()
    write_review(ROWS, file)
    age, dose = csv.DictReader(io.StringIO(file.getvalue()))
    assert age == {
        "document": "a.pdf", "field": "age", "entry": "", "why": "two ages",
        "candidates": '54: "54 years" (a.pdf:2:30-38); 45: ', "value": "",
    }  # fmt: skip
    assert (dose["field"], dose["entry"]) == ("drugs[1].dose_mg", "name: aspirin")


def test_a_persons_values_are_taken_and_marked(tmp_path: Path) -> None:
    answers = read_answers(
        str(reviewed(tmp_path, {"age": "54", "drugs[1].dose_mg": "Not stated"})), FIELDS, ["a.pdf"]
    )
    rows = AnsweredRows(lambda: ROWS, answers)
    taken = [*rows()]
    assert taken[1] == ROWS[1]
    assert ROWS[0]["record"]["age"] == AGES
    out = written(tmp_path, "csv", taken)
    first = lines(out)[0]
    assert (first["age"], first["age_source"]) == ("54", "person")
    aspirin = lines(tmp_path / "out.drugs.csv")[1]
    assert (aspirin["dose_mg"], aspirin["dose_mg_source"]) == ("", "person")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("age,54.0", 54), ("fever,TRUE", True), ("fever,no", False), ("drugs[0].dose_mg,2.5", 2.5),
        ("smoker,Yes", "yes"), ("seen,2024-05-31", "2024-05-31"), ("patient,12", "12"),
    ],
)  # fmt: skip
def test_a_persons_value_has_the_type_of_its_field(
    tmp_path: Path, line: str, value: object
) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(f"document,field,value\na.pdf,{line}\n", encoding="utf-8")
    [answer] = read_answers(str(path), FIELDS, ["a.pdf"])["a.pdf"]
    assert (answer.result["value"], type(answer.result["value"])) == (value, type(value))


def test_a_value_is_not_put_into_another_entry(tmp_path: Path) -> None:
    answers = read_answers(str(reviewed(tmp_path, {"drugs[1].dose_mg": "75"})), FIELDS, ["a.pdf"])
    drugs = ROWS[0]["record"]["drugs"]
    other = {**ROWS[0], "record": {"drugs": {**drugs, "entries": drugs["entries"][::-1]}}}
    rows = AnsweredRows(lambda: [other], answers)
    assert next(iter(rows()))["record"] == other["record"]
    assert "another entry now" in rows.problems[3]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("c.pdf,age,54", "2: the run has no document 'c.pdf'"),
        ("a.pdf,agee,54", "2: no field 'agee'"),
        ("a.pdf,drugs[0].colour,red", "2: no field"),
        ("a.pdf,age,54 years", "2: 'age': '54 years' is not a whole number"),
        ("a.pdf,'drugs[0].dose_mg','0,5'", "no field"),
        ('a.pdf,drugs[0].dose_mg,"0,5"', "not a number such as 1250.5"),
        ("a.pdf,fever,maybe", "not true or false"),
        ("a.pdf,seen,31.5.2024", "not a date"),
        ("a.pdf,seen,2024-02-30", "not a date"),
        ("a.pdf,smoker,sometimes", "not one of yes, no, unknown"),
        ("a.pdf,drugs,ibuprofen", "not 'complete' or 'not stated'"),
        ("a.pdf,age," + "5" * 100_000, "is not a whole number"),
        ("a.pdf,age," + "[" * 100_000, "is not a whole number"),
        ("a.pdf,drugs[0].dose_mg,1e999", "not a number"),
        ("a.pdf,stay,200", 'the value 200 breaks "maximum": 99'),
        ("a.pdf,age,54\na.pdf,age,55", "3: 'age' of 'a.pdf' stands in line 2, too"),
    ],
)
def test_a_wrong_line_is_an_error(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(f"document,field,value\n{line}\n", encoding="utf-8")
    fields = (*FIELDS, *parse_fields('stay: int {"maximum": 99}'))
    with pytest.raises(DataError) as told:
        read_answers(str(path), fields, ["a.pdf"])
    assert message in str(told.value)
    path.write_text("field,value\nage,5\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column document"):
        read_answers(str(path), FIELDS, ["a.pdf"])


def test_a_person_says_that_a_list_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("document,field,value\na.pdf,drugs,complete\n", encoding="utf-8")
    drugs = {**ROWS[0]["record"]["drugs"], "state": "undecided", "why": "the reply breaks off"}
    rows = AnsweredRows(
        lambda: [{**ROWS[0], "record": {**ROWS[0]["record"], "drugs": drugs}}],
        read_answers(str(path), FIELDS, ["a.pdf"]),
    )
    assert lines(written(tmp_path, "csv", [*rows()]))[0]["drugs"] == "2"
    assert len(lines(tmp_path / "out.drugs.csv")) == 2


def test_documents_whose_names_differ_by_an_apostrophe_are_told_apart(tmp_path: Path) -> None:
    names = ["=a.txt", "'=a.txt", "''=a.txt"]
    file = io.StringIO()
    undecided = FieldData.of(FieldResult("undecided", why="two")).to_dict()
    rows = [{"document": name, "record": {"fever": undecided}} for name in names]
    assert write_review(rows, file) == len(names)
    given = [
        line.removesuffix(",") + f",{'true' if i else 'false'}"
        for i, line in enumerate(file.getvalue().splitlines()[1:])
    ]
    head = file.getvalue().splitlines()[0]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join([head, *given]), encoding="utf-8")
    answers = read_answers(str(path), FIELDS, names)
    assert {name: [a.result["value"] for a in each] for name, each in answers.items()} == {
        "=a.txt": [False], "'=a.txt": [True], "''=a.txt": [True],
    }  # fmt: skip
