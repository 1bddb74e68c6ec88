"""Values of a column against a value."""

from __future__ import annotations

from pearl.documents.comparisons import Wanted, comparison


def test_names_with_the_same_number_are_different_names() -> None:
    names = ["BLK/2013/page_124.pdf", "INTC/2013/page_29.pdf", "2013"]
    meets, _ = comparison("is", Wanted((names[0],)), names, "page")
    assert [meets(name) for name in names[:2]] == [True, False]


def test_a_number_is_the_same_however_its_unit_is_written() -> None:
    doses = ["8 mg", "8mg", "8 MG", "8", "9 mg"]
    meets, _ = comparison("is", Wanted(("8 mg",)), doses, "dose")
    assert [meets(dose) for dose in doses] == [True, True, True, True, False]


def test_a_bound_is_at_least_nothing() -> None:
    fees = ["10", "20", "<20", "~30", "1st", "over 50", "- 30", "$30"]
    meets, _ = comparison("at least", Wanted(("20",)), fees, "fee")
    assert [meets(fee) for fee in fees] == [False, True, None, None, None, None, None, True]
