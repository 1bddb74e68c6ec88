"""Files of drafts for the tests of this folder: made here, none of them published ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from pearl.llm import RefineTask, Request
from pearl.mining.miner import MinedHeader, MinedRow

PLAIN = """\
# Drafts of a morning
FIND_REASON(CTX, X) : Find the reason for X
FIND_REASONS(CTX, X) : Find all reasons for X
IDENTIFY_CAUSE(CTX, X) : Identify the cause of X
FIND_EFFECT(CTX, X) : Find the effect of X
FIND_NOT_REASON(CTX, X) : Find what is not a reason for X
FIND_REASON(CTX, X, Y) : Find the reason Y gives for X
FIND_WEATHER(CTX) : Find what the weather is like
FIND_WEATHER(CTX) : find what  the weather is like.
CONCAT(S1, S2, ...) : Join the texts
FIND_HERO(CTX) :
find_villain(CTX) : Find the villain
FIND_TWICE(CTX, X, X) : Find X in X
This is prose about actions.
"""


def header(**changes: Any) -> dict[str, Any]:
    """The first line of a file of mined drafts."""
    made = MinedHeader(
        pearl_version="0", domain="generic", data="questions.jsonl", model="scripted",
        library="seed", seed_actions=("FIND(CTX, X) : Search CTX for X and return it",),
        prompt_sha256="0" * 64,
    )  # fmt: skip
    return {**to_builtins(made), **changes}


def row(index: int, *actions: str, **changes: Any) -> dict[str, Any]:
    """The line of one question."""
    made = MinedRow(
        id=f"q{index}", index=index, question="Why?", status="mined", model="scripted",
        prompt_sha256="0" * 64, actions=actions,
    )  # fmt: skip
    return {**to_builtins(made), **changes}


def mined(*rows: dict[str, Any], head: dict[str, Any] | None = None) -> str:
    """A whole file."""
    return "".join(f"{json.dumps(line)}\n" for line in [head or header(), *rows])


def task_of(request: Request) -> RefineTask:
    """The task of a request to refine."""
    assert isinstance(request.task, RefineTask)
    return request.task


def pairs(request: Request) -> str:
    """A reply that merges each two neighbours of one shape into the first."""
    drafts = task_of(request).drafts
    merged: list[tuple[str, list[int]]] = []
    i = 0
    while i < len(drafts):
        n = 2 if i + 1 < len(drafts) and _same_shape(drafts[i : i + 2]) else 1
        action = f"{drafts[i].signature} : {drafts[i].definition}"
        merged.append((action, list(range(i + 1, i + n + 1))))
        i += n
    return refined(*merged)


def refined(*actions: tuple[str, Sequence[int]], **dropped: Sequence[int]) -> str:
    """A reply: actions with their drafts, and the drafts that are dropped by the reason."""
    return json.dumps({
        "actions": [{"action": text, "drafts": [*numbers]} for text, numbers in actions],
        "dropped": [{"drafts": [*numbers], "why": why} for why, numbers in dropped.items()],
    })  # fmt: skip


def _same_shape(drafts: Sequence[Any]) -> bool:
    return len({tuple(p.type for p in draft.parameters) for draft in drafts}) == 1
