"""Segments + the order of the corpus → documents, passages and terms with numbers.

Numbers are those of a fresh index of the same corpus, whatever its history: documents that were
removed have none, and all others have theirs in the order of the corpus.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from pearl.errors import Span
from pearl.retrieval import Passage
from pearl.retrieval.index.segment import Segment
from pearl.retrieval.index.vectors import JoinedVectors
from pearl.retrieval.methods import Vectors
from pearl.retrieval.postings import Postings, SegmentedPostings, TermIndex


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A document of an index."""

    name: str
    text: str
    metadata: Mapping[str, str]
    pages: tuple[tuple[str, int], ...] = ()


class Contents:
    """What is in an index."""

    def __init__(self, segments: Sequence[Segment], slots: NDArray[np.int64] | None = None) -> None:
        self.segments = tuple(segments)
        self.document_starts = [0, *accumulate(s.n_documents for s in segments)]
        self.passage_starts = [0, *accumulate(s.n_passages for s in segments)]
        total = self.document_starts[-1]
        if slots is not None and len(slots) == total and bool((slots == np.arange(total)).all()):
            slots = None
        counts = _joined([s.passage_counts for s in segments], np.int64)
        self.document_slots = np.arange(total) if slots is None else slots
        """For each document of the corpus its place among those of all segments."""
        self.passage_slots: NDArray[np.int64] | None = None
        """For each passage its place among those of all segments; None if that is its number."""
        if slots is not None:
            before = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            counts = counts[slots]
            ends = np.cumsum(counts)
            shift = np.repeat(before[slots] - (ends - counts), counts)
            self.passage_slots = shift + np.arange(len(shift))
        self.passage_counts = counts
        """How many passages each document has, shape (documents,)."""
        self.document_of: NDArray[np.int32] = np.repeat(
            np.arange(len(counts), dtype=np.int32), counts
        )
        """The number of the document of each passage, shape (passages,)."""

    @property
    def n_passages(self) -> int:
        """How many passages the corpus has."""
        return len(self.document_of)

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of all metadata and fields of passages."""
        return tuple(dict.fromkeys(name for s in self.segments for name in s.field_names))

    def document_place(self, number: int) -> tuple[Segment, int]:
        """The segment of a document, and its number there."""
        return self._place(int(self.document_slots[number]), self.document_starts)

    def passage_place(self, number: int) -> tuple[Segment, int]:
        """The segment of a passage, and its number there."""
        slot = number if self.passage_slots is None else int(self.passage_slots[number])
        return self._place(slot, self.passage_starts)

    def _place(self, slot: int, starts: list[int]) -> tuple[Segment, int]:
        at = bisect_right(starts, slot) - 1
        return self.segments[at], slot - starts[at]

    def terms(self) -> TermIndex:
        """The terms of all passages."""
        parts = [segment.terms for segment in self.segments]
        if len(parts) == 1 and self.passage_slots is None:
            return parts[0]
        if self.passage_slots is None:
            return SegmentedPostings(parts, [None] * len(parts))
        return _LiveTerms(parts, self.passage_slots)

    def gathered(self, arrays: Sequence[NDArray[np.float32]]) -> Vectors:
        """Rows for the passages of each segment → rows in the order of the corpus."""
        if len(arrays) == 1 and self.passage_slots is None:
            return arrays[0]
        return JoinedVectors(arrays, self.passage_slots)


def _joined(arrays: Sequence[NDArray[np.int64]], dtype: type[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype)


class _LiveTerms:
    """Several segments as one index with the numbers of the corpus, as a `TermIndex`."""

    def __init__(self, parts: Sequence[Postings], slots: NDArray[np.int64]) -> None:
        starts = [0, *accumulate(part.n_passages for part in parts)]
        numbers = np.full(starts[-1], -1, np.int32)
        numbers[slots] = np.arange(len(slots), dtype=np.int32)
        numbered = np.split(numbers, starts[1:-1])
        self._below = SegmentedPostings(parts, [own < 0 for own in numbered])
        self.segments = tuple(
            segment._replace(numbers=own)
            for segment, own in zip(self._below.segments, numbered, strict=True)
        )
        self.n_live = self.n_passages = len(slots)
        self.lengths: NDArray[np.int32] = self._below.lengths[slots]
        self._is_sorted = bool((np.diff(slots) > 0).all())

    @property
    def mean_length(self) -> float:
        return self._below.mean_length

    @property
    def frequencies(self) -> Sequence[NDArray[np.int64]]:
        return self._below.frequencies

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        found = [(segment, *segment.postings(term)) for segment in self.segments]
        numbers = np.concatenate([s.numbered(passages) for s, passages, _ in found])
        counts = np.concatenate([counts for _, _, counts in found])
        if self._is_sorted:
            return numbers, counts
        order = np.argsort(numbers)
        return numbers[order], counts[order]


class Passages(Sequence[Passage]):
    """The passages of a corpus, each made when it is asked for."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._metadata = lru_cache(maxsize=1_024)(self._metadata_of)

    def __len__(self) -> int:
        return self._contents.n_passages

    @overload
    def __getitem__(self, index: int) -> Passage: ...
    @overload
    def __getitem__(self, index: slice) -> list[Passage]: ...
    def __getitem__(self, index: int | slice) -> Passage | list[Passage]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no passage {index}: there are {len(self):,}")
        number = index % len(self)
        segment, place = self._contents.passage_place(number)
        name, metadata = self._metadata(int(self._contents.document_of[number]))
        start, end = segment.spans[place].tolist()
        fields = segment.passage_fields(place)
        text = segment.text(place)
        return Passage(number, name, Span(start, end), text, {**metadata, **fields})

    def __iter__(self) -> Iterator[Passage]:
        return (self[number] for number in range(len(self)))

    def _metadata_of(self, document: int) -> tuple[str, dict[str, str]]:
        segment, place = self._contents.document_place(document)
        return segment.names[place], segment.document_metadata(place)


class Documents(Sequence[IndexedText]):
    """The documents of a corpus, in its order, each made when it is asked for."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def __len__(self) -> int:
        return len(self._contents.document_slots)

    @overload
    def __getitem__(self, index: int) -> IndexedText: ...
    @overload
    def __getitem__(self, index: slice) -> list[IndexedText]: ...
    def __getitem__(self, index: int | slice) -> IndexedText | list[IndexedText]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no document {index}: there are {len(self):,}")
        segment, place = self._contents.document_place(index % len(self))
        metadata, pages = segment.document_metadata(place), segment.pages(place)
        return IndexedText(segment.names[place], segment.texts[place], metadata, pages)

    def name(self, number: int) -> str:
        """The name of a document, without its text."""
        segment, place = self._contents.document_place(number)
        return segment.names[place]

    def metadata(self, number: int) -> dict[str, str]:
        """The metadata of a document, without its text."""
        segment, place = self._contents.document_place(number)
        return segment.document_metadata(place)

    def passages(self, number: int) -> range:
        """The numbers of the passages of a document."""
        of = self._contents.document_of
        start, end = np.searchsorted(of, [number, number + 1]).tolist()
        return range(start, end)
