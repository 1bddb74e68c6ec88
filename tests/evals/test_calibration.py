"""Reliability, calibration error, Brier score and coverage: by hand, and by their properties."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.report import MIN_ANSWERS, calibration, calibrations
from pearl.evals.runner import Evaluation, evaluate
from pearl.pipeline import Pearl
from tests.evals.evallogs import header, record
from tests.interpreter.test_several_plans import model

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def test_an_example_by_hand() -> None:
    # Bins: 0.3 (1 of 2 right), 0.6 and 0.65 (1 of 2), 1 (3 of 4).
    confidences = [0.3, 0.3, 0.6, 0.65, 1, 1, 1, 1]
    correct = [True, False, True, False, True, True, True, False]
    found = calibration(confidences, correct, n_tried=10)
    assert [(b.low, b.high, b.n) for b in found.bins] == [(0.3, 0.4, 2), (0.6, 0.7, 2), (0.9, 1, 4)]
    assert found.ece == pytest.approx((2 * 0.2 + 2 * 0.125 + 4 * 0.25) / 8)
    squares = 0.7**2 + 0.3**2 + 0.4**2 + 0.65**2 + 1
    assert found.brier == pytest.approx(squares / 8)
    assert [(k.threshold, k.n, k.coverage) for k in found.kept] == [
        (1, 4, 0.4), (0.65, 5, 0.5), (0.6, 6, 0.6), (0.3, 8, 0.8),
    ]  # fmt: skip
    assert [k.accuracy.estimate for k in found.kept] == [3 / 4, 3 / 5, 4 / 6, 5 / 8]


def test_calibrated_confidences_have_no_error() -> None:
    made = [(k / 10, i < k) for k in range(1, 10) for i in range(10)]
    found = calibration([c for c, _ in made], [r for _, r in made])
    assert found.ece == pytest.approx(0, abs=1e-12)
    assert found.brier == pytest.approx(sum(k * (10 - k) / 100 for k in range(1, 10)) / 9)


@given(ANSWERS)
def test_properties(answers: list[tuple[float, bool]]) -> None:
    found = calibration([c for c, _ in answers], [r for _, r in answers])
    assert 0 <= found.ece <= 1 + 1e-12
    assert 0 <= found.brier <= 1
    assert sum(b.n for b in found.bins) == len(answers)
    for each in found.bins:
        assert each.low - 1e-12 <= each.confidence <= each.high + 1e-12
        assert each.accuracy.low <= each.accuracy.estimate <= each.accuracy.high
    # Of means of groups, the error is at least the difference of the means of all.
    mean = sum(c for c, _ in answers) / len(answers)
    assert found.ece >= abs(mean - sum(r for _, r in answers) / len(answers)) - 1e-9
    coverages = [kept.coverage for kept in found.kept]
    assert coverages == sorted(coverages)
    assert coverages[-1] == 1


def answers(*made: tuple[float | None, bool], **fields: Any) -> EvalLog:
    records = [
        record(
            f"q{i}",
            confidence=confidence,
            score=float(is_right),
            choice=int(not is_right),
            reply="BA"[is_right],
        )
        for i, (confidence, is_right) in enumerate(made)
    ]
    failed = record("failed", status="failed", score=0.0, choice=None, error="undecided: a tie")
    return EvalLog(header(methods=("pearl",), **fields), (*records, failed))


def test_failures_and_answers_of_one_plan_have_no_confidence() -> None:
    (found,) = calibrations(answers((1.0, True), (0.5, False), (None, True), n_plans=2))
    assert (found.n, found.n_tried, found.n_alone) == (2, 4, 1)
    assert found.is_scarce
    assert [kept.coverage for kept in found.kept] == [0.25, 0.5]
    many = answers(*[(1.0, True)] * MIN_ANSWERS, n_plans=2)
    assert not calibrations(many)[0].is_scarce
    assert calibrations(answers((None, True))) == []


def test_an_evaluation_with_several_plans_keeps_the_confidence_of_each_answer() -> None:
    document = Document("Ada paid 5 dollars.", "story")
    samples = [
        Sample(f"q{i}", question=f"How much, {i}?", document=document, reference=right)
        for i, right in enumerate(["$5", "$6"])
    ]
    pearl = Pearl(model("$6", "$5", "$5"), n_plans=3, max_repairs=0)

    async def main() -> list[EvalRecord]:
        evaluation = Evaluation(("pearl", "direct"), scorer="numeric")
        return [one async for one in evaluate(pearl, samples, evaluation)]

    records = asyncio.run(main())
    of_plans = [one for one in records if one.method == "pearl"]
    assert [one.confidence for one in of_plans] == [pytest.approx(2 / 3)] * 2
    assert [one.is_correct for one in of_plans] == [True, False]
    assert {one.n_calls for one in of_plans} == {6}
    assert all(one.confidence is None for one in records if one.method == "direct")
    log = EvalLog(header(methods=("pearl", "direct"), n_plans=3), tuple(records))
    (found,) = calibrations(log)
    assert (found.method, found.n, found.ece) == ("pearl", 2, pytest.approx(2 / 3 - 1 / 2))
