"""Samples and models for tests of an evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pearl import Document, Pearl, plugins
from pearl.data.samples import Sample
from pearl.evals.log import EvalRecord
from pearl.evals.runner import Evaluation, evaluate
from pearl.llm import ActionTask, ChooseTask, PlanTask, Request
from tests.models import Acting

METHODS = tuple(plugins.names("pearl.evals.methods"))

READING = tuple(name for name in METHODS if name != "closed")
"""Those of them that are shown the document."""

STORY = Document(
    "Nils left the harbour at dawn.\n\nHe sold the boat because the hull was rotten. "
    "His sister Ada kept the oars.\n\nThe buyer paid with a clock that had no hands.",
    "story.txt",
)
OPTIONS = ("The hull was rotten", "He was tired", "Ada asked him to", "It had sunk")
PLAN = """\
New actions:
- None

1. reason = FIND_REASON(CTX, "the sale") : Find why
2. event = FIND_EVENT(CTX, "the sale") : Find what happened
3. ans = CONCAT(reason, event) : Join
"""


def sample(id: str = "q1", **fields: Any) -> Sample:
    """A question with four options, the first of them right; `fields` replace what it says."""
    known: dict[str, Any] = {
        "question": f"Why did Nils sell the boat, {id}?", "document": STORY, "options": OPTIONS,
        "gold": 0, "gold_passages": ("He sold the boat because the hull was rotten.",),
    }  # fmt: skip
    return Sample(id, **{**known, **fields})


def acting(
    *,
    plan: str | Callable[[PlanTask], str] = PLAN,
    step: str | Callable[[Request], str] = "It was rotten.",
    choose: str | Callable[[ChooseTask], str] = "A",
    window: int | None = None,
) -> Acting:
    """A model whose replies go by what is asked for."""

    async def act(request: Request) -> str:
        await asyncio.sleep(0)
        match request.task:
            case PlanTask() as task:
                return plan if isinstance(plan, str) else plan(task)
            case ActionTask():
                return step if isinstance(step, str) else step(request)
            case ChooseTask() as task:
                return choose if isinstance(choose, str) else choose(task)
        raise AssertionError(request.task)

    return Acting(act, window=window)


def run(
    pearl: Pearl, samples: Sequence[Sample], *methods: str, **settings: Any
) -> dict[tuple[str, str, int], EvalRecord]:
    """The records by their keys, of which there is one each."""

    async def all_of_them() -> list[EvalRecord]:
        found = evaluate(pearl, samples, Evaluation(methods, **settings))
        return [record async for record in found]

    records = asyncio.run(all_of_them())
    assert len({record.key for record in records}) == len(records)
    return {record.key: record for record in records}
