"""Document + context window → the texts that a step is shown; never truncated silently."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Literal, NamedTuple, get_args

from pearl.actions.searching import SearchedDocument, order, with_tables
from pearl.actions.values import Fetched, FetchedPassage
from pearl.documents.document import heading
from pearl.documents.passages import chunks
from pearl.documents.table.apart import LABELS, TablesApart
from pearl.documents.tokens import Counter
from pearl.errors import ExecutionError, Span, UsageError, suggest
from pearl.interpreter.offloading import off_loop
from pearl.llm.reply_limits import reading_limit
from pearl.retrieval.search import Searcher
from pearl.tables import SqlEngine, check_engine

Strategy = Literal["auto", "full", "map-reduce", "retrieve"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

PASSAGE_TOKENS = 256
"""Size of the passages that `retrieve` ranks."""

DEFAULT_RETRIEVED_TOKENS = 16_384
"""Default maximum tokens that `retrieve` shows, to spend less than the whole window."""

GAP = "\n[...]\n"
GAP_TOKENS = 4

FETCHED_TOKENS = 16
"""Usual minimum tokens of a passage; determines how many passages a search requests."""

MIN_FETCHED = 16
"""Minimum number of passages that a search requests."""

MAX_FETCHED_CHARACTERS = 4_000
"""Longer passages are reduced to their best chunks."""

BEST = 4
"""Maximum chunks of such a passage."""


class ContextOverflowError(ExecutionError):
    """The mandatory content of one call exceeds its token limit."""


@dataclass(frozen=True, slots=True)
class Context:
    """The texts in the prompts of a step."""

    strategy: Literal["full", "map-reduce", "retrieve"]
    texts: tuple[str, ...]
    coverage: float
    fetched: Fetched | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """How to select from a text."""

    strategy: Strategy
    count: Callable[[str], int]
    query: str
    searcher: Searcher
    max_retrieved: int = DEFAULT_RETRIEVED_TOKENS
    max_parts: int | None = None
    corpus: SearchedDocument | None = None
    apart: TablesApart | None = None


async def fit(text: str, how: Shown, budget: int | None, n_tokens: int | None = None) -> Context:
    """Select the part of a text that fits the budget."""
    if budget is not None and budget <= 0:
        raise ContextOverflowError(
            "the step's own inputs fill the model's window",
            help="use a model with a larger window, or shorten what earlier steps return",
        )
    if n_tokens is None:
        n_tokens = await off_loop(len(text), partial(how.count, text))
    fits = budget is None or n_tokens <= budget
    if not text or (fits and how.strategy in ("auto", "full")):
        return Context("full", (text,), 1.0)
    if how.strategy == "full":
        raise ContextOverflowError(
            f"the document has {n_tokens:,} tokens, the model's window leaves room for {budget:,}",
            help="use --context map-reduce or retrieve, or a model with a larger window",
        )
    if how.strategy == "retrieve" or (how.corpus is not None and how.strategy == "auto"):
        limit = how.max_retrieved if budget is None else min(budget, how.max_retrieved)
        if how.corpus is not None:
            return await _fetch(how.corpus, limit, how)
        return await _retrieve(text, limit, how)
    context = await off_loop(
        len(text), partial(split, text, budget or n_tokens, how.count, how.apart)
    )
    parts = context.texts
    if how.max_parts is None or len(parts) <= how.max_parts:
        return context
    best = (await order(how.searcher, how.query, parts))[: how.max_parts]
    shown = sum(map(len, parts))
    parts = tuple(parts[i] for i in sorted(best))
    return Context("map-reduce", parts, sum(map(len, parts)) / max(1, shown))


def split(
    text: str, budget: int, count: Callable[[str], int], apart: TablesApart | None = None
) -> Context:
    """Split a text into parts of at most `budget` tokens."""
    if apart is not None and apart.whole != apart.text:
        return Context("map-reduce", tuple(apart.parts(budget, count)), 1.0)
    parts = tuple(text[span.start : span.end] for span in chunks(text, budget, count))
    return Context("map-reduce", parts, 1.0)


async def fit_prompt(
    room: int | None,
    show: Callable[[int | None], Awaitable[Context]],
    excess: Callable[[str], int],
) -> Context:
    """Reduce the selection until every whole prompt fits: token counts are not additive."""
    while True:
        context = await show(room)
        if room is None:
            return context
        texts = context.texts
        too_many = await off_loop(sum(map(len, texts)), lambda: max(map(excess, texts)))  # noqa: B023
        if too_many <= 0:
            return context
        room -= too_many


async def _retrieve(text: str, limit: int, how: Shown) -> Context:
    """The best passages of one document that fit, in its order, with gaps marked."""
    size = max(1, min(PASSAGE_TOKENS, limit - GAP_TOKENS))
    if how.apart is not None:
        return await _retrieve_apart(how.apart, size, limit, how)
    spans = await off_loop(len(text), partial(chunks, text, size, how.count))
    passages = [text[span.start : span.end] for span in spans]
    ranked = await order(how.searcher, how.query, passages)

    def choose() -> list[int]:
        chosen: list[int] = []
        left = limit
        for i in ranked:
            cost = how.count(passages[i]) + GAP_TOKENS
            if cost <= left:
                chosen.append(i)
                left -= cost
        return sorted(chosen)

    chosen = await off_loop(len(text), choose)
    if not chosen:
        raise _no_room(limit)
    pieces: list[str] = []
    for before, i in zip([None, *chosen], chosen, strict=False):
        pieces += [GAP] if before is not None and before != i - 1 else []
        pieces.append(passages[i])
    shown = sum(len(passages[i]) for i in chosen)
    return Context("retrieve", ("".join(pieces),), shown / max(1, len(text)))


async def _retrieve_apart(apart: TablesApart, size: int, limit: int, how: Shown) -> Context:
    """Like `_retrieve`, with matching rows below the heads of their tables."""
    n_characters = len(apart.text)
    atoms = await off_loop(n_characters, partial(apart.atoms, size, how.count))
    ranked = await order(how.searcher, how.query, [atom.text for atom in atoms])
    best = [(atoms[i].span, atoms[i].n_tokens) for i in ranked]
    shown = await off_loop(n_characters, partial(_fitting, apart, best, limit, how))
    if not shown.spans:
        raise _no_room(limit)
    coverage = sum(span.end - span.start for span in shown.spans) / max(1, n_characters)
    return Context("retrieve", (shown.text,), coverage)


class _Fitting(NamedTuple):
    """The best passages that fit, in document order, and their text in the prompt."""

    spans: list[Span]
    text: str


def _fitting(
    apart: TablesApart,
    ranked: Sequence[tuple[Span, int]],
    limit: int,
    how: Shown,
    *,
    is_named: bool = False,
) -> _Fitting:
    """As many of the best passages as fit; the head of a table counts once."""
    taken: list[tuple[Span, int]] = []
    heads: set[str] = set()
    left = limit - how.count(LABELS)
    for span, n_tokens in ranked:
        new = {table.mark: table.head for table in apart.tables(span) if table.mark not in heads}
        cost = n_tokens + GAP_TOKENS + sum(how.count(f"{h}\n\n{m}\n\n") for m, h in new.items())
        if cost <= left:
            heads |= new.keys()
            taken.append((span, cost))
            left -= cost
    while taken:  # token counts are not additive
        spans = sorted(span for span, _ in taken)
        text = apart.show(spans, is_named=is_named)
        excess = how.count(text) - limit
        if excess <= 0:
            return _Fitting(spans, text)
        while excess > 0 and taken:
            excess -= taken.pop()[1]
    return _Fitting([], "")


async def _fetch(corpus: SearchedDocument, limit: int, how: Shown) -> Context:
    """The best passages of a corpus that fit, in its order, each document under its name."""
    n_most = max(MIN_FETCHED, limit // FETCHED_TOKENS)
    await off_loop(len(corpus.document.text), corpus.prepare)
    fetched = await corpus.search(how.searcher, [how.query], n_most)
    beside = await off_loop(
        len(corpus.document.text), partial(with_tables, fetched.hits, how.query, corpus)
    )
    fetched = replace(fetched, hits=tuple(beside))
    candidates = fetched.hits or corpus.first(n_most)  # as where nothing of one document matches
    ranked: list[tuple[int, Span]] = []
    for i, hit in enumerate(candidates):
        if len(hit.text) <= MAX_FETCHED_CHARACTERS:
            ranked.append((i, hit.span))
            continue
        size = max(1, min(PASSAGE_TOKENS, limit // 2))
        spans = await off_loop(len(hit.text), partial(chunks, hit.text, size, how.count))
        best = await order(
            how.searcher, how.query, [hit.text[each.start : each.end] for each in spans]
        )
        start = hit.span.start
        ranked += [(i, Span(start + spans[n].start, start + spans[n].end)) for n in best[:BEST]]
    text = corpus.document.text

    if how.apart is not None and any(any(how.apart.tables(span)) for _, span in ranked):
        return await _fetched_apart(how.apart, fetched, candidates, ranked, limit, how)

    def choose() -> list[tuple[Span, int]]:
        chosen: list[tuple[Span, int]] = []
        named: set[str] = set()
        left = limit
        for i, span in ranked:
            name = candidates[i].document
            cost = how.count(text[span.start : span.end]) + GAP_TOKENS
            if name not in named:
                cost += how.count(heading(name)) + GAP_TOKENS
            if cost <= left:
                named.add(name)
                chosen.append((span, i))
                left -= cost
        return sorted(chosen)

    chosen = await off_loop(len(text), choose)
    if not chosen:
        raise _no_room(limit)
    pieces: list[str] = []
    shown = end = 0
    name: str | None = None
    for span, i in chosen:
        start = max(end, span.start)  # windows overlap
        if span.end <= end:
            continue
        if candidates[i].document != name:
            name = candidates[i].document
            pieces.append(heading(name))
        elif text[end:start].strip():
            pieces.append(GAP)
        elif start > end:
            pieces.append("\n\n")
        pieces.append(text[start : span.end])
        shown += span.end - start
        end = span.end
    seen = sorted({i for _, i in chosen if i < len(fetched.hits)})
    fetched = replace(fetched, hits=tuple(fetched.hits[i] for i in seen))
    whole = "".join(pieces).lstrip("\n")
    return Context("retrieve", (whole,), shown / max(1, len(text)), fetched)


async def _fetched_apart(
    apart: TablesApart,
    fetched: Fetched,
    candidates: Sequence[FetchedPassage],
    ranked: Sequence[tuple[int, Span]],
    limit: int,
    how: Shown,
) -> Context:
    """Like `_fetch`, for passages with rows of tables."""
    text = apart.text
    named: set[str] = set()
    best: list[tuple[Span, int]] = []
    for i, span in ranked:
        n_tokens = how.count(text[span.start : span.end])
        if (name := candidates[i].document) not in named:
            named.add(name)
            n_tokens += how.count(heading(name)) + GAP_TOKENS
        best.append((span, n_tokens))
    shown = await off_loop(
        sum(span.end - span.start for span, _ in best),
        partial(_fitting, apart, best, limit, how, is_named=True),
    )
    if not shown.spans:
        raise _no_room(limit)
    kept = set(shown.spans)
    seen = sorted({i for i, span in ranked if span in kept and i < len(fetched.hits)})
    fetched = replace(fetched, hits=tuple(fetched.hits[i] for i in seen))
    n_shown = sum(span.end - span.start for span in shown.spans)
    return Context("retrieve", (shown.text,), min(1.0, n_shown / max(1, len(text))), fetched)


def _no_room(limit: int) -> ContextOverflowError:
    return ContextOverflowError(
        f"no passage fits the {limit:,} tokens that the window leaves for the document",
        help="use a model with a larger window",
    )


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """Token limits of a call."""

    counter: Counter
    strategy: Strategy = "auto"
    window: int | None = None
    max_output_tokens: int | None = None
    max_retrieved: int = DEFAULT_RETRIEVED_TOKENS
    max_parts: int | None = None
    max_prompt_tokens: int | None = None
    items_per_call: int = 32
    max_reasks: int = 1
    max_item_tokens: int = 64
    is_strict: bool = False
    is_strict_rows: bool = False
    recheck: int = 0
    is_constrained: bool = False
    is_apart: bool = False
    sql_engine: SqlEngine = "sqlite"
    usual_reply_tokens: int | None = None

    def __post_init__(self) -> None:
        check_engine(self.sql_engine)
        if self.strategy not in STRATEGIES:
            raise UsageError(
                f"unknown context strategy '{self.strategy}'",
                help=suggest(self.strategy, STRATEGIES, "strategies"),
            )
        if (
            min(self.items_per_call, self.max_item_tokens) < 1
            or min(self.max_reasks, self.recheck) < 0
        ):
            raise UsageError(
                "items_per_call and max_item_tokens must be at least 1, max_reasks and recheck at least 0",
                help="the defaults are 32, 64, 1 and 0",
            )

    @property
    def reply_tokens(self) -> int:
        """Tokens reserved in the context window for the reply."""
        most = reading_limit(self.window, self.max_output_tokens)
        if self.max_output_tokens is not None or self.usual_reply_tokens is None:
            return most
        return min(most, self.usual_reply_tokens)

    @property
    def prompt_tokens(self) -> int | None:
        """Maximum tokens of a prompt; None for no limit."""
        if self.window is None:
            return self.max_prompt_tokens
        left = self.window - self.reply_tokens
        return left if self.max_prompt_tokens is None else min(left, self.max_prompt_tokens)

    def known_tokens(self, document: str) -> int | None:
        """Tokens of a document; None where its length alone shows that they do not matter."""
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
    """The limits of one call, or of as many parts of it as the budget allows."""
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
    """Re-raise a context overflow as one that names the budget instead of the context window."""
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
