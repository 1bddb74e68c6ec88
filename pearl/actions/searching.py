"""Search documents, rows and texts; passages of `pearl.retrieval` become spans of the one text of a plan."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

from msgspec.structs import replace

from pearl.actions.groups import first_of
from pearl.actions.values import Fetched, FetchedPassage, FoundRows, among_best
from pearl.documents.document import Document, heading, part_spans
from pearl.documents.passages import terms
from pearl.documents.rows import DOCUMENT, TEXT_COLUMN, Row, Rows, document_fields, unused_name
from pearl.documents.table import table_rows
from pearl.errors import Span
from pearl.retrieval import Hit
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index, IndexedDocument
from pearl.retrieval.methods.bm25 import TermRanker
from pearl.retrieval.search import Searcher


class SearchedDocument:
    """`CTX` or a source, cut into passages. Spans are offsets in `text`, which joins all sources; this document begins at `start`."""

    def __init__(self, document: Document, text: str | None = None, start: int = 0) -> None:
        self.document = document
        self.text = document.text if text is None else text
        self.start = start
        self._lock = threading.Lock()

    @property
    def span(self) -> Span:
        """Its place in the text of all sources."""
        return Span(self.start, self.start + len(self.document.text))

    @property
    def is_corpus(self) -> bool:
        """Whether it is a corpus, of which a step reads only the matching passages."""
        return isinstance(self.document, IndexedDocument)

    @cached_property
    def _parts(self) -> list[tuple[str, Span]]:
        text = self.document.text
        whole = [(self.document.name, Span(0, len(text)))]
        spans = part_spans(text, self.document.parts) or whole
        return [(name, span.moved(self.start)) for name, span in spans]

    def part_at(self, place: int) -> Span:
        """The span of the joined document at an offset."""
        return self._parts[bisect_right(self._parts, place, key=lambda part: part[1].start) - 1][1]

    @cached_property
    def names(self) -> Mapping[str, int]:
        """The names of its documents, with their numbers."""
        return {name: number for number, (name, _) in enumerate(self._parts)}

    def head_of(self, name: str, n: int) -> list[str]:
        """The metadata of a document of a corpus, and the first `n` characters of its text."""
        number = self.names[name]
        span = self._parts[number][1]
        text = self.text[span.start : min(span.end, span.start + n)]
        if not isinstance(self.document, IndexedDocument):
            return [text]
        return [*self.document.index.contents.document_metadata(number).values(), text]

    @property
    def index(self) -> Index:
        """The index of the passages; built at first use, once for all threads."""
        if isinstance(self.document, IndexedDocument):
            return self.document.index
        with self._lock:
            return self._index

    @cached_property
    def _index(self) -> Index:
        text = self.text
        return Index.build(
            CorpusDocument(str(i), text[span.start : span.end])
            for i, (_, span) in enumerate(self._parts)
        )

    def prepare(self) -> None:
        """Build the index, which takes long for a long document."""
        _ = self.index

    def every(self) -> Iterator[FetchedPassage]:
        """Its passages in order."""
        return (self._placed(Hit(passage, 0, 0.0)) for passage in self.index.passages)

    def first(self, n: int) -> tuple[FetchedPassage, ...]:
        """Its first passages, for a query without matches."""
        return tuple(islice(self.every(), n))

    async def search(self, searcher: Searcher, queries: Sequence[str], k: int) -> Fetched:
        """The `k` passages that match best."""
        began = time.monotonic()
        result = await searcher.search(self.index, queries, k)
        hits, spent = tuple(map(self._placed, result.hits)), time.monotonic() - began
        return Fetched(tuple(queries), searcher.settings.method, k, hits, result.notes, spent)

    def _placed(self, hit: Hit) -> FetchedPassage:
        passage = hit.passage
        if isinstance(self.document, IndexedDocument):
            name = self._parts[self.document.number(passage)][0]
            span = self.document.place(passage).moved(self.start)
        else:
            name, part = self._parts[int(passage.document)]
            span = passage.span.moved(part.start)
        return FetchedPassage(passage.text, span, name, hit.rank, hit.score, passage.fields)


def placed(row: Row, rank: int, score: float) -> FetchedPassage:
    """A ranked row as a passage."""
    span = Span(row.spans[0].start, row.spans[-1].end) if row.spans else Span(0, 0)
    document = row.fields.get(DOCUMENT) or ""
    return FetchedPassage(row.text or row.value or "", span, document, rank, score)


def index_of(texts: Sequence[str]) -> Index:
    """An index of texts, one passage each; the name of its document is its number."""
    return Index.build(
        (CorpusDocument(str(i), text) for i, text in enumerate(texts)), Cutting("document")
    )


async def order(searcher: Searcher, query: str | Sequence[str], texts: Sequence[str]) -> list[int]:
    """Return the indices of texts: the best matches first, then texts without a match in their own order."""
    found = await searcher.rank(index_of(texts), query, len(texts), [])
    return list(dict.fromkeys([*found.passages.tolist(), *range(len(texts))]))


async def best_passages(
    searcher: Searcher, document: SearchedDocument, queries: Sequence[str], k: int
) -> FoundRows:
    """The best passages of a document, or of the documents of a corpus."""
    # One more, to know whether matching passages are left out.
    fetched = await document.search(searcher, queries, k + 1)
    hits = fetched.hits[:k]
    rows = (
        Row(hit.text, document_fields(hit.document, hit.fields), (hit.span,), hit.text)
        for hit in hits
    )
    ranked = tuple(_ranked(row, hit) for row, hit in zip(rows, hits, strict=True))
    rows_found = Rows(ranked, TEXT_COLUMN, notes=fetched.notes)
    if len(fetched.hits) > k:
        rows_found = rows_found.noting(among_best(k, queries))
    return FoundRows(rows_found, replace(fetched, k=k, hits=hits))


async def best_rows(searcher: Searcher, rows: Rows, queries: Sequence[str], k: int) -> FoundRows:
    """Find the best rows, by their text if their value is a model's reply, else by their value."""
    began = time.monotonic()
    every = rows.every
    texts = [(row.text if rows.is_answered else "") or row.value for row in every]
    result = await searcher.search(index_of([text or "" for text in texts]), queries, len(every))
    places = [int(hit.passage.document) for hit in result.hits]
    hits = [
        placed(every[i], hit.rank, hit.score) for i, hit in zip(places, result.hits, strict=True)
    ]
    ranked = [(_ranked(every[i], hit), i < len(rows)) for i, hit in zip(places, hits, strict=True)]
    unread = tuple(every[i] for i, text in enumerate(texts) if text is None)
    first, doubtful = first_of(ranked, len(unread), k)
    kept = replace(rows, rows=first, doubtful=(*doubtful, *unread)).reordered()
    kept = kept.noting(*result.notes, *([among_best(k, queries)] if len(ranked) > k else []))
    spent = time.monotonic() - began
    return FoundRows(
        kept,
        Fetched(tuple(queries), searcher.settings.method, k, tuple(hits[:k]), result.notes, spent),
    )


def _ranked(row: Row, hit: FetchedPassage) -> Row:
    """A row with its rank and score as fields; existing fields of these names are kept."""
    fields = {"rank": str(hit.rank), "score": f"{hit.score:.4g}"}
    return row.with_fields({unused_name(name, row.fields): text for name, text in fields.items()})


MAX_DOCUMENTS = 16  # maximum documents, best first, that are searched for a table
_AROUND = 8_000  # characters before and after prose that are searched for its table

_MAX_TABLE = 1_500
"""Maximum characters of a table beside prose; a longer table is cut to rows around the best."""


def with_tables(
    hits: Sequence[FetchedPassage], query: str, searched: SearchedDocument
) -> list[FetchedPassage]:
    """Add the matching table of a document after its first passage, if that passage has no table."""
    seen: set[str] = set()
    passages: list[FetchedPassage] = []
    beside: list[Span] = []
    for hit in hits:
        if any(span.start <= hit.span.start and hit.span.end <= span.end for span in beside):
            continue
        passages.append(hit)
        if hit.document in seen or len(seen) == MAX_DOCUMENTS:
            continue
        seen.add(hit.document)
        table = None if _rows(hit.text) else _table(hit, query, searched)
        if table is not None:
            passages.append(table)
            beside.append(table.span)
    return passages


def shown_by_document(hits: Sequence[FetchedPassage]) -> str:
    """The passages as one text, grouped by document under its name."""
    pieces, name = [], None
    for hit in hits:
        if hit.document != name:
            name = hit.document
            pieces.append(heading(name).strip())
        pieces.append(hit.text)
    return "\n\n".join(pieces)


def _table(hit: FetchedPassage, query: str, searched: SearchedDocument) -> FetchedPassage | None:
    """The rows of a table near a passage that match a query best, with the table's heading; None without a match."""
    whole = searched.text
    part = searched.part_at(hit.span.start)
    start = max(part.start, hit.span.start - _AROUND)
    if start > part.start:
        start = max(start, whole.find("\n\n", start, hit.span.start))
    tables = _rows(whole[start : min(part.end, hit.span.end + _AROUND)])
    rows = [(table, i) for table in tables for i in range(len(table))]
    texts = (f"{' '.join(table[i].fields)} {table[i].text}" for table, i in rows)
    ranker = TermRanker(list(map(terms, texts)))
    best = ranker.best(terms(query, drop_stop_words=True), 1)
    if not best:
        return None
    table, first = rows[best[0]]
    last = first

    def has_room(first: int, last: int) -> bool:
        return table[last].spans[-1].end - table[first].spans[0].start <= _MAX_TABLE

    while last + 1 < len(table) and has_room(first, last + 1):
        last += 1
    while first and has_room(first - 1, last):
        first -= 1
    begin, end = start + table[first].spans[0].start, start + table[last].spans[-1].end
    top = start + table[0].spans[0].start
    head = whole[max(start, whole.rfind("\n\n", start, top) + 1) : top].lstrip("\n")
    if first == 0:
        begin = top - len(head)
    text = head + whole[begin:end] if first else whole[begin:end]
    return hit._replace(text=text, span=Span(begin, end))


def _rows(text: str) -> list[list[Row]]:
    """The rows with spans of each table of a text."""
    tables = ([row for row in each.rows if row.spans] for each in table_rows(Document(text)))
    return [table for table in tables if table]
