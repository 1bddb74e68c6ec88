"""The gold programs of ConvFinQA, and what the matcher makes of people's answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.root import ROOT
from tests.shared import shared

pytestmark = pytest.mark.slow


def reproduce(data: Path, *args: str, exits: int = 0) -> dict[str, Any]:
    script = ROOT / "experiments/reproduce_convfinqa.py"
    done = subprocess.run(
        [sys.executable, str(script), "--data", str(data), *args, "--json"],
        stdout=subprocess.PIPE,
    )
    assert done.returncode == exits
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def dialogue(*turns: tuple[str, str, float | str]) -> dict[str, Any]:
    programs, answers, executed = zip(*turns, strict=True)
    return {
        "id": "one",
        "doc": {"pre_text": "Of boats.", "post_text": "", "table": {"2008": {"boats": 3.0}}},
        "dialogue": {
            "conv_questions": [f"question {i}" for i in range(len(turns))],
            "conv_answers": answers,
            "turn_program": programs,
            "executed_answers": executed,
        },
    }


def test_every_turn_is_counted_once(tmp_path: Path) -> None:
    right = dialogue(
        ("110", "$110", 110.0),
        ("subtract(110, 100)", "10", 10.0),
        ("subtract(110, 100), divide(#0, 100)", "10%", 0.1),
        ("greater(110, 100)", "yes", "yes"),
        ("divide(1, 3)", "0.31", 0.33333),
    )
    wrong = dialogue(("add(1, 1)", "3", 3.0), ("divide(1, 0)", "0", 0.0)) | {"id": "two"}
    data = tmp_path / "dev.jsonl"
    data.write_text(f"{json.dumps(right)}\n{json.dumps(wrong)}\n", encoding="utf-8")
    report = reproduce(data, exits=1)
    assert (report["turns"], report["executed_equal"]) == (7, 5)
    assert (report["matcher_agree"], report["false_match"]) == (4, 0)
    # A quotient is never taken for 10; a matcher that is not told takes 10 for 10%.
    assert report["without_units"]["false_match"] == 1
    assert [each["is"] for each in report["unequal"]] == [
        2.0, "DivisionByZeroError: step #0 divides by 0: divide(1, 0)",
    ]  # fmt: skip
    assert [each["answer"] for each in report["disagreements"]] == ["0.31", "3"]


def test_programs_are_evaluated_over_their_pages(tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    turns = ("add(3, 4)", "7", 7.0), ("divide(3, 4)", "75%", 0.75), ("3%", "3%", 0.03)
    data.write_text(json.dumps(dialogue(*turns)), encoding="utf-8")
    report = reproduce(data, "--pages")
    assert report["pages_equal"] == 3
    assert report["operands"] == {"one cell": 3, "nowhere": 2}


def test_what_is_no_such_file_says_where(tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    data.write_text(f"{json.dumps(dialogue(('1', '1', 1.0)))}\n{{}}\n", encoding="utf-8")
    script = ROOT / "experiments/reproduce_convfinqa.py"
    done = subprocess.run(
        [sys.executable, str(script), "--data", str(data)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "dev.jsonl:2: " in done.stderr


def test_an_object_with_all_dialogues_is_read_too(tmp_path: Path) -> None:
    data = tmp_path / "dev.json"
    data.write_text(json.dumps({"dev": [dialogue(("1", "1", 1.0))]}), encoding="utf-8")
    assert reproduce(data)["turns"] == 1


def boats(*turns: tuple[str, str, float | str], questions: tuple[str, ...]) -> dict[str, Any]:
    """A dialogue about a page with a table of two years."""
    row = dialogue(*turns)
    row["id"] = "Single_ADA/2009/page_1.pdf-1"
    row["doc"]["table"] = {
        "2009": {"boat sales": 5735.0, "fishing boats": 31.0}, "2008": {"boat sales": 5180.0, "fishing boats": 28.0}
    }  # fmt: skip
    row["dialogue"]["conv_questions"] = list(questions)
    return row


def test_rules_answer_what_they_can_and_refuse_the_rest(tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    turns = (
        ("5735", "5735", 5735.0),
        ("5180", "5180", 5180.0),
        ("subtract(5735, 5180), divide(#0, 5180)", "10.7%", 0.10714),
        ("31", "31", 99.0),
        ("7", "7", 7.0),
    )
    questions = (
        "what were boat sales in 2009?",
        "and in 2008?",
        "what was the percentage change in boat sales from 2008 to 2009?",
        "what were fishing boats in 2009?",  # the page has 31: a wrong answer for what the data calls right
        "what were fishing boats in 2007?",
    )
    data.write_text(json.dumps(boats(*turns, questions=questions)), encoding="utf-8")
    report = reproduce(data, "--rules", exits=1)
    page, corpus = report["rules"]["page, questions"], report["rules"]["corpus, questions"]
    assert page["total"] == {"right": 3, "wrong": 1, "refused": 1}
    assert (page["accuracy"], page["precision"]) == (0.6, 0.75)
    assert page["by_people"] == {"right": 4, "refused": 1}
    assert page["by_program"] == {
        "number": {"right": 2, "wrong": 1, "refused": 1}, "2 steps": {"right": 1}
    }  # fmt: skip
    assert page["by_turn"]["5 or later"] == {"refused": 1}
    assert (page["dialogues"], page["dialogues_right"]) == (1, 0)
    assert [(one["is"], one["gold"]) for one in page["wrong"]] == [("31", "99.0")]
    assert corpus["pages_right"] == 5
    assert report["retrieval"]["page, bm25"]["measures"]["R@5"]["estimate"] == 1


def test_published_results_stand_beside_those_of_the_same_task(tmp_path: Path) -> None:
    data = tmp_path / "dev.jsonl"
    row = boats(("31", "31", 31.0), questions=("what were fishing boats in 2009?",))
    data.write_text(json.dumps(row), encoding="utf-8")
    script = ROOT / "experiments/reproduce_convfinqa.py"
    done = subprocess.run(
        [sys.executable, str(script), "--data", str(data), "--table"],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    given, _, found = done.stdout.partition("| over all pages |")
    assert "| FinQANet, RoBERTa-large | test | 68.90 |" in given
    assert "| PEARL, rules alone, page, questions | this file | 100.00 | this run |" in given
    assert "41.42" in found
    assert "corpus, metadata | this file | 100.00" in found
    assert "68.90" not in found


@pytest.mark.slow
def test_the_gold_programs_come_to_what_their_authors_say() -> None:
    report = reproduce(shared("convfinqa") / "dev.jsonl", "--pages")
    assert report["pages_equal"] == report["turns"]
    assert report["executed_equal"] == report["turns"] > 1_000
    assert report["matcher_agree"] >= 0.96 * report["turns"]
    assert report["false_match"] <= 0.02 * report["turns"]
