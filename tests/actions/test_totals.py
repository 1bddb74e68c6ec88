"""Rows that sum up others are never counted or summed in silence; rows that only look like them are kept."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.interpreter.answer import Answer
from pearl.llm.backends.scripted import Scripted


def run(text: str, *steps: str, rows: bool = True) -> Answer:
    """The answer of native steps, which may be over `rows`, the records of a text."""
    every = ('rows = SPLIT(CTX, "record")', *steps) if rows else steps
    plan = "\n".join(f"{i}. {step} : step" for i, step in enumerate(every, 1))
    return asyncio.run(Pearl(Scripted(lambda request: "")).execute(plan, Document(text, "a.csv")))


COUNT = ("n = COUNT(rows)",)
SUM = ('cells = FIELD(rows, "amount")', "n = SUM(cells)")

CITIES = "city,amount\nBonn,10\nUlm,20\nKiel,30\n"
PAIRS = "city,amount,n\nBonn,10,4\nUlm,20,5\n"

CERTAIN = {
    "a total": (f"{CITIES}Total,60\n", 3, 60, "row 4 'Total', the sum of 3 rows"),
    "in German": (f"{CITIES}Summe:,60\n", 3, 60, "row 4 'Summe:', the sum of 3 rows"),
    "in Chinese": (f"{CITIES}合计,60\n", 3, 60, "row 4 '合计'"),
    "without a name": (f"{CITIES},60\n", 3, 60, "row 4 without a name, the sum of 3 rows"),
    "above its rows": ("city,amount\nTotal,30\nBonn,10\nUlm,20\n", 2, 30, "row 1 'Total'"),
    "of one row": ("city,amount\nBonn,10\nTotal,10\n", 1, 10, "row 2 'Total', the sum of 1 row"),
    "beside a mean": ("city,amount,price\nBonn,10,2\nUlm,20,3\nTotal,30,2.5\n", 2, 30, "row 3 'Total'"),
    "of rounded rows": ("city,amount\nBonn,33.3\nUlm,33.3\nKiel,33.3\nTotal,100\n", 3, Decimal("99.9"), "says 100 where 3 rows come to 99.9"),
    "of several columns": (f"{PAIRS}Total revenue,30,9\n", 2, 30, "row 3 'Total revenue'"),
    "below a heading": ("city,amount\nNorth,\nBonn,10\nUlm,20\nTotal North,30\n", 3, None, "'Total North', the sum of 2 rows"),
    "below a date": ("date,what,amount\n2024-01-01,rent,10\n2024-02-01,rent,20\n2024-12-31,Total,30\n", 2, 30, "'Total'"),
    "beside its unit": ("city,in,amount\nBonn,EUR,10\nUlm,EUR,20\nTotal,EUR,30\n", 2, 30, "'Total'"),
    "in a column of numbers": ("id,amount\n1,10\n2,20\nTotal,30\n", 2, 30, "row 3 'Total'"),
    "of blocks": ("city,amount\nBonn,10\nUlm,20\nSubtotal,30\nA,5\nB,6\nSubtotal,11\nGrand total,41\n", 4, 41,
                  "row 3 'Subtotal', the sum of 2 rows; row 6 'Subtotal', the sum of 2 rows; row 7 'Grand total', the sum of 4 rows"),
    "with decimal commas": ('city,amount\nBonn,"1.250,50"\nUlm,"2,25"\nSumme,"1.252,75"\n', 2, None, "row 3 'Summe', the sum of 2 rows"),
    "with a minus behind": ("city,amount\nBonn,10.50-\nUlm,20\nTotal,9.50\n", 2, Decimal("9.5"), "row 3 'Total', the sum of 2 rows"),
    "above its blocks": ("city,amount\nTotal,45\nSubtotal,30\nBonn,10\nUlm,20\nSubtotal,12\nA,5\nB,7\nSubtotal,3\nC,1\nD,2\n", 6, 45, "'Subtotal', the sum of 2 rows; and 1 more"),
    "of blocks without names": ("city,amount\nBonn,10\nUlm,20\n,30\nA,5\nB,6\n,11\n,41\n", 4, 41, "row 7 without a name, the sum of 4 rows"),
    "without a name below a heading": ("city,amount\nBonn,10\nUlm,20\n,30\nC,1\nSouth,\nA,5\nB,6\n,11\n,42\n", 6, None, "row 8 without a name, the sum of 2 rows"),
    "of a block that begins with a zero": ("city,amount,n\nBonn,5,1\nUlm,0,2\nKiel,10,3\nTotal cost,10,5\n", 3, 15, "'Total cost', the sum of 2 rows"),
    "of many rounded rows": ("city,amount\nBonn,1000.5\nUlm,1000.4\nTotal,2002\n", 2, Decimal("2000.9"), "says 2002 where 2 rows come to 2000.9"),
    "of thousands or thousandths": ("city,amount\nBonn,1.250\nUlm,2.500\nTotal,3.750\n", 2, None, "row 3 'Total', the sum of 2 rows"),
    "of two tables": (f"a,amount\nx,1\nTotal,1\n\n{CITIES}Total,60\n", 4, 61, "row 4 'Total'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CERTAIN)
def test_a_total_is_named_and_not_counted(name: str) -> None:
    text, n, total, named = CERTAIN[name]
    for steps, expected in ((COUNT, n), (SUM, total)):
        if steps is SUM and total is None:
            continue  # a blank cell is no number
        answer = run(text, *steps)
        assert (answer.status, answer.text) == ("answered", str(expected))
        assert any("totals, which are not counted as rows" in note for note in answer.notes)
        assert any(named in note for note in answer.notes)


POSSIBLE = {
    "other rows are hidden": f"{CITIES}Total,75\n",
    "no rows are above": "city,amount\nTotal,75\nBonn,10\nUlm,20\n",
    "under another name": f"{PAIRS}All,30,9\n",
    "the share of a gap is no rounding": "city,amount\nBonn,10\nUlm,20\nTotal,31\n",
    "the size of a gap is no rounding": "city,amount\nBonn,10\nUlm,2000\nTotal,2013\n",
    "one row below says the same": "city,amount\nTotal,10\nBonn,10\n",
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_may_be_a_total_leaves_undecided_what_it_may_change(name: str) -> None:
    for steps in (COUNT, SUM):
        answer = run(POSSIBLE[name], *steps)
        assert answer.status == "undecided"
        assert any("undecided whether it is a total or a row" in note for note in answer.notes)
    answer = run(POSSIBLE[name], 'one = WHERE(rows, "city", "is", "Bonn")', *SUM)
    assert answer.status == "undecided"
    answer = run(
        POSSIBLE[name], 'one = WHERE(rows, "city", "is", "Bonn")', 'cells = FIELD(one, "amount")', "n = SUM(cells)",
    )  # fmt: skip
    assert (answer.status, answer.text) == ("answered", "10")


def test_a_total_without_a_clear_figure_leaves_a_count_undecided() -> None:
    answer = run("city,amount\nBonn,10:30\nUlm,9:15\nTotal,19:45\n", *COUNT)
    assert (answer.status, answer.text) == ("undecided", "2 (1 undecided)")
    assert any("row 3 'Total' has no clear figure" in note for note in answer.notes)


ROWS = {
    "a name with the word": "city,amount\nBonn,10\nUlm,20\nTotal Wine & More,35\n",
    "the sum of those above": CITIES,
    "the same number": "city,amount\nBonn,10\nUlm,10\n",
    "a row without a name": "city,amount\nBonn,10\nUlm,20\n,35\n",
    "running numbers": "id,city,amount\n1,Bonn,10\n2,Ulm,20\n3,Kiel,30\n",
    "one of two columns": f"{PAIRS}Kiel,30,8\n",
    "one of two columns without a name": f"{PAIRS},30,8\n",
    "the same number without a name": "city,amount\nBonn,0\nUlm,10\n,10\n",
    "running numbers without a name": "city,n\nBonn,0\nUlm,1\nKiel,2\n,3\n",
    "prose with the word": f"city,amount\nBonn,10\nUlm,20\nNot the total{' of it' * 20},30\n",
    "zeros": "city,amount,n\nBonn,0,0\nUlm,0,0\nKiel,0,0\n",
    "a kind": "name,kind,amount\nSun,Total,10\nMoon,Total,20\nMars,Partial,35\n",
    "a sum without names": "amount,n\n10,1\n20,3\n30,2\n",
}


@pytest.mark.parametrize("name", ROWS)
def test_ordinary_rows_are_counted(name: str) -> None:
    text = ROWS[name]
    answer = run(text, *COUNT)
    assert (answer.status, answer.text, answer.notes) == ("answered", str(text.count("\n") - 1), ())


@pytest.mark.parametrize("total", [60, 75])
def test_a_total_is_found_by_its_name_alone(total: int) -> None:
    text = f"{CITIES}Total,{total}\n"
    for op in ("is", "contains"):
        answer = run(
            text, f'one = WHERE(rows, "city", "{op}", "Total")', 'n = FIELD(one, "amount")'
        )
        assert (answer.status, answer.text) == ("answered", f"- {total}")
    years = "year,city,amount\n2023,Bonn,1\n2023,Ulm,2\n2023,Total,3\n2024,Bonn,3\n2024,Ulm,4\n2024,Total,7\n"
    answer = run(
        years, 'some = WHERE(rows, "year", "is", "2024")', 'cells = FIELD(some, "amount")',
        'one = WHERE(cells, "city", "is", "total")',
    )  # fmt: skip
    assert (answer.status, answer.text) == ("answered", "- 7")


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (('few = SORT(rows, "amount", "descending")', "top = LIMIT(few, 1)", 'n = FIELD(top, "city")'), "- Kiel"),
        (('few = WHERE(rows, "amount", "at least", "30")', 'n = FIELD(few, "city")'), "- Kiel"),
        (('few = WHERE(rows, "city", "contains", "l")', "n = COUNT(few)"), "2"),
        (('cells = FIELD(rows, "amount")', "n = MAX(cells)"), "30"),
        (('all = GROUP(rows, "city")', "n = COUNT(all)"), "3"),
        (('all = JOIN(rows, rows, "amount")', "n = COUNT(all)"), "0"),
    ],
)  # fmt: skip
def test_every_action_leaves_totals_out(steps: tuple[str, ...], text: str) -> None:
    answer = run(f"{CITIES}Total,60\n", *steps)
    assert (answer.text, answer.status != "undecided") == (text, True)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-999, 9999), st.integers(1, 99)), min_size=2, max_size=9),
    st.sampled_from(["Total", "", "Insgesamt", "Grand Total:"]),
    st.sampled_from([COUNT, SUM]),
)
def test_a_total_below_a_table_changes_nothing(
    figures: list[tuple[int, int]], label: str, steps: tuple[str, ...]
) -> None:
    rows = [f"place {chr(97 + i)},{a / 100:.2f},{b}" for i, (a, b) in enumerate(figures)]
    plain = "\n".join(["city,amount,n", *rows, ""])
    a, b = (sum(column) for column in zip(*figures, strict=True))
    expected = len(figures) if steps is COUNT else Decimal(a) / 100
    without, below = run(plain, *steps), run(f"{plain}{label},{a / 100:.2f},{b}\n", *steps)
    for answer in (without, below):
        if answer.status == "answered":
            assert Decimal(answer.text) == expected
    assert without.status == below.status or a == b == 0
    assert any("totals" in note for note in below.notes) or not a
