"""Exact cosine similarity of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, top

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    if vectors is None or vector is None:
        raise UsageError(
            "dense search needs vectors, but the index has none",
            help="name embeddings: --embeddings openai:NAME of a server",
        )
    if vector.shape != vectors.shape[1:]:
        raise UsageError(
            f"the query's vector has {vector.shape[-1]} dimensions, those of the index "
            f"{vectors.shape[1]}",
            help="search with the embeddings of the index, or build the index again",
        )
    mask = query.mask
    near = _candidates(vectors, vector.astype(np.float32), mask, k)
    # Row by row, so that a passage's score does not depend on other passages.
    rows = vectors[near].astype(np.float64)
    scores = np.einsum("ij,j->i", rows, vector.astype(np.float64))
    found = rows.any(axis=1)
    if found.all():
        return top(near, scores, k)
    mask = np.ones(len(vectors), dtype=np.bool_) if mask is None else mask.copy()
    mask[near[~found]] = False
    return rank(Query(query.terms, vector, mask), index, settings, k)


def _candidates(
    vectors: NDArray[np.float32],
    vector: NDArray[np.float32],
    mask: NDArray[np.bool_] | None,
    k: int,
) -> NDArray[np.int32]:
    """The numbers of the `k` nearest passages and of those within `TOLERANCE` of the last one, ascending."""
    import numpy as np

    numbers = np.flatnonzero(np.ones(len(vectors)) if mask is None else mask).astype(np.int32)
    if k <= 0:
        return numbers[:0]
    is_sparse = len(numbers) < SPARSE * len(vectors)
    scores = vectors[numbers] @ vector if is_sparse else (vectors @ vector)[numbers]
    if k >= len(numbers):
        return numbers
    near: NDArray[np.int32] = numbers[scores >= np.partition(scores, -k)[-k] - TOLERANCE]
    return near
