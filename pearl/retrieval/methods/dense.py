"""Cosine of vectors: exact, or by the nearest cells of a large index where faiss is installed (extra `faiss`)."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, Searchable, top

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LEAST_VECTORS = 200_000

AFTER_QUERIES = 100
"""Queries that are compared with every vector before cells are built: that takes about as long."""

N_PROBED = 64
"""Cells that a query is compared with."""

A_CELL = 40
"""Training vectors for each cell: faiss warns of fewer than 39."""

MARGIN = 4
"""Candidates from the cells as a multiple of `k`: their vectors are rounded to 8 bits, so more are compared."""

BLOCK = 1 << 16
"""Vectors that are put into cells at once."""


@dataclass(slots=True)
class _Cells:
    """The cells of some vectors."""

    n_queries: int = 0
    index: Any = None
    building: threading.Lock = field(default_factory=threading.Lock)


_CELLS: dict[int, _Cells] = {}
"""By the id of an array, while it lives: arrays have no hash."""


def nearest(
    vectors: NDArray[np.float32], vector: NDArray[np.float32], k: int
) -> NDArray[np.int32] | None:
    """The numbers of at least `k` vectors that are near, ascending; None to compare every vector."""
    if len(vectors) < LEAST_VECTORS or find_spec("faiss") is None:
        return None
    if id(vectors) not in _CELLS:
        _CELLS[id(vectors)] = _Cells()
        weakref.finalize(vectors, _CELLS.pop, id(vectors), None)
    cells = _CELLS[id(vectors)]
    cells.n_queries += 1
    if cells.index is None:
        if cells.n_queries <= AFTER_QUERIES or not cells.building.acquire(blocking=False):
            return None
        try:
            cells.index = cells.index or _built(vectors)
        finally:
            cells.building.release()
    _, found = cells.index.search(vector.astype("float32")[None], MARGIN * k + 1)
    numbers: NDArray[np.int32] = found[0][found[0] >= 0].astype("int32")
    numbers.sort()
    return numbers if len(numbers) >= k else None


def _built(vectors: NDArray[np.float32]) -> Any:
    """The cells of vectors, as an index of faiss."""
    import faiss  # it starts threads, and may clash with those of torch if it is imported first
    import numpy as np

    n, dimension = vectors.shape
    n_cells = 2 * int(n**0.5)
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dimension), dimension, n_cells,
        faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT,
    )  # fmt: skip
    index.nprobe = N_PROBED
    chosen = np.random.default_rng(0).choice(n, min(n, A_CELL * n_cells), replace=False)
    index.train(np.ascontiguousarray(vectors[np.sort(chosen)]))
    for start in range(0, n, BLOCK):
        index.add(np.ascontiguousarray(vectors[start : start + BLOCK]))
    return index


NEEDS_VECTORS = True

SPARSE = 0.25
"""Share of wanted passages below which only their vectors are read."""

TOLERANCE = 1e-5
"""Maximum error of a float32 product of unit vectors, with a wide margin. Passages within it of the last
place are compared in float64, so that equal passages tie wherever they stand."""


def rank(query: Query, index: Searchable, settings: SearchSettings, k: int) -> Ranking:
    """The `k` passages with the most similar vectors; a passage with the vector 0 is never found."""
    import numpy as np

    vectors, vector = index.vectors, query.vector
    if vectors is None or vector is None:
        raise UsageError(
            "dense search needs vectors, but the index has none",
            help="name embeddings: --embeddings minilm, or openai:NAME of a server",
        )
    if vector.shape != vectors.shape[1:]:
        raise UsageError(
            f"the query's vector has {vector.shape[-1]} dimensions, those of the index "
            f"{vectors.shape[1]}",
            help="search with the embeddings of the index, or build the index again",
        )
    mask = query.mask
    near = nearest(vectors, vector, k) if mask is None else None
    if near is None:
        near = _candidates(vectors, vector.astype(np.float32), mask, k)
    # Row by row, so that the score of a passage does not depend on the others.
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
    """The numbers of the `k` nearest passages and of those within `TOLERANCE` of them, ascending."""
    import numpy as np

    numbers = None if mask is None else np.flatnonzero(mask).astype(np.int32)
    n = len(vectors) if numbers is None else len(numbers)
    if k <= 0 or not n:
        return np.zeros(0, dtype=np.int32)
    if numbers is None:
        scores = vectors @ vector
    elif n < SPARSE * len(vectors):
        scores = vectors[numbers] @ vector
    else:
        scores = (vectors @ vector)[numbers]
    if k < n:
        least = np.partition(scores, n - k)[n - k] - TOLERANCE
        kept = np.flatnonzero(scores >= least).astype(np.int32)
    else:
        kept = np.arange(n, dtype=np.int32)
    return kept if numbers is None else numbers[kept]
