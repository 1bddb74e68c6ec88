"""Documents, rows and texts that are searched: what an index says of them, and where it is.

`pearl.retrieval` knows documents one by one; plans know one text, in which those of a corpus are
joined. Here the passages of the one become spans of the other.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pearl.documents.document import Document, part_spans
from pearl.documents.rows import DOCUMENT, Row
from pearl.errors import Span
from pearl.retrieval import Hit
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index, IndexedDocument

if TYPE_CHECKING:
    from pearl.retrieval.search import Searcher


class FetchedPassage(NamedTuple):
    """A passage that was found."""

    text: str
    span: Span
    document: str
    rank: int = 0
    score: float = 0.0
    fields: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a search of the document found."""

    queries: tuple[str, ...]
    method: str
    k: int
    hits: tuple[FetchedPassage, ...]
    notes: tuple[str, ...] = ()
    duration_s: float = 0.0


class SearchedDocument:
    """The passages of what `CTX` stands for: of one document, or of each of a corpus."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._lock = threading.Lock()

    @property
    def is_corpus(self) -> bool:
        """Whether it is several documents, of which a step is shown the passages that match."""
        return isinstance(self.document, IndexedDocument)

    @cached_property
    def _parts(self) -> list[tuple[str, Span]]:
        text = self.document.text
        whole = [(self.document.name, Span(0, len(text)))]
        return part_spans(text, self.document.parts) or whole

    def part_at(self, place: int) -> Span:
        """The stretch of the document that has a place of the whole text."""
        return self._parts[bisect_right(self._parts, place, key=lambda part: part[1].start) - 1][1]

    @cached_property
    def names(self) -> Mapping[str, int]:
        """The names of its documents, with their numbers."""
        return {name: number for number, (name, _) in enumerate(self._parts)}

    def text_of(self, name: str) -> str:
        """The text of a document; "" if there is none of that name."""
        if (number := self.names.get(name)) is None:
            return ""
        span = self._parts[number][1]
        return self.document.text[span.start : span.end]

    def metadata_of(self, name: str) -> Mapping[str, str]:
        """The metadata of a document of a corpus."""
        number = self.names.get(name)
        if number is None or not isinstance(self.document, IndexedDocument):
            return {}
        return self.document.index.documents.metadata(number)

    @property
    def index(self) -> Index:
        """Its passages; built when they are first needed, once for all threads."""
        if isinstance(self.document, IndexedDocument):
            return self.document.index
        with self._lock:
            return self._index

    @cached_property
    def _index(self) -> Index:
        text = self.document.text
        return Index.build(
            CorpusDocument(str(i), text[span.start : span.end])
            for i, (_, span) in enumerate(self._parts)
        )

    def prepare(self) -> None:
        """Build the index, which takes long for a long document."""
        _ = self.index

    def first(self, n: int) -> tuple[FetchedPassage, ...]:
        """Its first passages, which match nothing."""
        n = min(n, len(self.index.passages))
        return tuple(self._placed(Hit(self.index.passages[i], 0, 0.0)) for i in range(n))

    async def search(self, searcher: Searcher, queries: Sequence[str], k: int) -> Fetched:
        """The `k` passages that match best."""
        began = time.monotonic()
        found = await searcher.search(self.index, queries, k)
        hits = tuple(map(self._placed, found.hits))
        method = searcher.settings.method
        spent = time.monotonic() - began
        return Fetched(tuple(queries), method, k, hits, found.notes, spent)

    def _placed(self, hit: Hit) -> FetchedPassage:
        passage = hit.passage
        if isinstance(self.document, IndexedDocument):
            name, span = passage.document, self.document.place(passage)
        else:
            name, part = self._parts[int(passage.document)]
            span = Span(part.start + passage.span.start, part.start + passage.span.end)
        return FetchedPassage(passage.text, span, name, hit.rank, hit.score, passage.fields)


def placed(row: Row, rank: int, score: float) -> FetchedPassage:
    """A row that was ranked, as a passage."""
    span = Span(row.spans[0].start, row.spans[-1].end) if row.spans else Span(0, 0)
    document = row.fields.get(DOCUMENT) or ""
    return FetchedPassage(row.text or row.value or "", span, document, rank, score)


def index_of(texts: Sequence[str]) -> Index:
    """An index of texts, one passage each; the name of its document is its number."""
    return Index.build(
        (CorpusDocument(str(i), text) for i, text in enumerate(texts)), Cutting("document")
    )


async def order(searcher: Searcher, query: str, texts: Sequence[str]) -> list[int]:
    """The numbers of texts, those that match best first; those that do not match in their order."""
    found = await searcher.search(index_of(texts), query, len(texts))
    first = [int(hit.passage.document) for hit in found.hits]
    matched = set(first)
    return [*first, *(i for i in range(len(texts)) if i not in matched)]
