"""The domain `finance`: conversations about reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pearl.contrib.finance.domain import page_text
from pearl.data.domains import Source, read_samples
from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.errors import DataError, UsageError

QUESTIONS = ["what was rent in 2008?", "and in 2007?", "what is the change as a share of it?"]
PROGRAMS = ["120.5", "100", "subtract(120.5, 100), divide(#0, 100)"]
EXECUTED = [120.5, 100.0, 0.205]
BEFORE = "in millions of dollars . fuel cost $ 1,200 in 2008 ."

CLEANED: dict[str, Any] = {
    "id": "Single_MILL/2008/page_9.pdf-3",
    "doc": {
        "pre_text": BEFORE,
        "post_text": "",
        "table": {"2008": {"rent": 120.5, "wages": "n/a"}, "2007": {"rent": 100.0}},
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


def test_a_dialogue_gives_a_sample_per_turn(tmp_path: Path) -> None:
    found = samples(tmp_path, CLEANED)
    id = CLEANED["id"]
    assert [one.id for one in found] == [f"{id}/1", f"{id}/2", f"{id}/3"]
    assert [one.reference for one in found] == ["120.5", "100", "0.205"]
    assert [one.extra["program"] for one in found] == PROGRAMS
    assert {one.extra["dialogue"] for one in found} == {id}
    assert [one.id for one in found if "first" in one.subsets] == [f"{id}/1"]
    assert text(found[0]) == (
        f"{BEFORE}\n\n"
        "| item | 2008 | 2007 |\n| --- | --- | --- |\n| rent | 120.5 | 100 |\n| wages | n/a |  |"
    )
    assert found[2].gold_passages == ("| rent | 120.5 | 100 |",)


def test_cleaned_dialogue_keeps_the_annotated_answers(tmp_path: Path) -> None:
    found = samples(tmp_path, CLEANED, {**CLEANED, "id": "Single_MILL/2008/page_9.pdf-4"})
    assert [{"said": one.extra["said"]} for one in found[:3]] == [
        {"said": "$120.5"}, {"said": "100"}, {"said": "20.5%"},
    ]  # fmt: skip
    assert found[0].subsets == {"single", "duplicate columns", "first"}
    assert "| rent | 120.5 | 100 |\n| wages | n/a |  |" in text(found[0])
    assert found[0].document == found[3].document
    assert {one.document_name for one in found} == {"MILL/2008/page_9.pdf"}


@pytest.mark.parametrize(("id", "name"), [(None, "1"), ("7", "7"), ("a-7", "a"), ("Double_7", "7")])
def test_a_page_has_a_name(id: str | None, name: str, tmp_path: Path) -> None:
    first, *_ = samples(tmp_path, {**CLEANED, "id": id})
    assert first.document_name == name


def test_splits_in_one_object_are_subsets(tmp_path: Path) -> None:
    other = {**CLEANED, "id": "Single_b"}
    found = read(tmp_path, {"train": [CLEANED], "dev": [other, {**other, "dialogue": {}}]})
    assert [one.subsets & {"train", "dev"} for one in found if isinstance(one, Sample)] == [
        *[{"train"}] * 3, *[{"dev"}] * 3,
    ]  # fmt: skip
    assert "dev, number 2: 'conv_questions' is not an array of questions" in str(found[-1])


@pytest.mark.parametrize(
    ("place", "changed", "said"),
    [
        ("dialogue", {"turn_program": ["1"]}, "not as many programs or answers as questions, 3"),
        ("dialogue", {"conv_questions": ["who?", " "]}, "a question is blank"),
        ("dialogue", {"conv_questions": "who?"}, "not an array of questions"),
        ("doc", {"table": [["a"], "b"]}, "'table' is not an object of columns"),
        ("doc", {"pre_text": [1]}, "'pre_text' or 'post_text' is not text"),
    ],
)
def test_bad_dialogue_is_an_error_and_others_are_read(
    tmp_path: Path, place: str, changed: dict[str, Any], said: str
) -> None:
    bad, *good = read(tmp_path, {**CLEANED, place: {**CLEANED[place], **changed}}, CLEANED)
    assert isinstance(bad, DataError)
    assert (bad.line, len(good)) == (1, 3)
    assert said in str(bad)


def test_a_private_test_set_has_questions_only(tmp_path: Path) -> None:
    found = samples(tmp_path, {**CLEANED, "dialogue": {"conv_questions": QUESTIONS}})
    assert {(one.reference, one.gold_passages) for one in found} == {(None, ())}
    assert all("program" not in one.extra for one in found)


def test_samples_written_as_rows_are_read_back(tmp_path: Path) -> None:
    found = samples(tmp_path, CLEANED)
    assert samples(tmp_path, *(one.to_dict() for one in found)) == found


def test_generic_domain_names_the_domain_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(CLEANED), encoding="utf-8")
    with pytest.raises(UsageError, match="read by another domain"):
        list(read_samples("generic", Source(str(path))))


def test_a_page_without_a_table_or_text() -> None:
    assert page_text("a", [], "b") == "a\n\nb"
    assert page_text(" ", [["x", "y"], ["1"]], "") == "| x | y |\n| --- | --- |\n| 1 |  |"
