"""The row of results: its schema, what comes back from it, and what is read of rows that others wrote."""

from __future__ import annotations

import copy
import json
import math
import pickle
import runpy
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Answer, Extraction
from pearl.documents.evidence import Evidence, Unverified, with_omissions
from pearl.documents.record import PLAIN, Candidate, FieldResult, Record
from pearl.documents.rows import Stated
from pearl.errors import DataError, PearlError, Span
from pearl.errors.escaping import to_json
from pearl.interpreter import row as row_module
from pearl.interpreter.parts import AnswerPart, Tally
from pearl.interpreter.results import Checks, Look, StepResult
from pearl.interpreter.row import (
    CitedCell,
    DocumentRow,
    ErrorData,
    ListEntry,
    Place,
    StepData,
    read_row,
)
from pearl.llm import Usage
from pearl.trace import Trace
from tests.root import ROOT

TEXT = st.text(max_size=8)  # lone surrogates are in it
WORDS = st.lists(TEXT, max_size=2).map(tuple)
SOME = st.integers(0, 3)
STATE = st.sampled_from(["found", "nothing", "undecided", "refused"])
SPAN = st.builds(lambda start, n: Span(start, start + n), st.integers(0, 99), st.integers(0, 99))
PAGE = st.none() | st.integers(1, 9)
OCR = st.none() | st.floats(0, 1)
RANKS = st.dictionaries(TEXT, st.integers(1, 9), max_size=2).map(lambda ranks: tuple(ranks.items()))
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT


def _passage(text: str, span: Span, gap: Span | None, **others: Any) -> Evidence:
    return Evidence(
        text, span, source_span=span, omitted=() if gap is None else (gap,),
        match="exact" if gap is None else "elided", **others,
    )  # fmt: skip


PASSAGE = st.builds(
    _passage, TEXT, SPAN, st.none() | st.just(Span(0, 1)), steps=WORDS, source=TEXT, ranks=RANKS, page=PAGE, ocr=OCR
)  # fmt: skip
PASSAGES = st.lists(PASSAGE, max_size=2).map(tuple)
FIELD = st.recursive(
    st.builds(
        FieldResult, st.sampled_from(["found", "not_stated", "undecided"]), SCALAR, TEXT,
        st.sampled_from(["", "copied", "judged"]), PASSAGES,
        st.lists(st.builds(Candidate, SCALAR, PASSAGES), max_size=1).map(tuple), step=TEXT, checked_by=TEXT,
    ),
    lambda inner: st.builds(
        FieldResult, st.just("found"), has_objects=st.booleans(),
        entries=st.lists(st.dictionaries(st.just(PLAIN) | TEXT, inner, max_size=2), max_size=2).map(tuple),
    ),
    max_leaves=3,
)  # fmt: skip
RECORD = st.none() | st.builds(Record, st.dictionaries(TEXT, FIELD, max_size=2))
PROVENANCE = st.fixed_dictionaries(
    {
        "steps": st.lists(TEXT, max_size=1),
        "sources": st.just([{"document": "a", "characters": 9, "spans": [{"start": 0, "end": 3}]}]),
    },
    optional={"chosen_from": st.just([{"document": "b", "documents": 3, "characters": 9, "spans": []}])},
)  # fmt: skip
STEP = st.builds(
    StepResult, TEXT, TEXT, st.booleans() | st.integers() | TEXT | st.lists(TEXT, max_size=2), st.booleans(),
    st.sampled_from(["full", "rows", "none"]), OCR, SOME, state=st.sampled_from(["found", "undecided", "not_needed"]),
    why=TEXT, truncated=TEXT, quotes=WORDS, verdicts=st.dictionaries(TEXT, SOME, max_size=1), models=WORDS,
    looks=st.lists(st.builds(Look, TEXT, st.lists(TEXT, max_size=1), SOME, STATE), max_size=1).map(tuple),
    checks=st.builds(Checks, TEXT, st.just((("It is.", "copied"),)), TEXT), record=RECORD,
    provenance=st.none() | PROVENANCE,
)  # fmt: skip
PLACE = st.builds(Place.at, SPAN)
CELL = st.builds(
    lambda place, **cell: CitedCell(**cell, **place), PLACE, column=TEXT, text=TEXT, page=PAGE
)
ROW = st.builds(
    lambda place, **row: DocumentRow(**row, **place), st.just({}) | PLACE, text=TEXT, value=st.none() | TEXT,
    fields=st.dictionaries(TEXT, st.none() | TEXT, max_size=2), steps=WORDS.map(list), source=TEXT,
    state=st.sampled_from(["found", "undecided"]), ranks=RANKS.map(dict), row=st.none() | st.integers(1, 9), page=PAGE, ocr=OCR,
    decided_by=WORDS.map(list), quote=TEXT, cells=st.lists(CELL, max_size=1),
)  # fmt: skip
STATED = st.builds(Stated, SOME, SOME, SOME)
TALLY = st.builds(Tally, STATED, SOME, st.just(""), st.none(), st.booleans())
PART = st.builds(
    AnswerPart, TEXT, TEXT, SCALAR | st.just(Decimal("1.50")) | st.lists(st.dictionaries(TEXT, TEXT, max_size=2), max_size=2),
    TEXT, STATE, TEXT, st.just((1,)), st.lists(st.builds(ListEntry, TEXT, st.just((1, 2))), max_size=2).map(tuple),
    tally=st.none() | TALLY,
)  # fmt: skip
REASON = st.sampled_from(["missing", "given", "short", "apart"])
UNVERIFIED = st.builds(Unverified, TEXT, TEXT, REASON)
ANSWER = st.builds(
    Answer, TEXT, TEXT, TEXT, WORDS, st.sampled_from(["plan", "direct"]), TEXT,
    st.lists(STEP, max_size=2).map(tuple), PASSAGES, st.lists(UNVERIFIED, max_size=1).map(tuple), TEXT,
    st.builds(Usage, SOME, SOME, SOME, SOME, SOME, SOME), st.floats(0, 9), st.builds(Trace),
    st.lists(PART, max_size=2).map(tuple), st.just(()) | st.just((("He did.", (1,)),)), st.lists(ROW, max_size=2).map(tuple),
    WORDS, RECORD, PROVENANCE, st.none(),
    st.dictionaries(TEXT, TEXT, max_size=1),
)  # fmt: skip


SCHEMA = (ROOT / "docs/results.schema.json").read_text("utf-8")
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA))


def test_the_schema_in_docs_is_that_of_the_declaration() -> None:
    made = runpy.run_path(str(ROOT / "docs/make_results_schema.py"))["schema"]()
    assert made == SCHEMA, "run docs/make_results_schema.py"


@given(ANSWER)
def test_any_answer_comes_back_from_its_row_and_fits_the_schema(answer: Answer) -> None:
    again = Answer.from_json(answer.to_json())
    assert again == answer
    # Answers are equal if their rows are: that these have all there is, the objects say.
    for name in [
        "steps",
        "evidence",
        "row_evidence",
        "record",
        "unverified",
        "usage",
        "parameters",
    ]:
        assert getattr(again, name) == getattr(answer, name), name
    told = [
        [(p.label, p.state, p.why, p.evidence, p.entries, p.tally is None) for p in each.parts]
        for each in (again, answer)
    ]
    assert told[0] == told[1]
    VALIDATOR.validate(json.loads(json.dumps(answer.to_dict())))
    found = Extraction("a.txt", answer)
    assert Extraction.from_json(found.to_json()) == found
    problems: list[str] = []
    assert read_row(answer.to_dict(), problems) == answer.row
    assert not problems


@pytest.mark.parametrize("typed", [
    {"value": {"age": 54}, "undecided": []},
    {"value": None, "partial": {"age": None}, "undecided": ["age"], "reasons": ["two ages"]},
])  # fmt: skip
def test_a_typed_answer_keeps_its_value_without_its_schema(typed: dict[str, Any]) -> None:
    row = {"status": "degraded", "question": "Who?", "plan": "", "answer": "x", "method": "plan"}
    whole = read_row({**row, **typed}).to_dict()
    assert {name: whole[name] for name in typed} == typed
    assert Answer.from_json(json.dumps(whole)).to_dict() == whole
    assert "value" not in read_row(row).to_dict()
    with pytest.raises(DataError, match="'failed' is no status of an answer"):
        Answer.from_json(json.dumps({**whole, "status": "failed"}))


def test_what_a_quote_of_others_omits_is_marked_only_within_its_text() -> None:
    spans = [Span(1, 2), Span(0, 3), Span(4, 99), Span(3, 2), Span(5, 6)]
    assert with_omissions("abcdefg", spans) == "a[left out: b]cde[left out: f]g"


@pytest.mark.parametrize(
    ("n", "named"), [(0, ""), (4, ", c0, c1, c2, c3"), (5, ", c0, c1, c2, c3, ...")]
)
def test_the_place_of_a_row_names_its_first_columns_and_who_decided_it(n: int, named: str) -> None:
    place = Place.at(Span(0, 5))
    cells = [CitedCell(column=f"c{i}", text="v", **place) for i in range(n)]
    row = DocumentRow(
        text="x", source="t.csv", steps=["old"], row=3, cells=cells, decided_by=["ada"], **place
    )
    assert row.where == f"t.csv, row 3{named}, characters 0-5; old; by ada"


def test_a_failed_extraction_comes_back() -> None:
    error = DataError("no such file", path="a", help="name it")
    found: Extraction[Any] = Extraction("a", error=error)
    again = Extraction.from_json(found.to_json())
    assert (again, type(again.error)) == (found, DataError)
    assert again != Extraction("a", error=PearlError("no such file"))


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 10**400])
def test_a_row_of_another_version_is_an_error_of_three_lines_at_most(version: object) -> None:
    row = {"status": "answered", "question": "Why?", "plan": "", "answer": "So.", "v": version}
    for read in (read_row, lambda row: Answer.from_json(json.dumps(row))):
        with pytest.raises(DataError, match="version 1") as caught:
            read(row)
        assert len(str(caught.value).splitlines()) <= 3
    assert read_row({name: row[name] for name in row if name != "v"}).answer == "So."


@pytest.mark.parametrize(("row", "places"), [
    ({"answer": 3, "usage": 7, "evidence": {"text": "x"}}, ["answer", "usage", "evidence"]),
    ({"duration_s": float("nan"), "coverage": True}, ["duration_s", "coverage"]),
    ({"steps": [{"value": {"a": 1}, "calls": -1}]}, ["steps 1: value", "steps 1: calls"]),
    ({"parts": [{"evidence": [1, "2"]}, {"entries": [[]]}]}, ["parts 1: evidence", "parts 2: entries 1"]),
    ({"record": {"a": {"entries": [{"b": {"state": "x"}}, 5]}}}, ["record: a: entries 1: b: state", "record: a: entries 2"]),
    ({"answer": None, "steps": None, "error": None, "a passage": 1}, []),
    ({"\ud800": 1, "steps": [{"\ud800": 1, "state": "\ud800", "output": "\ud800"}]}, ["steps 1: state"]),
    ({"steps": [{"quotes": [None]}, {"value": [1]}, {"checks": 1}]}, ["steps 1: quotes", "steps 2: value", "steps 3: checks"]),
    ({"id": 1.5, "duration_s": 10**400, "usage": {"input_tokens": 1.0}}, ["id", "duration_s", "usage: input_tokens"]),
])  # fmt: skip
def test_what_has_a_wrong_type_is_named_once(row: dict[str, Any], places: list[str]) -> None:
    problems: list[str] = []
    read = read_row({"question": "Why?", **row}, problems)
    assert sorted(problem.partition(" has ")[0] for problem in problems) == sorted(places)
    assert read.question == "Why?"
    assert not any("\n" in problem for problem in problems)
    if places:
        with pytest.raises(DataError, match=f"not an answer: ({'|'.join(places)}): "):
            Answer.from_json(json.dumps({"answer": "", "plan": "", "question": "Why?", **row}))


LARGEST = 2**63 - 1
BELOW = -(2.0**63)


@pytest.mark.parametrize(("name", "row", "right", "wrong"), [
    ("usage: input_tokens", lambda n: {"usage": {"input_tokens": n}}, (0, LARGEST), (-1, LARGEST + 1)),
    ("evidence 1: page", lambda n: {"evidence": [{"page": n}]}, (1, LARGEST), (0, LARGEST + 1)),
    ("coverage", lambda n: {"coverage": n}, (0, 1), (math.nextafter(0, -1), math.nextafter(1, 2))),
    ("duration_s", lambda n: {"duration_s": n}, (math.nextafter(BELOW, 0), math.nextafter(-BELOW, 0)), (BELOW, -BELOW)),
])  # fmt: skip
def test_numbers_are_read_up_to_their_bounds(
    name: str, row: Callable[[float], Any], right: tuple[float, ...], wrong: tuple[float, ...]
) -> None:
    for value in (*right, *wrong):
        problems: list[str] = []
        read_row(row(value), problems)
        assert [problem.partition(" has ")[0] for problem in problems] == [name] * (value in wrong)


def kinds_in(kind: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    """The kinds of objects that are a kind of another one."""
    return {kind}.union(*map(kinds_in, kind.__subclasses__()))


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda row: pickle.loads(pickle.dumps(row))]
)
def test_a_copy_of_a_row_has_the_fields_of_the_input(copied: Callable[[Any], Any]) -> None:
    row = read_row({"id": "a", "answer": "x", "mine": 1, "usage": {"input_tokens": 1}})
    assert (copied(row), copied(row).data, copied(row).raw) == (row, row.data, row.raw)


def test_what_a_row_lacks_is_no_statement() -> None:
    said = {
        (name, value)
        for kind in kinds_in(row_module._Data)
        for name, value in msgspec.structs.asdict(kind()).items()
        if isinstance(value, str | int | float) and value
    }
    assert said == {("v", 1), ("match", "exact"), ("match", "row"), ("state", "found"), ("state", "nothing"), ("state", "undecided")}  # fmt: skip


@pytest.mark.parametrize("depth", [10, 50, 200, 310])
def test_data_of_any_depth_is_read_or_left_out(depth: int) -> None:
    field: dict[str, Any] = {"state": "x"}
    for _ in range(depth):
        field = {"entries": [{"a": field}]}
    problems: list[str] = []
    row = read_row({"answer": "So.", "record": {"a": field, "b": {"value": 5}}}, problems)
    assert row.answer == "So."
    assert row.record is not None
    assert row.record["b"].value == 5
    assert len(problems) == 1
    assert row.to_dict()["record"]["b"] == {"state": "undecided", "value": 5}


def test_rows_that_an_earlier_pearl_wrote_come_back_byte_by_byte() -> None:
    *answers, failed = (ROOT / "tests/interpreter/rows_v1.jsonl").read_text("utf-8").splitlines()
    for line in answers:
        problems: list[str] = []
        assert to_json(read_row(json.loads(line), problems).to_dict()) == line
        assert Answer.from_json(line).to_json() == line
        assert not problems
    tallies = [part.tally for part in Answer.from_json(answers[0]).parts]
    assert [tally and tally.stated[:3] for tally in tallies] == [(2, 3, 1), None]
    row = read_row(json.loads(failed))
    assert (row.id, row.status, row.extra) == ("t1", "failed", {"gold": "B"})
    assert row.error == ErrorData("DataError", "a.txt: no such file", "name it", 3)


def test_values_of_subclasses_are_plain_in_rows() -> None:
    class Text(str):
        __slots__ = ()

    class Share(float):
        __slots__ = ()

    step = StepResult("a", Text("FIND"), [Text("x")], False, coverage=Share(0.5))
    row = StepData.of(step).to_dict()
    assert (row["action"], row["value"], row["coverage"]) == ("FIND", ["x"], 0.5)
    assert {type(row["action"]), type(row["value"][0]), type(row["coverage"])} == {str, float}


def test_objects_of_wrong_types_leave_the_numbers_of_the_others() -> None:
    problems: list[str] = []
    odd = ({"text": "b", "page": 2**70}, {"match": "row", "fields": {"x": 1}})
    passages = [{"text": "a"}, 7, *odd]
    row = read_row({"evidence": passages, "v": 1}, problems)
    assert [each.text for each in row.evidence] == ["a", "", "b", ""]
    assert [problem.partition(" has ")[0] for problem in problems] == [
        "evidence 2", "evidence 3: page", "evidence 4: fields: x",
    ]  # fmt: skip
