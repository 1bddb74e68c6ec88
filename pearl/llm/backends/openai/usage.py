"""Reported usage → `Usage`; impossible counts are dropped or capped, and flagged.

Budgets and rates add these numbers up, so one that is negative or huge would corrupt them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pearl.llm import Request, Usage

MOST_TOKENS = 100_000_000
"""Maximum tokens of one call."""

BYTES_A_CHARACTER = 4
"""Maximum bytes, and so tokens, of a character."""

HIDDEN_INPUT_TOKENS = 65_536
"""Maximum tokens that a server may add to a prompt."""

HIDDEN_OUTPUT_TOKENS = 262_144
"""Maximum tokens of hidden reasoning."""


def read_usage(reported: Any, input_name: str, output_name: str) -> Usage:
    """The usage of a reply.

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
    """A usage without counts that are impossible for its request."""
    n_characters = sum(len(message.content) for message in request.messages)
    if request.constraint is not None:
        n_characters += len(request.constraint.lark)
    return within(usage, n_characters, request.max_output_tokens or 0)


def within(usage: Usage, n_characters: int, n_output_tokens: int) -> Usage:
    """A usage without counts that are impossible for so much input and output."""
    most_input = BYTES_A_CHARACTER * n_characters + HIDDEN_INPUT_TOKENS
    most_output = n_output_tokens + HIDDEN_OUTPUT_TOKENS
    if usage.n_input_tokens > most_input:
        usage = replace(usage, n_input_tokens=0, n_cached_tokens=0, n_implausible_calls=1)
    if usage.n_output_tokens > most_output:
        usage = replace(usage, n_output_tokens=0, n_implausible_calls=1)
    return usage


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _count(value: Any) -> int | None:
    """A number of tokens; 0 if missing, None if invalid."""
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():  # JSON has one type of numbers
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= MOST_TOKENS else None
