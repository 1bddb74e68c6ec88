"""Terms of passages → an inverted index in arrays: for each term the passages that have it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pearl.documents.passages import Stem, terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MAX_BYTES = 16


class Tokens(NamedTuple):
    """The tokens of some passages."""

    names: list[str]
    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]


def number_terms(passages: Sequence[Sequence[str]]) -> Tokens:
    """The tokens of passages that are given by them."""
    import numpy as np

    places: dict[str, int] = {}
    codes = [places.setdefault(term, len(places)) for terms in passages for term in terms]
    sizes = [len(terms) for terms in passages]
    return Tokens(list(places), np.array(codes, np.int64), np.array(sizes, np.int64))


def number_tokens(texts: Sequence[str]) -> Tokens:
    """The tokens of texts, between blanks and control characters of ASCII.

    Memory: about 30 bytes for each character.
    """
    import numpy as np

    lines = [text.encode("utf-8", "surrogatepass") for text in texts]
    # Blanks at the end, so that 8 bytes can be read anywhere, twice; one at the beginning.
    data = b"".join((b" ", b" ".join(lines), b" " * (_MAX_BYTES + 8)))
    is_letter = np.frombuffer(data, np.uint8) > ord(" ")
    edges = np.flatnonzero(is_letter[1:] != is_letter[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    n_bytes = ends - starts

    windows = np.ndarray((len(data) - 8,), "<u8", data, strides=(1,))
    masks = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
    first = windows[starts] & masks[np.minimum(n_bytes, 8)]
    second = windows[starts + 8] & masks[np.clip(n_bytes - 8, 0, 8)]
    long = np.flatnonzero(n_bytes > _MAX_BYTES)
    places: dict[bytes, int] = {}
    for i in long.tolist():
        first[i] = places.setdefault(data[starts[i] : ends[i]], len(places))
    second[long] = masks[8]  # in UTF-8 no byte has all its bits set

    # Sorted by a hash, equal tokens are neighbours. Others with the same hash may stand between
    # them; then there are several groups of one token, which does no harm.
    odd = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
    order = np.argsort(first * odd[0] ^ second * odd[1])
    first, second = first[order], second[order]
    is_new = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    groups = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), np.bool_), is_new]))
    codes = np.empty(len(order), np.int64)
    codes[order] = np.repeat(np.arange(len(groups)), np.diff(groups, append=len(order)))

    shown = order[groups]
    pairs = zip(starts[shown].tolist(), ends[shown].tolist(), strict=True)
    names = [data[start:end].decode("utf-8", "surrogatepass") for start, end in pairs]
    line_ends = np.cumsum([len(line) + 1 for line in lines], dtype=np.int64)
    return Tokens(names, codes, np.diff(np.searchsorted(starts, line_ends + 1), prepend=0))


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


_HEAD = 8
"""Bytes of a head."""


def encoded(term: str) -> bytes:
    """A term as it is stored."""
    return term.encode("utf-8", "surrogatepass")


BATCH = 1 << 23
"""Characters that are read at once."""


@dataclass(frozen=True, eq=False)
class Postings:
    """An inverted index of passages. The arrays may be mapped from a file."""

    vocabulary: Vocabulary
    starts: NDArray[np.int64]
    passages: NDArray[np.int32]
    counts: NDArray[Any]
    lengths: NDArray[np.int32]

    @classmethod
    def build(cls, texts: Iterable[str], stem: Stem = "english") -> Postings:
        """Index the texts of passages; they are read one by one.

        No term goes over a blank, so that each token between blanks is analysed once.
        """
        assembler = Assembler(partial(terms, stem=stem))
        for batch in _batches(texts):
            assembler.add(number_tokens(batch))
        return cls._assembled(assembler)

    @classmethod
    def of_terms(cls, passages: Sequence[Sequence[str]]) -> Postings:
        """Index passages, each given by its terms."""
        assembler = Assembler(lambda term: (term,))
        assembler.add(number_terms(passages))
        return cls._assembled(assembler)

    @classmethod
    def _assembled(cls, assembler: Assembler) -> Postings:
        import numpy as np

        names = [encoded(term) for term in assembler.terms]
        order = sorted(range(len(names)), key=names.__getitem__)
        places = np.empty(len(names), np.int64)
        places[order] = np.arange(len(names))
        blocks = [block._replace(columns=places[block.columns]) for block in assembler.blocks]
        return cls(
            Vocabulary.of([names[i] for i in order]),
            *assemble(blocks, len(names)),
            np.array(assembler.lengths, np.int32),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_arrays` takes, to be stored: one-dimensional arrays by name."""
        return {
            "letters": self.vocabulary.letters,
            "edges": self.vocabulary.edges,
            "heads": self.vocabulary.heads,
            "starts": self.starts,
            "passages": self.passages,
            "counts": self.counts,
            "lengths": self.lengths,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Postings:
        """The index of stored arrays."""
        vocabulary = Vocabulary(arrays["letters"], arrays["edges"], arrays["heads"])
        postings = (arrays[name] for name in ("starts", "passages", "counts", "lengths"))
        return cls(vocabulary, *postings)

    @property
    def n_passages(self) -> int:
        """The number of passages."""
        return len(self.lengths)

    @cached_property
    def mean_length(self) -> float:
        """Mean of the lengths; 0 if there are no passages."""
        return int(self.lengths.sum(dtype="int64")) / len(self.lengths) if self.n_passages else 0.0

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """The number of passages with each term."""
        return self.starts[1:] - self.starts[:-1]

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The numbers of the passages that have a term, ascending, and how often each has it."""
        column = self.vocabulary.find(term)
        if column is None:
            return self.passages[:0], self.counts[:0]
        within = slice(int(self.starts[column]), int(self.starts[column + 1]))
        return self.passages[within], self.counts[within]


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts that are read at once: they bound the memory beside the index."""
    batch: list[str] = []
    n_characters = 0
    for text in texts:
        batch.append(text)
        n_characters += len(text)
        if n_characters >= BATCH:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


def merge(parts: Sequence[Postings], numbers: Sequence[NDArray[np.int64]]) -> Postings:
    """One index of the passages of several, equal to an index built anew of their texts.

    Args:
        parts: The indexes.
        numbers: For each part the new numbers of its passages; -1 removes a passage.
    """
    import numpy as np

    names = sorted(set().union(*(part.vocabulary for part in parts)))
    places = {name: place for place, name in enumerate(names)}
    lengths = np.zeros(sum(int((new >= 0).sum()) for new in numbers), np.int32)
    blocks: list[Block] = []
    for part, new in zip(parts, numbers, strict=True):
        kept = new >= 0
        is_kept = kept[part.passages]
        n_before = np.concatenate([[0], np.cumsum(is_kept)])
        columns = np.fromiter((places[name] for name in part.vocabulary), np.int64)
        passages = new[part.passages[is_kept]].astype(np.int32)
        counts = part.counts[is_kept]
        sizes = np.diff(n_before[part.starts])
        blocks.append(Block(columns, sizes, passages, counts.astype(smallest(counts))))
        lengths[new[kept]] = part.lengths[kept]
    starts, passages, counts = assemble(blocks, len(names))
    # Passages of different parts may alternate: they ascend within each term only once sorted.
    bits = len(lengths).bit_length()
    keys = np.repeat(np.arange(len(names)), np.diff(starts)) << bits | passages
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        passages, counts = passages[order], counts[order]
    has = starts[1:] > starts[:-1]
    return Postings(
        Vocabulary.of([name for name, is_used in zip(names, has.tolist(), strict=True) if is_used]),
        np.concatenate([starts[:1], starts[1:][has]]),
        passages,
        counts,
        lengths,
    )
