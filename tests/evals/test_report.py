"""A log → its figures, next to figures worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pearl.errors import UsageError
from pearl.evals import report
from pearl.evals.log import EvalLog, EvalRecord, PlanShape
from pearl.evals.report import outcomes, plan_figures
from pearl.llm import Usage
from tests.evals import evallogs
from tests.evals.evallogs import header, record


def right(id: str, method: str = "a", **fields: object) -> EvalRecord:
    return record(id, method, **fields)


def wrong(id: str, method: str = "a", **fields: object) -> EvalRecord:
    return record(id, method, **{"choice": 1, "score": 0.0, **fields})


def failed(id: str, method: str = "a", **fields: object) -> EvalRecord:
    known = {"status": "failed", "choice": None, "score": 0.0, "error": "gone", "cost_usd": None}
    return record(id, method, **{**known, **fields})


def log(*records: EvalRecord, **fields: object) -> EvalLog:
    return EvalLog(header(methods=("a", "b"), **fields), records)


def test_a_row_counts_every_record_that_was_tried() -> None:
    made = log(
        right("q1", duration_s=1.0, cost_usd=0.25),
        right("q2", duration_s=2.0, cost_usd=0.25, status="fell_back"),
        wrong("q3", duration_s=3.0, cost_usd=0.5),
        wrong("q4", duration_s=4.0, cost_usd=0.5, choice=None),
        failed("q5", duration_s=5.0, cost_usd=0.5, n_calls=0, usage=Usage()),
    )
    (row,) = report.scores(log(*made.records, right("q6", cost_usd=None)))
    assert row.cost_usd is None
    (row,) = report.scores(made)
    assert (row.method, row.subset, row.n) == ("a", "all", 5)
    assert (row.n_answered, row.n_fell_back, row.n_failed, row.n_unmapped) == (3, 1, 1, 1)
    assert row.n_correct == 2
    assert row.accuracy.estimate == pytest.approx(0.4)
    assert row.accuracy.low < 0.4 < row.accuracy.high
    assert row.to_dict()["accuracy_pct"] == 40.0
    assert row.usage == Usage(36_000, 480)
    assert (row.n_calls, row.cost_usd, row.latency_p50_s) == (4, 2.0, 3.0)
    assert row.latency_p95_s == pytest.approx(4.8)
    assert row.by_seed == (0.4,)
    assert report.errors(made) == [("gone", 1)]


def test_every_record_has_one_outcome_and_plans_have_figures() -> None:
    plan = '1. a = FIND(CTX, "x") : f\n2. b = FIND(CTX, "y") : f\n3. c = CONCAT(a, b) : Join'
    shape = PlanShape(n_steps=3, n_calls=2, depth=2, width=2)
    about: list[dict[str, Any]] = [
        {"plan": plan, "shape": shape}, {"plan": plan, "shape": shape, "score": 0.5}, {"score": 0.0, "choice": 2},
        {"choice": None, "score": 0.0}, {"status": "failed", "error": "undecided: step 'a': of two forms"},
        {"status": "failed", "error": "PlanningError: no valid plan after 5 calls"},
        {"status": "failed", "error": "ModelError: the server is gone"},
    ]  # fmt: skip
    records = [record(f"q{n}", **fields) for n, fields in enumerate(about)]
    made = EvalLog(header(), (*records, record("q1", method="direct")))
    second, first = outcomes(made)
    assert (first.n, set(first.n_of.values())) == (7, {1})
    assert (second.n, second.n_of["right"]) == (1, 1)
    (found,) = plan_figures(made)
    assert (found.n, found.n_different, found.steps, found.calls) == (2, 1, 3.0, 2.0)
    assert (found.actions, found.n_actions) == (2.0, 2)
    assert found.most_used == (("FIND", 4), ("CONCAT", 2))


def test_seeds_of_a_sample_are_no_further_samples() -> None:
    once = log(*(right(f"q{i}") if i < 6 else wrong(f"q{i}") for i in range(10)))
    thrice = log(
        *(replace(r, seed=seed) for seed in range(3) for r in once.records),
        seeds=(0, 1, 2),
    )
    (one,), (three,) = report.scores(once), report.scores(thrice)
    assert (three.n, three.by_seed) == (30, (0.6, 0.6, 0.6))
    assert three.accuracy.estimate == pytest.approx(one.accuracy.estimate)
    assert three.accuracy.low == pytest.approx(one.accuracy.low, abs=0.03)
    assert three.accuracy.high == pytest.approx(one.accuracy.high, abs=0.03)


def test_comparisons_pair_by_sample_and_seed() -> None:
    made = log(
        right("q1"), wrong("q2"), right("q3"), right("only a"),
        wrong("q3", "b"), wrong("q1", "b"), right("q2", "b"), wrong("only b", "b"),
    )  # fmt: skip
    (found,) = report.comparisons(made)
    assert (found.first, found.second, found.n) == ("a", "b", 3)
    assert found.difference.estimate == pytest.approx(1 / 3)
    assert found.mcnemar is not None
    test = found.mcnemar
    assert (test.n_both, test.n_first_only, test.n_second_only, test.n_neither) == (0, 2, 1, 0)
    assert test.p_value == 1.0


def test_methods_of_two_logs_are_paired_by_name_on_their_common_samples() -> None:
    first = log(right("q1"), right("q2"), wrong("q3"), wrong("q2", "b"))
    second = log(wrong("q2"), wrong("q3"), right("q4"), wrong("q2", "b"))
    found = [(f.first, f.second, f.n, f.difference.estimate) for f in report.across(first, second)]
    assert found == [("a", "a", 2, 0.5), ("b", "b", 1, 0.0)]


def test_p_values_of_several_pairs_are_those_of_holm() -> None:
    made = evallogs.log(40, methods=("direct", "pearl", "retrieve", "map-reduce"))
    found = [one for one in report.comparisons(made) if one.subset == "all"]
    assert {one.n_tests for one in found} == {6}
    for raw, holm in (
        ([one.mcnemar.p_value for one in found if one.mcnemar], [one.mcnemar_p_holm for one in found]),
        ([one.bootstrap_p for one in found], [one.bootstrap_p_holm for one in found]),
    ):  # fmt: skip
        # Of each value: the largest of the smaller ones and itself, each times how many are not smaller.
        expected = [
            min(1.0, max(p * sum(other >= p for other in raw) for p in raw if p <= value)) for value in raw
        ]  # fmt: skip
        assert holm == pytest.approx(expected)
    two = evallogs.log(40, methods=("direct", "pearl"))
    (alone,) = (one for one in report.comparisons(two) if one.subset == "all")
    assert (alone.n_tests, alone.bootstrap_p_holm) == (1, alone.bootstrap_p)


def test_guessing_goes_by_the_number_of_options() -> None:
    two, five = ("a", "b"), ("a", "b", "c", "d", "e")
    made = log(right("q1", options=two), right("q2", options=five), right("q2", "b", options=five))
    assert report.chance(made.records) == pytest.approx(0.35)
    assert report.chance(log(right("q1"), right("q2", options=(), reference="x")).records) is None


def test_a_log_without_records_has_no_figures() -> None:
    assert report.chance(log().records) is None
    assert report.comparisons(log()) == []
    assert report.errors(log()) == []
    with pytest.raises(UsageError, match="no record"):
        report.scores(log())
