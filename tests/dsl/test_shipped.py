"""What is shipped: plans and action files are valid and in canonical form."""

from __future__ import annotations

import runpy
from pathlib import Path

import msgspec
import pytest

from pearl.actions.library import format_library, library_names, load_library, read_actions
from pearl.actions.operators import operators, with_operators
from pearl.data.domains import load_domain
from pearl.dsl import parser
from pearl.dsl.checker import check
from pearl.dsl.lalr import Parser, Tables
from pearl.dsl.nodes import print_plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ActionLibrary
from pearl.planner.prompt_selection import is_on_rows
from pearl.plugins.files import all_data, read_data
from tests.root import ROOT
from tests.skips import needs_contrib

PLANS = sorted(path for folder in all_data("fewshot") for path in folder.glob("*/*.plan"))


def library_of(bank: str) -> ActionLibrary:
    """That of its domain."""
    return with_operators(load_library(load_domain(bank).library))


def _id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", PLANS, ids=_id)
def test_a_plan_is_canonical_and_valid_without_a_word(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    plan = parse(text)
    assert plan.question
    assert f"{print_plan(plan)}\n" == text
    assert check(plan, library_of(path.parent.name)).notes == ()


def test_no_question_is_asked_twice() -> None:
    questions = [parse(path.read_text(encoding="utf-8")).question for path in PLANS]
    assert len(PLANS) >= 20
    assert len(set(questions)) == len(questions)


@needs_contrib  # some are in the examples of finance
def test_every_action_on_rows_is_in_an_example() -> None:
    plans = [parse(path.read_text(encoding="utf-8")) for path in PLANS]
    called = {step.action for plan in plans for step in plan.steps}
    missing = {name for name, action in operators().items() if is_on_rows(action)} - called
    assert not missing, "a plan in fewshot/ has to call each action on rows: models learn by it"


@pytest.mark.parametrize("name", library_names())
def test_an_action_file_is_canonical_and_valid_without_a_word(name: str) -> None:
    text = read_data("actions", f"{name}.actions")
    assert format_library(text) == text
    actions, found = read_actions(text)
    assert found == []
    assert all(action.definition[-1] != "." for action in actions)


def test_the_tables_of_the_parser_are_those_of_the_grammar() -> None:
    script = runpy.run_path(str(ROOT / "docs/make_grammar_tables.py"))
    kept = msgspec.json.decode(read_data("grammars", parser.TABLES), type=Tables)
    built = script["built"]()
    assert kept.digest == built.digest, "make docs writes them"
    assert [*kept.terminals.items()] == [*built.terminals.items()]
    text = PLANS[0].read_text(encoding="utf-8")
    assert Parser(built, parser._Builder()).parse(text, "file") == parse(text)
