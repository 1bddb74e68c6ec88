"""What programs come to: numbers, units, formulas, and typed errors where there is no number."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pearl.actions.arithmetic.evaluation import (
    MAX_FORMULA,
    Amount,
    Result,
    evaluate,
    plain,
    round_to,
)
from pearl.actions.arithmetic.program import (
    DivisionByZeroError,
    MagnitudeError,
    MissingOperandError,
    ProgramError,
    UnfitUnitsError,
    UnknownRowError,
    parse,
)


def result_of(text: str, **names: Amount) -> Result:
    given_names = {name.replace("_", " "): amount for name, amount in names.items()}
    return evaluate(parse(text), {"r": MILLIONS, "s": SHARES}.__getitem__, given_names)


MILLIONS = [Amount(Decimal(n), "$", 6) for n in (10, -4, 3)]
SHARES = [Amount(Decimal("0.1"), "%"), Amount(Decimal("0.3"), "%")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("subtract(110, 100), divide(#0, 100)", "0.1"),
        ("add(0.1, 0.2)", "0.3"),
        ("divide(1, 3)", "0.33333"),
        ("divide(2, 3000000)", "0.00000066667"),
        ("divide(1, 64)", "0.015625"),
        ("exp(2, 10)", "1024"),
        ("exp(2, const_m1)", "0.5"),
        ("exp(9, 0.5)", "3"),
        ("multiply(const_m1, 0)", "0"),
        ("greater(2, 1)", "yes"),
        ("greater(1, 1)", "no"),
        ("table_sum(r)", "$9 million"),
        ("table_average(r)", "$3 million"),
        ("table_max(r)", "$10 million"),
        ("table_min(r)", "-$4 million"),
        ("table_average(s)", "20%"),
        ("subtract(5%, 3%)", "2%"),
        ("subtract(5%, 3%), multiply(#0, const_100)", "2%"),
        ("divide(3, 4), multiply(#0, const_100)", "75%"),
        ("divide(3, 4), multiply(#0, const_100), divide(#1, const_100)", "75%"),
        ("divide($ 6, 3)", "$2"),
        ("divide($ 6, $ 3)", "2"),
        ("multiply($ 6, 50%)", "$3"),
    ],
)
def test_results(text: str, shown: str) -> None:
    assert result_of(text).text == shown


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("divide(1, 0)", DivisionByZeroError),
        ("subtract(1, 1), divide(2, #0)", DivisionByZeroError),
        ("exp(0, const_m1)", DivisionByZeroError),
        ("exp(0, 0)", DivisionByZeroError),
        ("exp(10, 101)", MagnitudeError),
        ("exp(10, 99999999999999999999)", MagnitudeError),
        ("exp(0.1, 400)", MagnitudeError),
        ("exp(0.1, 99999999999999999999)", MagnitudeError),
        ("exp(const_m1, 0.5)", MagnitudeError),
        (", ".join(["exp(9, 9)", *(f"exp(#{i}, #{i})" for i in range(9))]), MagnitudeError),
        ("greater(1, 2), add(#0, 1)", MissingOperandError),
        ("add(net income, 1)", MissingOperandError),
        ("subtract($ 5, 3%)", UnfitUnitsError),
        ("add($ 5, € 3)", UnfitUnitsError),
        ("greater($ 5, 3%)", UnfitUnitsError),
        ("multiply($ 5, € 3)", UnfitUnitsError),
    ],
)
def test_programs_without_a_result(text: str, fault: type[ProgramError]) -> None:
    with pytest.raises(fault):
        result_of(text)


def test_numbers_in_millions_are_not_added_to_those_in_thousands() -> None:
    million, thousand = Amount(Decimal(3), "$", 6), Amount(Decimal(500), "$", 3)
    for text in ("add(a, b)", "divide(a, b)"):
        with pytest.raises(UnfitUnitsError, match=r"10\^6.* 10\^3"):
            result_of(text, a=million, b=thousand)
    assert result_of("add(a, b)", a=million, b=Amount(Decimal(500))).text == "$503 million"
    for factors in ("multiply(a, 2)", "multiply(2, a)"):
        assert result_of(factors, a=million).text == "$6 million"
    with pytest.raises(UnfitUnitsError, match=r"10\^6.* 10\^3"):
        result_of("multiply(a, b)", a=million, b=Amount(Decimal(2), "", 3))


def test_rows_that_give_no_number_are_refused() -> None:
    with pytest.raises(UnknownRowError, match="no table"):
        evaluate(parse("table_sum(revenue)"))
    with pytest.raises(UnknownRowError, match="no number"):
        evaluate(parse("table_sum(revenue)"), lambda name: [])
    with pytest.raises(UnfitUnitsError, match="table_max: one is in"):
        evaluate(parse("table_max(revenue)"), lambda name: [*MILLIONS, *SHARES])


def test_a_formula_shows_the_numbers_and_does_not_grow_without_end() -> None:
    assert result_of("subtract(110, a), divide(#0, a)", a=Amount(Decimal(100))).formula == (
        "(110 - 100) / 100 = 0.1"
    )
    doubled = ", ".join(["add(1, 1)", *(f"add(#{i}, #{i})" for i in range(60))])
    result = evaluate(parse(doubled))
    assert result.value == 2**61
    assert len(result.formula) < 20 * MAX_FORMULA
    named = re.findall(r"(#\d+) = ", result.formula)
    assert len(named) == len(set(named)) > 1
    assert set(named) == set(re.findall(r"#\d+", result.formula))


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9
    )
)
def test_rounding_keeps_five_decimals_or_digits(value: Decimal) -> None:
    error = abs(Fraction(round_to(value)) - Fraction(value))
    assert error <= Fraction(1, 200_000)
    assert not value or error <= abs(Fraction(value)) / 20_000
    assert Decimal(plain(value)) == value
    assert "E" not in plain(value)


literals = st.decimals(
    allow_nan=False, allow_infinity=False, places=3, min_value=-9999, max_value=9999
)


@given(st.lists(st.tuples(st.sampled_from("+-*/"), literals), min_size=1, max_size=8), literals)
def test_arithmetic_is_that_of_fractions(steps: list[tuple[str, Decimal]], first: Decimal) -> None:
    names = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
    expected, parts, before = Fraction(first), [], plain(first)
    for i, (sign, operand) in enumerate(steps):
        assume(sign != "/" or operand)
        other = Fraction(operand)
        expected = {"+": expected + other, "-": expected - other, "*": expected * other,
                    "/": expected / (other or 1)}[sign]  # fmt: skip
        parts.append(f"{names[sign]}({before}, {plain(operand)})")
        before = f"#{i}"
    value = evaluate(parse(", ".join(parts))).value
    assert abs(Fraction(value) - expected) <= abs(expected) / 10**30 + Fraction(1, 10**40)
