"""Passages of several documents → the same, prose followed by the table beside it that matches a query best.

The figures that a page's prose is about often stand in its table only, which matches the words of a question less.
"""

from __future__ import annotations

from collections.abc import Sequence

from pearl.actions.searching import FetchedPassage, SearchedDocument
from pearl.documents.document import Document, heading
from pearl.documents.passages import terms
from pearl.documents.rows import Row
from pearl.documents.table.finding import table_rows
from pearl.errors import Span
from pearl.retrieval.weighting import TermRanker

MAX_DOCUMENTS = 16
"""Documents, the best first, of which a table is looked for."""

_AROUND = 8_000
"""Characters before and after prose in which its table is looked for."""

_MAX_TABLE = 1_500
"""Characters of a table that are shown along: of a longer one, rows around the best."""


def with_tables(
    hits: Sequence[FetchedPassage], query: str, searched: SearchedDocument
) -> list[FetchedPassage]:
    """The passages, the first one of each document followed by a table, if it has none and one matches."""
    seen: set[str] = set()
    found: list[FetchedPassage] = []
    beside: list[Span] = []
    for hit in hits:
        if any(span.start <= hit.span.start and hit.span.end <= span.end for span in beside):
            continue
        found.append(hit)
        if hit.document in seen or len(seen) == MAX_DOCUMENTS:
            continue
        seen.add(hit.document)
        table = None if _rows(hit.text) else _table(hit, query, searched)
        if table is not None:
            found.append(table)
            beside.append(table.span)
    return found


def shown_with_tables(
    hits: Sequence[FetchedPassage], query: str, searched: SearchedDocument
) -> str:
    """The passages as one text, each document's under its name."""
    pieces, name = [], None
    for hit in with_tables(hits, query, searched):
        if hit.document != name:
            name = hit.document
            pieces.append(heading(name).strip())
        pieces.append(hit.text)
    return "\n\n".join(pieces)


def _table(hit: FetchedPassage, query: str, searched: SearchedDocument) -> FetchedPassage | None:
    """The rows near a passage that match a query best, with the lines above them; None if none matches."""
    whole = searched.document.text
    part = searched.part_at(hit.span.start)
    start = max(part.start, hit.span.start - _AROUND)
    if start > part.start:
        start = max(start, whole.find("\n\n", start, hit.span.start))
    tables = _rows(whole[start : min(part.end, hit.span.end + _AROUND)])
    rows = [(n, row) for n, table in enumerate(tables) for row in table]
    ranker = TermRanker([terms(f"{' '.join(row.fields)} {row.text}") for _, row in rows])
    best = ranker.best(terms(query, drop_stop_words=True), 1)
    if not best:
        return None
    n, row = rows[best[0]]
    table = tables[n]
    first = last = table.index(row)
    while last + 1 < len(table) and _length(table, first, last + 1) <= _MAX_TABLE:
        last += 1
    while first and _length(table, first - 1, last) <= _MAX_TABLE:
        first -= 1
    begin, end = start + table[first].spans[0].start, start + table[last].spans[-1].end
    top = start + table[0].spans[0].start
    head = whole[max(start, whole.rfind("\n\n", start, top) + 1) : top].lstrip("\n")
    if first == 0:
        begin = top - len(head)
    text = head + whole[begin:end] if first else whole[begin:end]
    return hit._replace(text=text, span=Span(begin, end))


def _rows(text: str) -> list[list[Row]]:
    """The rows of the tables of a text that know their place."""
    tables = ([row for row in each.rows if row.spans] for each in table_rows(Document(text)))
    return [table for table in tables if table]


def _length(table: Sequence[Row], first: int, last: int) -> int:
    return table[last].spans[-1].end - table[first].spans[0].start
