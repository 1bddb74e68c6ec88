"""Words of English that say numbers and times, shared by all readers of text."""

from __future__ import annotations

import re

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
"""A pattern of a month, in full or abbreviated."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAY = r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
"""A pattern of a weekday, in full or abbreviated."""

NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
"""Words for 0 to 19, in order."""

ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
)  # fmt: skip
"""Words for the places 1 to 12, in order."""

SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}  # words for powers of ten

UNITS = {
    word: names.split()[0]
    for names in (
        "$ usd dollar dollars", "€ eur euro euros", "£ gbp pound pounds", "¥ jpy yen", "chf",
        "% percent", "µg μg mcg ug microgram micrograms", "mg milligram milligrams", "g gram grams",
        "kg kilogram kilograms", "lb lbs", "oz", "ml milliliter milliliters", "cl", "dl", "l liter liters litre litres",
        "mm", "cm", "m meter meters metre metres", "km kilometer kilometers kilometre kilometres", "mile miles",
        "ft foot feet", "inch inches", "second seconds sec", "minute minutes min", "hour hours h hr hrs",
        "day days", "week weeks", "month months", "year years", "°c", "°f", "mmhg", "bpm", "mmol",
    )
    for word in names.split()
}  # fmt: skip
"""Names of units → one name for each unit."""


def singular(word: str) -> str:
    """A noun without its plural ending: `categories`, `users`.

    Example:
        >>> singular("categories"), singular("users"), singular("is")
        ('category', 'user', 'is')
    """
    return re.sub(r"(?<=[a-z]{2})s\Z", "", re.sub(r"ies\Z", "y", word))
