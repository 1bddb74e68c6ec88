"""What the native actions compute, and how texts of models are read as values."""

from __future__ import annotations

import pytest

from pearl.actions import native
from pearl.actions.native import compute
from pearl.actions.values import Value, as_text, coerce
from pearl.dsl.signatures import ValueType


def run(name: str, *values: Value) -> Value:
    return compute(native.known()[name], list(values))


@pytest.mark.parametrize(
    ("name", "values", "result"),
    [
        ("CONCAT", ["a", "  ", "b\n"], "a\n\nb"),
        ("CONCAT", [["a", "b"], 3, 2.50, True], "- a\n- b\n\n3\n\n2.5\n\nyes"),
        ("COUNT", ["- a\n- b\n- c"], 3),
        ("COUNT", [""], 0),
        ("COUNT", [[]], 0),
        ("COUNT", ["one line is one entry"], 1),
        ("COUNT", ["salt; iron"], 2),
        ("FIRST", ["1. salt\n2. iron"], "salt"),
        ("LAST", ["1. salt\n2. iron"], "iron"),
        ("UNIQUE", [["Oslo", "New  York", "oslo", "new york", "Rome"]], ["Oslo", "New  York", "Rome"]),
        ("UNION", [["a", "b"], ["B", "c"]], ["a", "b", "c"]),
        ("UNION", [["a"], ["b"], "- c\n- A"], ["a", "b", "c"]),
        ("INTERSECT", [["a", "b", "A"], ["A", "c"]], ["a"]),
        ("INTERSECT", [["a"], []], []),
        ("DIFFERENCE", [["a", "b", "c", "b"], ["C", "A"]], ["b", "b"]),
        ("SUM", [["1", "2 kg", "-3"]], 0),
        ("SUM", [["0.1", "0.2"]], 0.3),
        ("SUM", [["1,250,000.50", "$1"]], 1250001.5),
        ("SUM", [[]], 0),
        ("SUM", [["99999999999999999999", "1"]], 100000000000000000000),
        ("SUM", [["12345678901234567890", "0.123456789012345678"]], "12345678901234567890.123456789012345678"),
        ("MAX", [["3", "about 12", "−5 °C"]], 12),
        ("MIN", [["3", "about 12", "−5 °C"]], -5),
        ("SUM", [["1 hour", "2 hrs", "3h", "4"]], 10),
        ("SUM", [["($5)"]], -5),
        ("SUM", [["**$138.0 million**", "USD 138 million", "138.0 (in millions)", "$1m"]], 415_000_000),
        ("SUM", [["5 Millionen", "€1,2 Mrd"]], 1_205_000_000),
        ("SUM", [["27670116110564327421", "12345678901234567.25"]], "27682461789465561988.25"),
        ("SUM", ["- 138.0\n- 124.0"], 262),
        ("MAX", [["0.12345678901234567", "0.1"]], "0.12345678901234567"),
    ],
)  # fmt: skip
def test_results(name: str, values: list[Value], result: Value) -> None:
    assert run(name, *values) == result


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("FIRST", [""], "the list is empty"),
        ("LAST", [[]], "the list is empty"),
        ("MAX", [[]], "the list is empty"),
        ("MIN", ["  \n "], "the list is empty"),
        ("SUM", [["1", "two"]], "no number in 'two'"),
        ("SUM", [["12 of 40"]], "more than one number in '12 of 40'"),
        ("SUM", [["2 g", "30 mg"]], "different units: '2 g' and '30 mg'"),
        ("MAX", [["$5", "4 euros", "3"]], "different units"),
        ("SUM", [["2⅓ cups"]], "endless decimals"),
        ("SUM", [["5 (or six)"]], "not in digits"),
        ("SUM", [["<20", "5"]], "is a bound"),
        ("SUM", [["#DIV/0!", "5"]], "not an exact number"),
        ("SUM", [["(5)"]], "footnote or a negative number"),
        ("SUM", [["10", "20", "50%"]], "different units"),
        ("SUM", [["$10", "EUR 30"]], "different units"),
        ("SUM", [["- 138.0", "124.0"]], "may be below 0"),
        ("SUM", [["12.500 EUR", "3.000 EUR"]], "may group thousands"),
        ("SUM", [["Jan 2024", "Jan 2025"]], "'Jan 2024' is a date or a bound, not a number"),
        ("MAX", [["B12"]], "no number in 'B12'"),
        ("MAX", [["9" * 41]], "the number is too long in '9999"),
        ("MAX", [["1e999"]], "the number is too large in '1e999'"),
        ("MIN", [["x" * 100]], "no number in 'x+…'"),
    ],
)
def test_reasons(name: str, values: list[Value], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        run(name, *values)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("- a\n* b\n• c\n– d", ["a", "b", "c", "d"]),
        ("1. a\n2) b\n(3) c\nd) d\n(e) e", ["a", "b", "c", "d", "e"]),
        ("> a\n>b\n> - c\n>> 1. d", ["a", "b", "c", "d"]),
        ("a\n\n  \nb", ["a", "b"]),
        ("a; b;c;", ["a", "b", "c"]),
        ("a; b\nc", ["a; b", "c"]),
        ("A. Lincoln\nJ. R. Ewing", ["A. Lincoln", "J. R. Ewing"]),
        ("3.5 kg\n-5\n1990", ["3.5 kg", "-5", "1990"]),
        ("-\n- a", ["a"]),
        ("no list at all", ["no list at all"]),
        ("  ", []),
    ],
)
def test_texts_as_lists(text: str, items: list[str]) -> None:
    assert coerce(text, ValueType.LIST) == items


def test_a_list_as_text_is_read_back() -> None:
    items = ["a", "B. Traven", "3.5", "c; d"]
    assert coerce(as_text(items), ValueType.LIST) == items


@pytest.mark.parametrize(
    ("text", "truth"), [("yes", True), ("No.", False), (" TRUE ", True), ("false!", False)]
)
def test_texts_as_truth_values(text: str, truth: bool) -> None:
    assert coerce(text, ValueType.BOOL) is truth


def test_values_that_cannot_be_converted() -> None:
    with pytest.raises(ValueError, match="neither yes nor no: 'maybe'"):
        coerce("maybe", ValueType.BOOL)
    with pytest.raises(ValueError, match="no number in 'yes'"):
        coerce(True, ValueType.NUMBER)
    assert coerce(True, ValueType.BOOL) is True
    assert coerce(4.5, ValueType.NUMBER) == 4.5
    assert coerce(4.5, ValueType.TEXT) == "4.5"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "yes"),
        (False, "no"),
        (3, "3"),
        (2.0, "2"),
        (1 / 3, "0.333333333333333"),
        (1234567890.5, "1234567890.5"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        ([], "Nothing found."),
        (["a", "b"], "- a\n- b"),
        ("a", "a"),
    ],
)
def test_values_as_text(value: Value, shown: str) -> None:
    assert as_text(value) == shown
