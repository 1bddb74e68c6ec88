"""Questions over tables at the command line: workbooks, and numbers that show where they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.server import Server

UNTIDY = {
    "a total": ("city,amount\nBonn,10\nUlm,20\nTotal,30\n", "30", "2", "row 3 'Total', the sum of 2 rows"),
    "no total": ("city,amount\nBonn,10\nUlm,20\nTotal Wine & More,35\n", "65", "3", ""),
    "a hidden row": ("city,amount\nBonn,10\nUlm,20\nTotal,75\n", None, None, "row 3 'Total' says 75 where 2 rows come to 30"),
    "a row of units": ("city,amount\n,EUR\nBonn,10\nUlm,20\n", "30", "2", "the units of columns"),
    "a footnote": ("city,amount\nBonn,10\nUlm,20\n\nNote,2024\n", None, None, "below a blank line"),
    "an open quote": ('city,amount\n"Bonn,10\nUlm,20\n', None, None, "a quotation mark is open"),
    "two columns of a name": ("city,amount,amount\nBonn,10,1\nUlm,20,2\n", None, "2", ""),
}  # fmt: skip


SUM = '{"aggregate": [{"function": "sum", "column": "amount"}]}'
COUNT = '{"aggregate": [{"function": "count"}]}'
PLANS = {
    "sum": '1. n = LOOKUP(CTX, "The sum of amount") : a',
    "sum of cells": '1. rows = SPLIT(CTX, "record") : a\n2. cells = FIELD(rows, "amount") : b\n3. n = SUM(cells) : c',
    "count": '1. n = LOOKUP(CTX, "The number of rows") : a',
}


@pytest.mark.parametrize("name", UNTIDY)
def test_untidy_tables_are_queried_as_plans_compute_over_them(
    pearl: Terminal, openai_server: Server, name: str
) -> None:
    text, total, n, said = UNTIDY[name]
    Path("table.csv").write_text(text, encoding="utf-8")
    openai_server.on("Question: The sum of amount", SUM)
    openai_server.on("Question: The number of rows", COUNT)
    model = ("--model", "openai:m", "--base-url", openai_server.url)
    for asked, plan in PLANS.items():
        Path("a.plan").write_text(plan, encoding="utf-8")
        answer = json.loads(pearl("execute", "a.plan", "table.csv", *model, "--json", code=None))
        expected = n if asked == "count" else total
        assert (answer["status"] == "undecided") == (expected is None), asked
        assert expected is None or answer["answer"] == expected
        assert not said or any(said in note for note in answer["notes"])
