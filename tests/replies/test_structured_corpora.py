"""Plans, parts of questions and queries as models write them: the right one is read, or the reply is sent back."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable

import pytest

from pearl.actions.library import load_library, read_library
from pearl.documents.document import Document
from pearl.documents.rows import Rows
from pearl.dsl.nodes import Plan
from pearl.dsl.parser import parse
from pearl.errors import ExecutionError, ModelError, PlanningError
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.planner.routing import decompose, read_decomposition, shown
from tests.root import ROOT

LIBRARY = read_library(
    """\
LIST_ALL(CTX, X) -> List : List every X of CTX
FIND_REASON(CTX, X) : Find the reason why X happens
COUNT(LIST) -> Number : Count the entries of LIST
CONCAT(S1, S2, ...) : Join
""",
    "corpus",
)
QUESTION = "How many animals does the farmer have, and why does the captain turn back?"
CHANGE = "What was the change in revenue of Union Pacific from 2013 to 2016?"
CLINICS = Document(
    "Clinic,City,Wait\nH&C,Tel Aviv,12\nEye House,Haifa,3\nSea House,Haifa,30\nLod Clinic,Lod,5\n",
    "clinics.csv",
)
LOOKUP = (
    '1. x = LOOKUP(CTX, "Which clinics in Haifa have a wait of less than 20 days?") : Look it up'
)


def calls(plan: Plan) -> object:
    return [(step.output, step.action, step.arguments) for step in plan.steps]


def plan(model: Scripted) -> object:
    return calls(asyncio.run(Pearl(model, library=LIBRARY, first_wait_s=0.001).plan(QUESTION)).plan)


def parts(model: Scripted) -> object:
    client = Pearl(model, first_wait_s=0.001).client
    result = asyncio.run(decompose(CHANGE, load_library("finance"), client)).decomposition
    return result and shown(result.parts)


def query(model: Scripted) -> object:
    answer = asyncio.run(Pearl(model, first_wait_s=0.001).execute(LOOKUP, CLINICS))
    rows = answer.steps[-1].value
    return [row.fields.get("Clinic") for row in rows] if isinstance(rows, Rows) else None


def wanted_plan(first: str) -> object:
    return calls(parse("New actions:\n- None\n\n" + first.strip()))


CORPORA: dict[str, tuple[Callable[[Scripted], object], Callable[[str], object], float]] = {
    "plans": (plan, wanted_plan, 0.9),
    "decompositions": (parts, lambda first: shown(read_decomposition(first).parts), 0.9),
    "queries": (query, lambda first: ["Eye House"], 0.9),
}
"""What a model's replies are read as, what is right of the first one, and the share to be read at once."""


def reading(reply: str, corpus: str) -> tuple[object, bool]:
    """The value of a reply that is given whenever the model is asked, None for no value, and whether it is read at once."""
    model = Scripted(lambda request: reply.lstrip("\n"))
    try:
        value = CORPORA[corpus][0](model)
    except (PlanningError, ModelError, ExecutionError):
        return None, False
    return value, len(model.requests) == 1


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_structure_is_read_wrongly(corpus: str) -> None:
    path = ROOT / "tests" / "replies" / f"{corpus}.toml"
    replies = [
        (family, reply["reply"], reply["reads"])
        for family, group in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for reply in group
    ]
    right = CORPORA[corpus][1](replies[0][1])
    wrong: list[str] = []
    at_once: list[bool] = []
    for family, reply, reads in replies:
        value, is_first = reading(reply, corpus)
        may_have_none = reads in ("again", "refused")
        if value != right and value is not None:
            wrong.append(f"{family}: {reply!r} is read as {value}")
        if value is not None and reads == "refused":
            wrong.append(f"{family}: {reply!r} is read")
        if not may_have_none:
            at_once.append(value == right and is_first)
    assert not wrong, "\n".join(wrong)
    share = sum(at_once) / len(at_once)
    assert share >= CORPORA[corpus][2], f"{sum(at_once)} of {len(at_once)} are read at once"
