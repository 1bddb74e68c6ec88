"""Terms in arrays: a sorted dictionary that is searched where it lies, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pearl.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Different terms in the order of their UTF-8 bytes, each known by its place."""

    letters: NDArray[np.uint8]
    edges: NDArray[np.int64]
    heads: NDArray[np.uint64]

    @classmethod
    def of(cls, terms: Sequence[bytes]) -> Vocabulary:
        """A vocabulary of sorted, different terms."""
        import numpy as np

        edges = np.zeros(len(terms) + 1, np.int64)
        np.cumsum([len(term) for term in terms], out=edges[1:])
        heads = np.array([term[:_HEAD] for term in terms], f"S{_HEAD}").view(">u8")
        return cls(np.frombuffer(b"".join(terms), np.uint8), edges, heads.astype(np.uint64))

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __iter__(self) -> Iterator[bytes]:
        letters, edges = self.letters.tobytes(), self.edges.tolist()
        for start, end in pairwise(edges):
            yield letters[start:end]

    def find(self, term: str) -> int | None:
        """The place of a term by binary search, or None if it is not here."""
        import numpy as np

        wanted = encoded(term)
        head = np.uint64(int.from_bytes(wanted[:_HEAD].ljust(_HEAD, b"\0"), "big"))
        low, high = self.heads.searchsorted([head, head + np.uint64(1)]).tolist()
        while low < high:
            middle = (low + high) // 2
            found = self.letters[self.edges[middle] : self.edges[middle + 1]].tobytes()
            if found == wanted:
                return int(middle)
            if found < wanted:
                low = middle + 1
            else:
                high = middle
        return None

    def check(self) -> None:
        """Make sure that the arrays fit each other; those of a file may be anything."""
        import numpy as np

        edges = self.edges
        if not (
            len(edges) == len(self.heads) + 1
            and edges[0] == 0
            and edges[-1] == len(self.letters)
            and bool(np.all(edges[1:] >= edges[:-1]))
        ):
            raise DataError(
                "the terms of an index do not fit together", help="build the index again"
            )


_HEAD = 8
"""Bytes of a head."""


def encoded(term: str) -> bytes:
    """A term as it is stored."""
    return term.encode("utf-8", "surrogatepass")
