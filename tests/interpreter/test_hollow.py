"""Replies that say nothing are told from those that quote."""

from __future__ import annotations

import asyncio

import pytest

from pearl.documents.document import Document
from pearl.errors import ExecutionError
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl

TEXT = (
    "Nils left the harbour at dawn. He sold the boat to Mara because the hull was rotten, and "
    "nobody asked him why he had waited so long."
)
PLAN = """\
Question: Why did Nils sell the boat?

New actions:
- None

1. why = FIND_REASON(CTX, "Nils selling the boat") : Find the reason why he sold it to somebody else
2. ans = FIND_REASON(CTX, why) : Find what led to that
"""

REASON = "He sold the boat to Mara because the hull was rotten"


def replaying(outputs: dict[str, str]) -> Scripted:
    """A model with a reply for the output of each step."""
    return Scripted(lambda request: outputs[request.task.output])  # type: ignore[union-attr]


def status(first: str, second: str = "Its hull was rotten.") -> tuple[str, str]:
    """How an answer ends, and why it is degraded."""
    model = replaying({"why": first, "ans": second})
    document = Document(TEXT, "story")
    answer = asyncio.run(Pearl(model).execute(PLAN, document))
    return answer.status, answer.why


@pytest.mark.parametrize("unit", ["the ", "rotten hull, ", "He sold it.\n", "no, no, yes "])
def test_the_same_words_over_and_over_are_degraded(unit: str) -> None:
    assert status(unit * 9) == (
        "degraded", "step 'why' (FIND_REASON): the reply is the same words over and over"
    )  # fmt: skip


def test_strict_fails_the_step() -> None:
    model = replaying({"why": "rotten hull, " * 9, "ans": "Its hull was rotten."})
    with pytest.raises(ExecutionError, match="the same words over and over"):
        asyncio.run(Pearl(model, strict=True).execute(PLAN, Document(TEXT, "story")))


def test_an_echo_of_the_instructions_is_degraded() -> None:
    def echo(request: Request) -> str:
        words = request.prompt.replace(TEXT, "\0").rpartition("\0")[2].split()
        return " ".join(words[-12:])

    answer = asyncio.run(Pearl(Scripted(echo)).execute(PLAN, Document(TEXT, "story")))
    assert answer.status == "degraded"
    assert "repeats its instructions" in answer.why


@pytest.mark.parametrize(
    "reply", [REASON, TEXT, "Nils selling the boat", "no no no no", "He was glad that it was gone at last."]
)  # fmt: skip
def test_quotes_and_short_replies_are_not(reply: str) -> None:
    assert status(reply)[1] == ""


def test_a_copy_of_the_beginning_of_the_document_is_degraded() -> None:
    text = " ".join(
        f"On day {day} the ship {verb}." for day in range(40) for verb in ("sailed", "lay")
    )
    answer = asyncio.run(Pearl(Scripted(lambda request: text[:500])).execute(PLAN, Document(text)))
    assert answer.status == "degraded"
    assert "beginning of the document" in answer.why
