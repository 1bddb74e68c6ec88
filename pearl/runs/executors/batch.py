"""The Batch API of an OpenAI server: half the price, hours later. One round per plan level.

All tasks of a window run at once, and every call of theirs waits for the batch that it is in. So the
first round holds the first steps of all documents, the second what follows from them, and so on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from pearl.documents.document import Document
from pearl.errors import ModelError, UsageError
from pearl.llm import Model
from pearl.llm.backends.openai.batches import Batches
from pearl.llm.client import Client
from pearl.llm.middleware.batching import DEFAULT_PACE, Batched, BatchProgress, OnTrouble, Pace
from pearl.llm.middleware.caching import Replies
from pearl.llm.middleware.retry import CircuitBreaker
from pearl.pipeline import Pearl
from pearl.runs.executors import Listener, Outcome, Task, Unit, local
from pearl.trace import Event

DESCRIPTION = "by a Batch API: half the price, hours later"
KEEPS_LIMITS = False
UNITS = Task

WINDOW = 5_000
"""Maximum concurrent tasks, with documents in memory: one or two gigabytes for 100 kB each."""

ATTEMPTS = 3
"""Maximum rounds in which a request is tried: each takes hours."""

LOOK_S = 0.2
"""Polling interval of the stop flag in seconds."""


@runtime_checkable
class BatchModel(Model, Protocol):
    """A model whose server may have a Batch API."""

    def batches(self) -> Batches:
        """The same model by that API: many requests in one file, replies later."""
        ...


async def run(
    pearl: Pearl,
    units: Iterable[Unit],
    *,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    replies: Replies | None = None,
    folder: Path | None = None,
    window: int = WINDOW,
    pace: Pace = DEFAULT_PACE,
    on_progress: Callable[[BatchProgress], None] | None = None,
    on_trouble: OnTrouble | None = None,
) -> AsyncGenerator[Outcome[Task], None]:
    """Run tasks; outcomes come in the order of the tasks.

    When it is to stop, or is closed, batches that were submitted go on at the server. A run with the
    same folder finds them, and submits nothing that is in one of them.
    """
    model = pearl.client.model
    if not isinstance(model, BatchModel):
        raise UsageError(
            f"the model '{model.name}' has no Batch API",
            help="use an openai: model, or --executor local",
        )
    if window < 1:
        raise UsageError(f"a window of {window} tasks is too small", help="use 1 or more")
    breaker = CircuitBreaker()
    loading = _Loading(lambda: batched.stir())
    collecting = partial(
        Batched,
        batches=model.batches(),
        replies=replies,
        folder=folder,
        pace=pace,
        breaker=breaker,
        is_busy=lambda: loading.n > 0,
        on_progress=on_progress,
        on_trouble=on_trouble,
    )
    settings = replace(
        pearl.client.settings, model=model, attempts=ATTEMPTS, first_wait_s=0.0, deadline_s=None
    )
    client = Client(settings, replies=replies, collecting=collecting, breaker=breaker)
    batched = next(layer for layer in client.layers if isinstance(layer, Batched))

    def heard(id: str, event: Event) -> None:
        batched.stir()
        if listener is not None:
            listener(id, event)

    found = local.run(
        pearl.asking(client),
        (_counted(_task(unit), loading) for unit in units),
        listener=heard,
        is_stopping=is_stopping,
        window=window,
    )
    watch = asyncio.create_task(_watch(is_stopping, batched))
    try:
        async with aclosing(found) as outcomes:
            async for outcome in outcomes:
                if isinstance(breaker.error, ModelError):  # no credit, a wrong key
                    pearl.client.breaker.throw(breaker.error)
                if not (is_stopping() and _comes_of(outcome.error, breaker.error)):
                    yield outcome
    finally:
        watch.cancel()
        await batched.aclose()


class _Loading:
    """Counts documents being loaded, whose tasks have not sent a request yet."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._lock = Lock()
        self._on_end = on_end
        self.n = 0

    def add(self, n: int) -> None:
        with self._lock:  # documents are loaded in threads
            self.n += n
        self._on_end()


def _task(unit: Unit) -> Task:
    if not isinstance(unit, Task):
        raise UsageError(
            "the executor 'batch' runs questions and plans over documents",
            help="for other work: --executor local",
        )
    return unit


def _counted(task: Task, loading: _Loading) -> Task:
    """The task, with its document counted during loading."""
    load = task.document
    if load is None:
        return task
    if not isinstance(load, partial):
        load = partial(load)
    # Taken apart, for those that are alike load one document.
    counted = partial(_load, loading, load.func, *load.args, **load.keywords)
    return replace(task, document=counted)


def _load(loading: _Loading, load: Callable[..., Document], *args: Any, **options: Any) -> Document:
    loading.add(1)
    try:
        return load(*args, **options)
    finally:
        loading.add(-1)


async def _watch(is_stopping: Callable[[], bool], batched: Batched) -> None:
    """Stop without waiting for batches, which take hours."""
    while not is_stopping():  # noqa: ASYNC110 - whoever stops tells nobody
        await asyncio.sleep(LOOK_S)
    batched.leave()


def _comes_of(error: BaseException | None, reason: BaseException | None) -> bool:
    while error is not None:
        if error is reason:
            return True
        error = error.__cause__ or error.__context__
    return False
