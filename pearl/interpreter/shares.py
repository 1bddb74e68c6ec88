"""A token budget for all calls over a document → the limits of each call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import ceil

from pearl.errors import ExecutionError
from pearl.interpreter.context import ContextOverflowError, Strategy
from pearl.interpreter.limits import ContextLimits


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
    """The limits of one call, or of as many parts of it as the budget allows.

    n parts take at most n - 1 merging calls, whose prompts are no longer.
    """
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
            help="give more tokens (--token-budget)",
        ) from cause
