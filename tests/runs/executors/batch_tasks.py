"""Tasks of a given depth; as a process of its own, works through some by batches and is killed.

python -m tests.runs.executors.batch_killed URL FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

from pearl import Document, Pearl
from pearl.runs.executors import Task
from pearl.runs.executors.batch import Pace, run
from pearl.runs.store import Store

PACE = Pace(quiet_s=0.1, poll_s=0.01, longest_poll_s=0.02, patience_s=5.0)


def tasks_of(n: int, depth: int, width: int = 1) -> list[Task]:
    """So many tasks with plans of so many levels, one step or two on each."""
    lines = []
    for level in range(depth):
        for name, first in (("a", '"the hero"'), ("b", '"the villain"'))[:width]:
            what = f"{name}{level - 1}" if level else first
            lines.append(f"{len(lines) + 1}. {name}{level} = FIND(CTX, {what}) : Who")
    plan = "\n".join(lines)
    return [
        Task(f"t{i}", partial(Document, f"This is number {i}. It is short.", f"d{i}"), plan=plan)
        for i in range(n)
    ]


async def main(url: str, folder: Path) -> None:
    with Store.open(folder) as store:
        pearl = Pearl("openai:test-model", base_url=url)
        async for _ in run(pearl, tasks_of(20, 2), replies=store, folder=folder, pace=PACE):
            pass


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
