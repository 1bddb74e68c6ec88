"""Texts with a cursor in them."""

from __future__ import annotations

CURSOR = "‸"


def at_cursor(text: str) -> tuple[str, int]:
    """The text without its cursor, and where that was."""
    before, after = text.split(CURSOR)
    return before + after, len(before)
