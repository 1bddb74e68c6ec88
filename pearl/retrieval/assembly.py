"""Occurrences of terms in passages → postings in arrays: those of a term next to each other."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pearl.retrieval.tokens import Tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOKENS = 1 << 20
"""Different tokens that are remembered with their terms."""

MAX_LENGTH = 40
"""Characters of a token that is: without blanks, a paragraph is a single one."""


class Block(NamedTuple):
    """Postings of some passages, grouped by term."""

    columns: NDArray[np.int64]
    sizes: NDArray[np.int64]
    passages: NDArray[np.int32]
    counts: NDArray[np.uint8 | np.uint16 | np.uint32]


class _Columns(dict[str, tuple[int, ...]]):
    """Token → the columns of its terms. Each token is read once."""

    def __init__(self, read: Callable[[str], Iterable[str]]) -> None:
        self._read = read
        self.terms: dict[str, int] = {}

    def __missing__(self, token: str) -> tuple[int, ...]:
        terms = self.terms
        columns = tuple(terms.setdefault(term, len(terms)) for term in self._read(token))
        if len(token) <= MAX_LENGTH:
            self[token] = columns
        return columns


class Assembler:
    """Collects the postings of passages, batch by batch."""

    def __init__(self, read: Callable[[str], Iterable[str]]) -> None:
        self._columns = _Columns(read)
        self.blocks: list[Block] = []
        self.lengths = array("i")

    @property
    def terms(self) -> dict[str, int]:
        """All terms with their columns."""
        return self._columns.terms

    def add(self, tokens: Tokens) -> None:
        """Take in the tokens of the next passages."""
        import numpy as np

        if len(self._columns) > MAX_TOKENS:
            self._columns.clear()
        found = [self._columns[token] for token in tokens.names]
        sizes = np.fromiter(map(len, found), np.int64, len(found))
        flat = np.fromiter(chain.from_iterable(found), np.int64, int(sizes.sum()))
        starts = np.cumsum(sizes) - sizes
        n_terms = sizes[tokens.codes]
        columns = flat[spread(starts[tokens.codes], n_terms)]
        n_passages, base = len(tokens.sizes), len(self.lengths)
        passages = np.repeat(np.repeat(np.arange(n_passages), tokens.sizes), n_terms)
        lengths = np.bincount(passages, minlength=n_passages)
        self.lengths.frombytes(lengths.astype(np.int32).tobytes())

        # One number for a term in a passage: sorted, its repeats are neighbours.
        bits = n_passages.bit_length()
        keys = columns << bits | passages
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(first, append=len(keys))
        keys = keys[first]
        columns = keys >> bits
        starts = np.flatnonzero(np.diff(columns, prepend=-1))
        self.blocks.append(
            Block(
                columns[starts],
                np.diff(starts, append=len(columns)),
                ((keys & ((1 << bits) - 1)) + base).astype(np.int32),
                counts.astype(smallest(counts)),
            )
        )


def assemble(
    blocks: Sequence[Block], n_terms: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8 | np.uint16 | np.uint32]]:
    """The postings of blocks, by term, and within a term in the order of the blocks."""
    import numpy as np

    starts = np.zeros(n_terms + 1, np.int64)
    for block in blocks:
        starts[block.columns + 1] += block.sizes
    np.cumsum(starts, out=starts)
    width = max((block.counts.dtype for block in blocks), default=np.dtype(np.uint8))
    passages = np.empty(starts[-1], np.int32)
    counts = np.empty(starts[-1], width)
    filled = starts[:-1].copy()
    for block in blocks:
        places = spread(filled[block.columns], block.sizes)
        passages[places] = block.passages
        counts[places] = block.counts
        filled[block.columns] += block.sizes
    return starts, passages, counts


def spread(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ranges one after another: `starts[0]`, `starts[0] + 1`, ..., for each `sizes` numbers."""
    import numpy as np

    ends = np.cumsum(sizes)
    n = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(n)


def smallest(counts: NDArray[Any]) -> type[np.uint8 | np.uint16 | np.uint32]:
    """The smallest type that holds counts."""
    import numpy as np

    most = int(counts.max()) if len(counts) else 0
    return np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32
