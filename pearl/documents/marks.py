"""Raised and lowered text, and the numbers of lists, as every reader writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product

from pearl.errors.patterns import lazy_pattern

SUPERSCRIPTS = dict(zip("0123456789+-\u2212=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ", strict=True))
_RAISED = str.maketrans(SUPERSCRIPTS)
_LOWERED = str.maketrans("0123456789+-\u2212=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")

RAISE, LOWER, END = "\x01", "\x02", "\x03"
"""Put around pieces of raised and lowered text until `written`; XML has no such characters."""

_MARKED = lazy_pattern("(?:\x01[^\x01-\x03]*\x03)+|(?:\x02[^\x01-\x03]*\x03)+")
_SIGNS = dict.fromkeys(map(ord, RAISE + LOWER + END))


def raised(text: str) -> str:
    """Write raised text so that its digits do not join the number before it: `310²`."""
    return _moved(text, _RAISED, "^")


def lowered(text: str) -> str:
    """Write lowered text like `raised`: `H₂O`."""
    return _moved(text, _LOWERED, "_")


def _moved(text: str, moved: Mapping[int, str | int], sign: str) -> str:
    core = text.strip()
    if not core or (core.isalpha() and len(core) > 1) or core.startswith("["):
        return text
    if all(ord(letter) in moved for letter in core):
        return text.translate(moved)
    if not any(letter.isalnum() for letter in core):
        return text
    before, after = text[: text.index(core)], text[text.index(core) + len(core) :]
    return f"{before}{sign}({core}){after}"


def written(text: str) -> str:
    """Write the pieces between `RAISE` or `LOWER` and `END`; adjacent pieces are written as one."""

    def piece(match: re.Match[str]) -> str:
        return (raised if match[0].startswith(RAISE) else lowered)(match[0].translate(_SIGNS))

    return _MARKED.sub(piece, text) if END in text else text


_ROMAN = [
    "".join(digits)
    for digits in product(
        ("", "m", "mm", "mmm"),
        ("", "c", "cc", "ccc", "cd", "d", "dc", "dcc", "dccc", "cm"),
        ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx", "xc"),
        ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"),
    )
]


def list_number(n: int, style: str) -> str | None:
    """Format the number of a list entry; None for an unknown style."""
    match style:
        case "1" | "decimal":
            return str(n)
        case "decimalZero":
            return f"{n:02}"
        case "a" | "A" | "lowerLetter" | "upperLetter" if n > 0:
            # After z, Word repeats the letter; up to there HTML does the same.
            letters = chr(ord("a") + (n - 1) % 26) * ((n - 1) // 26 + 1)
            return letters.upper() if style in {"A", "upperLetter"} else letters
        case "i" | "I" | "lowerRoman" | "upperRoman" if 0 < n < len(_ROMAN):
            return _ROMAN[n].upper() if style in {"I", "upperRoman"} else _ROMAN[n]
    return None
