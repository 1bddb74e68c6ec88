"""Run tasks by Batch APIs: half the price, hours later. Each round has the steps of up to `WINDOW` tasks that are ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from pearl.contrib.batches import batches_of
from pearl.contrib.batches.batching import DEFAULT_PACE, Batched, BatchProgress, OnTrouble, Pace
from pearl.errors import ModelError, UsageError
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.backends.openai.faults import causes
from pearl.llm.client import Client, Role
from pearl.llm.middleware.caching import Replies
from pearl.llm.middleware.retry import CircuitBreaker
from pearl.pipeline import Pearl
from pearl.runs.executors import Listener, Outcome, Resources, Task, Unit, local
from pearl.trace import Event

DESCRIPTION = "by a Batch API: half the price, hours later"
KEEPS_LIMITS = True
UNITS = Task

# Maximum concurrent tasks, with documents in memory: one or two gigabytes for 100 kB each.
WINDOW = 5_000
# Rounds of fewer requests are sent directly: mostly the last repairs, which would take hours more.
THRESHOLD = 20
ATTEMPTS = 3  # Maximum rounds in which a request is tried: each takes hours
LOOK_S = 0.2  # Polling interval of the stop flag in seconds


async def run(
    pearl: Pearl,
    units: Iterable[Unit],
    *,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    replies: Replies | None = None,
    folder: Path | None = None,
    batch_threshold: int = THRESHOLD,
    pace: Pace = DEFAULT_PACE,
    on_progress: Callable[[BatchProgress], None] | None = None,
    on_trouble: OnTrouble | None = None,
) -> AsyncGenerator[Outcome[Task], None]:
    """Run tasks, and yield outcomes in order. A later run in the same folder finds a stopped run's batches."""
    model = pearl.client.model
    if not isinstance(model, OpenAIModel):
        raise UsageError(
            f"the model '{model.name}' has no Batch API",
            help="use a model of OpenAI, Anthropic or Gemini, or --executor local",
        )
    breaker = CircuitBreaker()
    clients: dict[Role, Client] = {}
    collectors: list[Batched] = []
    for role, given in pearl.clients.items():
        same = next((r for r in clients if pearl.clients[r] is given), None)
        if same is not None:
            clients[role] = clients[same]
            continue
        collecting = None
        if isinstance(given.model, OpenAIModel):
            collecting = partial(
                Batched,
                batches=batches_of(given.model),
                budget=given.budget,
                threshold=batch_threshold,
                may_write=None if given.model.caching is None else False,
                replies=replies,
                folder=folder,
                pace=pace,
                breaker=breaker,
                is_busy=lambda: resources.n_loading > 0,
                on_progress=on_progress,
                on_trouble=on_trouble,
            )
        settings = replace(
            given.settings, model=given.model, attempts=ATTEMPTS, first_wait_s=0.0, deadline_s=None
        )
        clients[role] = client = Client(
            settings, replies=replies, budget=given.budget, collecting=collecting, breaker=breaker
        )
        collectors += [layer for layer in client.layers if isinstance(layer, Batched)]

    def touch() -> None:
        for batched in collectors:
            batched.touch()

    def heard(id: str, event: Event) -> None:
        touch()
        if listener is not None:
            listener(id, event)

    others = {f"{role}_model": c for role, c in clients.items() if c is not clients["main"]}
    options = {**pearl.settings, **others, "library": pearl.library, "searcher": pearl.searcher}
    resources: Resources = Resources(Pearl(clients["main"], **options), touch)

    async def perform(unit: Unit) -> Outcome[Task]:
        if not isinstance(unit, Task):
            raise UsageError(
                "the executor 'batch' runs only questions and plans over documents",
                help="for other work: --executor local",
            )
        return await local.perform(unit, resources, heard)

    found = local.in_order(units, perform, WINDOW, is_stopping=is_stopping)
    watch = asyncio.create_task(_watch(is_stopping, collectors))
    try:
        with breaker.running():
            async for outcome in found:
                if isinstance(breaker.error, ModelError):  # such as no credit, or a wrong key
                    pearl.client.breaker.throw(breaker.error)
                is_ours = any(cause is breaker.error for cause in causes(outcome.error))
                if not (is_stopping() and is_ours):
                    yield outcome
    finally:
        await found.aclose()
        watch.cancel()
        for batched in collectors:
            await batched.aclose()


async def _watch(is_stopping: Callable[[], bool], collectors: Sequence[Batched]) -> None:
    """Watch for a stop, and then abandon the batches, which would take hours."""
    while not is_stopping():  # noqa: ASYNC110 - whoever stops tells nobody
        await asyncio.sleep(LOOK_S)
    max(collectors, key=lambda batched: batched.n_waited_for).abandon()
