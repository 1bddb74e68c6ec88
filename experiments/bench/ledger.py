"""What the ledger of a cluster costs: calls per second, messages and the driver's processor time.

    .venv-ray/bin/python experiments/bench/ledger.py [--quick]

Documents of one call each, a server that answers after 250 ms, 1 and 4 workers of Ray on this machine,
64 calls at once. Beside the ledger: workers that share nothing, each with its part of the concurrency,
as they were before there was one. `limited` has a budget, so that every call is reserved before it is sent. The
first calls, while workers start, are left out; medians of 3 rounds. Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, chdir, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from serving import QUICK

from pearl import Pearl
from pearl.documents.document import from_text
from pearl.llm.client import Client
from pearl.llm.middleware.budget import Budget
from pearl.runs import ledger
from pearl.runs.executors import Task
from pearl.runs.executors import ray as on_ray
from pearl.runs.executors.ray import RayWorker
from pearl.runs.resources import Resources
from pearl.runs.store import Store

N, N_ROUNDS = (600, 1) if QUICK else (1_200, 3)
AT_ONCE, CALL_S = 64, 0.25
PLAN = '1. why = FIND(CTX, "the hero") : Who'
n_messages = 0


class Alone(RayWorker):
    """A worker without a ledger, with a part of the concurrency."""

    def _ready(self, driver: str) -> Resources:
        if self._resources is None:
            n = AT_ONCE // int(Path(self._folder).name)
            settings = replace(self._terms.clients["main"], concurrency=n)
            self._resources = Resources(Pearl(Client(settings), **self._settings))
        return self._resources


def counted(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def count(*values: Any) -> Any:
        global n_messages
        n_messages += 1
        return await call(*values)

    return count


class Counting(ledger.Account):
    """Counts the messages of all accounts."""

    async def serve(self, receive: Any, send: Any) -> None:
        """Serve as usual."""
        await super().serve(counted(receive), counted(send))


async def measured(
    url: str, n_workers: int, kind: type[RayWorker], max_calls: int | None
) -> dict[str, float]:
    """The figures of one run."""
    on_ray.RayWorker, on_ray.Account = kind, Counting  # type: ignore[misc]
    load = [partial(from_text, f"Story {i}. The hero was Ada.", f"{i}") for i in range(N)]
    tasks = [Task(f"{i}", load[i], plan=PLAN) for i in range(N)]
    n_first, n_done, marks = 4 * AT_ONCE, 0, []
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        pearl = Pearl(
            "openai:m", base_url=url, concurrency=AT_ONCE, prefix="off", replies=store,
            budget=Budget(max_calls=max_calls),
        )  # fmt: skip
        (Path(folder) / str(n_workers)).mkdir()
        with chdir(Path(folder) / str(n_workers)):  # which tells the workers how many they are
            async with aclosing(on_ray.run(pearl, tasks, n_workers=n_workers)) as outcomes:
                async for outcome in outcomes:
                    assert outcome.error is None, outcome.error
                    n_done += 1
                    if n_done in (n_first, N):
                        marks.append((time.monotonic(), n_messages, time.process_time()))
    took_s, n, own_s = (end - begin for begin, end in zip(*marks, strict=True))
    return {
        "calls_per_s": round((N - n_first) / took_s, 1),
        "messages_per_call": round(n / (N - n_first), 2),
        "driver_ms_per_call": round(own_s / (N - n_first) * 1e3, 2),
    }


@contextmanager
def quick_server() -> Iterator[str]:
    command = [
        sys.executable,
        str(Path(__file__).with_name("quick_server.py")),
        "--call-s",
        str(CALL_S),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        server.terminate()


def main() -> None:
    """Measure all kinds with 1 and 4 workers, in turns: other work on the machine is that of all of them."""
    import ray

    kinds = {"alone": (Alone, None), "ledger": (RayWorker, None), "limited": (RayWorker, 10**9)}
    runs: dict[str, list[dict[str, float]]] = {}
    with quick_server() as url:
        ray.init(include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
        for _ in range(N_ROUNDS):
            for n_workers in (1, 4):
                for name, (kind, most) in kinds.items():
                    figures = asyncio.run(measured(url, n_workers, kind, most))
                    runs.setdefault(f"{name}, {n_workers}", []).append(figures)
        ray.shutdown()
    rows: dict[str, Any] = {
        name: {figure: median(run[figure] for run in found) for figure in found[0]}
        for name, found in runs.items()
    }
    for n_workers in (1, 4):
        pair = (rows[f"{name}, {n_workers}"]["calls_per_s"] for name in ("ledger", "alone"))
        rows[f"ledger/alone, {n_workers}"] = round(next(pair) / next(pair), 3)
    sizes = {"documents": N, "rounds": N_ROUNDS, "at_once": AT_ONCE, "call_s": CALL_S}
    print(json.dumps({"bench": "ledger", "quick": QUICK, **sizes, **rows}))


if __name__ == "__main__":
    main()
