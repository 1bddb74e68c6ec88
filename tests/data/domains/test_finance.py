"""The domain `finance`: published formats of conversations about reports."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pearl.data.domains import Source, read_samples
from pearl.data.domains.finance import gold_passages, operands, page_text
from pearl.data.samples import Sample, Turn
from pearl.documents.document import Document
from pearl.errors import DataError, UsageError
from tests.shared import shared

QUESTIONS = ["what was rent in 2008?", "and in 2007?", "what is the change as a share of it?"]
PROGRAMS = ["120.5", "100", "subtract(120.5, 100), divide(#0, 100)"]
EXECUTED = [120.5, 100.0, 0.205]
BEFORE = ["in millions of dollars .", "fuel cost $ 1,200 in 2008 ."]
TABLE = [["", "2008", "2007"], ["rent", "$ 120.5", "$ 100.0"], ["wages", "( 7 )"]]

PUBLISHED: dict[str, Any] = {
    "id": "Double_MILL/2008/page_9.pdf",
    "pre_text": BEFORE,
    "post_text": ["."],
    "table_ori": TABLE,
    "table": [["x"]],
    "qa_0": {"question": "another?"},
    "annotation": {
        "dialogue_break": QUESTIONS, "turn_program": PROGRAMS, "exe_ans_list": EXECUTED,
        "qa_split": [0, 0, 1],
    },
}  # fmt: skip
CLEANED: dict[str, Any] = {
    "id": "Single_MILL/2008/page_9.pdf-3",
    "doc": {
        "pre_text": " ".join(BEFORE),
        "post_text": "",
        "table": {"2008": {"rent": 1120.5, "wages": "n/a"}, "2007": {"rent": 100.0}},
    },
    "dialogue": {
        "conv_questions": QUESTIONS, "conv_answers": ["$120.5", "100", "20.5%"],
        "turn_program": PROGRAMS, "executed_answers": EXECUTED, "qa_split": [False] * 3,
    },
    "features": {"has_duplicate_columns": True, "has_non_numeric_values": False},
}  # fmt: skip


def read(tmp_path: Path, *rows: object) -> list[Sample | DataError]:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return list(read_samples("finance", Source(str(path))))


def samples(tmp_path: Path, *rows: object) -> list[Sample]:
    found = read(tmp_path, *rows)
    assert not [one for one in found if isinstance(one, DataError)]
    return [one for one in found if isinstance(one, Sample)]


def text(sample: Sample) -> str:
    assert isinstance(sample.document, Document)
    return sample.document.text


def test_published_dialogue_gives_a_sample_per_turn(tmp_path: Path) -> None:
    found = samples(tmp_path, PUBLISHED)
    id = "Double_MILL/2008/page_9.pdf"
    assert [one.id for one in found] == [f"{id}/1", f"{id}/2", f"{id}/3"]
    assert [one.reference for one in found] == ["120.5", "100", "0.205"]
    assert [one.extra for one in found] == [{"dialogue": id, "program": one} for one in PROGRAMS]
    first, second = Turn(QUESTIONS[0], "120.5"), Turn(QUESTIONS[1], "100")
    assert [one.history for one in found] == [(), (first,), (first, second)]
    assert {one.subsets for one in found} == {frozenset({"double"})}
    assert {one.document_name for one in found} == {"MILL/2008/page_9.pdf"}
    assert text(found[0]) == (
        "in millions of dollars .\nfuel cost $ 1,200 in 2008 .\n\n"
        "| item | 2008 | 2007 |\n| --- | --- | --- |\n| rent | $ 120.5 | $ 100.0 |\n| wages | ( 7 ) |  |"
    )
    assert found[2].gold_passages == ("| rent | $ 120.5 | $ 100.0 |",)


def test_row_of_one_turn_gives_one_sample_with_history(tmp_path: Path) -> None:
    whole = samples(tmp_path, PUBLISHED)
    turns = [
        {**PUBLISHED, "id": f"{PUBLISHED['id']}_{i}",
         "annotation": {**PUBLISHED["annotation"], "turn_ind": i, "cur_dial": QUESTIONS[: i + 1]}}
        for i in range(3)
    ]  # fmt: skip
    assert samples(tmp_path, *turns) == whole
    turns[1]["annotation"]["turn_ind"] = 3
    (wrong,) = [one for one in read(tmp_path, *turns) if isinstance(one, DataError)]
    assert "'turn_ind' is 3, not a turn of the 3" in str(wrong)


def test_cleaned_dialogue_keeps_the_annotated_answers(tmp_path: Path) -> None:
    found = samples(tmp_path, CLEANED, {**CLEANED, "id": "Single_MILL/2008/page_9.pdf-4"})
    assert [{"said": one.extra["said"]} for one in found[:3]] == [
        {"said": "$120.5"}, {"said": "100"}, {"said": "20.5%"},
    ]  # fmt: skip
    assert found[0].subsets == {"single", "duplicate columns"}
    assert "| rent | 1,120.5 | 100 |\n| wages | n/a |  |" in text(found[0])
    assert found[0].document == found[3].document
    assert {one.document_name for one in found} == {"MILL/2008/page_9.pdf"}


def test_splits_in_one_object_are_subsets(tmp_path: Path) -> None:
    other = {**CLEANED, "id": "Single_b"}
    found = read(tmp_path, {"train": [CLEANED], "dev": [other, {**other, "dialogue": {}}]})
    assert [one.subsets & {"train", "dev"} for one in found if isinstance(one, Sample)] == [
        *[{"train"}] * 3, *[{"dev"}] * 3,
    ]  # fmt: skip
    assert "dev, number 2: 'conv_questions' is not an array of questions" in str(found[-1])


def test_a_question_of_finqa_is_one_sample(tmp_path: Path) -> None:
    row = {
        "id": "MILL/2008/page_9.pdf-1", "pre_text": BEFORE, "post_text": [], "table": TABLE,
        "qa": {"question": "Did rent\nrise?", "program": "greater(120.5, 100.0)", "exe_ans": "yes",
               "answer": ""},
    }  # fmt: skip
    (found,) = samples(tmp_path, row)
    assert (found.question, found.reference, found.extra["program"]) == (
        "Did rent rise?", "yes", "greater(120.5, 100.0)",
    )  # fmt: skip
    assert (found.history, found.extra.keys()) == ((), {"program"})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"annotation": {**PUBLISHED["annotation"], "turn_program": ["1"]}},
            "is not the number of questions, 3",
        ),
        ({"annotation": {"dialogue_break": ["who?", " "]}}, "a question is blank"),
        ({"annotation": {"dialogue_break": "who?"}}, "not an array of questions"),
        ({"table_ori": [["a"], "b"]}, "'table' is neither rows nor columns"),
        ({"pre_text": [1]}, "'pre_text' is neither text"),
    ],
)
def test_bad_dialogue_is_an_error_and_others_are_read(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    bad, *good = read(tmp_path, {**PUBLISHED, **changed}, CLEANED)
    assert isinstance(bad, DataError)
    assert (bad.line, len(good)) == (1, 3)
    assert said in str(bad)


def test_a_private_test_set_has_questions_only(tmp_path: Path) -> None:
    found = samples(tmp_path, {**PUBLISHED, "annotation": {"dialogue_break": QUESTIONS}})
    assert {(one.reference, one.gold_passages) for one in found} == {(None, ())}
    assert all("program" not in one.extra for one in found)
    assert found[2].history == (Turn(QUESTIONS[0]), Turn(QUESTIONS[1]))


@pytest.mark.parametrize("row", [PUBLISHED, CLEANED])
def test_samples_written_as_rows_are_read_back(tmp_path: Path, row: object) -> None:
    found = samples(tmp_path, row)
    assert samples(tmp_path, *(one.to_dict() for one in found)) == found


def test_generic_domain_names_the_domain_of_the_rows(tmp_path: Path) -> None:
    for row in (PUBLISHED, CLEANED):
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps(row), encoding="utf-8")
        with pytest.raises(UsageError, match="read by another domain"):
            list(read_samples("generic", Source(str(path))))


def test_numbers_of_programs() -> None:
    assert operands("add(#0, const_1000), exp(-.5, 3%)") == {
        Decimal("0.5"), Decimal(3), Decimal("0.03"),
    }  # fmt: skip
    assert operands("") == operands("multiply(#0, const_m1)") == frozenset()


def test_gold_passages_are_rows_before_sentences() -> None:
    page = page_text(
        "Fuel was 7 . Rent was 5 in 2008 .", [["", "2008"], ["5 mills", "7"], ["sum", "-12.0"]], ""
    )
    assert gold_passages(page, "7") == ("| 5 mills | 7 |",)  # not the sentence
    assert gold_passages(page, "add(5, 12)") == ("Rent was 5 in 2008 .", "| sum | -12.0 |")
    assert gold_passages(page, "99") == ()
    for passage in gold_passages(page, "add(5, 12)"):
        assert passage in page


def test_a_page_without_a_table_or_text() -> None:
    assert page_text("a", [], "b") == "a\n\nb"
    assert page_text(" ", [["x", "y"], ["1"]], "") == "| x | y |\n| --- | --- |\n| 1 |  |"


def test_every_turn_of_the_cleaned_data_is_a_sample() -> None:
    found = list(read_samples("finance", Source(str(shared("convfinqa/dev.jsonl")))))
    turns = [one for one in found if isinstance(one, Sample)]
    assert len(turns) == len(found) > 1_000
    assert all(one.reference and one.extra["program"] for one in turns)
    assert sum(not one.gold_passages for one in turns) < 0.02 * len(turns)
    assert all(passage in text(one) for one in turns for passage in one.gold_passages)
