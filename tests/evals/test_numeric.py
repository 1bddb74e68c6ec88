"""Which numbers are the same, by which rule, and which only look alike."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.arithmetic.matching import Form, Rule, match
from pearl.evals.scorers import load_scorer


@pytest.mark.parametrize(
    ("answer", "reference", "rule"),
    [
        ("1,250", "$1250.00", Rule.EXACT),
        ("(5)", "-5", Rule.EXACT),
        ("$3.2 million", "3,200,000", Rule.EXACT),
        ("The expense was **USD 3.2 million**.", "3,200,000", Rule.EXACT),
        ("9.50%", "9.5%", Rule.EXACT),
        ("Yes.", "yes", Rule.EXACT),
        ("It fell by 12.", "12", Rule.EXACT),
        ("12.46", "12.5", Rule.ROUNDED),
        ("6.88702", "6.88", Rule.ROUNDED),
        ("9.474%", "9.5%", Rule.ROUNDED),
        ("$3.24 million", "$3.2 million", Rule.ROUNDED),
        ("0.0947", "9.5%", Rule.PERCENT),
        ("9.5%", ".095", Rule.PERCENT),
        ("80", "80%", Rule.PERCENT),
        ("80%", "80", Rule.PERCENT),
        ("102", "101", Rule.ONE_PERCENT),
        ("0.0942", "9.5%", Rule.ONE_PERCENT),
        ("0.0958", "9.5%", Rule.PERCENT),
        ("9.6%", "9.5%", None),
        ("5", "-5", None),
        ("- 5", "-5", None),
        ("<5", "5", None),
        ("~5", "5", None),
        ("3.6", "360", None),
        ("3.2 million", "3.2", None),
        ("$5", "€5", None),
        ("$5", "5%", None),
        ("yes", "no", None),
        ("12 or 13", "12", None),
        ("", "0", None),
        ("0.3", "0", Rule.ROUNDED),
        ("0.6", "0", None),
        ("1", "0", None),
    ],
)
def test_rules(answer: str, reference: str, rule: Rule | None) -> None:
    assert match(answer, reference) is rule
    scores = rule not in (None, Rule.ONE_PERCENT)
    assert load_scorer("numeric").score(answer, reference) == float(scores)


@pytest.mark.parametrize(
    ("answer", "reference", "form", "rule"),
    [
        ("0.8", "80%", "share", Rule.PERCENT),
        ("80", "80%", "share", None),
        ("80", "80%", "points", Rule.PERCENT),
        ("0.8", "80%", "points", None),
        ("0.8", "80%", "number", None),
        ("80", "80%", "number", None),
        ("80", "80", "number", Rule.EXACT),
    ],
)
def test_the_form_of_the_program_excludes_false_matches(
    answer: str, reference: str, form: Form, rule: Rule | None
) -> None:
    assert match(answer, reference, form=form) is rule


numbers = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)  # fmt: skip


@given(numbers, st.integers(0, 3))
def test_a_number_matches_itself_however_it_is_shown(number: Decimal, places: int) -> None:
    shown = f"{number:,.{places}f}"
    assert match(f"{number:f}", f"{number:,f}") is Rule.EXACT
    assert match(f"{number:f}", shown) in (Rule.EXACT, Rule.ROUNDED)
    assert match(f"{number / 100:f}", f"{shown}%", form="share") is Rule.PERCENT


@given(numbers, numbers)
def test_numbers_that_differ_by_more_do_not_match(one: Decimal, other: Decimal) -> None:
    found = match(f"{one:f}", f"{other:f}", form="number")
    assert (found is not None) == (abs(one - other) <= abs(other) / 100)
