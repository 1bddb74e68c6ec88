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
from pearl.documents.record import Candidate, FieldResult, Record
from pearl.dsl.fields import Field
from pearl.errors import DataError, Span
from pearl.runs.extraction import (
    AnsweredRows,
    fields_of_rows,
    read_answers,
    write_review,
    write_tables,
)
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
    return {**passage.to_dict(), **({"page": page} if page else {})}


def result(value: Any, start: int = 0, page: int | None = None) -> dict[str, Any]:
    return {"state": "found", "value": value, "basis": "copied", "evidence": [quote("x" * 5, start, page)]}  # fmt: skip


NOT_STATED = FieldResult("not_stated").to_dict()
AGES = FieldResult("undecided", why="two ages", candidates=(Candidate(54), Candidate(45))).to_dict()
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
                {"name": result("aspirin"), "dose_mg": FieldResult("undecided", why="no number").to_dict()},
            ]},
            "tags": {"state": "found", "value": None},
        },
    },
    {"id": "b.pdf", "status": "failed", "error": {"type": "DataError", "message": "b.pdf: is encrypted"}},
]  # fmt: skip


def written(folder: Path, form: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    @contextmanager
    def opened(path: str) -> Any:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            yield file

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
        ("a.pdf,age,54\na.pdf,age,55", "3: 'age' of 'a.pdf' stands in line 2, too"),
    ],
)
def test_a_wrong_line_is_an_error(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(f"document,field,value\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError) as told:
        read_answers(str(path), FIELDS, ["a.pdf"])
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


def test_the_states_of_a_record_have_paths() -> None:
    entry = {"dose_mg": FieldResult("undecided")}
    record = Record(
        {"age": FieldResult("undecided"), "drugs": FieldResult("found", entries=(entry,))}
    )
    assert record.undecided == ("age", "drugs[0].dose_mg")
    assert record.paths["drugs[0].dose_mg"].state == "undecided"


def test_documents_whose_names_differ_by_an_apostrophe_are_told_apart(tmp_path: Path) -> None:
    names = ["=a.txt", "'=a.txt", "''=a.txt"]
    file = io.StringIO()
    undecided = FieldResult("undecided", why="two").to_dict()
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
