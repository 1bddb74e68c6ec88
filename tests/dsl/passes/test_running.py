"""Plans run rewritten, and are answered as written."""

from __future__ import annotations

import asyncio
import random

import pytest

from pearl import Document, Pearl
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.client import Client, ClientSettings
from pearl.trace import ModelCalled, PlanRewritten, StepFinished, Trace
from tests.models import Acting

DOCUMENT = Document("Ada sold the boat because it leaked. Nils bought it.")

TWICE = """\
1. place = FIND(CTX, "the place") : Where
2. hero = FIND(CTX, "the hero") : Who
3. again = FIND(CTX, "the hero") : Who
4. why = FIND(CTX, hero) : Why they did it
5. too = FIND(CTX, again) : Why they did it"""


def reply(request: Request) -> str:
    return f"reply to {request.prompt[-40:]!r}"


def test_identical_steps_are_one_call_and_both_answer() -> None:
    model, trace = Scripted(reply), Trace()
    answer = asyncio.run(Pearl(model).execute(TWICE, DOCUMENT, trace=trace))
    assert len(model.requests) == 3
    assert [step.output for step in answer.steps] == ["place", "hero", "again", "why", "too"]
    by_output = {step.output: step for step in answer.steps}
    assert by_output["why"].text == by_output["too"].text
    assert [step.n_calls for step in answer.steps] == [1, 1, 0, 1, 0]
    assert answer.text == "\n\n".join(by_output[name].text for name in ("place", "why", "too"))
    assert answer.plan.endswith(TWICE)
    rewrites = [(event.by, event.what) for event in trace if isinstance(event, PlanRewritten)]
    assert [by for by, _ in rewrites] == ["common_steps", "common_steps", "critical_path"]
    assert rewrites[0][1].startswith("again is hero")
    finished = {event.step for event in trace if isinstance(event, StepFinished)}
    assert finished == set(by_output)
    assert sum(isinstance(event, ModelCalled) for event in trace) == 3


def test_what_most_calls_wait_for_goes_first() -> None:
    model = Scripted(reply)
    asyncio.run(Pearl(model, concurrency=1).execute(TWICE, DOCUMENT))
    assert [request.task.output for request in model.requests] == ["hero", "place", "why"]  # type: ignore[union-attr]


@pytest.mark.slow
def test_the_order_in_which_replies_come_makes_no_difference() -> None:
    pearl = Pearl(Scripted(reply))
    plan = pearl.compile(TWICE)

    def answer(seed: int) -> tuple[str, list[str]]:
        draw = random.Random(seed)

        async def act(request: Request) -> str:
            for _ in range(draw.randrange(6)):
                await asyncio.sleep(0)
            return reply(request)

        client = Client(ClientSettings(Acting(act), concurrency=2))
        found = asyncio.run(pearl.asking(client).execute(plan, DOCUMENT))
        return found.text, [step.text for step in found.steps]

    assert len({str(answer(seed)) for seed in range(200)}) == 1
