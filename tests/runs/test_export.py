"""Tables of results: every column has what rows say, under any names and of any types."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from io import StringIO
from typing import Any

from pearl import Answer, Document, Pearl
from pearl.errors import DataError
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Outcome, Task
from pearl.runs.export import FIRST, LAST, write_table
from pearl.trace import Trace
from tests.root import ROOT

LATE = """\
1. rows = SPLIT(CTX, "record") : One row each
2. late = WHERE(rows, "Date", "after", "2023-01-01") : Those
3. n = COUNT(late) : How many"""
WHY = '1. why = FIND_REASON(CTX, "it leaked") : Find it'
VISITS = Document("Date: 03/02/2023 || A: x\nDate: 04/05/2022 || A: y\n", "visits.txt")


def table(*rows: dict[str, Any]) -> list[dict[str, str]]:
    """The lines of the CSV of rows."""
    file = StringIO(newline="")
    write_table(lambda: rows, file, "csv")
    return list(csv.DictReader(StringIO(file.getvalue(), newline="")))


def run(plan: str, reply: str = "") -> dict[str, Any]:
    answer = asyncio.run(Pearl(Scripted(lambda _: reply)).execute(plan, VISITS))
    return {"id": "1", **answer.to_dict()}


def test_no_column_is_empty_in_every_row_of_a_run_with_all_there_is() -> None:
    failed = Outcome(Task("2", question="Who?"), None, DataError("no server"), Trace())
    counted, quoted = (
        run(LATE),
        run(WHY, "It did.\n\n> Date: 03/02/2023\n\n> It leaked, it is said."),
    )
    lines = table(counted, {**quoted, "question": "Why?"}, dict(failed.to_dict()))
    counts = {"input_tokens", "output_tokens", "cached_tokens"}  # 0 of a scripted model
    empty = [
        name
        for name in (*FIRST, *LAST)
        if all(line[name] in ("", *(() if name in counts else ("0", "[]", "{}"))) for line in lines)
    ]
    assert not empty
    texts = [
        name
        for name, column in (FIRST | LAST).items()
        if column.kind is str and name not in ("id", "answer")
    ]
    numbers = [n for n in texts if any(re.fullmatch(r"-?\d+(\.\d+)?", e[n]) for e in lines)]
    assert not numbers, "columns of numbers have kind=int or kind=float"
    blank = [n for n, column in LAST.items() if column.kind is int and not lines[0][n]]
    assert not blank, "0 is a number, too: no new row has the default of the field"
    for row in (counted, quoted):
        again = Answer.from_json(json.dumps(row)).to_dict()
        assert {"id": "1", **again} == row, "read it back in Answer._of"
    page = (
        (ROOT / "docs/many_documents.md").read_text("utf-8").partition("A table has these columns")
    )
    told = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page[2], re.M)))
    assert sorted(told) == sorted((*FIRST, *LAST))
    assert [line["n"] for line in lines] == ["1", "", ""]
    assert lines[2]["error"] == "no server"


def test_outputs_and_fields_of_the_input_keep_their_names_beside_fixed_columns() -> None:
    steps = [{"output": "status", "value": ["a", "b"]}, {"output": "n", "state": "nothing"}]
    (line,) = table(
        {"id": 7, "status": "answered", "steps": steps, "name": "x", "copy": [1], "gold": "A", "usage": {"input_tokens": 2**70},
         "output_tokens": "of the input"}
    )  # fmt: skip
    assert (line["status"], line["status_"], line["n"]) == ("answered", "a; b", "nothing found")
    assert (line["name"], line["copy"], line["gold"]) == ("x", "[1]", "A")
    assert (line["id"], line["input_tokens"], "v" in line) == ("7", "", False)
    assert line["output_tokens_"] == "of the input"
