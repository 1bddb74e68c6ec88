"""Data in its place, and scores as tables in Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from measures import RetrievalComparison, RetrievalScores


def found_data(given: Path | None, name: str) -> Path:
    """The data that was named, or that of `shared/data` beside the checkout; exits without it."""
    beside = (folder / "shared/data" / name for folder in Path(__file__).resolve().parents)
    found = given or next((path for path in beside if path.exists()), None)
    if found is None or not found.exists():
        sys.exit(f"skipped: there is no {found or f'shared/data/{name}'}: name it with --data")
    return found


def print_scores(scores: Sequence[RetrievalScores]) -> None:
    """A line a method: means, and the median and 95th percentile of the milliseconds of a query."""
    names = list(scores[0].values)
    print(f"\n| method | {' | '.join(names)} | ms p50 | p95 |")
    print("|---" * (len(names) + 3) + "|")
    for one in scores:
        means = [f"{one.mean(name).estimate:.4f}" for name in names]
        cells = [*means, *(f"{one.latency_ms(p):.1f}" for p in (50, 95))]
        print(f"| {one.method} | {' | '.join(cells)} |")
        for note, n in one.notes.items():
            print(f"NOTE {one.method}, {n} queries: {note}")


def print_comparison(found: RetrievalComparison) -> None:
    """The difference of two methods with its interval, p, and topics better and worse."""
    it = found.difference
    p = "" if found.bootstrap_p is None else f", p {found.bootstrap_p:.4f}"
    print(
        f"{found.measure}: {found.first} - {found.second}: {it.estimate:+.4f} "
        f"({it.low:+.4f}..{it.high:+.4f}{p}), better {found.n_better}, worse {found.n_worse}"
    )
