"""Detects texts without visible characters."""

from __future__ import annotations

import unicodedata

_EMPTY = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols without ink: Hangul fillers, Khmer inherent vowels, the blank Braille cell."""

_INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Cn", "Mn", "Me"})
"""Unicode's general categories of blanks, controls, formats (the zero-width ones and the byte order
mark among them), surrogates, what is no character, and marks that need a letter to stand on."""


def is_blank(text: str) -> bool:
    r"""Whether a text is empty or consists of white, zero-width and control characters only.

    Example:
        >>> is_blank(" \n\u200b\ufeff\u2800\0"), is_blank("\u200bno"), is_blank("-")
        (True, False, False)
    """
    return all(
        character in _EMPTY or unicodedata.category(character) in _INVISIBLE for character in text
    )
