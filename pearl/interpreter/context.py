"""Document + context window → the texts that a step is shown; never truncated silently.

Strategies: `full` (all of it, or an error), `map-reduce` (part by part, results merged),
`retrieve` (the passages that match best, in document order), `auto` (full where it fits, else
map-reduce, which reads everything).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from pearl import plugins
from pearl.documents.passages import chunks
from pearl.errors import ExecutionError
from pearl.retrieval import DEFAULT_RANKER, Ranker

__all__ = ["STRATEGIES", "Context", "ContextOverflowError", "Strategy", "fit", "fit_prompt"]

Strategy = Literal["auto", "full", "map-reduce", "retrieve"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

PASSAGE_TOKENS = 256
"""Size of the passages that `retrieve` ranks."""

DEFAULT_RETRIEVED_TOKENS = 16_384
"""Default maximum tokens that `retrieve` shows, to spend less than the whole window."""

GAP = "\n[...]\n"
GAP_TOKENS = 4


class ContextOverflowError(ExecutionError):
    """The mandatory content of one call exceeds its token limit."""


@dataclass(frozen=True, slots=True)
class Context:
    """The texts that a step is shown.

    Attributes:
        strategy: The strategy used.
        texts: One text per call.
        coverage: Fraction of the document's characters in them, 0 to 1.
    """

    strategy: Literal["full", "map-reduce", "retrieve"]
    texts: tuple[str, ...]
    coverage: float


def fit(
    text: str,
    *,
    strategy: Strategy,
    budget: int | None,
    count: Callable[[str], int],
    query: str,
    n_tokens: int | None = None,
    max_retrieved: int = DEFAULT_RETRIEVED_TOKENS,
    max_parts: int | None = None,
    ranker: str = DEFAULT_RANKER,
) -> Context:
    """Choose what to show of a text.

    Args:
        text: The document.
        strategy: The requested strategy.
        budget: Available tokens; None for no limit.
        count: Counts the tokens of a text.
        query: The query of `retrieve`.
        n_tokens: Tokens of the text, if already known.
        max_retrieved: Maximum tokens that `retrieve` shows.
        max_parts: Maximum parts that `map-reduce` reads, the best matching ones; None for all.
        ranker: Name of the ranker that scores passages for the query.

    Raises:
        ContextOverflowError: It does not fit, and the strategy allows nothing else.
    """
    if budget is not None and budget <= 0:
        raise ContextOverflowError(
            "the step's own inputs fill the model's window",
            help="use a model with a larger window, or shorten what earlier steps return",
        )
    n_tokens = count(text) if n_tokens is None else n_tokens
    fits = budget is None or n_tokens <= budget
    if not text or (fits and strategy in ("auto", "full")):
        return Context("full", (text,), 1.0)
    if strategy == "full":
        raise ContextOverflowError(
            f"the document has {n_tokens:,} tokens, the model's window leaves room for {budget:,}",
            help="use --context map-reduce or retrieve, or a model with a larger window",
        )
    if strategy == "retrieve":
        return _retrieve(
            text,
            max_retrieved if budget is None else min(budget, max_retrieved),
            count,
            partial(_rank, ranker, query),
        )
    parts = [text[span.start : span.end] for span in chunks(text, budget or n_tokens, count)]
    if max_parts is not None and len(parts) > max_parts:
        scores = _rank(ranker, query, parts)
        best = sorted(range(len(parts)), key=lambda i: (-scores[i], i))[:max_parts]
        parts = [parts[i] for i in sorted(best)]
    return Context("map-reduce", tuple(parts), sum(map(len, parts)) / max(1, len(text)))


def fit_prompt(
    room: int | None, show: Callable[[int | None], Context], excess: Callable[[str], int]
) -> Context:
    """Choose what to show so that every prompt fits as a whole: tokens of its parts do not add up.

    Args:
        room: Tokens left for the document, about; None for no limit.
        show: What is shown where there is so much room.
        excess: Tokens by which the prompt around a text is too long.

    Raises:
        ContextOverflowError: It does not fit, and the strategy allows nothing else.
    """
    while True:
        context = show(room)
        if room is None:
            return context
        too_many = max(map(excess, context.texts))
        if too_many <= 0:
            return context
        room -= too_many


def _rank(ranker: str, query: str, passages: Sequence[str]) -> Sequence[float]:
    module: Ranker = plugins.load("pearl.retrieval", ranker, "ranker")
    return module.rank(query, passages)


def _retrieve(
    text: str,
    limit: int,
    count: Callable[[str], int],
    rank: Callable[[Sequence[str]], Sequence[float]],
) -> Context:
    """The best passages that fit, in document order, with gaps marked."""
    spans = chunks(text, max(1, min(PASSAGE_TOKENS, limit - GAP_TOKENS)), count)
    passages = [text[span.start : span.end] for span in spans]
    scores = rank(passages)
    chosen: list[int] = []
    used = 0
    for i in sorted(range(len(spans)), key=lambda i: (-scores[i], i)):
        cost = count(passages[i]) + GAP_TOKENS
        if used + cost <= limit:
            chosen.append(i)
            used += cost
    if not chosen:
        raise ContextOverflowError(
            f"no passage fits the {limit:,} tokens that the window leaves for the document",
            help="use a model with a larger window",
        )
    chosen.sort()
    pieces: list[str] = []
    for before, i in zip([None, *chosen], chosen, strict=False):
        pieces += [GAP] if before is not None and before != i - 1 else []
        pieces.append(passages[i])
    shown = sum(len(passages[i]) for i in chosen)
    return Context("retrieve", ("".join(pieces),), shown / max(1, len(text)))
