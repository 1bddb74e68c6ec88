"""Units of work → outcomes; each row is stored before its outcome is yielded.

The one work loop, of execute, eval, mine and curate. What tells one unit from another is what its row
depends on, never its place: its id, what it says that it depends on, its document, and everything of
the `Pearl` that decides what it says. Of units that are the same in all of that, the first, the
second, ... are told apart by their number.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator
from contextlib import aclosing
from typing import TypeVar

from pearl.documents.digest import digest
from pearl.pipeline import Pearl
from pearl.runs.executors import Execute, Listener, Outcome, Unit
from pearl.runs.executors.local import run as run_here
from pearl.runs.identity import fingerprint
from pearl.runs.scheduling import each_kept
from pearl.runs.store import Run

U = TypeVar("U", bound=Unit)


async def run_recorded(
    pearl: Pearl,
    units: Iterable[tuple[int, U]],
    run: Run,
    *,
    execute: Execute = run_here,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    on_known: Callable[[bytes], None] = lambda key: None,
    has: Callable[[bytes], bool] | None = None,
) -> AsyncGenerator[Outcome[U], None]:
    """Run the units without a row; each row is on disk when its outcome is yielded."""
    # By what they are, for an executor that stops gives some units back without an outcome.
    taken: dict[Hashable, deque[tuple[int, bytes]]] = {}

    def todo() -> Iterator[U]:
        for place, unit, key in unrecorded(pearl, units, has or run.has, on_known):
            taken.setdefault(_named(unit), deque()).append((place, key))
            yield unit

    async def keep(outcome: Outcome[U]) -> None:
        unit = outcome.unit
        name = _named(unit)
        place, key = taken[name].popleft()
        if not taken[name]:
            del taken[name]
        row = unit.row(outcome.result, outcome.error)
        if row is not None:
            await run.record(key, place, unit.id, row, outcome.trace.to_jsonl())
        elif not outcome.is_unfinished and pearl.client.breaker.error is None:
            assert outcome.error is not None
            raise outcome.error

    outcomes = execute(pearl, todo(), listener=listener, is_stopping=is_stopping)
    async with aclosing(outcomes), aclosing(each_kept(outcomes, keep)) as kept:
        async for outcome in kept:
            yield outcome


def unrecorded(
    pearl: Pearl,
    units: Iterable[tuple[int, U]],
    has: Callable[[bytes], bool],
    on_known: Callable[[bytes], None] = lambda key: None,
) -> Iterator[tuple[int, U, bytes]]:
    """The units without a row."""
    for place, unit, key in keyed(pearl, units):
        if unit.source and has(key):
            on_known(key)
        else:
            yield place, unit, key


def keyed(pearl: Pearl, units: Iterable[tuple[int, U]]) -> Iterator[tuple[int, U, bytes]]:
    """Units of work with the keys of their rows."""
    settings = digest(map(repr, sorted(fingerprint(pearl).items()))).hex()
    n_alike: Counter[int] = Counter()  # by 8 bytes of their keys: millions of units may come
    for place, unit in units:
        key = _key(unit, settings, place)
        short = int.from_bytes(key[:8])
        if n := n_alike[short]:  # a row for every unit, be it the same as an earlier one
            key = digest((key.hex(), str(n)))
        n_alike[short] += 1
        yield place, unit, key


def _named(unit: Unit) -> Hashable:
    """What tells a unit from others, though an executor may have put another loader into it."""
    return type(unit), unit.id, unit.source, *unit.depends_on


def _key(unit: Unit, settings: str, place: int) -> bytes:
    # A unit whose document nothing tells from others is known by its place, and never skipped.
    source = unit.source or f"#{place}"
    return digest((settings, type(unit).__name__, unit.id, source, *unit.depends_on))
