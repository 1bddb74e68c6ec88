"""The gold programs of ConvFinQA, and what the matcher makes of people's answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.scripts import experiment
from tests.root import ROOT
from tests.shared import shared

pytestmark = pytest.mark.slow


def reproduce(data: Path, *args: str, exits: int = 0) -> dict[str, Any]:
    script = ROOT / "experiments/reproduce_convfinqa.py"
    done = subprocess.run(
        [sys.executable, str(script), "--data", str(data), *args],
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
    told = report["with_units"]
    assert (told["matcher_agree"], told["false_match"]) == (4, 0)
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


def test_the_gold_programs_come_to_what_their_authors_say() -> None:
    """Without retrieval, which `test_rows_of_convfinqa_are_found` tests over the same file."""
    module = experiment("reproduce_convfinqa")
    dialogues = list(module.read_dialogues(shared("convfinqa") / "dev.jsonl"))
    report = module.reproduce(dialogues, has_pages=True).as_json()
    assert report["pages_equal"] == report["turns"]
    assert report["executed_equal"] == report["turns"] > 1_000
    assert report["with_units"]["matcher_agree"] >= 0.96 * report["turns"]
    assert report["with_units"]["false_match"] <= 0.02 * report["turns"]
