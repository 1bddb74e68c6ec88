"""Rankings of a document's sentences for a question, and what `pearl ask` quotes: which of the right sentences are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from experiments.reading.questions import Question, read_document, right_places
from pearl import Pearl
from pearl.documents.document import Document
from pearl.documents.passages import sentences
from pearl.dsl.signatures import CTX, Action, Parameter, ValueType
from pearl.embedded.reading import by_action
from pearl.embedded.sentences import SentenceHit, SentenceRanker
from pearl.errors import Span
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask
from pearl.retrieval import Embedder, SearchSettings
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

DEPTH = 5
"""Sentences of a ranking that count."""


@dataclass(frozen=True)
class Ranked:
    """The first sentences of a ranking."""

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
    """As the embedded model ranks them."""
    ranker = SentenceRanker(embedder)
    find = Action("FIND", (Parameter(CTX, ValueType.CONTEXT), Parameter("X")))

    async def rank(question: str, name: str) -> Ranked:
        text = read_document(name)
        index = ranker.index(text)
        step = ActionTask("answer", find, (("X", question),), text, question=question)
        query = replace(by_action(step, index), is_claim=not question.endswith("?"))
        hits = (await ranker.rank(index, query))[:DEPTH]
        return Ranked(tuple(hit.number for hit in hits), _signals(hits))

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


Outcome = Literal["right", "wrong", "not stated", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("right", "wrong", "not stated", "undecided")


async def ask_all(asked: Sequence[Question], embeddings: str | None) -> dict[str, Outcome]:
    """The outcome of each question, by its id."""
    right = right_of(asked)
    found = {}
    async with Pearl(embeddings=embeddings) as pearl:
        for question in asked:
            text = read_document(question.document)
            answer = await pearl.ask(question.text, Document(text, question.document))
            found[question.id] = outcome(answer, text, right[question.id])
    return found


def outcome(answer: Answer, text: str, right: set[int]) -> Outcome:
    """What an answer is, where the sentences of `text` at the places `right` answer its question.

    `right` if one of them is quoted, whatever else is; `not stated` if the answer says that nothing was
    found, which is right where `right` is empty. `wrong` is every other answer that is not undecided.
    """
    if answer.status == "nothing_found":
        return "not stated"
    if answer.status == "undecided":
        return "undecided"
    cut = sentences(text)
    is_right = any(
        max(passage.span.start, cut[place].start) < min(passage.span.end, cut[place].end)
        for passage in answer.evidence
        for place in right
    )
    return "right" if is_right else "wrong"


def counts(asked: Sequence[Question], outcomes: dict[str, Outcome]) -> dict[bool, Counter[Outcome]]:
    """How many answers are what, by whether the document answers the question."""
    return {
        is_stated: Counter(outcomes[q.id] for q in asked if bool(q.sentences) == is_stated)
        for is_stated in (True, False)
    }
