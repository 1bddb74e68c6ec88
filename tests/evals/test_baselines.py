"""What reads nothing beside what does."""

from __future__ import annotations

from typing import Any

import pytest

from pearl.evals import report, stats
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.report import BASELINES, baseline_records
from tests.evals.evallogs import header, record


def asked(sample: str, gold: int, choice: int | None, *options: str, **fields: Any) -> EvalRecord:
    return record(
        sample, "mcq", gold=gold, choice=choice, options=options or ("aa", "bb", "cc", "dd"),
        score=float(gold == choice), **fields,
    )  # fmt: skip


def scores(records: list[EvalRecord]) -> dict[str, float]:
    made = baseline_records(records)
    return {
        name: sum(r.score for r in made if r.method == name) / max(1, len(records))
        for name in BASELINES
    }


def test_the_longest_option_counts_in_part_where_several_are_as_long() -> None:
    records = [asked("1", 2, 0, "a", "bbb", "ccc"), asked("2", 0, 0, "dddd", "e", "f")]
    assert scores(records)["longest"] == (0.5 + 1.0) / 2


def test_the_most_frequent_letter_counts_in_part_where_several_are_as_frequent() -> None:
    records = [asked("1", 0, 0), asked("2", 1, 0), asked("3", 1, 0)]
    assert scores(records)["majority"] == 2 / 3
    assert scores([asked(str(i), i % 4, 0) for i in range(8)])["majority"] == 0.25


def test_answers_in_words_have_no_such_baseline() -> None:
    open_one = record("2", "mcq", options=(), gold=None, choice=None, reference="the hull")
    assert baseline_records([asked("1", 0, 0), open_one]) == ()


def test_scores_have_intervals_on_every_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "N_RESAMPLES", 400)
    records = tuple(asked(str(i), i % 4, 0, subsets=("hard",) if i % 2 else ()) for i in range(12))
    log = EvalLog(header(methods=("mcq",), n_samples=12), records)
    found = {(score.method, score.subset): score for score in report.baselines(log)}
    assert set(found) == {(name, subset) for name in BASELINES for subset in ("all", "hard")}
    assert found["longest", "all"].accuracy.estimate == 0.25
    assert found["longest", "hard"].n == 6
