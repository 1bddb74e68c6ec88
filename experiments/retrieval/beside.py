"""The same passages and terms ranked by other libraries: bm25s and tantivy."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from time import perf_counter

from pearl.documents.passages import terms
from pearl.evals.retrieval import Topic
from pearl.evals.retrieval import DEPTH
from pearl.retrieval.queries import analyzer
from pearl.retrieval.index import Index

Found = tuple[dict[str, list[str]], list[float]]
"""Topic → documents, the best first; and the seconds of each topic."""


def bm25s_rankings(index: Index, topics: Sequence[Topic], *, k1: float, b: float) -> Found:
    """BM25 with Lucene's idf; what does not match is left out."""
    import bm25s

    analyse = analyzer(index.stem)
    names = [passage.document for passage in index.passages]
    found = [terms(passage.text, stem=index.stem) for passage in index.passages]
    known = {term for passage in found for term in passage}
    ranker = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    ranker.index(found, show_progress=False)
    rankings, seconds = {}, []
    for topic in topics:
        began = perf_counter()
        query = [term for term in dict.fromkeys(analyse(topic.text)) if term in known]
        rankings[topic.id] = []
        if query:
            numbers, scores = ranker.retrieve(
                [query], k=min(DEPTH, len(names)), show_progress=False
            )
            pairs = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
            rankings[topic.id] = [names[number] for number, score in pairs if score > 0]
        seconds.append(perf_counter() - began)
    return rankings, seconds


def tantivy_rankings(index: Index, topics: Sequence[Topic], *, k1: float, b: float) -> Found:
    """BM25 as tantivy has it; k1 and b are fixed there.

    Raises:
        ValueError: They are others.
    """
    import tantivy

    if (k1, b) != (1.2, 0.75):
        raise ValueError("tantivy has k1 = 1.2 and b = 0.75")
    analyse = analyzer(index.stem)
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("name", stored=True, tokenizer_name="raw")
    schema = builder.build()
    rankings, seconds = {}, []
    with tempfile.TemporaryDirectory() as folder:
        made = tantivy.Index(schema, path=folder)
        writer = made.writer(num_threads=1)
        for passage in index.passages:
            found = " ".join(terms(passage.text, stem=index.stem))
            writer.add_document(tantivy.Document(terms=found, name=passage.document))
        writer.commit()
        writer.wait_merging_threads()
        made.reload()
        searcher = made.searcher()
        for topic in topics:
            began = perf_counter()
            any_of = [
                (tantivy.Occur.Should, tantivy.Query.term_query(schema, "terms", term, "freq"))
                for term in dict.fromkeys(analyse(topic.text))
            ]
            hits = searcher.search(tantivy.Query.boolean_query(any_of), DEPTH).hits
            rankings[topic.id] = [searcher.doc(at)["name"][0] for _, at in hits]
            seconds.append(perf_counter() - began)
    return rankings, seconds
