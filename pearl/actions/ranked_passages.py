"""Queries → the passages of a document, or the rows, that match them best, as rows with rank and score."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from pearl.actions.by_search import FoundRows
from pearl.actions.estimates import among_best
from pearl.actions.first_rows import first_of
from pearl.actions.searching import Fetched, FetchedPassage, SearchedDocument, index_of, placed
from pearl.documents.rows import TEXT_COLUMN, Row, Rows, document_fields, unused_name
from pearl.retrieval.search import Searcher


async def best_passages(
    searcher: Searcher, document: SearchedDocument, queries: Sequence[str], k: int
) -> FoundRows:
    """The best passages of a document, or of the documents of a corpus."""
    # One more, to know whether any that match are left out.
    fetched = await document.search(searcher, queries, k + 1)
    hits = fetched.hits[:k]
    rows = tuple(
        _ranked(
            Row(hit.text, document_fields(hit.document, hit.fields), (hit.span,), hit.text), hit
        )
        for hit in hits
    )
    found = Rows(rows, TEXT_COLUMN, notes=fetched.notes)
    if len(fetched.hits) > k:
        found = found.noting(among_best(k, queries))
    return FoundRows(found, replace(fetched, k=k, hits=hits))


async def best_rows(searcher: Searcher, rows: Rows, queries: Sequence[str], k: int) -> FoundRows:
    """The best of some rows: by what they read if a model has answered about them, else by their value.

    How rare a word is, is counted in all of them, the undecided ones included.
    """
    began = time.monotonic()
    every = (*rows.rows, *rows.doubtful)
    texts = [(row.text if rows.is_answered else "") or row.value for row in every]
    index = index_of([text or "" for text in texts])
    found = await searcher.search(index, queries, len(every))
    hits, notes = found.hits, found.notes
    places = [int(hit.passage.document) for hit in hits]
    found_in = [placed(every[i], hit.rank, hit.score) for i, hit in zip(places, hits, strict=True)]
    ranked = [
        (_ranked(every[i], hit), i < len(rows)) for i, hit in zip(places, found_in, strict=True)
    ]
    unread = tuple(every[i] for i, text in enumerate(texts) if text is None)
    first, doubtful = first_of(ranked, len(unread), k)
    kept = replace(
        rows, rows=first, doubtful=(*doubtful, *unread),
        notes=tuple(dict.fromkeys((*rows.notes, *notes))), sample=None,
    )  # fmt: skip
    if len(ranked) > k:
        kept = kept.noting(among_best(k, queries))
    method, spent = searcher.settings.method, time.monotonic() - began
    return FoundRows(kept, Fetched(tuple(queries), method, k, tuple(found_in[:k]), notes, spent))


def _ranked(row: Row, hit: FetchedPassage) -> Row:
    """A row with its rank and score; fields of these names that it has are kept."""
    fields = {"rank": str(hit.rank), "score": f"{hit.score:.4g}"}
    return row.with_fields({unused_name(name, row.fields): text for name, text in fields.items()})
