"""An index in memory: passages and documents with numbers, spans, metadata, masks and vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.document import Document, join
from pearl.documents.rows import document_rows
from pearl.errors import DataError, Span, UsageError
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index

TEXTS = st.text(st.sampled_from("aé東 .\n\tx😀"), min_size=1).filter(lambda text: text.strip())

TWO = [
    CorpusDocument("a.txt", "Iron é ü.\n\nSalt, and more salt.", {"year": "2001"}),
    CorpusDocument("b.txt", "Salt.\n\nLake.", {"year": "2002", "kind": "note"}),
]


@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(["", "line", "window", "sentence"]))
def test_passages_read_what_stands_in_their_documents(texts: list[str], unit: str) -> None:
    documents = [CorpusDocument(f"{n}", text) for n, text in enumerate(texts)]
    index = Index.build(documents, Cutting(unit), "none")
    assert [document.text for document in index.documents] == texts
    joined = index.document()
    assert joined.text == join([Document(d.text, d.name) for d in documents]).text
    for number, passage in enumerate(index.passages):
        assert passage.number == number
        text = texts[int(passage.document)]
        assert passage.text == text[passage.span.start : passage.span.end]
        place = joined.place(passage)
        assert joined.text[place.start : place.end] == passage.text
        assert joined.locate(place.start) == (passage.document, passage.span.start)


def test_rows_are_whole_and_files_are_cut_into_paragraphs() -> None:
    row = CorpusDocument("1", "One.\n\nTwo.", is_row=True)
    assert [p.text for p in Index.build([row]).passages] == ["One.\n\nTwo."]
    assert [p.text for p in Index.build([replace(row, is_row=False)]).passages] == ["One.", "Two."]


def test_fields_of_units_are_fields_of_passages() -> None:
    table = CorpusDocument("t", "|year|sales|\n|-|-|\n|2001|5|\n|2002|7|", {"by": "Ann"})
    index = Index.build([table], Cutting("record"))
    assert [p.fields for p in index.passages] == [
        {"by": "Ann", "unit": "record", "year": "2001", "sales": "5"},
        {"by": "Ann", "unit": "record", "year": "2002", "sales": "7"},
    ]
    assert index.field_names == ("unit", "year", "sales", "by")
    values, places = index.columns(("sales", "document"))
    assert [values[place] for place in places] == [("5", "t"), ("7", "t")]


def test_pages_are_those_of_the_document() -> None:
    two = CorpusDocument("p", "One.\nTwo.", pages=(("i", 0), ("ii", 5)))
    passages = Index.build([two], Cutting("page")).passages
    assert [(p.text, p.fields) for p in passages] == [
        ("One.", {"Page": "i"}),
        ("Two.", {"Page": "ii"}),
    ]
    assert Index.build([two]).document().pages == (("i", 5), ("ii", 10))


def test_an_empty_corpus_has_nothing() -> None:
    index = Index.build([])
    assert len(index.passages) == len(index.documents) == 0
    assert index.terms.postings("salt")[0].tolist() == []
    with pytest.raises(DataError, match="no document"):
        index.document()


@pytest.mark.parametrize(
    ("unit", "size", "overlap"), [("window", 5, 5), ("line", 5, 1), ("lnie", 1_100, 300)]
)
def test_invalid_cuttings_are_refused(unit: str, size: int, overlap: int) -> None:
    with pytest.raises(UsageError):
        Cutting(unit, size, overlap)


def test_windows_of_a_size() -> None:
    index = Index.build([CorpusDocument("a", "one two three")], Cutting("window", 7, 3))
    assert [p.span for p in index.passages] == [Span(0, 7), Span(8, 13)]


def test_the_documents_of_a_corpus_are_rows_with_their_metadata() -> None:
    """So that they can be counted exactly by it, which the best passages cannot."""
    documents = [
        CorpusDocument("a", "salt", {"year": "2008", "Document": "x"}),
        CorpusDocument("b", "iron", {"year": "2009"}),
    ]
    rows = document_rows(Index.build(documents).document())
    assert [dict(row.fields) for row in rows] == [
        {"Document": "a", "year": "2008", "Document (2)": "x"},
        {"Document": "b", "year": "2009"},
    ]
