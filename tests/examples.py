"""The number of examples of property-based tests: a tenth in the fast suite, all in the gate."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 100
FAST = 10


def examples(n: int) -> settings:
    """So many examples of a test in the profile `thorough`, and as many fewer in another."""
    return settings(max_examples=times(n))


def times(n: int) -> int:
    """So many repetitions in the profile `thorough`, and as many fewer, but one, in another."""
    return -(-n * settings().max_examples // THOROUGH)
