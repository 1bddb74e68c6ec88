"""`pearl grammar`: what it prints is what `pearl check` accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llguidance import LLMatcher

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
