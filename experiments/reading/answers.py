"""Question → what `pearl ask` answers with the embedded model: the right sentence, another, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from experiments.reading.questions import Question, read_document
from experiments.reading.rankings import right_of
from pearl import Pearl
from pearl.documents.document import Document
from pearl.documents.passages import sentences
from pearl.interpreter.answer import Answer

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
