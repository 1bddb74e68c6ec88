"""The first K of rows, some of which may not be there or have no place yet."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.rows import Row


def first_of(
    ranked: Sequence[tuple[Row, bool]], n_unranked: int, k: int
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The first `k` of rows in order, where some are not surely there.

    Example:
        >>> a, b, c = map(Row, "abc")
        >>> sure, doubtful = first_of([(a, True), (b, False), (c, True)], 0, 2)
        >>> [row.value for row in sure], [row.value for row in doubtful]
        (['a'], ['b', 'c'])
    """
    sure: list[Row] = []
    doubtful: list[Row] = []
    n_sure = 0
    for place, (row, is_sure) in enumerate(ranked, 1):
        if n_sure >= k:
            break
        (sure if is_sure and place + n_unranked <= k else doubtful).append(row)
        n_sure += is_sure
    return tuple(sure), tuple(doubtful)
