"""Columns are read together: one cell says how another is to be read."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions import native
from pearl.actions.values import Scalar, Value
from pearl.documents.document import Document
from pearl.documents.rows import Rows, document_rows
from pearl.documents.table.quantities import numbers_of, read_column, read_quantities


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


def test_the_scale_of_a_name_holds_for_numbers_without_their_own() -> None:
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
        (["1.234,56", "5"], [None, "5"]),
    ],
)
def test_cells_are_read_as_the_others_are_written(
    cells: list[str], numbers: list[str | None]
) -> None:
    assert [q and str(q.value) for q in read_quantities(cells)] == numbers


TABLE = """| item | 2008 | rate |
|---|---|---|
| sales | $9,000 | 27 ( 27 % ) |
| loss | (1,315) | 3% |
| gift | $2.5 thousand | 12% |
"""


def run(name: str, *values: Value) -> Value:
    return native.compute(native.known()[name], list(values))


@pytest.fixture
def rows() -> Value:
    return run("SPLIT", document_rows(Document(TABLE, "x")), "record")


def test_totals_and_extremes_of_a_column(rows: Value) -> None:
    column = run("FIELD", rows, "2008")
    for name, value in (("SUM", 10_185), ("MAX", 9_000), ("MIN", -1_315)):
        result = run(name, column)
        assert isinstance(result, Scalar)
        assert result.value == value


@pytest.mark.parametrize(
    ("field", "operator", "x", "items"),
    [
        ("2008", "at least", "2,000", ["sales", "gift"]),
        ("2008", "at most", "0", ["loss"]),
        ("2008", "at least", "$1 thousand", ["sales", "gift"]),
        ("2008", "is", "$2,500", ["gift"]),
        ("rate", "after", "5%", ["sales", "gift"]),
    ],
)
def test_conditions_on_a_column(
    rows: Value, field: str, operator: str, x: str, items: list[str]
) -> None:
    found = run("WHERE", rows, field, operator, x)
    assert isinstance(found, Rows)
    assert [row.fields["item"] for row in found] == items
    assert not found.undecided


@pytest.mark.parametrize(
    "items", [["(5)"], ["1.250", "3"], ["$5", "€6 million"], ["5", "x"], ["1 to 2", "3"]]
)
def test_what_is_not_surely_a_number_is_not_added(items: list[str]) -> None:
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
