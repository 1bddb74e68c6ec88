"""Answers name what of a file was not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openpyxl import Workbook

from tests.cli.terminal import Terminal

PLAN = """\
Question: How many visitors in all?

1. rows = SPLIT(CTX, "record") : One row a town
2. visitors = FIELD(rows, "Visitors") : Their visitors
3. n = SUM(visitors) : The sum
"""
HIDDEN = "not read: 1 hidden row (--hidden reads what is hidden)"


@pytest.fixture
def book() -> Path:
    made = Workbook()
    for row in (["Town", "Visitors"], ["Bern", 10], ["Basel", 20], ["Chur", 30]):
        made.active.append(row)
    made.active.row_dimensions[3].hidden = True
    made.save("towns.xlsx")
    Path("n.plan").write_text(PLAN, "utf-8")
    return Path("towns.xlsx")


@pytest.mark.parametrize(
    ("options", "value", "notes"), [([], "40", [HIDDEN]), (["--hidden"], "60", [])]
)
def test_hidden_rows_count_only_on_request(
    pearl: Terminal, book: Path, options: list[str], value: str, notes: list[str]
) -> None:
    row = json.loads(pearl("execute", "n.plan", str(book), "--json", *options))
    assert (row["answer"], row.get("notes", [])) == (value, notes)
