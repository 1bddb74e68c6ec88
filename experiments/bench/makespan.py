"""How much earlier is a plan done when its independent steps run at once, and are places kept busy?

    python experiments/bench/makespan.py [--quick]

Within single plans: published plans, each call taking equally long; calls one after the other ÷ ours,
without priming. Each plan's own time is taken; to be done sooner, 16 plans are under way at a time, which
the server has places for. The limit is what the plans' own dependencies allow. Across
plans: 500 plans at 64 places, calls of 2 s (100 at 16 places, 0.5 s with --quick); what the places
allow ÷ ours. A plain sequential loop over the same client runs beside them. Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from serving import QUICK, documents, opened, plans, serving, stats

from pearl import Document, Pearl
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph, build_graph
from pearl.interpreter.prompt import action_messages
from pearl.llm import ActionTask, Request
from pearl.runs.executors import Task
from pearl.runs.executors.local import run

N_SINGLE, SINGLE_S, AT_ONCE = (24, 0.2, 8) if QUICK else (400, 1.0, 16)
N_MANY, N_PLACES, CALL_S = (100, 16, 0.5) if QUICK else (500, 64, 2.0)

TEXT = documents(1)[0].text[:3_000]
"""Short: what is measured is how the calls follow one another, not how long prompts travel."""


def same(document: Document) -> Document:
    return document


def n_calls(graph: PlanGraph) -> int:
    """Steps that ask the model."""
    return sum(not graph.checked.action(step).is_native for step in graph.steps)


def n_levels(graph: PlanGraph) -> int:
    """Calls that have to follow one another."""
    lengths: list[int] = []
    for step, needs in zip(graph.steps, graph.dependencies, strict=True):
        own = not graph.checked.action(step).is_native
        lengths.append(own + max((lengths[i] for i in needs), default=0))
    return max(lengths)


async def sequential(pearl: Pearl, checked: CheckedPlan, document: Document) -> None:
    """A plain loop: one step after the other, over the same client."""
    for step in checked.plan.steps:
        if not checked.action(step).is_native:
            await _call(pearl, checked, document, step.output)


async def _call(pearl: Pearl, checked: CheckedPlan, document: Document, output: str) -> str:
    step = next(step for step in checked.plan.steps if step.output == output)
    task = ActionTask(
        output, checked.action(step), (), document.text, f"{output} {step.explanation}"
    )
    return (await pearl.client.model.complete(Request(action_messages(task), task))).text


async def ours(pearl: Pearl, checked: CheckedPlan, document: Document) -> None:
    await pearl.execute(checked, document)


async def within_plans() -> dict[str, Any]:
    """The seconds that single plans take, added up, for each way to run them."""
    library, found = plans(N_SINGLE)
    ways: dict[str, Callable[[Pearl, CheckedPlan, Document], Awaitable[None]]] = {
        "sequential": sequential,
        "ours": ours,
    }
    seconds = dict.fromkeys(ways, 0.0)
    turns = asyncio.Semaphore(AT_ONCE)

    async def timed(way: str, pearl: Pearl, i: int) -> None:
        document = Document(f"Number {i}. {TEXT}")  # of its own: no call is shared with other plans
        async with turns:
            began = time.monotonic()
            await ways[way](pearl, found[i], document)
            seconds[way] += time.monotonic() - began

    with serving("--call-s", str(SINGLE_S), "--slots", "256") as url:
        async with opened(url, 256, library) as pearl:
            for way, go in ways.items():
                await go(pearl, found[0], Document(TEXT))  # imports are not part of it
                await asyncio.gather(*(timed(way, pearl, i) for i in range(len(found))))
    graphs = [build_graph(checked) for checked in found]
    limit = sum(map(n_calls, graphs)) / sum(map(n_levels, graphs))
    return {
        "plans": len(found),
        "call_s": SINGLE_S,
        "limit": round(limit, 3),
        "sequential_s": round(seconds["sequential"], 2),
        "ours_s": round(seconds["ours"], 2),
        "sequential/ours": round(seconds["sequential"] / seconds["ours"], 3),
    }


async def across_plans() -> dict[str, Any]:
    """Many plans at once: the share of what the places allow."""
    library, found = plans(N_MANY)
    document = Document(TEXT)
    with serving("--call-s", str(CALL_S), "--slots", str(N_PLACES)) as url:
        async with opened(url, N_PLACES, library) as pearl:
            tasks = [
                Task(str(i), partial(same, document), plan=str(checked))
                for i, checked in enumerate(found)
            ]
            began = time.monotonic()
            failed = [o.error async for o in run(pearl, tasks) if o.error is not None]
            took_s = time.monotonic() - began
        assert not failed, failed[0]
        n_made = stats(url)["calls"]
    allowed_s = -(-n_made // N_PLACES) * CALL_S
    return {
        "plans": len(found),
        "places": N_PLACES,
        "call_s": CALL_S,
        "calls": n_made,
        "calls_remembered": sum(n_calls(build_graph(checked)) for checked in found) - n_made,
        "allowed_s": round(allowed_s, 2),
        "ours_s": round(took_s, 2),
        "share": round(allowed_s / took_s, 3),
    }


def main() -> None:
    """Measure both."""
    within = asyncio.run(within_plans())
    across = asyncio.run(across_plans())
    print(json.dumps({"bench": "makespan", "quick": QUICK, "within": within, "across": across}))


if __name__ == "__main__":
    main()
