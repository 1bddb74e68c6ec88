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

from pearl import Document, Pearl
from pearl.actions import native
from pearl.actions.native import compute
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
