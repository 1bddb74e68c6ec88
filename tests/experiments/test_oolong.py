"""The experiment on questions that count, small; and its reader of the published questions."""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Any

import pytest

from tests.experiments.scripts import parts

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("p", [1.0, 0.85])
def test_every_answer_is_the_reference_s(p: float) -> None:
    bar = asyncio.run(parts.bars.exact(200, 2, p, 2, 25))  # these windows draw every kind
    assert bar.failed == []
    figures = bar.figures
    assert (figures["questions"], figures["differ"]) == (50, 0)
    assert figures["calls_after_first_question"] == 0
    assert figures["calls"] == 2 * ceil(200 / 32)
    assert (figures["score"] == 1.0) == (p == 1.0)
    assert figures["score"] == figures["reference"]


def test_a_wrong_plan_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    right = parts.running.plan_of

    def wrong(*args: Any) -> str:
        return right(*args).replace('"count", 1)', '"count", -1)').replace('"at least"', '"after"')

    monkeypatch.setattr(parts.running, "plan_of", wrong)
    bar = asyncio.run(parts.bars.exact(100, 1, 1.0, 0, 25))
    assert "a score below 1 with a perfect oracle" in bar.failed
    assert bar.figures["differ"] > 0


@pytest.mark.parametrize(
    "kind", ["drop", "duplicate", "reorder", "foreign_id", "off_list", "cut_off"]
)
def test_faults_of_replies(kind: str) -> None:
    bar = asyncio.run(parts.bars.faults(kind, 0.5, 2, 200))
    assert bar.failed == []
    assert bar.figures["replies_with"] > 0
    assert bar.figures["right"] + bar.figures["undecided"] == 200


def test_an_edit_and_hostile_rows() -> None:
    assert asyncio.run(parts.bars.edited(0, 200)).failed == []
    for per_call, others in ((32, 1), (1, 0)):
        bar = asyncio.run(parts.bars.hostile(0, 200, 0.02, per_call))
        assert bar.failed == []
        assert (bar.figures["wrong_of_others"] > 0) == bool(others)


@pytest.mark.parametrize("share", [0.03, 0.2])
def test_answers_that_undecided_rows_may_change_are_undecided(share: float) -> None:
    bar = asyncio.run(parts.bars.undecided(share, 200, 1, 0))
    assert bar.failed == []
    figures = bar.figures
    assert figures["answered"] + figures["undecided"] == figures["questions"] == 45
    assert min(figures["answered"], figures["undecided"]) > 2


def test_runs_stay_within_their_forecast() -> None:
    bar = asyncio.run(parts.forecasting.forecasts(12, 0))
    assert bar.failed == []
    assert bar.figures["within"] == 12
