"""The tokens that a server reports → `Usage`: what cannot be is left out or cut down, and flagged.

Budgets, rates and tables add these numbers up; one that is negative, huge or no number at all would
undo them all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pearl.llm import Request, Usage

__all__ = ["plausible", "read_usage"]

MOST_TOKENS = 100_000_000
"""Of one call; no window is near it."""

BYTES_A_CHARACTER = 4
"""A token has a byte at least, and a character so many at most."""

HIDDEN_INPUT_TOKENS = 65_536
"""What a server may put before a prompt."""

HIDDEN_OUTPUT_TOKENS = 262_144
"""What a model may think before it replies."""


def read_usage(reported: Any, input_name: str, output_name: str) -> Usage:
    """The usage of a reply.

    Args:
        reported: The reply's `usage`, whatever it is; None where the server reports none.
        input_name: What the server calls the tokens of the prompt.
        output_name: The same for the reply.

    Example:
        >>> read_usage({"in": 10, "out": -3, "in_details": {"cached_tokens": 64}}, "in", "out")
        Usage(n_input_tokens=10, n_output_tokens=0, n_cached_tokens=10, n_implausible_calls=1)
    """
    details = _part(reported, f"{input_name}_details")
    found = [_part(reported, input_name), _part(reported, output_name)]
    found.append(_part(details, "cached_tokens"))
    counts = [_count(value) for value in found]
    n_input, n_output, n_cached = (count or 0 for count in counts)
    is_strange = any(
        part is not None and not isinstance(part, dict) for part in (reported, details)
    )
    is_plausible = None not in counts and n_cached <= n_input and not is_strange
    return Usage(n_input, n_output, min(n_cached, n_input), int(not is_plausible))


def plausible(usage: Usage, request: Request) -> Usage:
    """A usage without the counts that its request cannot have taken.

    Args:
        usage: As reported.
        request: What was asked.
    """
    n_characters = sum(len(message.content) for message in request.messages)
    if request.constraint is not None:
        n_characters += len(request.constraint.lark)
    most_input = BYTES_A_CHARACTER * n_characters + HIDDEN_INPUT_TOKENS
    most_output = (request.max_output_tokens or 0) + HIDDEN_OUTPUT_TOKENS
    if usage.n_input_tokens > most_input:
        usage = replace(usage, n_input_tokens=0, n_cached_tokens=0, n_implausible_calls=1)
    if usage.n_output_tokens > most_output:
        usage = replace(usage, n_output_tokens=0, n_implausible_calls=1)
    return usage


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _count(value: Any) -> int | None:
    """A number of tokens; 0 where there is none, None for what cannot be one."""
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():  # JSON makes no difference
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= MOST_TOKENS else None
