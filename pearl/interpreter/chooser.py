"""An answer in words, or a document → the matching option."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pearl.actions.searching import SearchedDocument
from pearl.documents.document import Document
from pearl.errors import ModelError, UsageError
from pearl.interpreter.choices import read_answer, read_choice
from pearl.interpreter.context import Context, Shown, fit, fit_prompt
from pearl.interpreter.limits import ContextLimits
from pearl.interpreter.offloading import off_loop
from pearl.interpreter.prompt import choose_messages
from pearl.interpreter.requests import PROMPT_MARGIN
from pearl.llm import ChooseTask, Model, Request, Usage
from pearl.llm.messages import without_texts
from pearl.retrieval.search import Searcher
from pearl.trace import CallFailed, OptionChosen, Trace

MAX_OPTIONS = 26


@dataclass(frozen=True, slots=True)
class Choice:
    """The result of a choice."""

    index: int | None
    reply: str
    usage: Usage = field(default_factory=Usage)
    n_calls: int = 1
    n_cached: int = 0


async def choose(
    question: str,
    options: Sequence[str],
    model: Model,
    limits: ContextLimits,
    *,
    answer: str | None = None,
    document: Document | None = None,
    is_reasoned: bool = False,
    searcher: Searcher | None = None,
    trace: Trace | None = None,
) -> Choice:
    """Choose an option, based on an answer in words or on a document.

    An answer that equals an option verbatim needs no call. For a document that does not fit one
    call, the best passages are shown unless the strategy is `full`: letters chosen over parts could
    not be merged.
    """
    if not 2 <= len(options) <= MAX_OPTIONS:
        raise UsageError(f"a choice has 2 to {MAX_OPTIONS} options, not {len(options)}")
    if answer is not None and document is not None:
        raise UsageError("an option is chosen by an answer or by a document, not by both")
    began = time.monotonic()
    task = ChooseTask(question, tuple(options), None, answer, is_reasoned)
    shown: Context | None = None
    if document is not None:
        shown = await _fit(task, document, limits, searcher or Searcher())
        task = replace(task, document=shown.texts[0])
    choice = await _ask(task, model, limits, trace)
    if trace is not None:
        trace.append(
            OptionChosen(
                by="document" if shown else "question" if answer is None else "answer",
                reply=choice.reply,
                choice=choice.index,
                coverage=shown.coverage if shown else None,
                n_calls=choice.n_calls,
                n_cached=choice.n_cached,
                usage=choice.usage,
                duration_s=time.monotonic() - began,
            )
        )
    return choice


async def _ask(
    task: ChooseTask, model: Model, limits: ContextLimits, trace: Trace | None
) -> Choice:
    if task.answer is not None:
        found = read_answer(task.answer, task.options)
        if found is not None or not task.answer.strip():
            return Choice(found, task.answer, n_calls=0)
    request = Request(choose_messages(task), task, limits.reply_tokens)
    began = time.monotonic()
    try:
        completion = await model.complete(request)
    except ModelError as error:
        if trace is not None:
            trace.append(
                CallFailed(
                    step="",
                    purpose="choose",
                    model=model.name,
                    kind=error.kind,
                    prompt=without_texts(request.messages),
                    reply=error.reply,
                    duration_s=time.monotonic() - began,
                    usage=error.usage or Usage(),
                    is_sent=error.is_sent,
                )
            )
        raise
    index = read_choice(completion.text, task.options)
    return Choice(index, completion.text, completion.usage, n_cached=int(completion.is_remembered))


async def _fit(
    task: ChooseTask, document: Document, limits: ContextLimits, searcher: Searcher
) -> Context:
    """Select what to show of a document so that the whole prompt fits."""
    count = limits.counter.count
    text = document.text
    searched = SearchedDocument(document)

    def n_tokens(shown: str) -> int:
        asked = replace(task, document=shown)
        return count(Request(choose_messages(asked), asked).prompt)

    most = limits.prompt_tokens
    n_document = await off_loop(len(text), partial(count, text))
    how = Shown(
        "full", count, " ".join([task.question, *task.options]), searcher, limits.max_retrieved,
        corpus=searched if searched.is_corpus else None,
    )  # fmt: skip

    async def show(available_tokens: int | None) -> Context:
        is_whole = (
            limits.strategy == "full" or available_tokens is None or n_document <= available_tokens
        )
        asked = how if is_whole else replace(how, strategy="retrieve")
        return await fit(text, asked, available_tokens, n_document)

    if most is None:
        return await show(None)
    return await fit_prompt(
        most - n_tokens("") - PROMPT_MARGIN, show, lambda shown: n_tokens(shown) - most
    )
