"""What reads nothing beside what does, and which letters are replied."""

from __future__ import annotations

from typing import Any

import pytest

from pearl.data.samples import Sample
from pearl.evals import report
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.report import BASELINES, baseline_records, letter_use
from pearl.evals.runner import rotated
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
    assert letter_use([asked("1", 0, 0), open_one]) == []


def test_scores_have_intervals_on_every_subset() -> None:
    records = tuple(asked(str(i), i % 4, 0, subsets=("hard",) if i % 2 else ()) for i in range(12))
    log = EvalLog(header(methods=("mcq",), n_samples=12), records)
    found = {(score.method, score.subset): score for score in report.baselines(log)}
    assert set(found) == {(name, subset) for name in BASELINES for subset in ("all", "hard")}
    assert found["longest", "all"].accuracy.estimate == 0.25
    assert found["longest", "hard"].n == 6


def test_a_letter_that_is_nearly_always_replied_is_biased() -> None:
    records = [asked(str(i), i % 4, 0) for i in range(20)]
    (use,) = letter_use(records)
    assert (use.chosen, use.gold, use.right) == ((20, 0, 0, 0), (5, 5, 5, 5), (5, 0, 0, 0))
    assert use.is_biased
    assert str(use).startswith("A 20 (5/5), B 0 (0/5)")
    (fair,) = letter_use([asked(str(i), i % 4, i % 4) for i in range(20)])
    assert not fair.is_biased
    (mostly_a,) = letter_use([asked(str(i), 0, 0) for i in range(20)])
    assert not mostly_a.is_biased  # for A is what is right
    (nothing,) = letter_use([asked("1", 0, None)])
    assert not nothing.is_biased


@pytest.mark.parametrize("n_options", [2, 3, 5])
def test_rotations_have_each_option_at_each_letter_once(n_options: int) -> None:
    options = tuple(f"option {i}" for i in range(n_options))
    sample = Sample("q", "Who?", options=options, gold=1)
    found = rotated([sample, Sample("open", "Why?", reference="x")])
    assert [each.id for each in found] == ["q", *(f"q~{i}" for i in range(1, n_options)), "open"]
    turned = found[:-1]
    assert all(each.options[each.gold or 0] == options[1] for each in turned)
    assert {each.gold for each in turned} == set(range(n_options))
    for place in range(n_options):
        assert {each.options[place] for each in turned} == set(options)
    assert {each.rotation_of for each in turned} == {"q"}


def test_rotations_of_a_question_are_one_sample_of_the_interval() -> None:
    samples = rotated([Sample(str(i), "Who?", options=("a", "bb"), gold=0) for i in range(30)])
    records = tuple(
        asked(s.id, s.gold or 0, 0, *s.options, rotation_of=s.rotation_of) for s in samples
    )
    log = EvalLog(header(methods=("mcq",), n_samples=60), records)
    (score,) = report.scores(log)
    assert (score.n, score.n_clusters) == (60, 30)
    (use,) = letter_use(records)
    assert (use.n_rotated, use.n_consistent) == (30, 0)  # A each time is another option each time
    steady = [r.model_copy(update={"choice": r.options.index("a")}) for r in records]
    assert letter_use(steady)[0].n_consistent == 30
