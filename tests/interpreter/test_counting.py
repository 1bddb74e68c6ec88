"""Sixty counting questions, from plan to row, with a model that quotes, hedges and says "none"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from pearl.actions.library import read_library
from pearl.documents.document import Document
from pearl.interpreter.answer import Answer
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl

LIBRARY = read_library(
    """\
LIST_ALL(CTX, X) : List every X of CTX, one a line
CONCAT(S1, S2, ...) : Join
COUNT(ITEMS) : Count
SUM(NUMBERS) : Add
UNION(A, B, ...) : Put together
""",
    "farm",
)
FARM = Document(
    "The farm had a dog and a cat. The cat slept. Ada took 30 mg in the morning and 40 mg at night. "
    "Ben kept a cat and a cow. No horse was ever seen there."
)

Entries = Sequence[str]


@dataclass(frozen=True)
class Manner:
    """How a model says what it found.

    Attributes:
        first: Its reply.
        second: Its reply when it is asked once more; None where it need not be.
        is_lost: Whether it says it so that nobody can tell for sure.
    """

    name: str
    first: Callable[[Entries], str]
    second: Callable[[Entries], str] | None = None
    is_lost: bool = False


def bullets(entries: Entries) -> str:
    return "\n".join(f"- {entry}" for entry in entries) or "Nothing found."


def quoting(entries: Entries) -> str:
    return bullets(entries) + "\n\n" + "\n".join("> The farm had a dog and a cat." for _ in entries)


def told(entries: Entries) -> str:
    if not entries:
        return "There is no mention of that"
    return f"The text mentions {' and '.join(entries)}."


MANNERS = (
    Manner("bullets", bullets),
    Manner("quotes below", quoting),
    Manner("one quote more", lambda e: f"{bullets(e)}\n> The cat slept.\n> No horse was ever seen there."),
    Manner("numbers", lambda e: "\n".join(f"{i}. {x}" for i, x in enumerate(e, 1)) or "None."),
    Manner("plain lines over quotes", lambda e: "\n".join([*e, "> The cat slept."]) if e else "None"),
    Manner("a line before", lambda e: f"Here they are:\n\n{bullets(e)}" if e else "Nothing found: no such thing."),
    Manner("a fence", lambda e: f"```\n{bullets(e)}\n```"),
    Manner("a sentence, then bullets", told, bullets),
    Manner("a remark below, then quotes", lambda e: f"{bullets(e)}\nThat is all I could find.", quoting),
    Manner("a bullet that denies, then none", lambda e: bullets(e or ["No such thing is mentioned"]),
           bullets),
    Manner("sentences, whatever one says", told, told, is_lost=True),
    Manner("only quotes", lambda e: "> The farm had a dog and a cat.", lambda e: "> The cat slept.",
           is_lost=True),
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What is computed from what was found.

    Attributes:
        steps: From `found` on.
        found: What the model finds for each step.
        answer: What is right.
    """

    steps: str
    found: dict[str, Entries]
    answer: str


FIND = '1. a = LIST_ALL(CTX, "what is asked for") : Find them\n'
BOTH = FIND + '2. b = LIST_ALL(CTX, "what Ben keeps") : Find them\n'

QUESTIONS = (
    Question(FIND + "2. n = COUNT(a) : Count", {"a": ["a dog", "a cat"]}, "2"),
    Question(FIND + "2. n = COUNT(a) : Count", {"a": []}, "0"),
    Question(FIND + "2. n = SUM(a) : Add", {"a": ["30 mg", "40 mg"]}, "70"),
    Question(BOTH + "3. u = UNION(a, b) : Both\n4. n = COUNT(u) : Count",
             {"a": ["a dog", "a cat"], "b": ["a cat", "a cow"]}, "3"),
    Question(BOTH + "3. c = CONCAT(a, b) : Both\n4. n = COUNT(c) : Count",
             {"a": ["a dog"], "b": []}, "1"),
)  # fmt: skip

CASES = [(manner, question) for manner in MANNERS for question in QUESTIONS]


def asked(manner: Manner, question: Question) -> tuple[Answer, Scripted]:
    def reply(request: Request) -> str:
        output = request.task.output  # type: ignore[union-attr]
        is_second = request.messages[-2].role == "assistant"
        say = manner.second if is_second and manner.second else manner.first
        return say(question.found[output])

    model = Scripted(reply)
    pearl = Pearl(model, library=LIBRARY)
    return asyncio.run(pearl.execute(question.steps, FARM)), model


@pytest.mark.parametrize(
    ("manner", "question"), CASES, ids=lambda v: getattr(v, "name", None) or v.answer
)
def test_counting(manner: Manner, question: Question) -> None:
    answer, model = asked(manner, question)
    row = answer.to_json()
    if manner.is_lost:
        assert row["status"] == "undecided"
        assert row["answer"].startswith("undecided")
        assert not any(isinstance(step["value"], int) for step in row["steps"])
        assert row["steps"][0]["state"] == row["steps"][-1]["state"] == "undecided"
        assert "cannot be read as a list" in row["steps"][0]["why"]
        return
    assert (row["status"], row["answer"]) == ("answered", question.answer)
    n_lists = len(question.found)
    assert len(model.requests) <= 2 * n_lists
    assert manner.second or len(model.requests) == n_lists
