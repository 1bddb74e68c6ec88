"""Methods that an evaluation compares. Every other module of this folder is one, or holds several in `PLUGINS`.

A method has `DESCRIPTION` (one line), `NEEDS_OPTIONS` (whether it can only choose) and
`predict(pearl, sample, document, effort, trace) -> Prediction`, which raises a `PearlError` if it fails: the runner
records it, and a failure counts as wrong. A method that shows the gold passages has `NEEDS_PASSAGES = True`, and is
refused if no sample has any.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from pearl import plugins

if TYPE_CHECKING:  # the command line lists the methods, and needs nothing of these for it
    from pearl.data.samples import Sample
    from pearl.documents.document import Document
    from pearl.interpreter.answer import Answer
    from pearl.interpreter.chooser import Choice
    from pearl.pipeline import Pearl
    from pearl.trace import Trace


class Effort(Struct, frozen=True):
    """How much a method may read."""

    token_budget: int | None = None  # Input tokens over a sample's document; None for no limit
    part_tokens: int = 4_096  # Of a call of `map-reduce`, and of what `retrieve` shows


class Prediction(Struct, frozen=True):
    """The prediction of a method."""

    status: Literal["answered", "fell_back"]  # Whether it is the method's own answer
    text: str = ""  # The answer in words; "" if the method chose an option directly
    choice: Choice | None = None  # The option; None if the sample has no options
    answer: Answer | None = None


class Method(Protocol):
    """The contract of a method."""

    DESCRIPTION: str
    NEEDS_OPTIONS: bool

    def predict(
        self, pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
    ) -> Awaitable[Prediction]:
        """Answer one sample; a `PearlError` is recorded, and counts as wrong."""


CONTRACT = Method


def load_method(name: str) -> Method:
    """The method of a name."""
    method: Method = plugins.load(__name__, name, "method")
    return method


async def answered(
    pearl: Pearl,
    sample: Sample,
    answer: Answer,
    trace: Trace,
    status: Literal["answered", "fell_back"] = "answered",
) -> Prediction:
    """The prediction for an answer in words; if the answer is usable and there are options, it is mapped to one."""
    choice = None
    if sample.options and answer.has_answer:
        choice = await pearl.choose(
            sample.question, sample.options, answer=answer.unlabelled, trace=trace
        )
    return Prediction(status, answer.unlabelled, choice, answer)


async def chosen(
    pearl: Pearl,
    sample: Sample,
    document: Document | None,
    effort: Effort,
    trace: Trace,
    *,
    is_reasoned: bool = False,
) -> Prediction:
    """The prediction of a model that sees the options at once, with the document or without one."""
    choice = await pearl.choose(
        sample.question,
        sample.options,
        document=document,
        is_reasoned=is_reasoned,
        token_budget=effort.token_budget,
        trace=trace,
    )
    return Prediction("answered", choice=choice)
