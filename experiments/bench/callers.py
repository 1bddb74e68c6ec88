"""Everyone whose cost of a call is measured, each in a process of its own: run by `slope.py`.

    python experiments/bench/callers.py NAME < JSON

The JSON says where the server is, how many calls are made at once and where prompts and documents
are. A caller makes some calls first, so that imports, connections and tables are no part of it, and
then all the others: different ones. Printed is the processor time that this process took for those, its
threads included, and the time that passed. Each caller imports what it needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

Messages = list[dict[str, str]]

N_FIRST = 64
"""Calls before those whose processor time is measured."""


async def gathered(
    prompts: Sequence[Messages], call: Callable[[Messages], Awaitable[object]], n_at_once: int
) -> None:
    places = asyncio.Semaphore(n_at_once)

    async def one(messages: Messages) -> None:
        async with places:
            said = await call(messages)
        assert isinstance(said, str), said
        assert said, "no reply"

    await asyncio.gather(*map(one, prompts))


def clocked(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the processor, and those that passed."""
    cpu, passed = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - passed


Asked = Callable[[Sequence[Messages]], Awaitable[None]]


def rounds(said: dict[str, Any], ask: Asked) -> tuple[float, float]:
    """Some calls, then all others, in one event loop as a program has it."""
    prompts = [json.loads(line) for line in Path(said["prompts"]).read_text().splitlines()]
    n_first = said["first"]
    loop = asyncio.new_event_loop()
    if n_first:
        loop.run_until_complete(ask(prompts[:n_first]))
    found = clocked(lambda: loop.run_until_complete(ask(prompts[n_first:])))
    loop.close()
    return found


def official(said: dict[str, Any]) -> tuple[float, float]:
    """The official client, as its documentation has it."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=said["url"], max_retries=0)

    async def call(messages: Messages) -> object:
        reply = await client.chat.completions.create(
            model=said["model"], temperature=0.0, messages=messages
        )
        return reply.choices[0].message.content

    return rounds(said, lambda prompts: gathered(prompts, call, said["at_once"]))


def aiohttp(said: dict[str, Any]) -> tuple[float, float]:
    """A session, JSON there and back, and nothing else."""
    import aiohttp

    session: list[aiohttp.ClientSession] = []

    async def call(messages: Messages) -> object:
        body = {"model": said["model"], "messages": messages, "temperature": 0.0}
        async with session[0].post(f"{said['url']}/chat/completions", json=body) as reply:
            return (await reply.json())["choices"][0]["message"]["content"]

    async def ask(prompts: Sequence[Messages]) -> None:
        if not session:
            session.append(aiohttp.ClientSession())
        await gathered(prompts, call, said["at_once"])
        if len(prompts) != said["first"]:
            await session[0].close()

    return rounds(said, ask)


def made_up_words(draw: random.Random, n: int) -> list[str]:
    """Words of one to four syllables."""
    syllables = [
        f"{a}{b}" for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er")
    ]
    return ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(n)]


def pearl_command(said: dict[str, Any]) -> tuple[float, float]:
    """`pearl execute PLAN DOC... --out FILE`, its store in."""
    from pearl.cli import run

    documents = sorted(map(str, Path(said["documents"]).iterdir()))

    def execute(chosen: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            code = run(
                ["execute", said["plan"], *chosen, "--model", f"openai:{said['model']}",
                 "--base-url", said["url"], "--window", "128000", "--constrain", "off",
                 "--concurrency", str(said["at_once"]), "--store", f"{folder}/store",
                 "--out", f"{folder}/rows.jsonl"]
            )  # fmt: skip
            n_rows = len(Path(f"{folder}/rows.jsonl").read_text().splitlines())
        # The reply quotes nothing, so that no quote is looked up: its answers are degraded.
        assert (code, n_rows) == (1, len(chosen)), (code, n_rows)

    n_first = said["first"]
    if n_first:
        execute(documents[:n_first])
    return clocked(lambda: execute(documents[n_first:]))


def pearl_library(said: dict[str, Any]) -> tuple[float, float]:
    """`Pearl.execute` over the documents, nothing kept."""
    from functools import partial

    from pearl import Pearl, load
    from pearl.runs.executors import Task
    from pearl.runs.executors.local import run

    documents = sorted(map(str, Path(said["documents"]).iterdir()))
    plan = Path(said["plan"]).read_text()

    async def execute(chosen: Sequence[str]) -> None:
        made = Pearl(
            f"openai:{said['model']}", base_url=said["url"], window=128_000, constrain="off",
            concurrency=said["at_once"],
        )  # fmt: skip
        async with made:
            tasks = [Task(path, partial(load, path), plan=plan, source=path) for path in chosen]
            async for outcome in run(made, tasks):
                assert outcome.error is None, outcome.error

    n_first = said["first"]
    if n_first:
        asyncio.run(execute(documents[:n_first]))
    return clocked(lambda: asyncio.run(execute(documents[n_first:])))


CALLERS: dict[str, Callable[[dict[str, Any]], tuple[float, float]]] = {
    caller.__name__: caller for caller in (official, aiohttp, pearl_library, pearl_command)
}


if __name__ == "__main__":
    print(json.dumps(CALLERS[sys.argv[1]](json.load(sys.stdin))))
