"""Broken plans as models write them: read as what they mean, or sent back with a help that leads to a plan."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.dsl.nodes import Plan
from pearl.dsl.parser import parse
from pearl.llm.backends.scripted import Scripted
from pearl.planner.prompt_selection import Shown
from pearl.planner.writer import RepairLoop

QUESTION = "Why did the captain turn back, and how many animals does the farmer have?"
LIBRARY = with_operators(load_library("seed"))
TEXT = Path(__file__).with_name("broken.txt").read_text(encoding="utf-8")
CASES = [
    re.split(r"\n>>> (plan|again: .*)\n", case.rstrip(), maxsplit=1)
    for case in re.split(r"(?:\A|\n)(?:#[^\n]*\n|\n)*=== ", TEXT)[1:]
]


def written(*replies: str) -> tuple[Plan, list[str]]:
    """The plan that is read, and the prompts that it took."""
    left = list(replies)
    model = Scripted(lambda request: left.pop(0))
    checked = asyncio.run(
        RepairLoop(QUESTION, Shown(LIBRARY), model, max_repairs=len(replies) - 1).write()
    )
    return checked.plan, [request.messages[-1].content for request in model.requests]


@pytest.mark.parametrize(
    ("case", "reads", "wanted"), CASES, ids=[case[0].partition("\n")[0] for case in CASES]
)
def test_a_broken_plan_is_read_as_meant_or_its_help_leads_to_a_plan(
    case: str, reads: str, wanted: str
) -> None:
    reply = case.partition("\n")[2]
    plan, prompts = written(reply, wanted)
    expected = parse(wanted)
    assert (plan.steps, plan.new_actions) == (expected.steps, expected.new_actions)
    if reads == "plan":
        assert len(prompts) == 1, prompts[1]
    else:
        assert reads.removeprefix("again: ") in prompts[1]
