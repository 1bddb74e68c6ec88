"""What docs/language.md shows is what the readers do."""

from __future__ import annotations

import re

import pytest

from pearl.actions import by_row, by_search, native
from pearl.actions.library import load_library, read_actions
from pearl.actions.operators import EXTRACT, EXTRACT_ALL, LOOKUP, SUBQUERIES, with_operators
from pearl.dsl.checker import compile_plan
from pearl.dsl.parser import read
from tests.root import ROOT
from tests.skips import needs_contrib

PAGE = (ROOT / "docs/language.md").read_text(encoding="utf-8")
LIBRARY = with_operators(load_library("seed"))
ASKED = re.findall(
    r"^\| ([^|]+) \| (`\w+ = [^|]+`) \|$", PAGE[PAGE.index("## Conditions and loops") :], re.M
)


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S)


def test_the_page_is_short_and_the_grammar_stands_on_a_screen() -> None:
    assert len(PAGE.splitlines()) <= 250
    assert PAGE[: PAGE.index("## The answer")].partition("on one screen")[2].count("\n") <= 40
    assert len(ASKED) == 10


@pytest.mark.parametrize("text", blocks("plan"))
def test_plans_are_valid(text: str) -> None:
    assert all(note.code == "joins-answer" for note in compile_plan(text, LIBRARY).notes)


@pytest.mark.parametrize(("asked", "steps"), ASKED)
def test_what_people_ask_for_is_written_so(asked: str, steps: str) -> None:
    """The steps as they stand in the table, without numbers and explanations."""
    plan = read(steps.strip("`").replace("`<br>`", "\n"), tolerant=True)
    assert not plan.errors, asked
    assert len(plan.plan.steps) == steps.count("<br>") + 1
    assert {note.code for note in compile_plan(plan.text, LIBRARY).notes} <= {"joins-answer"}


@needs_contrib  # the page has the actions of finance
def test_every_action_has_its_line_and_there_is_no_other() -> None:
    lines = re.findall(r"^\| (`[A-Z_]+\(.*?`) \|", PAGE, re.M)
    named = [name for line in lines for name in re.findall(r"`(.*?)`", line)]
    known = (*native.known().values(), *by_row.known().values(), *by_search.known().values(), LOOKUP, SUBQUERIES)  # fmt: skip
    assert sorted(named) == sorted([*(each.signature for each in known), "NAME(ROWS, ...)", "EACH_NAME(ROWS, ...)"])  # fmt: skip
    assert all(f"`{each.signature}`" in PAGE for each in (EXTRACT, EXTRACT_ALL))


@pytest.mark.parametrize("kind", ["Number", "Date"])
def test_the_types_name_the_actions_that_give_them(kind: str) -> None:
    (origins,) = re.findall(rf"^\| {kind} \| .* \| (.*) \|$", PAGE, re.M)
    giving = {name for name, action in native.known().items() if action.returns == kind}
    assert giving
    assert giving <= set(re.findall(r"`([A-Z_]+)`", origins))


def test_action_files() -> None:
    (text,) = blocks("actions")
    actions, found = read_actions(text)
    assert (len(actions), found) == (3, [])
