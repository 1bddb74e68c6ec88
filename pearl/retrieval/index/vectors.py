"""The vectors of several segments as one array, without a copy: those of files stay mapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class JoinedVectors:
    """Vectors of passages, in the order of the corpus; a `pearl.retrieval.methods.Vectors`.

    Example:
        >>> parts = [np.eye(2, dtype=np.float32), np.ones((1, 2), np.float32)]
        >>> joined = JoinedVectors(parts, np.array([2, 0]))
        >>> joined.shape, (joined @ np.array([1.0, 0.5])).tolist()
        ((2, 2), [1.5, 1.0])
    """

    def __init__(
        self, parts: Sequence[NDArray[np.float32]], slots: NDArray[np.int64] | None = None
    ) -> None:
        self._parts = tuple(parts)
        self._slots = slots
        self._ends = np.cumsum([len(part) for part in parts])
        n = int(self._ends[-1]) if slots is None else len(slots)
        self.shape = (n, parts[0].shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, vector: NDArray[Any]) -> NDArray[Any]:
        products = np.concatenate([part @ vector for part in self._parts])
        return products if self._slots is None else products[self._slots]

    def __getitem__(self, numbers: slice | NDArray[Any]) -> NDArray[np.float32]:
        if isinstance(numbers, slice):
            numbers = np.arange(len(self))[numbers]
        slots = numbers if self._slots is None else self._slots[numbers]
        of = np.searchsorted(self._ends, slots, side="right")
        rows = np.empty((len(slots), self.shape[1]), dtype=np.float32)
        for at in np.unique(of):
            here = of == at
            first = self._ends[at] - len(self._parts[at])
            rows[here] = self._parts[at][slots[here] - first]
        return rows
