"""In this process, so many units at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Iterable
from contextlib import aclosing
from typing import TypeVar

from pearl.pipeline import Pearl
from pearl.runs.executors import Listener, Outcome, Unit
from pearl.runs.resources import Resources, loader_key
from pearl.runs.scheduling import in_order
from pearl.trace import Trace

__all__ = ["AHEAD", "DESCRIPTION", "KEEPS_LIMITS", "UNDER_WAY", "document_of", "perform", "run"]

DESCRIPTION = "in this process, hundreds of calls at once"
KEEPS_LIMITS = True

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
) -> AsyncGenerator[Outcome[U], None]:
    """Run the units; outcomes come in the order of the units.

    Units over one document are begun one after the other, and load it once.

    Args:
        pearl: Model and library.
        units: Read one by one, at most `AHEAD` times `concurrency` ahead of the outcomes.
        listener: Told of every event of every unit.
        is_stopping: Whether no more units are to be begun, those taken ahead included.
        window: Units under way at once, begun in their order, where all of them only wait; None
            for as many as keep `concurrency` calls going.
    """
    resources = Resources(pearl)
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
    with pearl.client.halt.running():
        async with aclosing(resources), aclosing(found) as outcomes:
            async for outcome in outcomes:
                yield outcome


async def perform(unit: U, resources: Resources, listener: Listener | None = None) -> Outcome[U]:
    """What becomes of one unit; what stops it is in the outcome, and never raised.

    Args:
        unit: What is to be done.
        resources: What it shares with others.
        listener: Told of every event.
    """
    trace = Trace(unit.id, (lambda event: listener(unit.id, event)) if listener else None)
    try:
        result = await unit.perform(resources, trace)
    except Exception as error:  # noqa: BLE001 - one unit's failure is recorded, the rest goes on
        return Outcome(unit, None, error, trace)
    return Outcome(unit, result, None, trace)


def document_of(unit: Unit) -> Hashable:
    """What tells units over one document from others; None where nothing does."""
    return None if unit.document is None else loader_key(unit.document)
