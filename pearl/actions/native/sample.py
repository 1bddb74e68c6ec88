"""SAMPLE(ROWS, N): some of the rows, drawn at random."""

import random
from dataclasses import replace

from pearl.actions.estimates import SAMPLED
from pearl.actions.values import Value
from pearl.documents.digest import text_sha256
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "SAMPLE",
    (Parameter.named("ROWS"), Parameter("N", reads="number")),
    "Return N of ROWS, drawn at random; what is computed from them is an estimate",
    returns=ValueType.LIST,
    is_native=True,
)


def run(rows: Rows, n: int | float) -> Value:
    """Draw without replacement, in the rows' order; the same rows always give the same sample.

    Example:
        >>> from pearl.documents.rows import Row
        >>> drawn = run(Rows(tuple(map(Row, "abcdef"))), 2)
        >>> len(drawn), drawn.notes
        (2, ('an estimate: 2 of 6 rows',))
    """
    size = whole_number(n, "N", least=1)
    every = (*rows.rows, *rows.doubtful)
    if size >= len(every):
        return rows
    seed = text_sha256("\x1f".join(row.text or row.value or "" for row in every))
    drawn = sorted(random.Random(seed).sample(range(len(every)), size))
    n_sure = len(rows)
    return replace(
        rows,
        rows=tuple(every[i] for i in drawn if i < n_sure),
        doubtful=tuple(every[i] for i in drawn if i >= n_sure),
        sample=(size, len(every)),
    ).noting(f"{SAMPLED}: {size:,} of {len(every):,} rows")
