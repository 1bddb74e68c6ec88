"""Question + document → its sentences, the best first, by each of the methods that are compared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, zip_longest

from experiments.reading.questions import Question, read_document, right_places
from pearl.documents.passages import sentences
from pearl.embedded.questions import parts
from pearl.embedded.reading import by_question
from pearl.embedded.sentences import SentenceHit, SentenceRanker
from pearl.errors import Span
from pearl.retrieval import Embedder, SearchSettings
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

DEPTH = 5
"""Sentences of a ranking that count."""


@dataclass(frozen=True)
class Ranked:
    """The first sentences of a ranking.

    Attributes:
        places: Their places in the document from 0, the best first; at most `DEPTH`.
        signals: By name, how surely the document says what is asked, where the method tells it.
    """

    places: tuple[int, ...]
    signals: dict[str, float]

    def has(self, right: set[int], k: int) -> bool:
        """Whether one of the first `k` is right."""
        return not right.isdisjoint(self.places[:k])


Method = Callable[[str, str], Awaitable[Ranked]]
"""Question and name of its document → ranking."""


def methods(embedder: Embedder | None) -> dict[str, Method]:
    """The methods by name; those that need vectors only where there is an embedder."""
    found = {"bm25": searching(Searcher(SearchSettings("bm25"))), "words": reading()}
    if embedder is not None:
        found["vectors"] = searching(Searcher(SearchSettings("dense"), embedder))
        found["words+vectors"] = reading(embedder)
    return found


def searching(searcher: Searcher) -> Method:
    """As `pearl search` ranks the sentences of a document."""

    async def rank(question: str, name: str) -> Ranked:
        found = await searcher.search(_index(name), question, DEPTH)
        return Ranked(tuple(hit.passage.number for hit in found.hits), {})

    return rank


def reading(embedder: Embedder | None = None) -> Method:
    """As the embedded model ranks them; the parts of a question take turns."""
    ranker = SentenceRanker(embedder)

    async def rank(question: str, name: str) -> Ranked:
        index = ranker.index(read_document(name))
        found = [await ranker.rank(index, by_question(part).query) for part in parts(question)]
        turns = chain.from_iterable(zip_longest(*(hits[:DEPTH] for hits in found)))
        first = dict.fromkeys(hit.number for hit in turns if hit is not None)
        return Ranked(tuple(first)[:DEPTH], _signals([hit for hits in found for hit in hits[:5]]))

    return rank


async def rank_all(asked: Sequence[Question], method: Method) -> dict[str, Ranked]:
    """The ranking of each question, by its id."""
    return {question.id: await method(question.text, question.document) for question in asked}


def right_of(asked: Sequence[Question]) -> dict[str, set[int]]:
    """The places of the right sentences of each question, by its id."""
    return {q.id: right_places(q, read_document(q.document), _cut(q.document)) for q in asked}


def _signals(hits: Sequence[SentenceHit]) -> dict[str, float]:
    signals = {"coverage": max((hit.coverage for hit in hits), default=0.0)}
    if likenesses := [hit.likeness for hit in hits if hit.likeness is not None]:
        signals["likeness"] = max(likenesses)
    return signals


@cache
def _cut(name: str) -> tuple[Span, ...]:
    return sentences(read_document(name))


@cache
def _index(name: str) -> Index:
    return Index.build([CorpusDocument(name, read_document(name))], Cutting("sentence"))
