"""Exact cosine similarity of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, top

if TYPE_CHECKING:
    from pearl.retrieval.index import Index

NEEDS_VECTORS = True

SPARSE = 0.25  # Share of allowed passages below which only their vectors are read

TOLERANCE = 1e-5
"""Maximum error of a float32 product of unit vectors, with a wide margin. Passages within it of the last
place are compared in float64, so that equal passages tie wherever they stand."""


def rank(query: Query, index: Index, settings: SearchSettings, k: int) -> Ranking:
    """The `k` passages with the most similar vectors; passages with the zero vector are never found."""
    import numpy as np

    vectors, vector = index.vectors, query.vector
    assert vectors is not None  # `Searcher` has both, of one dimension
    assert vector is not None
    mask = np.ones(len(vectors), np.bool_) if query.mask is None else query.mask
    near = np.flatnonzero(mask).astype(np.int32)
    is_sparse = len(near) < SPARSE * len(vectors)
    rough = vector.astype(np.float32)
    scores = vectors[near] @ rough if is_sparse else (vectors @ rough)[near]
    if k < len(near):
        near = near[scores >= np.partition(scores, -k)[-k] - TOLERANCE]
    # Row by row, so that a passage's score does not depend on other passages.
    rows = vectors[near].astype(np.float64)
    scores = np.einsum("ij,j->i", rows, vector.astype(np.float64))
    found = rows.any(axis=1)
    if found.all():
        return top(near, scores, k)
    mask = mask.copy()
    mask[near[~found]] = False
    return rank(Query(query.terms, vector, mask), index, settings, k)
