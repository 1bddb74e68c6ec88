"""The unit of a number in a text, so that different units are not added or compared."""

from __future__ import annotations

import re

_ALIKE = (
    "$ usd dollar dollars", "€ eur euro euros", "£ gbp pound pounds", "¥ jpy yen", "chf",
    "% percent", "µg μg mcg ug microgram micrograms", "mg milligram milligrams", "g gram grams",
    "kg kilogram kilograms", "lb lbs", "oz", "ml milliliter milliliters", "cl", "dl", "l liter liters litre litres",
    "mm", "cm", "m meter meters metre metres", "km kilometer kilometers kilometre kilometres", "mile miles",
    "ft foot feet", "inch inches", "second seconds sec", "minute minutes min", "hour hours h hr hrs",
    "day days", "week weeks", "month months", "year years", "°c", "°f", "mmhg", "bpm", "mmol",
)  # fmt: skip
_UNITS = {word: names.split()[0] for names in _ALIKE for word in names.split()}
_AFTER = re.compile(r"\s?([%$€£¥]|°[CF]|[^\W\d_]+)")
_BEFORE = re.compile(r"([$€£¥])\s?\Z")


def unit_of(text: str, start: int, end: int) -> str:
    """The canonical unit of a number; "" if it has no known unit.

    Example:
        >>> unit_of("about 3 grams", 6, 7), unit_of("3g", 0, 1), unit_of("3 dogs", 0, 1)
        ('g', 'g', '')
    """
    before = _BEFORE.search(text, max(start - 2, 0), start)
    if before or text[start:end].lstrip("-+−")[:1] in "$€£¥":
        return before[1] if before else text[start:end].lstrip("-+−")[0]
    after = _AFTER.match(text, end)
    return _UNITS.get(after[1].lower(), "") if after else ""
