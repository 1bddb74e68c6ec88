"""A corpus that every sample is asked of, in place of its own document, and what searches of it find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from pearl.data.samples import Sample
from pearl.documents.digest import digest
from pearl.documents.document import Document
from pearl.documents.passages import Stem
from pearl.errors import DataError, Span
from pearl.evals.log import FoundGold
from pearl.interpreter.answer import Answer
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index, IndexedDocument
from pearl.trace import Retrieved, StepStarted, Trace

OWN = "documents of the data"
"""The name of the corpus that the documents of all samples are."""

_RERANK = "RERANK"


@dataclass(frozen=True)
class AskedCorpus:
    """A corpus that is asked."""

    document: IndexedDocument
    source: str

    @cached_property
    def load(self) -> Callable[[], Document]:
        """Gives the corpus: the same loader for all samples, so that they are about one document."""
        return partial(_given, self)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of its documents."""
        return frozenset(name for name, _ in self.document.parts)

    def __hash__(self) -> int:
        return id(self)


def _given(corpus: AskedCorpus) -> Document:
    return corpus.document


def corpus_of_samples(
    samples: Iterable[Sample], cutting: Cutting | None = None, stem: Stem = "english"
) -> AskedCorpus:
    """The documents of all samples, each once, as one corpus."""
    documents: dict[object, Document] = {}
    for sample in samples:
        if sample.document is not None and sample.document not in documents:
            documents[sample.document] = sample.load()
    if not documents:
        raise DataError("no sample has a document", help="--together asks the samples' documents")
    cutting = cutting or Cutting()
    source = digest(
        [f"{cutting} {stem}", *(f"{one.name} {one.digest}" for one in documents.values())]
    )
    index = Index.build(
        (CorpusDocument(each.name, each.text, pages=each.pages) for each in documents.values()),
        cutting,
        stem,
    )
    return AskedCorpus(index.document(OWN), source.hex())


def found(answer: Answer, sample: Sample, corpus: AskedCorpus) -> dict[str, FoundGold]:
    """What the steps of an answer searched and reranked, against the passages that are right.

    A passage of the corpus is right if it holds a right one, or is part of it, in the sample's document; in any
    document if the corpus calls none like that.
    """
    if not sample.gold_passages:
        return {}
    every = [(step.action == _RERANK, step.fetched) for step in answer.steps if step.fetched]
    stages = {
        "retrieved": [fetched for is_reranked, fetched in every if not is_reranked],
        "reranked": [fetched for is_reranked, fetched in every if is_reranked],
    }
    return {
        stage: _counted({h.span: h.document for one in fetched for h in one.hits}, sample, corpus)
        for stage, fetched in stages.items()
        if fetched
    }


def found_before_failure(trace: Trace, sample: Sample, corpus: AskedCorpus) -> dict[str, FoundGold]:
    """What the steps of a failed answer searched: the best passages of each search, as its trace has them."""
    if not sample.gold_passages:
        return {}
    reranked = {e.step for e in trace if isinstance(e, StepStarted) and e.action == _RERANK}
    searches = (e for e in trace if isinstance(e, Retrieved) and e.step not in reranked)
    spans = {Span(p.start, p.end): p.document for e in searches for p in e.passages}
    return {"retrieved": _counted(spans, sample, corpus)}


def _counted(spans: Mapping[Span, str], sample: Sample, corpus: AskedCorpus) -> FoundGold:
    text, name = corpus.document.text, sample.document_name
    is_named = name in corpus.names
    gold = set(sample.gold_passages)
    found_gold: set[str] = set()
    n_right = 0
    for span, document in spans.items():
        passage = text[span.start : span.end].strip()
        if not passage or (is_named and document != name):
            continue
        held = {each for each in gold if each in passage or passage in each}
        found_gold |= held
        n_right += bool(held)
    return FoundGold(
        n_gold=len(gold),
        n_gold_found=len(found_gold),
        n_passages=len(spans),
        n_right=n_right,
    )
