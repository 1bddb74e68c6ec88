r"""The text of a cell → a number with its unit and scale, as financial tables write them.

What cannot surely be read is None, never a guess: `1.250` may be either of two numbers, `12 (1)` has
a footnote or a restatement.
"""

from __future__ import annotations

import re
from decimal import Decimal

from pearl.documents.numbers import MAX_DIGITS, SCALES, Quantity, find_quantity

MAX_LENGTH = 60
"""Characters of a cell that may be a number."""

_CODE = re.compile(r"\W*0[0-9]+\W*")
"""A code or a telephone number, and no quantity."""

_ASIDE = re.compile(r"[^(]*[^\W_%][^(]*\((?!.*(?:thousand|[mbtr]illion)s\b)", re.I)
"""Something in brackets after a number, but its scale: a footnote, or what a cell said before."""

_SMALL_IN_BRACKETS = re.compile(r"\(\s*([0-9]{1,2})\s*\)")
"""Below 0 in a cell; `read_quantities` decides whether it may be the number of a footnote."""

_RESTATED = re.compile(r"(?P<first>[^()]+?)\s*\(\s*(?P<again>[^()]+?)\s*\)\s*(?P<percent>%?)")
_FOOTNOTE = re.compile(r"\s*(?:\(\s*[a-z]\s*\)|[*†‡]+|\[[0-9a-z]{1,2}\])\s*\Z")
_BLANKS = frozenset({
    "", "-", "--", "—", "–", "―", "−", "n/a", "na", "n.a.", "nm", "n/m", "none", "nil", "null", "nan",
    "$ -", "$-", "$ —", "$—",
})  # fmt: skip


def is_blank(text: str) -> bool:
    """Whether a cell has no value: blank, a dash, or a word for that.

    Example:
        >>> is_blank(" — "), is_blank("n/a"), is_blank("0")
        (True, True, False)
    """
    return " ".join(text.split()).casefold() in _BLANKS


def read_quantity(text: str, *, is_point_decimal: bool = False) -> Quantity | None:
    """The number in a cell; None if there is none, or not surely one.

    Example:
        >>> read_quantity("$ (1,315)")
        Quantity(value=Decimal('-1315'), unit='$', scale=0)
        >>> read_quantity("27 ( 27 % )"), read_quantity("-3 ( 3 )")
        (Quantity(value=Decimal('27'), unit='%', scale=0), Quantity(value=Decimal('-3'), unit='', scale=0))
        >>> read_quantity("$5.687 billion").amount == 5_687_000_000, read_quantity("1.250")
        (True, None)
    """
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    if text.isascii() and text.isdecimal() and text[0] != "0" and len(text) <= MAX_DIGITS:
        return Quantity(Decimal(text))  # most cells of long tables
    text = _FOOTNOTE.sub("", text)
    if restated := _RESTATED.fullmatch(text):
        twice = _restated(restated, is_point_decimal)
        if twice is not None:
            return twice
    if below_zero := _SMALL_IN_BRACKETS.fullmatch(text):
        return Quantity(-Decimal(below_zero[1]))
    if _CODE.fullmatch(text) or _ASIDE.match(text):
        return None
    return find_quantity(text, is_point_decimal=is_point_decimal)


def scale_of(text: str) -> int | None:
    """The power of ten that a caption or a header names; None if it names none, or several.

    Example:
        >>> scale_of("($ in millions)"), scale_of("in thousands, except per share"), scale_of("net")
        (6, 3, None)
    """
    found = {SCALES[word.lower().removesuffix("s")] for word in _NAMED_SCALE.findall(text)}
    return found.pop() if len(found) == 1 else None


_NAMED_SCALE = re.compile(rf"\b((?:{'|'.join(SCALES)})s?)\b", re.I)


def _restated(match: re.Match[str], is_point_decimal: bool) -> Quantity | None:
    """`27 ( 27 % )`: one number twice, the second time without its sign."""
    first = read_quantity(match["first"], is_point_decimal=is_point_decimal)
    again = read_quantity(match["again"] + match["percent"], is_point_decimal=is_point_decimal)
    if first is None or again is None or abs(first.value) != again.value:
        return None
    if first.unit and again.unit and first.unit != again.unit:
        return None
    return Quantity(first.value, first.unit or again.unit, first.scale or again.scale)
