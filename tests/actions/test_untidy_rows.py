"""Tables that are not as they should be: native actions are right, or undecided with the reason; their neighbours count."""

from __future__ import annotations

import pytest

from tests.actions.test_totals import COUNT, SUM, run

CITIES = "city,amount\nBonn,10\nUlm,20\n"

UNTIDY = {
    "two columns of a name": ("city,amount,amount\nBonn,10,1\nUlm,20,2\n", 2, None, "2 columns 'amount'"),
    "a footnote below a blank line": (f"{CITIES}\nNote,2024\n", None, None, "1 row below a blank line"),
    "other rows below a blank line": (f"{CITIES}\nAnn,30\nBob,40\n", None, None, "2 rows below a blank line"),
    "groups of other lengths": ("city,amount\nBonn,10\n\nUlm,20\n\nAnn,30\nBob,40\n", None, None, "3 rows below a blank line"),
    "another table below": (f"{CITIES}\nname,age\nAnn,30\nBob,40\n", 4, None, "rows of 2 tables with different columns: city, amount; name, age"),
    "tables side by side": ("city,amount,,city,amount\nBonn,10,,Rom,100\nUlm,20,,Pisa,200\n", None, None, "stand side by side"),
    "an open quote": ('city,amount\n"Bonn,10\nUlm,20\nKiel,30\n', None, None, "row 1 ends: a quotation mark is open"),
    "a scale in a name": ("city,amount\nBonn,10\nUlm,20\n".replace("amount", "amount (in thousands)"), 2, 30, "are in thousands"),
    "a row of units": ("city,amount\n,EUR\nBonn,10\nUlm,20\n", 2, 30, "row 1 has the units of columns and is not counted as a row: amount in EUR"),
    "a row of units that may be one": ("city,amount\n,cases\nBonn,10\nUlm,20\n", None, None, "undecided whether row 1 is a row or has units"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNTIDY)
def test_it_is_right_or_undecided_and_says_why(name: str) -> None:
    text, n, total, said = UNTIDY[name]
    sum_of = SUM
    if "thousands" in text:
        sum_of = ('cells = FIELD(rows, "amount (in thousands)")', "n = SUM(cells)")
    for steps, expected in ((COUNT, n), (sum_of, total)):
        answer = run(text, *steps)
        if expected is None:
            assert answer.status == "undecided"
        else:
            assert (answer.status, answer.text) == ("answered", str(expected))
        if name != "two columns of a name" or steps is SUM:
            assert any(said in note for note in (*answer.notes, answer.why))


TIDY = {
    "a repeated name with equal cells": "city,amount,amount\nBonn,10,10\nUlm,20,20\n",
    "groups between blank lines": "city,amount\nBonn,10\n\nUlm,20\n\nKiel,0\n",
    "a total below a blank line": f"{CITIES}\nTotal,30\n",
    "blank lines at the end": f"{CITIES}\n\n",
    "a column without a name": "city,amount,\nBonn,10,\nUlm,20,x\n",
    "a quote within a cell": 'city,amount\nBonn 5" pipe,10\nUlm,20\n',
    "a quoted cell": 'city,amount\n"Bonn, old ""town""",10\nUlm,20\n',
    "a cell that begins with a quote": 'city,amount\n"""Bonn"" old",10\nUlm,20\n',
    "a row without a name": "city,amount\n,10\nUlm,20\n",
    "a name that ends in a number": "city,amount,amount 2\nBonn,10,1\nUlm,20,2\n",
}  # fmt: skip


@pytest.mark.parametrize("name", TIDY)
def test_its_neighbour_is_summed(name: str) -> None:
    answer = run(TIDY[name], *SUM)
    assert (answer.status, answer.text) == ("answered", "30")
    assert not any("undecided" in note for note in answer.notes)


def test_each_of_two_columns_of_a_name_is_named_by_its_number() -> None:
    text = "city,amount,amount\nBonn,10,1\nUlm,20,2\n"
    for name, total in (("amount (1)", "30"), ("amount (2)", "3")):
        assert run(text, f'cells = FIELD(rows, "{name}")', "n = SUM(cells)").text == total
    answer = run(text, 'some = WHERE(rows, "amount", "at least", "2")', "n = COUNT(some)")
    assert (answer.status, "2 columns 'amount'" in answer.why) == ("undecided", True)


@pytest.mark.parametrize(
    ("cells", "wanted", "n"),
    [
        ("TRUE FALSE TRUE", "yes", 2),
        ("TRUE FALSE TRUE", "no", 1),
        ("true false n/a", "yes", "1 of the 2 rows that state their paid; 1 does not state it"),
        ("yes no yes", "TRUE", 2),
        ("yes true no", "yes", 1),  # both words may mean two things
        ("open closed", "yes", 0),
    ],
)
def test_true_is_what_a_yes_asks_for(cells: str, wanted: str, n: int | str) -> None:
    text = "name,paid\n" + "".join(f"n{i},{cell}\n" for i, cell in enumerate(cells.split()))
    assert run(
        text, f'some = WHERE(rows, "paid", "is", "{wanted}")', "n = COUNT(some)"
    ).text == str(n)


@pytest.mark.parametrize("unit", ["entry", "paragraph", "line"])
def test_parts_of_a_text_are_rows_of_no_table(unit: str) -> None:
    text = 'The first is "open.\n\nThe second: is the total.\n'
    answer = run(text, f'parts = SPLIT(CTX, "{unit}")', "n = COUNT(parts)", rows=False)
    assert (answer.status, answer.text, answer.notes) == ("answered", "2", ())


STAYS = "ward,cost\nNorth,10\nNorth,10\nNorth,10\nSouth,10\nSouth,20\n"
WARDS = ('north = WHERE(rows, "ward", "is", "North")', 'south = WHERE(rows, "ward", "is", "South")')


@pytest.mark.parametrize(
    ("steps", "found", "note"),
    [
        (('both = UNION(north, south, north)', "n = COUNT(both)"), "5", ""),
        (('both = UNION(north, south)', 'cost = FIELD(both, "cost")', "n = SUM(cost)"), "60", ""),
        (('ten = WHERE(rows, "cost", "is", "10")', "both = INTERSECT(north, ten)", "n = COUNT(both)"), "3", ""),
        (("one = LIMIT(north, 1)", "both = DIFFERENCE(north, one)", "n = COUNT(both)"), "2", ""),
        (('a = FIELD(north, "cost")', 'b = FIELD(south, "cost")', "n = UNION(a, b)"), "- 10\n- 20", ""),
        (("once = UNIQUE(rows)", "n = COUNT(once)"), "3", "rows with the same text as one before, which are left out: 2"),
        (("both = UNION(north, south)", "once = UNIQUE(south)", "n = INTERSECT(both, once)"), "- South, 10\n- South, 20", ""),
    ],
)  # fmt: skip
def test_rows_with_the_same_text_are_different_rows(
    steps: tuple[str, ...], found: str, note: str
) -> None:
    answer = run(STAYS, *WARDS, *steps)
    assert (answer.status, answer.parts[-1].text) == ("answered", found)
    assert any(note in each for each in answer.notes) or not note


@pytest.mark.parametrize(
    ("cells", "text", "told"),
    [
        ("a,100 b,200 b,? c,50", "a (1 undecided)", "undecided rows may put on rank 1: b"),
        ("a,100 b,200 c,50", "b", ""),
    ],
)
def test_the_rank_that_an_undecided_row_may_take_is_undecided_and_names_it(
    cells: str, text: str, told: str
) -> None:
    steps = ('largest = AGGREGATE(rows, "k", "max", "v")', 'n = NTH(largest, "max", 1)')
    answer = run("k,v\n" + cells.replace("?", "5 or six").replace(" b", "\nb").replace(" c", "\nc"), *steps)  # fmt: skip
    assert (answer.status, answer.text) == ("undecided" if told else "answered", text)
    assert (told in answer.notes) == bool(told)


@pytest.mark.parametrize(("op", "x"), [("is not", '"North"'), ("not in", '["North"]')])
def test_rows_without_a_value_are_kept_and_told_where_a_value_is_excluded(op: str, x: str) -> None:
    steps = (f'others = WHERE(rows, "ward", "{op}", {x})', "n = COUNT(others)")
    wards = "id,ward\n" + "".join(f"p{i},{ward}\n" for i, ward in enumerate(["North", "South", "", "n/a", "NULL"]))  # fmt: skip
    answer = run(wards, *steps)
    assert (answer.status, answer.text) == ("answered", "4")
    assert "rows without a value of ward among them: 3" in answer.notes
    assert not run("id,ward\n1,North\n2,South\n", *steps).notes
