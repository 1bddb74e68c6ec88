"""Numbers in different units are never added, compared or ranked, whether or not PEARL knows the units."""

from __future__ import annotations

import pytest

from tests.actions.test_totals import SUM, run

ACTIONS = {
    "SUM": SUM,
    "MAX": ('cells = FIELD(rows, "amount")', "n = MAX(cells)"),
    "MIN": ('cells = FIELD(rows, "amount")', "n = MIN(cells)"),
    "AGGREGATE": ('n = AGGREGATE(rows, "all", "sum", "amount")',),
    "SORT": ('sorted = SORT(rows, "amount", "descending")', "n = LIMIT(sorted, 1)"),
    "WHERE": ('some = WHERE(rows, "amount", "at least", "7 {unit}")', "n = COUNT(some)"),
}
"""Action → its steps over rows in one group."""

MIXED = [
    ["100 USD", "100 SEK"],
    ["5 USD", "9 CAD", "4 USD"],
    ["Rs 100", "USD 5"],
    ["10 Cr", "20 Dr", "30 Dr"],
    ["3 boxes", "9 pcs", "100 pcs"],
    ["8 IU", "9 mg"],
    ["$8", "€9"],
    ["8 kg", "9 lb"],
    ["8 km", "9 km/h"],
    ["v1.10", "v1.9"],
]
ALIKE = [
    ("USD", ["100 USD", "7 USD"]),
    ("SEK", ["100 SEK", "7 SEK"]),
    ("pcs", ["3 pcs", "5 pcs", "100 pcs"]),
    ("IU", ["8 IU", "9"]),  # a number without a unit has that of the others
    ("kg", ["8 kg", "9 kg"]),
    ("", ["8", "9"]),
]


def table(cells: list[str]) -> str:
    return "name,all,amount\n" + "".join(
        f"n{chr(97 + i)},x,{cell}\n" for i, cell in enumerate(cells)
    )


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("cells", MIXED, ids=" ".join)
def test_different_units_are_undecided(cells: list[str], action: str) -> None:
    steps = [step.format(unit=cells[0].strip("0123456789 ")) for step in ACTIONS[action]]
    answer = run(table(cells), *steps)
    assert answer.status == "undecided"


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("unit", "cells"), ALIKE, ids=[" ".join(cells) for _, cells in ALIKE])
def test_one_unit_is_answered(unit: str, cells: list[str], action: str) -> None:
    answer = run(table(cells), *(step.format(unit=unit) for step in ACTIONS[action]))
    assert answer.status == "answered"


@pytest.mark.parametrize("action", ["SUM", "MAX", "MIN", "AGGREGATE"])
def test_dates_are_no_numbers(action: str) -> None:
    for cells in (["Jan 2024", "Feb 2024"], ["Jan 2024", "Jan 2025"]):
        assert run(table(cells), *ACTIONS[action]).status == "undecided"
    answer = run(table(["Dec 2023", "Apr 2024"]), *ACTIONS["SORT"])
    assert (answer.status, answer.value) == ("answered", ["nb"])
