"""A process that works through steps; run by tests, which kill it.

    python tests/runs/store/killed.py FOLDER N_STEPS CONCURRENCY

Prints `call I` before a step is made and `kept I` when it is acknowledged; steps that the store has
are not made again.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pearl.llm import Completion, Usage
from pearl.runs.store import Run, RunSpec, Store

SPEC = RunSpec(("execute", "--tasks", "t.jsonl"), {"model": "m"}, {"t.jsonl": "1"}, folder="/")


def key_of(i: int) -> bytes:
    return i.to_bytes(32, "big")


def reply_of(i: int) -> Completion:
    return Completion(f"reply {i} " + "é" * (i % 500), "m", Usage(i, 1, 0))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def step(store: Store, run: Run, i: int) -> None:
    if run.has(key_of(i)):
        return
    if await store.reply(key_of(i)) is None:
        say(f"call {i}")
        await asyncio.sleep(0.000_5)
        await store.keep(key_of(i), reply_of(i))
        say(f"kept {i}")
    row = {"id": str(i), "status": "answered", "answer": f"answer {i}"}
    await run.record(key_of(i), i, str(i), row, f'{{"i": {i}}}\n')
    say(f"done {i}")


async def main(folder: str, n_steps: int, concurrency: int) -> None:
    with Store.open(Path(folder)) as store:
        run = store.begin(SPEC)
        say("begun")
        steps = iter(range(n_steps))

        async def work() -> None:
            for i in steps:
                await step(store, run, i)

        await asyncio.gather(*(work() for _ in range(concurrency)))
        run.finish("done", {"steps": n_steps})
    say("finished")


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    asyncio.run(main(where, *map(int, numbers)))
