"""What does a call cost this process, over a bare loop on the official client?

    python experiments/bench/overhead.py [--quick]

CPU time of the process for each call, at the same concurrency, over the same prompts: the official
client alone (`AsyncOpenAI`, a semaphore and `chat.completions.create`), then whole plans run with
everything around them: reading the plan, counting tokens, wrappers, trace, evidence; then the same with
every reply and every row kept in a store. The prompts of the bare loop are those that the plans sent.
All run in turns, several times, and the median of the ratios counts. Prints a table and one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from openai import AsyncOpenAI
from serving import QUICK, documents, opened, plans, serving, table

from pearl import Document
from pearl.dsl.checker import CheckedPlan
from pearl.llm import Completion, Message, Request
from pearl.llm.middleware.wrapper import Wrapper
from pearl.runs.executors import Task
from pearl.runs.executors.local import run
from pearl.runs.identity import fingerprint
from pearl.runs.recording import run_recorded
from pearl.runs.store import RunSpec, Store

N_PLANS, N_DOCUMENTS, N_PLACES = (8, 3, 16) if QUICK else (20, 10, 16)
N_ROUNDS = 3 if QUICK else 5


class Recording(Wrapper):
    """Keeps the prompts that pass by."""

    def __init__(self, model: Wrapper) -> None:
        super().__init__(model)
        self.prompts: list[tuple[Message, ...]] = []

    async def complete(self, request: Request) -> Completion:
        """Keep the prompt and pass the request on."""
        self.prompts.append(request.messages)
        return await self._model.complete(request)


def same(document: Document) -> Document:
    return document


def tasks(found: Sequence[CheckedPlan]) -> list[Task]:
    return [
        Task(
            f"{i}/{document.name}",
            partial(same, document),
            plan=str(checked),
            source=document.digest,
        )
        for i, checked in enumerate(found)
        for document in documents(N_DOCUMENTS)
    ]


async def kept(url: str) -> float:
    """CPU seconds of all tasks, with replies and rows in a store."""
    library, found = plans(N_PLANS)
    work = tasks(found)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        began = time.process_time()
        async with opened(url, N_PLACES, library, replies=store) as pearl:
            keeping = store.begin(RunSpec((), fingerprint(pearl), {}))
            async for outcome in run_recorded(pearl, enumerate(work), keeping):
                assert outcome.error is None, outcome.error
            keeping.finish("done")
        return time.process_time() - began


async def ours(url: str, *, prompts: list[tuple[Message, ...]] | None = None) -> float:
    """CPU seconds of all tasks; their prompts are added to `prompts`."""
    library, found = plans(N_PLANS)
    work = tasks(found)
    began = time.process_time()
    async with opened(url, N_PLACES, library) as pearl:
        recording = Recording(pearl.client)
        if prompts is not None:
            pearl._asked = recording
        async for outcome in run(pearl, work):
            assert outcome.error is None, outcome.error
        took_s = time.process_time() - began
    if prompts is not None:
        prompts += recording.prompts
    return took_s


async def bare(url: str, prompts: Sequence[tuple[Message, ...]]) -> float:
    """CPU seconds of the same prompts on the client alone."""
    places = asyncio.Semaphore(N_PLACES)
    began = time.process_time()
    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

        async def call(messages: tuple[Message, ...]) -> str | None:
            async with places:
                reply = await client.chat.completions.create(
                    model="sim",
                    temperature=0.0,
                    messages=[{"role": m.role, "content": m.content} for m in messages],  # type: ignore[misc]
                )
                return reply.choices[0].message.content

        await asyncio.gather(*map(call, prompts))
        return time.process_time() - began


def main() -> None:
    """Measure in turns."""
    prompts: list[tuple[Message, ...]] = []
    with serving("--slots", "64", "--call-s", "0.02") as url:
        asyncio.run(ours(url, prompts=prompts))  # imports are not part of it
        asyncio.run(bare(url, prompts[:20]))
        if "--profile" in sys.argv:
            import cProfile
            import pstats

            with cProfile.Profile() as profile:
                asyncio.run(ours(url))
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
            return
        rounds = [
            (asyncio.run(bare(url, prompts)), asyncio.run(ours(url)), asyncio.run(kept(url)))
            for _ in range(N_ROUNDS)
        ]
    n = len(prompts)
    bare_ms, ours_ms, kept_ms = (1_000 * median(times) / n for times in zip(*rounds, strict=True))
    ratio = median(own / base for base, own, _ in rounds)
    kept_ratio = median(own / base for base, _, own in rounds)
    table(
        [
            ["calls", "bare ms", "ours ms", "ours/bare", "kept ms", "kept/bare"],
            [n, bare_ms, ours_ms, ratio, kept_ms, kept_ratio],
        ]
    )
    found = {
        "calls": n,
        "bare_cpu_ms": round(bare_ms, 3),
        "ours_cpu_ms": round(ours_ms, 3),
        "ours/bare": round(ratio, 3),
        "kept_cpu_ms": round(kept_ms, 3),
        "kept/bare": round(kept_ratio, 3),
    }
    print(json.dumps({"bench": "overhead", "quick": QUICK, **found}))


if __name__ == "__main__":
    main()
