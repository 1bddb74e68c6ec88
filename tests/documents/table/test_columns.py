"""Columns are read together: one cell says how another is to be read."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.numbers import numbers_of, read_column, read_quantities


@pytest.mark.parametrize(
    ("name", "cells", "numbers"),
    [
        ("2008", ["$9,000", "(1,315)", "—"], ["9000", "-1315", None]),
        ("rate", ["27 ( 27 % )", "3%"], ["27", "3"]),
        ("n", ["1", "x", "3"], ["1", None, "3"]),
        ("year", ["2008", "2007"], [None, None]),
        ("when", ["2008-01-02", "2008-02-03"], [None, None]),
        ("who", ["Ann", "Bob", "7"], [None, None, "7"]),
        ("", [], []),
        ("", ["", "—"], [None, None]),
    ],
)
def test_numbers_of_a_column(name: str, cells: list[str], numbers: list[str | None]) -> None:
    assert [q and str(q.value) for q in read_column(name, cells)] == numbers


def test_the_scale_in_a_column_name_applies_to_numbers_without_one() -> None:
    column = read_column("2008 ($ in millions)", ["5", "€6", "7%", "8 mg", "$2 billion"])
    found = [(q.unit, q.scale) for q in column if q]
    assert found == [("", 6), ("€", 6), ("%", 0), ("mg", 0), ("$", 9)]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1.250"], [None]),
        (["1.250", "0.5"], ["1.250", "0.5"]),
        (["1.250", "2.5"], ["1.250", "2.5"]),
        (["1.250", "1,000.50"], ["1.250", "1000.50"]),
        (["1.250", "1.000"], [None, None]),
        (["(3)"], [None]),
        (["(3)", "(1,315)"], [None, "-1315"]),
        (["(3)", "4"], ["-3", "4"]),
        (["1.234,56", "5"], ["1234.56", "5"]),
    ],
)
def test_cells_are_read_as_the_others_are_written(
    cells: list[str], numbers: list[str | None]
) -> None:
    assert [q and str(q.value) for q in read_quantities(cells)] == numbers


@pytest.mark.parametrize(
    "items", [["(5)"], ["1.250", "3"], ["$5", "€6 million"], ["5", "x"], ["1 to 2", "3"]]
)
def test_ambiguous_numbers_are_not_added(items: list[str]) -> None:
    with pytest.raises(ValueError, match=r"number|point"):
        numbers_of(items)


@given(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=9))
def test_brackets_beside_plain_numbers_are_below_zero(values: list[int]) -> None:
    shown = [f"({-value:,})" if value < 0 else f"{value:,}" for value in values]
    if all(value < 0 for value in values):
        shown.append("0")
        values = [*values, 0]
    assert numbers_of(shown) == values
    read = read_quantities(shown)
    assert [q and q.value for q in read] == [Decimal(value) for value in values]
