r"""The text of a cell → a number with its unit and scale, as financial tables write them.

What cannot surely be read is None, never a guess: `1.250` may be either of two numbers, `12 (1)` has
a footnote or a restatement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from pearl.documents.numbers import find_quantity

__all__ = ["CURRENCIES", "SCALES", "Quantity", "is_blank", "read_quantity", "scale_of"]

CURRENCIES = "$€£¥"

SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""Words for powers of ten."""

MAX_LENGTH = 60
"""Characters of a cell that may be a number."""

MAX_DIGITS = 30

_SCALE_WORDS = {
    **SCALES, **{f"{word}s": power for word, power in SCALES.items()},
    "k": 3, "mn": 6, "mm": 6, "bn": 9, "tn": 12, "m": 6, "b": 9,
}  # fmt: skip
_ONLY_OF_MONEY = frozenset({"k", "m", "mm", "b"})
"""Else metres, bytes and the like."""

_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:[\u00a0\u202f][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_CELL = re.compile(
    rf"""
      (?P<sign>[-+−]?)\s*
      (?P<open>\(?)\s*(?P<inner>[-−]?)\s*
      (?P<currency>[{CURRENCIES}]|US\$)?\s*
      (?P<outer>\(?)\s*(?P<late>[-−]?)
      (?P<digits>{_DIGITS})\s*
      (?P<percent>%?)\s*(?P<close>\)*)\s*(?P<after>%?)
      \s*(?P<scale>[A-Za-z]+)?
    """,
    re.X,
)
_CODE = re.compile(r"0[0-9]+")
"""A code or a telephone number, and no quantity."""

_RESTATED = re.compile(r"(?P<first>[^()]+?)\s*\(\s*(?P<again>[^()]+?)\s*\)\s*(?P<percent>%?)")
_FOOTNOTE = re.compile(r"\s*(?:\(\s*[a-z]\s*\)|[*†‡]+|\[[0-9a-z]{1,2}\])\s*\Z")
_BLANKS = frozenset({
    "", "-", "--", "—", "–", "―", "−", "n/a", "na", "n.a.", "nm", "n/m", "none", "nil", "null", "nan",
    "$ -", "$-", "$ —", "$—",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it is written, with what it is counted in.

    Attributes:
        value: The digits: 12.5 for `12.5%`, -1315 for `(1,315)`, 3.2 for `$3.2 million`.
        unit: "%", a currency, another unit (`mg`), or "".
        scale: The power of ten that the digits are written in: 6 for millions.
    """

    value: Decimal
    unit: str = ""
    scale: int = 0

    @property
    def amount(self) -> Decimal:
        """The number itself: 0.125 for `12.5%`, 3200000 for `$3.2 million`."""
        return self.value.scaleb(-2 if self.unit == "%" else self.scale)

    @property
    def kind(self) -> str:
        """What the number is: `percent`, `money` or `number`."""
        if self.unit == "%":
            return "percent"
        return "money" if self.unit in CURRENCIES and self.unit else "number"


def is_blank(text: str) -> bool:
    """Whether a cell has no value: blank, a dash, or a word for that.

    Example:
        >>> is_blank(" — "), is_blank("n/a"), is_blank("0")
        (True, True, False)
    """
    return " ".join(text.split()).casefold() in _BLANKS


def read_quantity(text: str, *, is_point_decimal: bool = False) -> Quantity | None:
    """The number in a cell; None if there is none, or not surely one.

    Args:
        text: The cell.
        is_point_decimal: Whether it is known that points begin decimals, as in `1.250`.

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
    if match := _CELL.fullmatch(text):
        return _read(match, is_point_decimal)
    found = None if "(" in text else find_quantity(text)
    return None if found is None else Quantity(Decimal(repr(found[0])), found[1])


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


def _read(match: re.Match[str], is_point_decimal: bool) -> Quantity | None:
    n_open = len(match["open"]) + len(match["outer"])
    signs = [match[name] for name in ("sign", "inner", "late") if match[name]]
    if n_open != len(match["close"]) or n_open > 1 or len(signs) + n_open > 1:
        return None  # brackets and a sign: below 0 once, or twice?
    digits = match["digits"].replace(",", "").replace("\u00a0", "").replace("\u202f", "")
    if len(digits) > MAX_DIGITS or _CODE.fullmatch(digits):
        return None
    percent = bool(match["percent"]) + bool(match["after"])
    currency = (match["currency"] or "")[-1:]
    if percent > 1 or (percent and currency):
        return None
    word = match["scale"]
    if not (percent or word or is_point_decimal) and _may_be_grouped(match["digits"]):
        return None
    if word and (percent or not _is_scale(word, is_money=bool(currency))):
        found = find_quantity(match[0])  # another unit
        return None if found is None or n_open else Quantity(Decimal(repr(found[0])), found[1])
    value = Decimal(digits)
    if n_open or (signs and signs[0] in "-−"):
        value = -value
    return Quantity(value, "%" if percent else currency, _SCALE_WORDS[word.lower()] if word else 0)


def _is_scale(word: str, *, is_money: bool) -> bool:
    known = word.lower()
    return known in _SCALE_WORDS and (is_money or known not in _ONLY_OF_MONEY)


def _may_be_grouped(written: str) -> bool:
    """Whether a point may group thousands: 1.250 is 1250 in most of Europe."""
    return re.fullmatch(r"[1-9][0-9]{0,2}\.[0-9]{3}", written) is not None
