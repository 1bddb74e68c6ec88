"""Terms of passages → an inverted index in arrays: for each term the passages that have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pearl.documents.passages import Stem, terms
from pearl.errors import DataError
from pearl.retrieval.assembly import Assembler, Block, assemble, smallest
from pearl.retrieval.tokens import number_terms, number_tokens
from pearl.retrieval.vocabulary import Vocabulary, encoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
