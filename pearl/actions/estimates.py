"""Numbers computed from rows: what the undecided ones may add, and what a sample says of the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pearl.documents.rows import shortened

Z_95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""


SAMPLED = "an estimate"
"""How a note begins that says of rows that they are a sample."""

INTERVAL = "95 % interval"
"""How a note begins that says what a sample says of all rows."""


AMONG = "among the"
"""How a note begins that says of rows that others match, too."""


def among_best(k: int, queries: Sequence[str] = ()) -> str:
    """What a search says of its rows where more match than are wanted.

    Example:
        >>> among_best(10, ["iron"])
        "among the 10 that match 'iron' best; more match"
    """
    what = f" '{shortened(', '.join(queries), 60)}'" if queries else ""
    return f"{AMONG} {k:,} that match{what} best; more match"


def is_estimate(note: str) -> bool:
    """Whether a note says that a result is not of all rows: such a one is shown with it everywhere."""
    return note.startswith((SAMPLED, INTERVAL, AMONG))


def wilson(n_found: int, n_drawn: int) -> tuple[float, float]:
    """The 95 % score interval of a share.

    Source:
        Wilson, Journal of the American Statistical Association 22 (1927).

    Example:
        >>> [round(end, 3) for end in wilson(10, 100)]
        [0.055, 0.174]
    """
    share, square = n_found / n_drawn, Z_95**2 / n_drawn
    middle = share + square / 2
    half = Z_95 * math.sqrt(share * (1 - share) / n_drawn + square / (4 * n_drawn))
    low = 0.0 if n_found == 0 else (middle - half) / (1 + square)
    high = 1.0 if n_found == n_drawn else (middle + half) / (1 + square)
    return low, high


def sample_note(sample: tuple[int, int], low: int, high: int) -> str:
    """What a count in a sample says of all rows.

    Example:
        >>> sample_note((100, 1000), 10, 10)
        '95 % interval for all 1,000 rows: 55 to 174'
    """
    n_drawn, n_all = sample
    # Not fewer than were found, not more than those not drawn allow.
    least = max(low, math.floor(wilson(low, n_drawn)[0] * n_all + 0.5))
    most = min(high + n_all - n_drawn, math.floor(wilson(high, n_drawn)[1] * n_all + 0.5))
    return f"{INTERVAL} for all {n_all:,} rows: {least:,} to {most:,}"
