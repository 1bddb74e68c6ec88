"""Who listens to a trace is told how far each call is, and what it is for."""

from __future__ import annotations

import asyncio

from pearl.documents.document import Document
from pearl.llm import PlanTask, Request
from pearl.llm.progress import CallProgress, report
from pearl.pipeline import Pearl
from pearl.trace import Event, ModelAttempted, ModelProgressed, Trace
from tests.models import Acting, output_of

PLAN = """New actions:
- None

1. a = FIND_REASON(CTX, "the boat") : Find why
2. b = FIND_REASON(CTX, "the sea") : Find why
3. c = COMPARE(CTX, a, b) : Compare both
"""


async def act(request: Request) -> str:
    is_plan = isinstance(request.task, PlanTask)
    report(CallProgress("reading", 1, 2))
    await asyncio.sleep(0)  # calls of other steps report meanwhile
    report(CallProgress("writing", 7 if is_plan else len(output_of(request))))
    return PLAN if is_plan else "It leaked."


def test_progress_is_reported_and_not_recorded() -> None:
    told: list[Event] = []
    model = Acting(act)
    model.reads_prompts = True
    trace = Trace("", told.append)
    asyncio.run(Pearl(model, prefix="off").ask("Why?", Document("It leaked."), trace=trace))
    calls = [event for event in told if isinstance(event, ModelProgressed)]
    found = {
        who: [
            (event.phase, event.n_tokens) for event in calls if (event.purpose, event.step) == who
        ]
        for who in (("plan", ""), ("step", "a"), ("step", "b"), ("step", "c"))
    }
    assert sum(map(len, found.values())) == len(calls)
    assert found["plan", ""] == [("asked", 0), ("reading", 1), ("writing", 7)]
    for step in "abc":
        assert found["step", step] == [("asked", 0), ("reading", 1), ("writing", 1)]
    assert [event.t_s for event in told] == sorted(event.t_s for event in told)
    kept = list(trace)
    assert kept == [event for event in told if event.is_recorded]
    attempts = [event for event in told if isinstance(event, ModelAttempted)]
    assert [(each.purpose, each.step, each.number, each.error) for each in attempts] == [
        ("plan", "", 0, None), *(("step", step, 0, None) for step in "abc"),
    ]  # fmt: skip
    assert next(e.steps for e in kept if e.event == "run_started") == ("a", "b", "c")
    assert not {"model_progressed", "model_attempted"} & {e.event for e in kept}
