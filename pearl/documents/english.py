"""Words of English that many modules read: months, weekdays, numbers and units of time, as patterns."""

from __future__ import annotations

import re

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
YEAR = r"(?:19|20)[0-9]{2}"
NUMBER_WORD = (
    r"(?:half|zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|(?:hundred|thousand|million|billion|dozen)s?)"
)
ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SMALL_NUMBERS = {
    **{word: n for n, word in enumerate(ONES)},
    **{ten: 10 * n for n, ten in enumerate(TENS, start=2)},
    **{f"{ten}{mark}{ONES[i]}": 10 * n + i for n, ten in enumerate(TENS, start=2) for i in range(1, 10) for mark in " -"},
}  # fmt: skip
_TENTHS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", *(f"{word}th" for word in ONES[13:]), "twentieth",
)  # fmt: skip
ORDINALS = {
    **{word: n for n, word in enumerate(_TENTHS, start=1)},
    **{f"twenty{mark}{_TENTHS[n]}": 21 + n for n in range(9) for mark in " -"},
    "thirtieth": 30, "thirty-first": 31, "thirty first": 31,
}  # fmt: skip
"""Days of a month in words."""

SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}  # words for powers of ten

UNITS = {
    word: names.split()[0]
    for names in (
        "$ usd dollar dollars", "€ eur euro euros", "£ gbp pound pounds", "¥ jpy yen", "chf",
        "% percent prozent", "µg μg mcg ug microgram micrograms", "mg milligram milligrams", "g gram grams",
        "kg kilogram kilograms", "lb lbs", "oz", "ml milliliter milliliters", "cl", "dl", "l liter liters litre litres",
        "mm", "cm", "m meter meters metre metres", "km kilometer kilometers kilometre kilometres", "mile miles",
        "ft foot feet", "inch inches", "second seconds sec", "minute minutes min", "hour hours h hr hrs",
        "day days", "week weeks", "month months", "year years yr yrs yo", "°c", "°f", "mmhg", "bpm", "mmol",
        "kw", "mw", "gw", "bar", "mbar", "psi", "hpa", "kpa", "hz", "khz", "mhz", "ghz", "kcal", "kj", "iu", "meq",
        "µmol μmol umol", "nmol", "pmol", "m² m2 sqm", "km² km2", "cm² cm2", "ft² ft2 sqft", "m³ m3", "cm³ cm3",
        "ha hectare hectares", "acre acres", "yd yard yards", "ton tons", "tonne tonnes", "kwh", "mwh", "gwh", "kb", "mb", "gb", "tb", "cent cents ¢", "₹ inr rupee rupees", "tablet tablets", "capsule capsules",
    )
    for word in names.split()
}  # fmt: skip
"""Names of units → one name for each unit."""

DIMENSIONS = (
    {"ng": "1e-9", "µg": "1e-6", "mg": "1e-3", "g": "1", "kg": "1e3", "oz": "28.349523125", "lb": "453.59237"},
    {"ml": "1e-3", "cl": "1e-2", "dl": "1e-1", "l": "1"},
    {"mm": "1e-3", "cm": "1e-2", "m": "1", "km": "1e3", "inch": "0.0254", "ft": "0.3048", "mile": "1609.344"},
    {"second": "1", "minute": "60", "hour": "3600", "day": "86400", "week": "604800"},
    {"month": "1", "year": "12"},
    {"%": "10", "‰": "1"},
    {"kwh": "1", "mwh": "1e3", "gwh": "1e6"},
)  # fmt: skip
"""Units that convert into each other by a factor, each relative to the unit "1" of its dimension."""


def month_number(name: str) -> int:
    """1 to 12, by the first three letters of a month."""
    return 1 + [month[:3] for month in MONTHS].index(name[:3].capitalize())


def singular(word: str) -> str:
    """A noun without its plural ending: `categories`, `users`."""
    return re.sub(r"(?<=[a-z]{2})s\Z", "", re.sub(r"ies\Z", "y", word))
