"""Entries → shards of bounded size that keep similar entries together."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.actions.likeness import Likeness
from pearl.mining.refine.entries import LibraryEntry


def shards(
    entries: Sequence[LibraryEntry], size: int, likeness: Likeness
) -> list[list[LibraryEntry]]:
    """Split the leaves of a hierarchical clustering in optimal leaf order, at most `size` (from 2) a shard."""
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
"""Maximum entries for optimal leaf ordering, which takes more than quadratic time."""
