"""Replies that repeat themselves: each is read or refused, in steps that grow with its length."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from types import FrameType
from typing import Any

import pytest

from pearl.documents.document import Document
from pearl.documents.evidence.collecting import StepReply, collect
from pearl.documents.evidence.value_checks import n_standing
from pearl.dsl.fields import parse_fields
from pearl.dsl.signatures import ValueType
from pearl.errors import ModelError
from pearl.interpreter.chooser import read_choice
from pearl.replies.composed import read_composed
from pearl.replies.extracted import read_extracted
from pearl.replies.items import read_items
from pearl.replies.raw import says_not_stated, without_reasoning
from pearl.replies.step_replies import read_reply
from pearl.tables.lookup import read_reply as read_query_reply

STORY = "Ada was aged 54. She bought 3 boats for $1,250 in May 2024.\n"
FIELDS = parse_fields("name, age: int, boats: [{kind: str, price: number}]")
MOST = 2.6
"""Steps for a reply of twice the length, of those for the reply: 4 where steps grow by the square."""

LOOPS = {
    "commas": ('{"age": {"value": 54, "quote": "aged 54"}', ",", "}"),
    "spaced commas": ('{"age": {"value": 54, "quote": "aged 54"}', " ,", " x"),
    "keys": ("{", '"age": {"value": 54}, "age": {"value": 55}, ', '"name": null}'),
    "arrays": ('{"age": ', "[", ""),
    "closed arrays": ('{"boats": [', "[],", "[]]}"),
    "objects": ("", '{"age": ', ""),
    "empty objects": ("", "{} ", ""),
    "starts": ("", '{"age', ""),
    "conditions": ('{"where": ', '{"no": ', ""),
    "quotes": ("", "> She bought 3 boats\n", ""),
    "open quotes": ("", "“", ""),
    "items": ("", "1: yes\n", ""),
    "list": ("", "- a boat\n", ""),
    "inner items": ("", "- [1] ", ""),
    "cites": ("She left", "[1]", "."),
    "braces": ("She left", "{n} ", "."),
    "table": ("| a | b |\n|-|-|\n", "| 1 | 2 |\n", ""),
    "numbers": ("", "54 ", ""),
    "digits": ("", "9", ""),
    "dots": ("Ada ", "... ", ""),
    "sorry": ("", "I am sorry. ", ""),
    "fences": ("", "```\n", ""),
    "stars": ("", "**", ""),
    "spaces": ("Ada", " ", "."),
    "lines": ("Ada", "\n", "."),
    "backslashes": ('{"name": "', "\\", ""),
    "thinking": ("", "<think>", ""),
}


def _evidence(reply: str) -> None:
    step = StepReply("a", reply, ())
    collect([step], Document(STORY, "a.txt"))


READERS: dict[str, Callable[[str], object]] = {
    "extracted": partial(read_extracted, fields=FIELDS),
    **{f"typed {kind}": partial(read_reply, wanted=kind, source=STORY) for kind in ValueType},
    "labels": partial(read_items, n=40, kind="label", labels=("yes", "no")),
    "picks": partial(read_items, n=40, kind="pick", n_picks=2),
    "composed": partial(
        read_composed, items=("a boat",), values={"n": (0, "3")}, question="How many?"
    ),
    "reasoning": without_reasoning,
    "not stated": says_not_stated,
    "choice": partial(read_choice, options=("a boat", "yes")),
    "query": read_query_reply,
    "evidence": _evidence,
    "places of a number": partial(n_standing, Decimal(54)),
}


def steps(call: Callable[[], object]) -> int:
    """Lines of Python that run in a call."""
    n = 0

    def on_line(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal n
        n += event == "line"
        return on_line

    before = sys.gettrace()
    sys.settrace(on_line)
    try:
        call()
    except (ValueError, ModelError) as error:
        assert str(error).strip()  # noqa: PT017 - a refusal says why
    finally:
        sys.settrace(before)
    return n


@pytest.mark.parametrize("reader", READERS)
def test_a_reply_that_loops_is_read_in_steps_of_its_length(reader: str) -> None:
    read, slow = READERS[reader], []
    for name, (start, repeated, end) in LOOPS.items():
        short, long = (start + repeated * n + end for n in (300, 600))
        before, after = steps(partial(read, short)), steps(partial(read, long))
        if after > MOST * before + 500:
            slow.append(f"{name}: {before} steps, {after} for twice the length")
    assert slow == []


@pytest.mark.parametrize("loop", ["arrays", "objects", "closed arrays", "starts", "conditions"])
def test_a_value_under_brackets_without_end_is_undecided(loop: str) -> None:
    start, repeated, end = LOOPS[loop]
    said = read_extracted(start + repeated * 100_000 + end, FIELDS)
    assert not any(field.values for field in said.fields.values())
