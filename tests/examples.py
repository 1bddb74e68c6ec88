"""How many examples a property-based test tries: a fifth in the fast suite, all in the gate."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 100
FAST = 20


def examples(n: int) -> settings:
    """So many examples of a test in the profile `thorough`, and as many fewer in another."""
    return settings(max_examples=-(-n * settings().max_examples // THOROUGH))
