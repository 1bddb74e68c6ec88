"""What is computed over a text: in the event loop where that is quick, else in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["off_loop"]

Result = TypeVar("Result")

AT_ONCE_CHARACTERS = 20_000
"""What is computed over so many characters is done sooner than another thread has begun with it."""


async def off_loop(n_characters: int, compute: Callable[[], Result]) -> Result:
    """What is computed over a text, without keeping the event loop from its other work.

    Args:
        n_characters: Length of the text: over a short one it is computed here, over a long one in a
            thread.
        compute: Computes it.
    """
    return compute() if n_characters <= AT_ONCE_CHARACTERS else await asyncio.to_thread(compute)
