"""Tables that are not as they should be, and questions that they do not answer, from the file to the answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.errors import ExecutionError
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, LookupTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast

WIDE = Document("item,2013,2014\nnet sales,$10,$12\ncosts,3,4\n", "wide.csv")
LONG = Document("Year,Item,Amount\n2013,sales,10\n2014,sales,12\n2013,costs,3\n", "long.csv")


def where(column: str, op: str, *values: str) -> dict[str, Any]:
    return {"column": column, "op": op, "value": list(values)}


def look_up(document: Document, *queries: dict[str, Any]) -> tuple[Answer, list[str]]:
    """The answer, and what the model was shown with each request."""
    left = [json.dumps(query) for query in queries]
    model = Scripted(lambda request: left.pop(0))
    plan = '1. found = LOOKUP(CTX, "What is asked") : Ask'
    answer = asyncio.run(Pearl(model).execute(plan, document))
    assert not left
    return answer, [request.prompt for request in model.requests]


def execute(plan: str, document: Document, said: str = "") -> Answer:
    """The answer of a plan, where every step of a model says the same, or what is said of its figure."""

    def reply(request: Request) -> str:
        assert isinstance(request.task, ActionTask | LookupTask)
        return said

    return asyncio.run(Pearl(Scripted(reply)).execute(plan, document))


# --- a year that the table lacks ------------------------------------------------------------------


def test_of_a_year_that_no_row_has_nothing_is_found_and_the_years_are_told() -> None:
    asked = {"where": {"all": [where("Year", "is", "2015"), where("Item", "is", "sales")]}}
    answer, _ = look_up(LONG, asked, asked)
    assert answer.status == "nothing_found"
    assert any("no row meets: Year is '2015' (Year has: 2013, 2014)" in n for n in answer.notes)


def test_a_field_of_a_year_that_is_not_there_ends_the_plan_with_those_that_are() -> None:
    plan = '1. rows = SPLIT(CTX, "record") : a\n2. new = FIELD(rows, "2015") : b'
    with pytest.raises(ExecutionError, match="no field '2015'; the rows have: item, 2013, 2014"):
        execute(plan, WIDE)


@pytest.mark.parametrize("cell", ["<20", "~30", "1st", "- 5", "50%", "n/a"])
def test_a_cell_that_is_not_surely_a_number_leaves_a_sum_undecided(cell: str) -> None:
    document = Document(f"Item,Amount\nsales,10\ncosts,{cell}\nfees,30\n", "a.csv")
    plan = """1. rows = SPLIT(CTX, "record") : a
2. amounts = FIELD(rows, "Amount") : b
3. ans = SUM(amounts) : c"""
    answer = execute(plan, document)
    assert answer.status == "undecided"
    assert cell in answer.why
    pearl = Pearl(Scripted([]))
    assert forecast(pearl, [Task("", lambda: document, plan=plan)]).n_problems == 0


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [900, 1_500])
def test_a_table_of_many_columns_is_asked_or_refused_with_a_message(n_columns: int) -> None:
    names = [f"c{i}" for i in range(n_columns)]
    document = Document(f"{','.join(names)}\n" + f"{','.join('7' * n_columns)}\n" * 3, "wide.csv")
    asked = {"aggregate": [{"function": "sum", "column": "c5"}]}
    if n_columns < 1_000:
        assert look_up(document, asked)[0].text == "21"
    else:
        with pytest.raises(ExecutionError, match="the table has 1,500 columns"):
            look_up(document, asked)
