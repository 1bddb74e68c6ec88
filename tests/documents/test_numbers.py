"""Numbers as files write them: one reading, whichever step reads them."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.actions import native
from pearl.actions.native import compute
from pearl.documents.comparisons import Wanted, comparison
from pearl.documents.numbers import (
    Quantity,
    is_blank,
    quantities,
    read_column,
    read_quantity,
    scale_of,
)
from pearl.documents.rows import Row, Rows
from pearl.errors import ExecutionError
from pearl.llm.backends.scripted import Scripted

CASES = tomllib.loads(Path(__file__).with_name("numbers.toml").read_text("utf-8"))
FIGURE = (
    '1. rows = SPLIT(CTX, "record") : a\n2. all = FIELD(rows, "Amount") : b\n3. it = {}(all) : c'
)
FIRST = '1. rows = SPLIT(CTX, "record") : a\n2. it = SORT(rows, "Amount", "descending") : b\n3. one = FIRST(it) : c'
WHERE = '1. rows = SPLIT(CTX, "record") : a\n2. it = WHERE(rows, "Amount", "at least", "{}") : b\n3. n = COUNT(it) : c'
ASKED = '1. it = LOOKUP(CTX, "What is asked") : a'


def answer(cells: list[str], plan: str, query: Any = None) -> str:
    """The text of an answer; "" if it is undecided."""
    file = io.StringIO()
    rows = [(f"r{'abcdefgh'[n]}", cell) for n, cell in enumerate(cells)]
    csv.writer(file).writerows([("Name", "Amount"), *rows])
    model = Scripted(lambda request: json.dumps(query))
    try:
        found = asyncio.run(Pearl(model).execute(plan, Document(file.getvalue(), "a.csv")))
    except ExecutionError as error:
        return f"undecided: {error}"
    return found.text if found.status == "answered" else f"undecided: {found.why}"


def number(text: str) -> Decimal:
    return Decimal(re.sub(r"[^-\d.]", "", text))


@pytest.mark.parametrize("case", CASES["columns"], ids=lambda case: "|".join(case["cells"]))
def test_every_path_reads_a_column_alike(case: dict[str, Any]) -> None:
    cells = case["cells"]
    total, most = (answer(cells, FIGURE.format(name)) for name in ("SUM", "MAX"))
    first = answer(cells, FIRST)
    asked = answer(cells, ASKED, {"aggregate": {"function": "sum", "column": "Amount"}})
    if why := case.get("why"):
        assert why in total
        assert all(text.startswith("undecided") for text in (total, most, asked))
        return
    assert [number(total), number(most)] == [Decimal(case["total"]), Decimal(case["most"])]
    assert number(asked) == number(total)
    assert cells[case.get("top", 0)] in first
    # The condition is written with a decimal point, whatever the column has.
    assert answer(cells, WHERE.format(case["most"])).startswith("1")


@pytest.mark.parametrize(("field", "text", "value", "quote", "is_kept"), CASES["quotes"])
def test_a_number_in_a_quote_and_its_neighbour(
    field: str, text: str, value: Any, quote: str, is_kept: bool
) -> None:
    name = field.partition(":")[0]
    model = Scripted(lambda request: json.dumps({name: {"value": value, "quote": quote}}))
    document = Document(f"The letter begins.\n{text}\nThe letter ends.", "letter.txt")
    plan = f'1. record = EXTRACT(CTX, "{field}") : Extract'
    answer = asyncio.run(Pearl(model).execute(plan, document))
    assert answer.record is not None
    result = answer.record.fields[name]
    assert (result.state, result.value) == (("found", value) if is_kept else ("undecided", None))


@pytest.mark.parametrize(
    ("left", "right", "n_pairs"),
    [
        (["60.919,55", "99,90"], ["60919.55", "99.90", "7.00"], 2),
        (["1,250", "900"], ["1250", "900"], 2),
        (["1.250", "2.50"], ["1.25", "2.5"], 2),
        (["100.00-", "3.00"], ["-100", "100"], 1),
        (["12,50", "3,75"], ["1,250", "375"], 0),
    ],
)
def test_columns_of_two_conventions_are_joined_by_their_numbers(
    left: list[str], right: list[str], n_pairs: int
) -> None:
    a, b = (Rows(tuple(Row("", {"n": cell}) for cell in cells)) for cells in (left, right))
    pairs = compute(native.known()["JOIN"], [a, b, "n"])
    assert isinstance(pairs, Rows)
    assert len(pairs) == n_pairs


@pytest.mark.parametrize(
    ("name", "cells", "numbers"),
    [
        ("2008", ["$9,000", "(1,315)", "—"], ["9000", "-1315", None]),
        ("rate", ["27 ( 27 % )", "3%"], ["27", "3"]),
        ("n", ["1", "x", "3"], ["1", None, "3"]),
        ("year", ["2008", "2007"], [None, None]),
        ("year", ["1899", "1850"], ["1899", "1850"]),
        ("when", ["2008-01-02", "2008-02-03"], [None, None]),
        ("who", ["Ann", "Bob", "7"], [None, None, "7"]),
        ("", [], []),
        ("", ["", "—"], [None, None]),
    ],
)
def test_numbers_of_a_column(name: str, cells: list[str], numbers: list[str | None]) -> None:
    assert [q and str(q.value) for q in read_column(name, cells)] == numbers


@pytest.mark.parametrize(
    ("text", "value", "unit", "scale"),
    [
        ("$9,000", "9000", "$", 0),
        ("(1,315)", "-1315", "", 0),
        ("$ (1,315)", "-1315", "$", 0),
        ("($1,315)", "-1315", "$", 0),
        ("-$5", "-5", "$", 0),
        ("−5", "-5", "", 0),
        ("12.5%", "12.5", "%", 0),
        ("(2.5)%", "-2.5", "%", 0),
        ("(2.5%)", "-2.5", "%", 0),
        ("1.125%", "1.125", "%", 0),
        ("27 ( 27 % )", "27", "%", 0),
        ("-1315 ( 1315 )", "-1315", "", 0),
        ("$ -3 ( 3 )", "-3", "$", 0),
        ("1,234 (a)", "1234", "", 0),
        ("1,234*", "1234", "", 0),
        ("1\u202f234\u202f567", "1234567", "", 0),
        ("$5.687 billion", "5.687", "$", 9),
        ("$3m", "3", "$", 6),
        ("3m", "3", "m", 0),
        ("30 mg", "30", "mg", 0),
        ("0.125", "0.125", "", 0),
        ("€ 12", "12", "€", 0),
        ("EUR 30", "30", "€", 0),
        ("US$ 1.2 billion", "1.2", "$", 9),
        ("138.0 (in millions)", "138.0", "", 6),
        ("**1,234**", "1234", "", 0),
        ("minus 5", "-5", "", 0),
        ("1\u202f234,50", "1234.50", "", 0),
        ("(1'234,5)", "-1234.5", "", 0),
        ("TEUR 5", "5", "€", 3),
        ("-2,5 T€", "-2.5", "€", 3),
        ("12k€", "12", "€", 3),
        ("(TEUR 5)", "-5", "€", 3),
        ("EUR (1,315)", "-1315", "€", 0),
        ("TEUR (1\u202f250)", "-1250", "€", 3),
        ("MNOK 3.5", "3.5", "nok", 6),
    ],
)
def test_what_is_read(text: str, value: str, unit: str, scale: int) -> None:
    assert read_quantity(text) == Quantity(Decimal(value), unit, scale)


@pytest.mark.parametrize(
    "text",
    ["", "—", "n/a", "12 (1)", "12 ( 13 )", "-(5)", "(-5)", "((5))", "(5", "1.250", "1.234.56", "1,23,456",
     "12,34", "5%%", "$5%", "12-31", "1/2/2020", "⅓", "9" * 61, "1 to 2", "ten", "5 (", "10^5", "007",
     "- 5", "- $5", "<20", "~30", "1st", "5+", "12-15", "5 (est.)", "Q$5",
     "1\u202f234,567", "TEUR 1.250", "TEUR 5 million", "1.250 T€", "-(TEUR 5)", "EUR (12)", "Note (1,315)", "12 (1,315)"],
)  # fmt: skip
def test_an_ambiguous_number_is_none(text: str) -> None:
    assert read_quantity(text) is None


@pytest.mark.parametrize(
    ("text", "shown", "value"),
    [("$5thousand", "$5thousand", 5_000), ("the 5th", "5", 5), ("2 thousand", "2 thousand", 2_000)],
)
def test_a_scale_is_no_ordinal(text: str, shown: str, value: int) -> None:
    assert [found[:2] for found in quantities(text)] == [(shown, value)]


def test_a_point_is_decimal_where_the_caller_says_so() -> None:
    assert read_quantity("1.250", decimal=".") == Quantity(Decimal("1.250"))


@pytest.mark.parametrize("text", ["", " ", "-", "—", "N/A", "nm", "$ -"])
def test_blanks(text: str) -> None:
    assert is_blank(text)
    assert read_quantity(text) is None


@pytest.mark.parametrize(
    ("text", "scale"),
    [("($ in millions)", 6), ("In Thousands, except per share", 3), ("billions of euros", 9),
     ("thousands and millions", None), ("millionaires", None), ("", None),
     ("£'000", 3), ("£2,000", None), ("£1'000", None), ("US$ 000s", 3), ("in 2000", None), ("(000's)", 3),
     ("Umsatz (TEUR)", 3), ("Amateure", None), ("k€", 3), ("km", None), ("MNOK", 6),
     ("£m", 6), ("5 m", None), ("Cost (EUR) B", None), ("EUR bn", 9), ("bn", None),
     ("Umsatz in Mio. EUR", 6), ("Mio, 5 years", None), ("(Mrd.)", 9), ("(Mio Tanaka)", None), ("in Tsd.", 3)],
)  # fmt: skip
def test_scales_of_captions(text: str, scale: int | None) -> None:
    assert scale_of(text) == scale


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_none(text: str) -> None:
    found = read_quantity(text)
    assert found is None or found.value.is_finite()


def test_names_with_the_same_number_are_different_names() -> None:
    names = ["BLK/2013/page_124.pdf", "INTC/2013/page_29.pdf", "2013"]
    meets, _ = comparison("is", Wanted((names[0],)), names, "page")
    assert [meets(name) for name in names[:2]] == [True, False]


def test_a_bound_is_undecided() -> None:
    fees = ["10", "20", "<20", "~30", "1st", "over 50", "- 30", "30 plus", "$30"]
    meets, _ = comparison("at least", Wanted(("20",)), fees, "fee")
    assert [meets(fee) for fee in fees] == [False, True, *[None] * 7]
