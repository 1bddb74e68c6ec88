"""Identical calls are made once, but for those whose columns have their outputs' names."""

from __future__ import annotations

import asyncio

from pearl import Document, Pearl
from pearl.dsl.graph import build_graph
from pearl.dsl.passes import common_steps
from tests.interpreter.test_row_steps import Oracle, Reading

TWICE = """\
1. rows = SPLIT(CTX, "line") : Lines
2. again = SPLIT(CTX, "line") : Lines
3. a = CLASSIFY(rows, ["fruit", "root"], "the kind") : Kind
4. b = CLASSIFY(again, ["fruit", "root"], "the kind") : Kind
5. found = WHERE(b, "b", "is", "root") : Roots
6. table = SHOW(a, found) : Side by side"""


def test_steps_by_row_stay_two_because_later_steps_call_their_columns_by_output() -> None:
    oracle = Oracle(lambda text: "root" if "beet" in text else "fruit")
    pearl = Pearl(Reading(oracle))
    done = common_steps(build_graph(pearl.compile(TWICE)))
    assert done.stands_for == {"again": "rows"}
    answer = asyncio.run(pearl.execute(TWICE, Document("apple 1\nbeet 2\ndate 3")))
    assert answer.text.splitlines()[0] == "| a | b |"
    assert "| root | root |" in answer.text
    assert len(oracle.asked) == 1  # equal requests are one call, whichever step they are of
