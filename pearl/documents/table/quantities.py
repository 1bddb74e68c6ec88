"""The cells of a column → their numbers, as financial tables write them, read together.

A cell that cannot be read with certainty is None, never a guess: `1.250` may be either of two numbers,
`12 (1)` may have a footnote or a restatement. Other cells of the column resolve the ambiguity: a point with
two digits after it shows that `1.250` has decimals, a number without brackets that `(1,315)` is negative.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from pearl.documents import numbers
from pearl.documents.dates import read_dates
from pearl.documents.english import SCALES
from pearl.documents.numbers import MONEY, RAISED, quantity
from pearl.errors.patterns import lazy_pattern

MAX_LENGTH = 60  # maximum characters of a numeric cell
_CODE = lazy_pattern(r"\W*0[0-9]+\W*")  # A code or a telephone number, not a quantity

_ASIDE = lazy_pattern(r"[^(]*[^\W_%][^(]*\((?!.*(?:thousand|[mbtr]illion)s\b)", re.I)
"""Brackets after a number that do not hold its scale: a footnote or an earlier value."""

_SMALL_IN_BRACKETS = lazy_pattern(r"\(\s*([0-9]{1,2})\s*\)")
"""A negative number in a cell; `read_quantities` decides whether it may be the number of a footnote."""

_RESTATED = lazy_pattern(r"(?P<first>[^()]+?)\s*\(\s*(?P<again>[^()]+?)\s*\)\s*(?P<percent>%?)")
_FOOTNOTE = lazy_pattern(r"\s*(?:\(\s*[a-z]\s*\)|[*†‡]+|\[[0-9a-z]{1,2}\])\s*\Z")
_BLANKS = frozenset({
    "", "-", "--", "—", "–", "―", "−", "n/a", "na", "n.a.", "nm", "n/m", "none", "nil", "null", "nan",
    "$ -", "$-", "$ —", "$—",
})  # fmt: skip


def is_blank(text: str) -> bool:
    """Whether a cell has no value: it is blank, a dash, or a word such as `none`."""
    return " ".join(text.split()).casefold() in _BLANKS


def read_quantity(text: str, *, decimal: str = "") -> numbers.Quantity | None:
    """The number in a cell; None if it has none, or an ambiguous one."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    if text.isascii() and text.isdecimal() and text[0] != "0" and len(text) <= numbers.MAX_DIGITS:
        return numbers.Quantity(Decimal(text))  # fast path for most cells of long tables
    text = _FOOTNOTE.sub("", text)
    if restated := _RESTATED.fullmatch(text):
        twice = _restated(restated, decimal)
        if twice is not None:
            return twice
    if below_zero := _SMALL_IN_BRACKETS.fullmatch(text):
        return numbers.Quantity(-Decimal(below_zero[1]))
    if _CODE.fullmatch(text) or _ASIDE.match(text):
        return None
    return numbers.find_quantity(text, decimal=decimal)


def scale_of(text: str) -> int | None:
    """The power of ten that a caption or a header names; None if it names none, or several."""
    found = {SCALES[word.lower().removesuffix("s")] for word in _NAMED_SCALE.findall(text)}
    return found.pop() if len(found) == 1 else None


_NAMED_SCALE = lazy_pattern(rf"\b((?:{'|'.join(SCALES)})s?)\b", re.I)


def _restated(match: re.Match[str], decimal: str) -> numbers.Quantity | None:
    """`27 ( 27 % )`: one number twice, the second time without its sign."""
    first = read_quantity(match["first"], decimal=decimal)
    again = read_quantity(match["again"] + match["percent"], decimal=decimal)
    if first is None or again is None or abs(first.value) != again.value:
        return None
    if first.unit and again.unit and first.unit != again.unit:
        return None
    return numbers.Quantity(first.value, first.unit or again.unit, first.scale or again.scale)


_YEAR = lazy_pattern(r"(?:19|20)[0-9]{2}")
_DIGIT = lazy_pattern(r"\d|[¼-¾⅐-⅞]")
_DECIMAL = lazy_pattern(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})*\.(?:[0-9]{1,2}|[0-9]{4,})(?![0-9.,])")
_BOTH = lazy_pattern(r"[0-9],[0-9]{3}\.[0-9]|(?<![0-9])0\.[0-9]")
_COMMA = r"(?<![0-9.,])[0-9]++(?:\.[0-9]{3})*,(?:[0-9]{1,2}|[0-9]{4,})(?![0-9.,])"
_DECIMAL_COMMA = lazy_pattern(_COMMA)
"""Certain if two cells have it; one alone, such as `3,14`, may be two numbers."""
_CERTAIN_COMMA = lazy_pattern(
    r"(?<![0-9.,])(?:[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]++|0,[0-9]++)(?![0-9.,])"
    rf"|{_COMMA}\s?(?:%|{MONEY})|(?:{MONEY})\s?{_COMMA}"
)
_RAISED_MARK = lazy_pattern(rf"(?<=[0-9]{{2}})(?<!\b10)[{RAISED}]{{1,2}}(?=[^0-9{RAISED}⁻]*\Z)")
_BRACKETS = lazy_pattern(r"\s*[$€£¥]?\s*\(.*\)\s*%?\s*", re.S)


def read_column(name: str, cells: Sequence[str], scale: int = 0) -> list[numbers.Quantity | None]:
    """The numbers of a column's cells, each with the scale of the column where it has none, but not its unit; a column of dates has none."""
    filled = [cell for cell in cells if not is_blank(cell)]
    read = read_quantities(cells)
    if filled and all(map(is_year, filled)):
        return [None] * len(read)
    if 2 * sum(quantity is not None for quantity in read) > len(filled):
        scale = scale_of(name) or scale
        return [
            numbers.Quantity(each.value, each.unit, scale)
            if each and not each.scale and each.unit in ("", *numbers.CURRENCY_UNITS)
            else each
            for each in read
        ]
    is_date = 2 * sum(period is not None for period in read_dates(filled).periods) > len(filled)
    return [None] * len(read) if is_date else read


def is_year(text: str) -> bool:
    """Whether a text is nothing but a year from 1900 to 2099."""
    return _YEAR.fullmatch(text.strip()) is not None


def read_quantities(cells: Sequence[str]) -> list[numbers.Quantity | None]:
    """The number of each cell, using the notation of the other cells."""
    return _read(cells)[0]


def _read(cells: Sequence[str]) -> tuple[list[numbers.Quantity | None], str]:
    """The number of each cell, and the mark of decimals that the cells show; `.,` if they differ."""
    different = [cell for cell in dict.fromkeys(cells) if _DIGIT.search(cell)]
    plain_cells = [cell if cell.isascii() else numbers.plain(cell) for cell in different]
    is_point = any(_BOTH.search(cell) or _DECIMAL.search(cell) for cell in plain_cells)
    n_commas = sum(_DECIMAL_COMMA.search(cell) is not None for cell in plain_cells)
    is_comma = n_commas > 1 or (n_commas == 1 and any(map(_CERTAIN_COMMA.search, plain_cells)))
    decimal = "." * is_point + "," * is_comma
    if n_commas and not decimal:
        decimal = ".,"  # `1,250` beside `2,5` may be either
    shown = {cell: _RAISED_MARK.sub("", cell) for cell in different}
    if not any(cell == without for cell, without in shown.items()):
        shown = {cell: cell for cell in different}  # powers, if all cells have them
    read = {cell: read_quantity(without, decimal=decimal) for cell, without in shown.items()}
    if all(_BRACKETS.fullmatch(cell) for cell, found in read.items() if found):
        # Brackets alone may number footnotes.
        read = {
            cell: None if _SMALL_IN_BRACKETS.fullmatch(cell.strip()) else found
            for cell, found in read.items()
        }
    return [read.get(cell) for cell in cells], decimal


def read_numbers(values: Sequence[str]) -> list[numbers.Quantity | None]:
    """The number of each value: those of cells, and those of short texts such as `about 5 (est.)`."""
    read, decimal = _read(values)
    return [
        found or numbers.find_quantity(value, decimal=decimal)
        for value, found in zip(values, read, strict=True)
    ]


def numbers_of(items: Sequence[str]) -> list[Decimal]:
    """The number of each entry; the other entries resolve ambiguous ones."""
    in_column, decimal = _read(items)
    read = [
        found or quantity(item, decimal=decimal)
        for item, found in zip(items, in_column, strict=True)
    ]
    units = {each.unit: item for each, item in zip(read, items, strict=True)}
    if not units.keys() & numbers.SHARES.keys():
        units.pop("", None)  # numbers without a unit take that of the others
    if len(units) > 1:
        one, other, *_ = (f"'{item[:60]}'" for item in units.values())
        raise numbers.UnclearNumberError(f"numbers in different units: {one} and {other}")
    return [each.number for each in read]
