"""Models rated by plans that were written for the same questions."""

from __future__ import annotations

import pytest

from pearl.dsl.parser import parse
from tests.experiments.scripts import experiment

WHY = '1. a = FIND_REASON(CTX, "Ada sell the mill") : Find why'
WHERE = '1. a = FIND(CTX, "the lease of the ferry") : Find it\n2. b = CONCAT(a, a) : Join'


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        (WHY, WHY, 1.0),
        (WHERE, '1. z = FIND(CTX, "other") : x', 1.0),  # what joins is not counted
        ('1. a = FIND(CTX, "x") : x\n2. b = FIND(CTX, "y") : y', '1. a = FIND(CTX, "x") : x', 2 / 3),
        (WHY, WHERE, 0.0),
    ],
)  # fmt: skip
def test_action_f1_is_of_multisets_of_names(text: str, reference: str, expected: float) -> None:
    assert experiment("planners").action_f1(parse(text), parse(reference)) == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        (WHY, WHY, 1.0),
        ('1. a = FIND(CTX, "red boat") : x', '1. a = FIND(CTX, "boat") : x', 2 / 3),
        # "boat" is matched with the second string, which is nearer than the first
        ('1. a = FIND(CTX, "boat") : x', '1. a = COMPARE(CTX, "red boat", "boat") : x', 2 / 3),
        ('1. a = PICK(CTX, ["boat", "mill"]) : x', '1. a = FIND(CTX, "mill") : x', 2 / 3),
        ("1. a = SUMMARIZE(CTX) : x", "1. b = SUMMARIZE(CTX) : y", 1.0),
        ("1. a = SUMMARIZE(CTX) : x", WHY, 0.0),
    ],
)
def test_overlap_matches_each_string_once(text: str, reference: str, expected: float) -> None:
    assert experiment("planners").overlap(parse(text), parse(reference)) == pytest.approx(expected)
