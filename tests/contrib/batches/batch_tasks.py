"""Tasks of a given depth."""

from __future__ import annotations

from functools import partial

from pearl import Document
from pearl.contrib.batches.executor import Pace
from pearl.runs.executors import Task

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
