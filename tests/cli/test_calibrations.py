"""What is printed of how well confidence foretells correctness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.evals.evallogs import write
from tests.evals.test_calibration import answers


def test_what_is_printed_and_given_as_json(pearl: Terminal) -> None:
    made = answers(*[(1.0, True)] * 6, *[(0.5, False)] * 3, (0.5, True), (None, True), n_plans=3)
    write(made, Path("log.jsonl"))
    said = pearl("eval", "--rescore", "log.jsonl")
    assert "pearl: confidence of 10 answers, 1 with only one plan have none; fewer than 100" in said
    assert "expected calibration error 10.0 %, Brier score 0.100" in said
    rows = [line.split() for line in said.splitlines()]
    assert ["50..60", "50.0", "25.0", "4.6..69.9", "4"] in rows
    assert ["100.0", "50.0", "100.0", "61.0..100.0", "6"] in rows
    (found,) = json.loads(pearl("eval", "--rescore", "log.jsonl", "--json"))["calibrations"]
    assert (found["ece"], found["is_scarce"]) == (pytest.approx(0.1), True)
    write(answers((None, True), n_plans=3), Path("alone.jsonl"))
    assert "only one plan, or plans that disagree" in pearl("eval", "--rescore", "alone.jsonl")
    write(answers((None, True)), Path("one.jsonl"))
    assert "confidence" not in pearl("eval", "--rescore", "one.jsonl")
