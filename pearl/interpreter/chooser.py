"""Match an answer in words, or a document, to one of several options."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence
from functools import partial
from string import ascii_lowercase
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from pearl.actions.searching import SearchedDocument
from pearl.documents.document import Document
from pearl.errors import ModelError, UsageError
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.context import (
    Context,
    ContextLimits,
    Shown,
    fit_prompt,
    off_loop,
    retrieve,
    too_long,
)
from pearl.interpreter.model_calls import call_failed
from pearl.interpreter.prompt import choose_messages
from pearl.interpreter.requests import PROMPT_MARGIN
from pearl.llm import ChooseTask, Model, Request, Usage
from pearl.retrieval.search import Searcher
from pearl.trace import OptionChosen, Trace

_MARKS = str.maketrans("", "", "*_`")  # Of Markdown: `**C**`
_QUOTES = "\"'“”‘’«»"
_BLANKS = r"[^\S\n]*+"
# "Answer: C", "The final answer is (C)", "My choice: B", "The correct option is C"; "option" alone does not declare a choice:
# "Option A: it rained" discusses an option.
_SAYS = lazy_pattern(
    rf"(?<![\w-])(?:answer|(?:option|choice)(?={_BLANKS}(?:[:=]|(?:is|would be)\b)))\b"
    rf"{_BLANKS}(?:(?:is|would be)\b)?+{_BLANKS}[:=]?+{_BLANKS}(?=\S)",
    re.IGNORECASE,
)
_JOINS, _BETWEEN = ",&/+", ("", "and", "or", "and/or", "option")  # Between two letters
_MAX_SAID = 8  # Maximum occurrences of "Answer:" that are read, from the end; limits the run time
# A letter alone ("C", "(C).", "option c:") or before its text ("C. Two dogs", "C - Two dogs", "C (Two dogs)", "(C) Two dogs").
_LETTER = lazy_pattern(
    r"(?:option\s+)?(?P<open>[(\[])?(?P<letter>[A-Z])(?(open)[)\]])(?:[.):]?$|(?:[.):]|\s+[-–—](?=\s)|(?=\s*\()|(?(open)(?=\s)|(?!)))\s*(?P<text>\S.*)$)",
    re.IGNORECASE,
)


def read_choice(reply: str, options: Sequence[str]) -> int | None:
    """The index (from 0) of the option that a reply names, or None if it names none or several. It reads the whole reply, the text after "Answer:", and the first and last lines."""
    text = unicodedata.normalize("NFKC", reply).strip()
    whole = _named(text, options)
    if whole is not None:
        return whole
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(">")]  # a quote from the document
    bare = [line.translate(_MARKS) for line in lines]
    said = [(line, match.end()) for line in bare for match in _SAYS.finditer(line)]
    for line, start in reversed(said[-_MAX_SAID:]):
        rest = line[start:]
        if re.match(r"(?:not|neither)\b", rest, re.IGNORECASE):
            return None
        if (declared := _named(rest, options, is_declared=True)) is not None:
            return declared
    if said:
        return None
    ends = {_named(line, options) for line in (lines[:1] + lines[-1:])} - {None}
    named = {_named(line, options) for line in lines} - {None}
    return ends.pop() if len(ends) == 1 and ends == named else None


def _named(text: str, options: Sequence[str], *, is_declared: bool = False) -> int | None:
    """The option that equals a text: by its own words, its letter, or both. After "Answer:" (`is_declared`), reasons may follow the letter."""
    folded = [_folded(option) for option in options]
    named = {i for i, option in enumerate(folded) if option and option == _folded(text)}
    index, added = _lettered(text)
    if index is not None and index < len(options):
        own = folded[index]
        others = {i for i, option in enumerate(folded) if option == added != own}
        # The words after the letter may shorten or explain the option, but must not be those of
        # another one.
        if not added or own.startswith(added) or (own and added.startswith(own)) or others:
            named |= {index, *others}
        elif is_declared and not named:
            # Another letter after the first: "A) or B)", "(A) (B)", "A) + B)"
            words = [word for word in added.split() if word.strip(_JOINS) not in _BETWEEN]
            first = words[0] if words else ""
            bare = first.strip(f"()[].:{_JOINS}")
            is_letter = len(bare) == 1 and bare in ascii_lowercase[: len(options)]
            if not (is_letter and (bare != first or len(words) == 1)):
                named = {index}
    return named.pop() if len(named) == 1 else None


def _lettered(text: str) -> tuple[int | None, str]:
    """The index of the letter at the beginning of a text, and the words after it."""
    bare = text.translate(_MARKS).strip(_QUOTES + " \t")
    match = _LETTER.fullmatch(bare)
    if match is None:
        return None, ""
    words = match["text"] or ""
    if words.startswith("(") and words.endswith(")"):
        words = words[1:-1]
    return ord(match["letter"].upper()) - ord("A"), _folded(words)


def _folded(text: str) -> str:
    """The comparison key of an option: without case, blanks, quote marks and final full stop."""
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return words.strip(_QUOTES + " ").rstrip(".").strip(_QUOTES + " ")


def read_answer(answer: str, options: Sequence[str]) -> int | None:
    """The option that an answer in words equals verbatim, with or without its letter.

    The answer was written without seeing the options, so a letter alone names none: vitamin A is
    not option A.

    Example:
        >>> [read_answer(said, ["vitamin C", "vitamin A"]) for said in ("A", "Vitamin A.", "B. vitamin A")]
        [None, 1, 1]
    """
    text = unicodedata.normalize("NFKC", answer).strip()
    index, words = _named(text, options), _lettered(text)[1]
    if index is None or _folded(options[index]) not in (_folded(text), words):
        return None
    return index


MAX_OPTIONS = 26  # One letter each


class Choice(Struct, frozen=True):
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
    """Choose an option, based on an answer in words or on a document."""
    if not 2 <= len(options) <= MAX_OPTIONS:
        raise UsageError(f"a choice has 2 to {MAX_OPTIONS} options, not {len(options)}")
    if answer is not None and document is not None:
        raise UsageError("choose by an answer or by a document, not by both")
    began = time.monotonic()
    task = ChooseTask(question, tuple(options), None, answer, is_reasoned)
    context: Context | None = None
    if document is not None:
        context = await _fit(task, document, limits, searcher or Searcher())
        task = replace(task, document=context.texts[0])
    index = None if answer is None else read_answer(answer, options)
    if answer is not None and (index is not None or not answer.strip()):
        choice = Choice(index, answer, n_calls=0)
    else:
        request = Request(choose_messages(task), task, limits.reply_tokens)
        try:
            completion = await model.complete(request)
        except ModelError as error:
            if trace is not None:
                trace.append(call_failed("", "choose", model.name, request, error, began))
            raise
        choice = Choice(
            read_choice(completion.text, options), completion.text, completion.usage,
            n_cached=int(completion.is_remembered),
        )  # fmt: skip
    if trace is not None:
        by: Literal["document", "question", "answer"] = "question" if answer is None else "answer"
        event = OptionChosen(
            by="document" if context else by, reply=choice.reply, choice=choice.index,
            coverage=context.coverage if context else None, n_calls=choice.n_calls,
            n_cached=choice.n_cached, usage=choice.usage, duration_s=time.monotonic() - began,
        )  # fmt: skip
        trace.append(event)
    return choice


async def _fit(
    task: ChooseTask, document: Document, limits: ContextLimits, searcher: Searcher
) -> Context:
    """Select passages of a document so that the whole prompt fits."""
    count = limits.counter.count
    text = document.text
    searched = SearchedDocument(document)

    def n_tokens(shown: str) -> int:
        asked = replace(task, document=shown)
        return count(Request(choose_messages(asked), asked).prompt)

    most = limits.prompt_tokens
    n_document = await off_loop(len(text), partial(count, text))
    query = " ".join([task.question, *task.options])
    corpus = searched if searched.is_corpus else None

    async def show(available_tokens: int | None) -> Context:
        if available_tokens is None or n_document <= available_tokens:
            return Context("full", (text,), 1.0)
        if limits.strategy == "full":
            raise too_long(n_document, available_tokens)
        return await retrieve(text, available_tokens, Shown(limits, [query], searcher, corpus))

    if most is None:
        return await show(None)
    return await fit_prompt(
        most - n_tokens("") - PROMPT_MARGIN, show, lambda shown: n_tokens(shown) - most
    )
