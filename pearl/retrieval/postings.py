"""Terms of passages → an inverted index in arrays: for each term the passages that have it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pearl.documents.passages import Stem, terms
from pearl.errors import DataError

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


BATCH = 1 << 23
"""Characters that are read at once."""


class TermIndex(Protocol):
    """What lexical methods read: one segment or several."""

    @property
    def n_passages(self) -> int:
        """Numbers of passages go from 0 to this."""
        ...

    @property
    def n_live(self) -> int:
        """Passages that are not deleted: N of the formulas."""
        ...

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Terms of each passage."""
        ...

    @property
    def mean_length(self) -> float:
        """Mean of the lengths of live passages; 0 if there are none."""
        ...

    @property
    def segments(self) -> Sequence[TermSegment]:
        """What it is made of, in the order of the passages."""
        ...

    @property
    def frequencies(self) -> Sequence[NDArray[np.int64]]:
        """For each segment, how many live passages of the whole index have each of its terms."""
        ...

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The numbers of the live passages that have a term, ascending, and how often each has it."""
        ...


class TermSegment(NamedTuple):
    """A part of an index."""

    start: int
    whole: Postings
    live: NDArray[np.bool_] | None = None
    numbers: NDArray[np.int32] | None = None

    def numbered(self, passages: NDArray[Any]) -> NDArray[np.int32]:
        """The numbers in the index of passages of this segment."""
        found: NDArray[np.int32] = (
            (passages + self.start).astype("int32")
            if self.numbers is None
            else self.numbers[passages]
        )
        return found

    def selected(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which passages of this segment are selected by a mask of the index; anything for deleted ones."""
        if self.numbers is None:
            return mask[self.start : self.start + self.whole.n_passages]
        return mask[self.numbers]

    def find(self, number: int) -> int | None:
        """The place in this segment of a passage of the index; None if it is in another one."""
        if self.numbers is None:
            place = number - self.start
            return place if 0 <= place < self.whole.n_passages else None
        found = (self.numbers == number).nonzero()[0]
        return int(found[0]) if len(found) else None

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """As `TermIndex.postings`, with numbers from 0 in this segment."""
        passages, counts = self.whole.postings(term)
        if self.live is None:
            return passages, counts
        kept = self.live[passages]
        return passages[kept], counts[kept]


@dataclass(frozen=True, eq=False)
class Postings:
    """An inverted index of passages, all of them live. The arrays may lie in a file."""

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
        """The index of stored arrays, which may be memory-mapped: postings are read as needed."""
        import numpy as np

        for name, kinds in _KINDS.items():
            found = arrays.get(name)
            if found is None or found.ndim != 1 or found.dtype.str[1:] not in kinds:
                raise DataError(f"'{name}' of an index is not as it was stored", help=_AGAIN)
        vocabulary = Vocabulary(arrays["letters"], arrays["edges"], arrays["heads"])
        vocabulary.check()
        starts, passages, counts = arrays["starts"], arrays["passages"], arrays["counts"]
        if not (
            len(starts) == len(vocabulary) + 1
            and starts[0] == 0
            and starts[-1] == len(passages) == len(counts)
            and bool(np.all(starts[1:] >= starts[:-1]))
            and (not len(arrays["lengths"]) or int(arrays["lengths"].min()) >= 0)
        ):
            raise DataError("the postings of an index do not fit together", help=_AGAIN)
        return cls(vocabulary, starts, passages, counts, arrays["lengths"])

    @property
    def n_passages(self) -> int:
        """How many passages there are."""
        return len(self.lengths)

    n_live = n_passages

    @cached_property
    def mean_length(self) -> float:
        """Mean of the lengths; 0 if there are no passages."""
        return int(self.lengths.sum(dtype="int64")) / len(self.lengths) if self.n_passages else 0.0

    @property
    def segments(self) -> tuple[TermSegment]:
        """Itself."""
        return (TermSegment(0, self),)

    @property
    def frequencies(self) -> tuple[NDArray[np.int64]]:
        """How many passages have each term."""
        return (self.starts[1:] - self.starts[:-1],)

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The numbers of the passages that have a term, ascending, and how often each has it."""
        column = self.vocabulary.find(term)
        if column is None:
            return self.passages[:0], self.counts[:0]
        within = slice(int(self.starts[column]), int(self.starts[column + 1]))
        passages = self.passages[within]
        # Read as unsigned, negative numbers are too large as well.
        if len(passages) and int(passages.view("uint32").max()) >= self.n_passages:
            raise DataError("the postings of an index name passages it lacks", help=_AGAIN)
        return passages, self.counts[within]


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


_AGAIN = "build the index again"

_KINDS = {
    "letters": ("u1",),
    "edges": ("i8",),
    "heads": ("u8",),
    "starts": ("i8",),
    "passages": ("i4",),
    "counts": ("u1", "u2", "u4"),
    "lengths": ("i4",),
}
"""Types of the stored arrays."""


@dataclass(frozen=True, eq=False)
class SegmentedPostings:
    """Several indexes as one, without the passages that are deleted.

    Scores are those of an index made anew of the live passages; these keep their numbers: passage
    `i` of a segment is `start + i`, where `start` counts all passages before, the deleted too.
    """

    parts: Sequence[Postings]
    dead: Sequence[NDArray[np.bool_] | None]

    def __post_init__(self) -> None:
        _check_masks(self.parts, self.dead)

    @cached_property
    def segments(self) -> tuple[TermSegment, ...]:
        """The segments with the numbers of their first passages."""
        found, start = [], 0
        for part, dead in zip(self.parts, self.dead, strict=True):
            live = None if dead is None or not dead.any() else ~dead
            found.append(TermSegment(start, part, live))
            start += part.n_passages
        return tuple(found)

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """Terms of each passage."""
        import numpy as np

        return np.concatenate([np.zeros(0, np.int32), *(part.lengths for part in self.parts)])

    @cached_property
    def n_passages(self) -> int:
        """How many passages there are, the deleted too."""
        return sum(part.n_passages for part in self.parts)

    @cached_property
    def n_live(self) -> int:
        """How many are not deleted."""
        dead = sum(int(mask.sum()) for mask in self.dead if mask is not None)
        return self.n_passages - dead

    @cached_property
    def mean_length(self) -> float:
        """Mean of the lengths of live passages; 0 if there are none."""
        total = sum(
            int(s.whole.lengths.sum(dtype="int64", where=True if s.live is None else s.live))
            for s in self.segments
        )
        return total / self.n_live if self.n_live else 0.0

    @cached_property
    def frequencies(self) -> tuple[NDArray[np.int64], ...]:
        """For each segment, how many live passages of all segments have each of its terms."""
        import numpy as np

        own = [_frequencies(segment) for segment in self.segments]
        total: dict[bytes, int] = {}
        for part, counts in zip(self.parts, own, strict=True):
            for term, n in zip(part.vocabulary, counts.tolist(), strict=True):
                total[term] = total.get(term, 0) + n
        return tuple(
            np.fromiter((total[term] for term in part.vocabulary), np.int64, len(part.vocabulary))
            for part in self.parts
        )

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The numbers of the live passages that have a term, ascending, and how often each has it."""
        import numpy as np

        found = [(segment.start, *segment.postings(term)) for segment in self.segments]
        return (
            np.concatenate([np.zeros(0, np.int32), *(start + p for start, p, _ in found)]),
            np.concatenate([np.zeros(0, np.uint8), *(counts for _, _, counts in found)]),
        )


def merge(parts: Sequence[Postings], dead: Sequence[NDArray[np.bool_] | None]) -> Postings:
    """The index of the live passages of several, the same as if it were made anew of their texts."""
    import numpy as np

    _check_masks(parts, dead)
    blocks: list[Block] = []
    lengths = [np.zeros(0, np.int32)]
    names = sorted(set().union(*(part.vocabulary for part in parts)))
    places = {name: place for place, name in enumerate(names)}
    base = 0
    for part, mask in zip(parts, dead, strict=True):
        live = np.ones(part.n_passages, np.bool_) if mask is None else ~mask
        kept = live[part.passages]
        sizes = _frequencies(TermSegment(0, part, live))
        numbers = (np.cumsum(live) - 1 + base).astype(np.int32)
        columns = np.fromiter((places[name] for name in part.vocabulary), np.int64, len(sizes))
        counts = part.counts[kept]
        counts = counts.astype(smallest(counts))
        blocks.append(Block(columns, sizes, numbers[part.passages[kept]], counts))
        lengths.append(part.lengths[live])
        base += int(live.sum())
    starts, passages, counts = assemble(blocks, len(names))
    has = starts[1:] > starts[:-1]
    return Postings(
        Vocabulary.of([name for name, is_used in zip(names, has.tolist(), strict=True) if is_used]),
        np.concatenate([starts[:1], starts[1:][has]]),
        passages,
        counts,
        np.concatenate(lengths),
    )


def _frequencies(segment: TermSegment) -> NDArray[np.int64]:
    """How many live passages of a segment have each of its terms."""
    import numpy as np

    if segment.live is None:
        return segment.whole.frequencies[0]
    kept = np.concatenate([[0], np.cumsum(segment.live[segment.whole.passages])])
    return np.diff(kept[segment.whole.starts])


def _check_masks(parts: Sequence[Postings], dead: Sequence[NDArray[np.bool_] | None]) -> None:
    sizes = [part.n_passages for part in parts]
    masks = [n if mask is None else len(mask) for n, mask in zip(sizes, dead, strict=True)]
    if sizes != masks:
        raise ValueError(f"segments of {sizes} passages have masks of {masks}")
