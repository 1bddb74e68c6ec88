"""Lies and true claims through the product, with checkers that know the truth, lie, or say nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.checking.checkers import Case, Checker, Kind, Outcome, run_all
from tests.checking.claims import HARD, compositions, extractions, listings

PATHS: dict[str, Callable[[int], Iterator[Case]]] = {
    "answers": compositions,
    "records": extractions,
    "lists": listings,
}
N_LIES = [10, pytest.param(1_000, marks=pytest.mark.slow)]


def ran(
    path: str, n_lies: int, kind: Kind, **settings: Any
) -> tuple[Outcome, Checker, Sequence[Case]]:
    cases, checker = list(PATHS[path](n_lies)), Checker(kind)
    outcome = run_all(cases, checker, **settings)
    assert outcome.n_lies >= n_lies
    assert outcome.n_true > n_lies or path == "answers"
    assert not checker.unknown, "every claim is one of the case"
    assert not checker.unnamed, "every claim about a field says of whom"
    return outcome, checker, cases


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_lies", [20, pytest.param(1_000, marks=pytest.mark.slow)])
def test_with_an_honest_checker_lies_fall_and_truths_stay(path: str, n_lies: int) -> None:
    outcome, checker, cases = ran(path, n_lies, "honest")
    assert len(outcome.accepted) <= 0.01 * outcome.n_lies, outcome.accepted
    assert len(outcome.refused) <= 0.02 * outcome.n_true, outcome.refused
    assert not outcome.unchecked
    assert len(checker.requests) <= len(cases)  # one more for an answer or record


@pytest.mark.parametrize("n_lies", [20, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["honest", "lying in 5 %", "silent"])
def test_no_more_lies_about_values_without_quotes_are_accepted(kind: Kind, n_lies: int) -> None:
    checker = Checker(kind, has_quotes=False)
    outcome = run_all(list(extractions(n_lies)), checker)
    assert len(outcome.accepted) <= checker.n_spared, outcome.accepted
    assert not checker.unknown
    if kind == "honest":
        assert len(outcome.refused) <= 0.02 * outcome.n_true, outcome.refused


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_lies", N_LIES)
def test_a_checker_that_lies_spares_no_other_lies(path: str, n_lies: int) -> None:
    outcome, checker, _ = ran(path, n_lies, "lying in 5 %")
    assert len(outcome.accepted) <= checker.n_spared, outcome.accepted
    assert n_lies < 1_000 or 0 < len(outcome.accepted) <= 0.06 * outcome.n_lies


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_lies", N_LIES)
def test_no_checker_can_make_a_number_unit_date_quote_or_cut_count(path: str, n_lies: int) -> None:
    outcome, _, _ = ran(path, n_lies, "always yes")
    assert not [each for each in outcome.accepted if each[0] in HARD]
    assert len(outcome.refused) <= 0.02 * outcome.n_true, outcome.refused


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_lies", N_LIES)
def test_a_checker_that_always_says_no_leaves_everything_open(path: str, n_lies: int) -> None:
    outcome, _, _ = ran(path, n_lies, "always no", check="all")
    assert not outcome.accepted
    assert not outcome.unchecked
    assert len(outcome.refused) == outcome.n_true


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_lies", N_LIES)
@pytest.mark.parametrize("check", ["auto", "off"])
def test_what_is_not_checked_says_so(path: str, n_lies: int, check: str) -> None:
    outcome, checker, cases = ran(path, n_lies, "silent", check=check)
    assert not outcome.accepted
    assert not [each for each in outcome.unchecked if each[0] in HARD]
    assert outcome.unchecked
    # asked again once
    assert len(checker.requests) <= 2 * len(cases)
    assert bool(checker.requests) == (check == "auto")
