"""Entries → shards of bounded size in which alike ones are together."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.actions.likeness import Likeness
from pearl.mining.refine.entries import Entry

__all__ = ["shards"]


def shards(entries: Sequence[Entry], size: int, likeness: Likeness) -> list[list[Entry]]:
    """Cut the leaves of a clustering, in the order that keeps neighbours alike.

    Args:
        entries: In an order that is the same for the same entries.
        size: Entries of a shard at most; at least 2, a draft alone has nothing to merge with.
        likeness: Measures how alike they are.
    """
    n_shards = -(-len(entries) // size)
    if n_shards <= 1:
        return [list(entries)]
    # Imported on use: `import pearl` stays light.
    import numpy as np
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    distances = squareform(1 - likeness([entry.action for entry in entries]), checks=False)
    tree = linkage(distances, method="average")
    if len(entries) <= _MOST_ORDERED:
        tree = optimal_leaf_ordering(tree, distances)
    parts = np.array_split(leaves_list(tree), n_shards)
    return [[entries[int(i)] for i in part] for part in parts]


_MOST_ORDERED = 1_000
"""Entries up to which the best order of leaves is looked for: its time grows faster than their square."""
