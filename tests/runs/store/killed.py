"""A process that works through steps and is killed meanwhile; run by the tests and by `kills.py`.

    python tests/runs/store/killed.py FOLDER N_STEPS CONCURRENCY [N_KILLS]

With N_KILLS it stays alive itself, and so many copies of it are killed one after the other: a copy
begins at once, where a new process would have to import everything first.

Prints `call I` before a step is made and `kept I` when it is acknowledged; steps that the store has
are not made again.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import random
import signal
import sys
import time
from pathlib import Path

from pearl.llm import Completion, Usage
from pearl.runs.store import Run, RunSpec, Store

SPEC = RunSpec(("execute", "--tasks", "t.jsonl"), {"model": "m"}, {"t.jsonl": "1"}, folder="/")


def key_of(i: int) -> bytes:
    return i.to_bytes(32, "big")


def reply_of(i: int) -> Completion:
    return Completion(f"reply {i} " + "é" * (i % 500), "m", Usage(i, 1, 0))


N_SAID = mmap.mmap(-1, 8)
"""How many lines this process and its copies have said: memory that they share."""

MOST_SAID = 90
"""Lines that a copy says, at most, before it is killed; three a step."""


def n_said() -> int:
    return int.from_bytes(N_SAID[:])


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    N_SAID[:] = (n_said() + 1).to_bytes(8)


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


def kill_copies(folder: str, n_steps: int, concurrency: int, n_kills: int) -> None:
    chance = random.Random(n_kills)
    for _ in range(n_kills):
        killed_at = n_said() + chance.randrange(MOST_SAID)
        pid = os.fork()
        if pid == 0:
            asyncio.run(main(folder, n_steps, concurrency))
            os._exit(0)
        while n_said() < killed_at:
            time.sleep(0.000_2)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    if len(numbers) == 3:
        kill_copies(where, *map(int, numbers))
    else:
        asyncio.run(main(where, *map(int, numbers)))
