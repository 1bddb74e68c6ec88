"""Approximate nearest neighbours of large indexes, by faiss (extra `faiss`).

Below `LEAST_VECTORS`, for searches with a filter, and without the extra, every vector is compared,
which is exact. Above, cells are built once as many queries have been compared with the same vectors
as the building takes time for, so that one search from the command line never waits for it.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pearl.retrieval.methods import Vectors

LEAST_VECTORS = 200_000

AFTER_QUERIES = 100
"""Queries that are compared with every vector before cells are built: that takes about as long."""

N_PROBED = 64
"""Cells that a query is compared with."""

A_CELL = 40
"""Vectors for each cell that cells are made from: faiss warns of fewer than 39."""

MARGIN = 4
"""Times `k` that are taken from the cells, whose vectors are rounded to 8 bits, to be compared."""

BLOCK = 1 << 16
"""Vectors that are put into cells at once."""


@dataclass(slots=True)
class _Cells:
    """The cells of some vectors."""

    n_queries: int = 0
    index: Any = None
    building: threading.Lock = field(default_factory=threading.Lock)


_known: dict[int, _Cells] = {}
"""By the id of an array, while it lives."""


def nearest(vectors: Vectors, vector: NDArray[np.float32], k: int) -> NDArray[np.int32] | None:
    """The numbers of at least `k` vectors that are near, ascending; None to compare every vector."""
    if len(vectors) < LEAST_VECTORS or find_spec("faiss") is None:
        return None
    cells = _known.get(id(vectors))
    if cells is None:
        cells = _known[id(vectors)] = _Cells()
        weakref.finalize(vectors, _known.pop, id(vectors), None)
    cells.n_queries += 1
    if cells.index is None:
        if cells.n_queries <= AFTER_QUERIES or not cells.building.acquire(blocking=False):
            return None
        try:
            cells.index = cells.index or _built(vectors)
        finally:
            cells.building.release()
    _, found = cells.index.search(vector.astype("float32")[None], MARGIN * k + 1)
    numbers = found[0][found[0] >= 0]
    if len(numbers) < k:
        return None
    numbers.sort()
    near: NDArray[np.int32] = numbers.astype("int32")
    return near


def _built(vectors: Vectors) -> Any:
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
