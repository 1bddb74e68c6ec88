"""`pearl grammar`: what it prints is what `pearl check` accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llguidance import LLMatcher

from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.dsl.decoding.forms import steps_constraint
from tests.cli.terminal import Terminal
from tests.dsl.sampling import admits, gbnf_admits

ACTIONS = """\
FIND(CTX, X) : Find X
FIND_ALL(CTX) : Find all
CONCAT(S1, S2, ...) : Join
COUNT(ITEMS) : Count
検索(CTX, X) : Search CTX for X
"""

PLAN = "1. v1 = 検索(CTX, 3) : a\n2. v2 = CONCAT(v1) : b"


@pytest.fixture(autouse=True)
def _libraries(pearl: Terminal) -> None:
    Path("mine.actions").write_text(ACTIONS, encoding="utf-8")
    Path("none.actions").write_text("# nothing yet\n", encoding="utf-8")


def test_every_form(pearl: Terminal) -> None:
    options = ("--library", "mine.actions", "--max-steps", "3", "--format")
    lark, headed, gbnf, schema = (
        pearl("grammar", *options, form) for form in ("lark", "llguidance", "gbnf", "json-schema")
    )
    assert admits(lark, PLAN)
    assert headed == f"%llguidance {{}}\n{lark}"
    assert gbnf_admits(gbnf, PLAN)
    last = {"output": "v1", "action": "検索", "arguments": {"CTX": {"output": "CTX"}, "X": 3}}
    value = {"new_actions": [], "steps": [{**last, "purpose": "a"}]}
    assert admits(LLMatcher.grammar_from_json_schema(schema), json.dumps(value, ensure_ascii=False))


def test_the_static_one_declares_and_names_freely(pearl: Terminal) -> None:
    plan = "New actions:\n- NEW(CTX) : Do\n\n1. key = NEW(CTX) : Do"
    assert admits(pearl("grammar", "--library", "mine.actions", "--static"), plan)
    assert not admits(pearl("grammar", "--library", "mine.actions"), plan)


def test_the_domain_chooses_the_library_and_a_file_takes_the_text(pearl: Terminal) -> None:
    assert pearl("grammar", "--domain", "medical", "-o", "medical.lark") == ""
    grammar = Path("medical.lark").read_text(encoding="utf-8")
    assert grammar == steps_constraint(with_operators(load_library("medical"))).lark


def test_the_settings_for_checking_plans_are_no_settings_here(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pearl.toml").write_text("max_steps = 400\n", encoding="utf-8")
    monkeypatch.setenv("PEARL_MAX_STEPS", "400")
    assert '"12. ' in pearl("grammar", "--library", "mine.actions")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--format", "ebnf"], 2, "'ebnf' is not one of 'lark', 'llguidance', 'gbnf'"),
        (["--max-steps", "0"], 2, "--max-steps"),
        (["--max-steps", "41"], 2, "--max-steps"),
        (["--max-text", "0"], 2, "--max-text"),
        (["--library", "none.actions"], 3, "the file defines no action"),
        (["--library", "nowhere.actions"], 3, "nowhere.actions"),
        (["--domain", "nowhere"], 2, "nowhere"),
        (["-o", "no/such/folder"], 3, "cannot be written"),
        (["--library", "mine.actions", "-o", "mine.actions"], 2, "is an input"),
    ],
)
def test_bad_input_is_told(pearl: Terminal, args: list[str], code: int, message: str) -> None:
    assert pearl("grammar", *args, code=code) == ""
    assert message in pearl.talk
    assert Path("mine.actions").read_text(encoding="utf-8") == ACTIONS
