"""Select the texts in a step's prompts so that they fit the context window; nothing is cut silently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, zip_longest
from math import ceil
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.searching import SearchedDocument, order, with_tables
from pearl.actions.values import Fetched, FetchedPassage
from pearl.documents.document import AT_ONCE, heading
from pearl.documents.passages import chunks
from pearl.documents.tokens import Counter
from pearl.dsl.nodes import Step
from pearl.errors import ExecutionError, PearlError, Span, UsageError, suggest
from pearl.errors.privacy import is_private
from pearl.llm.concurrency import background_loop
from pearl.llm.reply_limits import reading_limit
from pearl.retrieval.search import Searcher

Strategy = Literal["auto", "full", "map-reduce", "retrieve"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

PASSAGE_TOKENS = 256  # Size of the passages that `retrieve` ranks

DEFAULT_RETRIEVED_TOKENS = 16_384
"""Default maximum tokens of the passages that `retrieve` selects, less than a whole window to save cost."""

GAP = "\n[...]\n"
GAP_TOKENS = 4  # Maximum tokens of a gap

FETCHED_TOKENS = 16
"""Usual minimum tokens of a passage; determines how many passages a search requests."""

MIN_FETCHED = 16  # Minimum number of passages that a search requests

MAX_FETCHED_CHARACTERS = 4_000  # Longer passages are reduced to their best chunks

BEST = 4  # Maximum chunks of such a passage


Result = TypeVar("Result")


async def off_loop(n_characters: int, compute: Callable[[], Result]) -> Result:
    """Call a function on a text: in the event loop if the text is short, else in a thread."""
    return compute() if n_characters <= AT_ONCE else await asyncio.to_thread(compute)


def awaited(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine and return its result; the caller may already be in an event loop."""
    return asyncio.run_coroutine_threadsafe(work, background_loop("awaited")).result()


class ContextOverflowError(ExecutionError):
    """The required content of one call exceeds its token limit."""


def full_window() -> ContextOverflowError:
    """The error of a step whose inputs alone fill the window."""
    return ContextOverflowError(
        "the step's own inputs fill the model's window",
        help="use a model with a larger window, or shorten what earlier steps return",
    )


def fail_step(step: Step, error: Exception) -> NoReturn:
    """Raise the error of a run or forecast: which step failed, and why; a private run quotes no cause."""
    message = error.message if isinstance(error, PearlError) else str(error)
    failed = ExecutionError(
        f"step '{step.output}' ({step.action}): {message}", step=step.output,
        help=getattr(error, "help", None),
    )  # fmt: skip
    if isinstance(error, PearlError):
        failed.exit_code = error.exit_code  # Keep the exit code of the cause
    raise failed from error if isinstance(error, PearlError) or not is_private() else None


class Context(Struct, frozen=True):
    """The texts for the prompts of a step."""

    strategy: Literal["full", "map-reduce", "retrieve"]
    texts: tuple[str, ...]
    coverage: float
    fetched: Fetched | None = None
    spans: tuple[Span, ...] | None = None
    """The spans of the text that are shown; None for all of it."""


class Shown(Struct, frozen=True):
    """How to select passages of a text for a prompt."""

    limits: ContextLimits
    queries: Sequence[str]
    searcher: Searcher
    corpus: SearchedDocument | None = None
    seen: Sequence[Span] = ()
    """Passages that were shown before and are left out; without any, at least one passage is shown."""

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.limits.counter.count(text)


def too_long(n_tokens: int, room: int | None) -> ContextOverflowError:
    """The error of a document that must be shown whole but does not fit."""
    return ContextOverflowError(
        f"the document has {n_tokens:,} tokens, the model's window leaves room for {room:,}",
        help="use --context map-reduce or retrieve, or a model with a larger window",
    )


def split(text: str, budget: int, count: Callable[[str], int]) -> tuple[str, ...]:
    """Split a text into parts of at most `budget` tokens."""
    return tuple(text[span.start : span.end] for span in chunks(text, budget, count))


async def fit_prompt(
    room: int | None, show: Callable[[int | None], Awaitable[Context]], excess: Callable[[str], int]
) -> Context:
    """Reduce the selection until every whole prompt fits; repeated, because token counts are not additive."""
    while True:
        if room is not None and room <= 0:
            raise full_window()
        context = await show(room)
        if room is None:
            return context
        texts = context.texts
        too_many = await off_loop(sum(map(len, texts)), lambda: max(map(excess, texts), default=0))  # noqa: B023
        if too_many <= 0:
            return context
        room -= too_many


class _Ranked(NamedTuple):
    """A matching passage, and the document name shown above it; "" for none."""

    span: Span
    n_tokens: int
    document: str = ""


async def retrieve(text: str, room: int | None, how: Shown) -> Context:
    """The best passages of a document or corpus that fit the prompt."""
    limit = min(room or how.limits.max_retrieved, how.limits.max_retrieved)
    if how.corpus is not None:
        return await fetch(how.corpus, limit, how)
    size = max(1, min(PASSAGE_TOKENS, limit - GAP_TOKENS))

    def cut() -> list[_Ranked]:
        spans = chunks(text, size, how.count)
        return [_Ranked(span, how.count(text[span.start : span.end])) for span in spans]

    passages = await off_loop(len(text), cut)
    texts = [text[each.span.start : each.span.end] for each in passages]
    best = [passages[i] for i in await order(how.searcher, how.queries, texts)]
    spans, shown = await off_loop(len(text), partial(_fitting, text, best, limit, how))
    coverage = _n_covered(spans) / max(1, len(text))
    return Context("retrieve", (shown,), coverage, spans=tuple(spans))


async def fetch(corpus: SearchedDocument, limit: int, how: Shown) -> Context:
    """The best passages of a corpus that fit the prompt, each under the name of its document."""
    text = corpus.text
    n_most = max(MIN_FETCHED, limit // FETCHED_TOKENS)
    n_characters = len(corpus.document.text)
    await off_loop(n_characters, corpus.prepare)
    # The best passages of each query in turn: most of the further queries may find nothing.
    found = [
        await corpus.search(how.searcher, [query], n_most + len(how.seen)) for query in how.queries
    ]
    in_turn = chain.from_iterable(zip_longest(*(each.hits for each in found)))
    new = unseen(tuple({hit.span: hit for hit in in_turn if hit}.values()), how.seen)
    shown_with = partial(with_tables, new, " ".join(how.queries), corpus)
    beside = unseen(await off_loop(len(text), shown_with), how.seen)
    fetched = replace(found[0], queries=tuple(how.queries), hits=())
    if not beside and how.seen:
        return Context("retrieve", (), 0.0, fetched, ())
    candidates = tuple(beside) or corpus.first(n_most)  # Like a single document without matches
    matches: list[tuple[Span, str]] = []
    for hit in candidates:
        spans = [hit.span]
        if len(hit.text) > MAX_FETCHED_CHARACTERS:
            size = max(1, min(PASSAGE_TOKENS, limit // 2))
            cut = await off_loop(len(hit.text), partial(chunks, hit.text, size, how.count))
            best = await order(how.searcher, how.queries, [hit.text[c.start : c.end] for c in cut])
            start = hit.span.start
            spans = [Span(start + cut[n].start, start + cut[n].end) for n in best[:BEST]]
        matches += [(span, hit.document if corpus.is_corpus else "") for span in spans]
    ranked = await off_loop(
        len(text),
        lambda: [_Ranked(s, how.count(text[s.start : s.end]), name) for s, name in matches],
    )
    shown_spans, shown = await off_loop(len(text), partial(_fitting, text, ranked, limit, how))
    hits = tuple(
        hit
        for hit in beside
        if any(hit.span.start <= span.start and span.end <= hit.span.end for span in shown_spans)
    )
    coverage = _n_covered(shown_spans) / max(1, n_characters)
    fetched = replace(fetched, hits=hits)
    return Context("retrieve", (shown.lstrip("\n"),), coverage, fetched, tuple(shown_spans))


def unseen(hits: Iterable[FetchedPassage], seen: Sequence[Span]) -> list[FetchedPassage]:
    """The passages that do not lie within spans shown before."""
    return [
        hit for hit in hits
        if not any(each.start <= hit.span.start and hit.span.end <= each.end for each in seen)
    ]  # fmt: skip


def _fitting(
    text: str, ranked: Sequence[_Ranked], limit: int, how: Shown
) -> tuple[list[Span], str]:
    """Select as many of the best passages as fit; return their spans and their text, in document order."""
    names = {each.span: each.document for each in ranked}
    taken: list[tuple[Span, int]] = []
    seen: set[str] = set()
    left = limit
    for span, n_tokens, document in ranked:
        cost = n_tokens + GAP_TOKENS
        if document and document not in seen:  # A document's name is shown once
            cost += how.count(heading(document)) + GAP_TOKENS
        if cost <= left:
            seen.add(document)
            taken.append((span, cost))
            left -= cost
    while taken:
        spans = sorted(span for span, _ in taken)
        shown = _joined(text, spans, names)
        excess = how.count(shown) - limit
        if excess <= 0:
            return spans, shown
        while excess > 0 and taken:  # Token counts are not additive
            excess -= taken.pop()[1]
    raise ContextOverflowError(
        f"no passage fits the {limit:,} tokens that the window leaves for the document",
        help="use a model with a larger window",
    )


def _joined(text: str, spans: Sequence[Span], names: Mapping[Span, str]) -> str:
    """Join passages, with the names of their documents and marks for the gaps."""
    pieces: list[str] = []
    end: int | None = None
    document = ""
    for span in spans:
        start = span.start if end is None else max(end, span.start)  # Windows overlap
        if span.end <= start:
            continue
        skipped = "" if end is None else text[end:start]
        if names[span] != document:
            document = names[span]
            pieces.append(heading(document))
        elif skipped:
            pieces.append(GAP if skipped.strip() else "\n\n")
        pieces.append(text[start : span.end])
        end = span.end
    return "".join(pieces)


def _n_covered(spans: Sequence[Span]) -> int:
    """Number of characters covered by sorted spans, which may overlap."""
    n = end = 0
    for span in spans:
        n += max(0, span.end - max(end, span.start))
        end = max(end, span.end)
    return n


class ContextLimits(Struct, frozen=True):
    """Token limits of a call."""

    counter: Counter
    strategy: Strategy = "auto"
    window: int | None = None
    max_output_tokens: int | None = None
    max_retrieved: int = DEFAULT_RETRIEVED_TOKENS
    max_parts: int | None = None
    max_prompt_tokens: int | None = None
    items_per_call: int = 32
    passes: int = 1
    looks: int = 3
    row_quotes: int = 200
    is_strict: bool = False
    is_constrained: bool = False
    answers_first: bool = False
    """Whether a step is answered in words first and then put in its form: under a schema, small models answer worse."""
    compose: Literal["auto", "off"] = "auto"
    check: Literal["auto", "all", "off"] = "auto"

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise UsageError(
                f"unknown context strategy '{self.strategy}'",
                help=suggest(self.strategy, STRATEGIES, "strategies"),
            )
        if min(self.items_per_call, self.passes) < 1:
            raise UsageError(
                "items_per_call and passes must be at least 1", help="the defaults are 32 and 1"
            )

    @property
    def reply_tokens(self) -> int:
        """Tokens reserved in the context window for the reply."""
        return reading_limit(self.window, self.max_output_tokens)

    @property
    def prompt_tokens(self) -> int | None:
        """Maximum tokens of a prompt; None for no limit."""
        if self.window is None:
            return self.max_prompt_tokens
        left = self.window - self.reply_tokens
        return left if self.max_prompt_tokens is None else min(left, self.max_prompt_tokens)

    def known_tokens(self, document: str) -> int | None:
        """The number of tokens of a document; None if it is so short that it fits anyway and need not be counted."""
        most = self.prompt_tokens
        if most is None or self.counter.at_most(document) <= most:
            return None
        return self.counter.count(document)


def share(limits: ContextLimits, token_budget: int | None, n_calls: int) -> ContextLimits:
    """The limits of each of `n_calls` calls that share a budget."""
    if token_budget is None:
        return limits
    each = token_budget // max(1, n_calls)
    return replace(limits, strategy="retrieve", max_prompt_tokens=each, max_retrieved=each)


def share_parts(
    limits: ContextLimits,
    token_budget: int | None,
    strategy: Strategy | None = None,
    part_tokens: int | None = None,
) -> ContextLimits:
    """The limits of one call, or of as many calls on parts of the document as the budget allows."""
    limits = share(limits, token_budget, 1)
    if strategy is not None:
        limits = replace(limits, strategy=strategy)
    if part_tokens is not None:
        least = min(part_tokens, limits.max_prompt_tokens or part_tokens)
        limits = replace(limits, max_prompt_tokens=least)
    most = limits.prompt_tokens
    if token_budget is None or most is None:
        return limits
    # Rounded up: more and smaller parts use more of the budget.
    n_calls = ceil(token_budget / max(1, most))
    n_parts = max(1, (n_calls + 1) // 2)
    each = min(most, token_budget // (2 * n_parts - 1))
    return replace(limits, max_parts=n_parts, max_prompt_tokens=each)


@contextmanager
def reported_as_budget(token_budget: int | None) -> Iterator[None]:
    """Report a context overflow as one of the token budget instead of the context window."""
    try:
        yield
    except ExecutionError as error:
        cause = error.__cause__ or error
        if token_budget is None or not isinstance(cause, ContextOverflowError):
            raise
        raise ExecutionError(
            f"a budget of {token_budget:,} tokens is too small: {error.message}",
            step=error.step,
            help="raise --token-budget",
        ) from cause
