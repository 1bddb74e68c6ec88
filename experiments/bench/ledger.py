"""What the ledger of a cluster costs: calls per second, messages and processor time per call.

    .venv-ray/bin/python experiments/bench/ledger.py [--quick]

Documents of one call each, a server that answers after 250 ms, 1 and 4 workers of Ray on this machine,
64 calls at once. Beside the ledger: workers that share nothing, each with its part of the concurrency,
as they were before there was one. `limited` has a budget, so that every call is reserved before it is sent. The
first calls, while workers start, are left out; medians of 5 rounds. Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
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

N, N_ROUNDS = (600, 1) if QUICK else (2_000, 5)
AT_ONCE, CALL_S = 64, 0.25
PLAN = '1. why = FIND(CTX, "the hero") : Who'
n_messages = 0


class Worker(RayWorker):
    """One that tells its processor time."""

    async def cpu_s(self) -> float:
        """Seconds of the processor so far."""
        return time.process_time()


class Alone(Worker):
    """One without a ledger."""

    def _ready(self, driver: str) -> Resources:
        if self._resources is None:
            self._resources = Resources(
                Pearl(Client(self._terms.clients["main"]), **self._settings)
            )
        return self._resources


def counted(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def count(*values: Any) -> Any:
        global n_messages
        result = await call(*values)
        n_messages += 1
        return result

    return count


async def measured(
    url: str, n_workers: int, kind: type[Worker], max_calls: int | None
) -> dict[str, float]:
    """The figures of one run."""
    on_ray.RayWorker = kind  # type: ignore[misc]
    terms_of = ledger.Terms.of
    crews: list[Any] = []

    class Crew(on_ray._Crew):
        def __init__(self, *args: Any) -> None:
            crews.append(self)
            super().__init__(*args)

    def own_terms(clients: Any) -> ledger.Terms:
        terms = terms_of(clients)
        own = replace(terms.clients["main"], concurrency=AT_ONCE // n_workers)
        return replace(terms, clients=dict.fromkeys(clients, own))

    run_crew, on_ray._Crew = on_ray._Crew, Crew  # type: ignore[misc]
    if kind is Alone:
        ledger.Terms.of = own_terms  # type: ignore[method-assign, assignment]
    serve = ledger.Account.serve

    async def serve_counted(self: Any, receive: Any, send: Any) -> None:
        await serve(self, counted(receive), counted(send))

    ledger.Account.serve = serve_counted  # type: ignore[method-assign]
    tasks = [
        Task(f"{i}", partial(from_text, f"Story {i}. The hero was Ada.", f"{i}"), plan=PLAN)
        for i in range(N)
    ]
    n_first = 4 * AT_ONCE
    try:
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
            budget = Budget(max_calls=max_calls)
            pearl = Pearl(
                "openai:m",
                base_url=url,
                concurrency=AT_ONCE,
                budget=budget,
                replies=store,
                prefix="off",
            )
            async with aclosing(on_ray.run(pearl, tasks, n_workers=n_workers)) as outcomes:
                n_done = 0
                async for outcome in outcomes:
                    if outcome.error:
                        raise outcome.error
                    n_done += 1
                    if n_done == n_first:
                        cpu_s = [await slot.actor.cpu_s.remote() for slot in crews[0].workers]
                        began, own_s, n_before = time.monotonic(), time.process_time(), n_messages
                    elif n_done == N:
                        took_s, own_s = time.monotonic() - began, time.process_time() - own_s
                        now_s = [await slot.actor.cpu_s.remote() for slot in crews[0].workers]
    finally:
        on_ray._Crew, ledger.Terms.of, ledger.Account.serve = run_crew, terms_of, serve  # type: ignore
    n = N - n_first
    return {
        "calls_per_s": round(n / took_s, 1),
        "messages_per_call": round((n_messages - n_before) / n, 2),
        "driver_ms_per_call": round(own_s / n * 1e3, 2),
        "workers_ms_per_call": round((sum(now_s) - sum(cpu_s)) / n * 1e3, 2),
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

    kinds = {"alone": (Alone, None), "ledger": (Worker, None), "limited": (Worker, 10**9)}
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
