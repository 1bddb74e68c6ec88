"""Runs units concurrently in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Iterable
from contextlib import aclosing
from typing import TypeVar

from pearl.pipeline import Pearl
from pearl.runs.executors import Listener, Outcome, Task, Unit
from pearl.runs.resources import OnBegun, Resources, loader_key
from pearl.runs.scheduling import in_order
from pearl.trace import Trace

DESCRIPTION = "in this process, hundreds of calls at once"
KEEPS_LIMITS = True
UNITS = Unit

UNDER_WAY = 2
"""Units under way for each call at once: steps wait for each other, and calls for a document to be
primed, and the places that they leave are for other units."""

AHEAD = 8
"""Units taken for each call at once, to find those over the same document."""

U = TypeVar("U", bound=Unit)


async def run(
    pearl: Pearl,
    units: Iterable[U],
    *,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    window: int | None = None,
    on_begun: OnBegun | None = None,
) -> AsyncGenerator[Outcome[U], None]:
    """Run the units; outcomes come in the order of the units.

    Units over one document are begun one after the other, and load it once.
    """
    resources = Resources(pearl, on_begun)
    n = pearl.client.settings.concurrency

    async def one(unit: U) -> Outcome[U]:
        return await perform(unit, resources, listener)

    if window is not None:
        found = in_order(units, one, window, is_stopping=is_stopping)
    else:
        found = in_order(
            units,
            one,
            UNDER_WAY * n if n > 1 else 1,
            ahead=AHEAD * n,
            group=document_of,
            rank=lambda unit: unit.n_chained(resources),
            is_stopping=is_stopping,
        )
    with pearl.client.breaker.running():
        async with aclosing(found) as outcomes:
            async for outcome in outcomes:
                yield outcome


async def perform(unit: U, resources: Resources, listener: Listener | None = None) -> Outcome[U]:
    """Execute one unit; errors are recorded in the outcome, never raised."""
    trace = Trace(unit.id, (lambda event: listener(unit.id, event)) if listener else None)
    try:
        if not isinstance(unit, Task):  # what a task takes is known with its document
            await resources.begin(unit)
        result = await unit.perform(resources, trace)
    except Exception as error:  # noqa: BLE001 - one unit's failure is recorded, the rest goes on
        return Outcome(unit, None, error, trace)
    return Outcome(unit, result, None, trace)


def document_of(unit: Unit) -> Hashable:
    """The key that groups units over the same document, or None."""
    return None if unit.document is None else loader_key(unit.document)
