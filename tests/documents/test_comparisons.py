"""Values of a column against a value."""

from __future__ import annotations

import pytest

from pearl.documents.comparisons import Wanted, comparison


def test_names_with_the_same_number_are_different_names() -> None:
    names = ["BLK/2013/page_124.pdf", "INTC/2013/page_29.pdf", "2013"]
    meets, _ = comparison("is", Wanted((names[0],)), names, "page")
    assert [meets(name) for name in names[:2]] == [True, False]


def test_a_number_is_the_same_however_its_unit_is_written() -> None:
    doses = ["8 mg", "8mg", "8 MG", "8", "9 mg"]
    meets, _ = comparison("is", Wanted(("8 mg",)), doses, "dose")
    assert [meets(dose) for dose in doses] == [True, True, True, True, False]


def test_a_bound_is_undecided() -> None:
    fees = ["10", "20", "<20", "~30", "1st", "over 50", "- 30", "$30"]
    meets, _ = comparison("at least", Wanted(("20",)), fees, "fee")
    assert [meets(fee) for fee in fees] == [False, True, None, None, None, None, None, True]


@pytest.mark.parametrize(
    ("operator", "value", "cells", "verdicts"),
    [
        ("at least", "2,000", ["$9,000", "(1,315)", "$2.5 thousand"], [True, False, True]),
        ("at most", "0", ["$9,000", "(1,315)", "$2.5 thousand"], [False, True, False]),
        ("at least", "$1 thousand", ["$9,000", "(1,315)", "$2.5 thousand"], [True, False, True]),
        ("is", "$2,500", ["$9,000", "(1,315)", "$2.5 thousand"], [False, False, True]),
        ("after", "5%", ["27 ( 27 % )", "3%", "12%"], [True, False, True]),
    ],
)
def test_cells_of_financial_tables_are_compared_as_numbers(
    operator: str, value: str, cells: list[str], verdicts: list[bool]
) -> None:
    meets, _ = comparison(operator, Wanted((value,)), cells, "2008")
    assert [meets(cell) for cell in cells] == verdicts
