"""Questions that count: how far plans over rows are from exact, and what they cost.

    python experiments/oolong.py [--windows N] [--entries N ...] [--p P ...] [--questions N]
        [--items-per-call N] [--seed S] [--pairs] [--faults [RATE ...]] [--edit] [--hostile]
        [--undecided SHARE ...] [--forecasts N]

Windows of entries are generated, their labels hidden; an oracle labels each item with a known share of
errors, and every kind of OOLONG's questions is answered by a plan. Beside each score stands that of a
reference that counts the oracle's labels by itself: they have to be equal. No figure says how well a
language model labels. Prints a table and one JSON line; exit code 1 if a bar is not met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
from collections.abc import AsyncIterator, Sequence
from typing import get_args

from aggregation.bars import (
    N_PER_CALL,
    Bar,
    edited,
    exact,
    faults,
    hostile,
    pairs,
    undecided,
)
from aggregation.forecasting import forecasts
from aggregation.oracle import Fault

RATES = (0.01, 0.05, 0.2)
LARGE, N_LARGE = 50_000, 4
"""Of windows with so many entries there are so many at most."""


async def measure(said: argparse.Namespace) -> AsyncIterator[Bar]:
    """The bars that are asked for, one by one."""
    for n in said.entries:
        n_windows = said.windows if n < LARGE else min(said.windows, N_LARGE)
        for p in said.p:
            yield await exact(n, n_windows, p, said.seed, said.questions, said.items_per_call)
    if said.pairs:
        for p in said.p:
            yield await pairs(min(said.windows, 10), p, said.seed)
    if said.faults is not None:
        yield await faults("drop", 1.0, said.seed)
        for kind in get_args(Fault):
            for rate in said.faults or RATES:
                yield await faults(kind, rate, said.seed)
    if said.edit:
        yield await edited(said.seed)
    for share in said.undecided:
        yield await undecided(share, 500, said.windows, said.seed)
    if said.hostile:
        for per_call in (32, 1):
            yield await hostile(said.seed, per_call=per_call)
    if said.forecasts:
        yield await forecasts(said.forecasts, said.seed)


async def show(said: argparse.Namespace) -> bool:
    """Print every bar as it is measured, and all as JSON; whether all are met."""
    done: list[Bar] = []
    async for bar in measure(said):
        done.append(bar)
        figures = ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in bar.figures.items()
        )
        print(
            f"{bar.name}: {figures}",
            *(f"  NOT MET: {each}" for each in bar.failed[:5]),
            sep="\n",
            flush=True,
        )
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    bars = [{"name": bar.name, **bar.figures, "failed": bar.failed[:20]} for bar in done]
    print(json.dumps({"bench": "oolong", "seed": said.seed, "peak_mb": peak_mb, "bars": bars}))
    return not any(bar.failed for bar in done)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments ask for, by default those of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--entries", type=int, nargs="*", default=[1_000])
    parser.add_argument("--p", type=float, nargs="+", default=[1.0, 0.99, 0.95, 0.9])
    parser.add_argument("--questions", type=int, default=25)
    parser.add_argument("--items-per-call", type=int, default=N_PER_CALL)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--faults", type=float, nargs="*", metavar="RATE")
    parser.add_argument("--edit", action="store_true")
    parser.add_argument("--undecided", type=float, nargs="*", default=(), metavar="SHARE")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--forecasts", type=int, default=0)
    return 0 if asyncio.run(show(parser.parse_args(arguments))) else 1


if __name__ == "__main__":
    sys.exit(main())
