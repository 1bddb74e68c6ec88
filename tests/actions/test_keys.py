"""What is a key of JOIN and GROUP: a value, in any spelling of its letters, and not a sign for a missing one."""

from __future__ import annotations

import pytest

from tests.actions.test_totals import run

SIDES = ('a = WHERE(rows, "side", "is", "a")', 'b = WHERE(rows, "side", "is", "b")')
JOIN = (*SIDES, 'both = JOIN(a, b, "city")', "n = COUNT(both)")
GROUPS = ('groups = GROUP(rows, "city")', "n = COUNT(groups)")
MISSING = ["NULL", "null", "NaN", "nan", "n/a", "N/A", "-", "--", "—", ""]
NAMES = ["none", "NA", "Nil", "unknown", "N"]
ALIKE = [
    ("Café", "Cafe\u0301"),
    ("Å", "A\u030a"),
    ("가", "\u1100\u1161"),
    ("New  York", "New York"),
]
OTHERS = [("Café", "Cafe"), ("10²", "102"), ("ss", "ß"), ("A", "B")]


def table(*cities: str) -> str:
    sides = ("a", "b")
    return "side,city,n\n" + "".join(
        f"{s},{c},1{i}\n" for i, (s, c) in enumerate(zip(sides, cities, strict=True))
    )


@pytest.mark.parametrize("key", MISSING)
def test_a_sign_for_a_missing_value_is_no_key(key: str) -> None:
    joined = run(table(key, key), *JOIN)
    assert joined.text == "0"
    assert "rows of A without city: 1" in joined.notes
    grouped = run(table(key, key), *GROUPS)
    assert grouped.text == "0"
    assert "rows without city, which are in no group: 2" in grouped.notes
    most = run(table(key, "Bonn"), 'all = GROUP(rows, "city")', 'n = NTH(all, "count", 1)')
    assert most.text == "Bonn: 1 of the 1 rows that state their city; 1 does not state it"


@pytest.mark.parametrize(("one", "other"), [*((name, name) for name in NAMES), *ALIKE])
def test_the_same_value_is_one_key(one: str, other: str) -> None:
    assert (run(table(one, other), *JOIN).text, run(table(one, other), *GROUPS).text) == ("1", "1")
    assert (
        run(table(one, other), f'some = WHERE(rows, "city", "is", "{one}")', "n = COUNT(some)").text
        == "2"
    )


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_other_values_are_other_keys(one: str, other: str) -> None:
    assert (run(table(one, other), *JOIN).text, run(table(one, other), *GROUPS).text) == ("0", "2")
