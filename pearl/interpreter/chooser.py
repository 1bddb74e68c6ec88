"""An answer in words, or a document → the option that is meant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pearl.documents.document import Document
from pearl.errors import UsageError
from pearl.interpreter.choices import read_answer, read_choice
from pearl.interpreter.choosing_prompt import choose_messages
from pearl.interpreter.context import Context, fit
from pearl.interpreter.steps import ContextLimits
from pearl.llm import ChooseTask, Model, Request, Usage
from pearl.trace import OptionChosen, Trace

__all__ = ["Choice", "choose"]

MAX_OPTIONS = 26


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen.

    Attributes:
        index: The option, counted from 0; None where the reply names none, or several.
        reply: What the model said; the answer itself where no model was asked.
        n_calls: 1, or 0 where no model was asked.
    """

    index: int | None
    reply: str
    usage: Usage = field(default_factory=Usage)
    n_calls: int = 1


async def choose(
    question: str,
    options: Sequence[str],
    model: Model,
    limits: ContextLimits,
    *,
    answer: str | None = None,
    document: Document | None = None,
    is_reasoned: bool = False,
    trace: Trace | None = None,
) -> Choice:
    """Have an option chosen, by an answer in words or by a document.

    An answer that is an option already, word for word, is not asked about. Of a
    document that does not fit a call, the best passages are shown unless the strategy is `full`:
    results over parts could not be merged to one letter.

    Args:
        question: What was asked.
        options: 2 to 26.
        model: Who chooses.
        limits: How much the call may hold.
        answer: The answer in words.
        document: The document.
        is_reasoned: Have the model reason before it chooses.
        trace: The choice is added to it.

    Raises:
        UsageError: There are too few or too many options, or not one thing to choose by.
        ExecutionError: Nothing of the document fits, or not all of it, which `full` asks for.
        ModelError: The model gave no usable reply.
    """
    if not 2 <= len(options) <= MAX_OPTIONS:
        raise UsageError(f"a choice has 2 to {MAX_OPTIONS} options, not {len(options)}")
    if (answer is None) == (document is None):
        raise UsageError("an option is chosen by an answer or by a document")
    began = time.monotonic()
    task = ChooseTask(question, tuple(options), None, answer, is_reasoned)
    shown: Context | None = None
    if document is not None:
        shown = await asyncio.to_thread(_fit, task, document.text, limits)
        task = replace(task, document=shown.texts[0])
    choice = await _ask(task, model, limits)
    if trace is not None:
        trace.append(
            OptionChosen(
                by="answer" if shown is None else "document",
                reply=choice.reply,
                choice=choice.index,
                coverage=shown.coverage if shown else None,
                n_calls=choice.n_calls,
                usage=choice.usage,
                duration_s=time.monotonic() - began,
            )
        )
    return choice


async def _ask(task: ChooseTask, model: Model, limits: ContextLimits) -> Choice:
    if task.answer is not None:
        found = read_answer(task.answer, task.options)
        if found is not None or not task.answer.strip():
            return Choice(found, task.answer, n_calls=0)
    request = Request(choose_messages(task), task, limits.reply_tokens)
    completion = await model.complete(request)
    index = read_choice(completion.text, task.options)
    return Choice(index, completion.text, completion.usage)


def _fit(task: ChooseTask, text: str, limits: ContextLimits) -> Context:
    """What to show of a document to choose by, so that the prompt as a whole fits."""
    count = limits.counter.count

    def n_tokens(document: str) -> int:
        asked = replace(task, document=document)
        return count(Request(choose_messages(asked), asked).prompt)

    most = limits.prompt_tokens
    room = None if most is None else most - n_tokens("") - 64
    n_document = count(text)
    while True:
        is_whole = limits.strategy == "full" or room is None or n_document <= room
        shown = fit(
            text,
            strategy="full" if is_whole else "retrieve",
            budget=room,
            count=count,
            query=" ".join([task.question, *task.options]),
            n_tokens=n_document,
            max_retrieved=limits.max_retrieved,
            ranker=limits.ranker,
        )
        excess = 0 if most is None else n_tokens(shown.texts[0]) - most
        if room is None or excess <= 0:
            return shown
        room -= excess  # tokens do not add up exactly
