"""Words and signs that modules read: months, weekdays, numbers, units, currencies and scales."""

from __future__ import annotations

import re
from collections.abc import Iterable


def any_of(words: Iterable[str]) -> str:
    """A pattern of words, grouped by first letters so that other words fail at once; the longest match first."""
    rests: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    branches = (f"{re.escape(first)}(?:{'|'.join(each)})" for first, each in rests.items())
    return f"(?:{'|'.join(branches)})"


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
SMALL_NUMBER = any_of(SMALL_NUMBERS)
"""Those numbers as a pattern."""
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


CURRENCIES = "$€£¥₹₩₽₪₺₫₴₦₱฿"

UNSPACED = "\u0e00-\u0e7f\u3005-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
"""Letters of scripts that put no blank beside a number, for a class of a pattern."""
APART = rf"(?<![^\W{UNSPACED}])"  # No letter or digit before, other than a letter of `UNSPACED`
_UNITS_UNSPACED = {
    "元": "cny", "人民币": "cny", "円": "¥", "日元": "¥", "원": "₩", "美元": "$", "ドル": "$", "달러": "$",
    "欧元": "€", "ユーロ": "€", "유로": "€", "英镑": "£", "ポンド": "£", "岁": "year", "歳": "year", "세": "year",
    "年": "year", "년": "year", "公斤": "kg", "千克": "kg", "克": "g", "公里": "km", "千米": "km", "米": "m",
    "毫米": "mm", "厘米": "cm", "毫克": "mg", "毫升": "ml", "升": "l", "小时": "hour", "時間": "hour",
    "시간": "hour", "分钟": "minute", "天": "day", "日間": "day", "周": "week",
}  # fmt: skip
"""Units in scripts without blanks; other letters may follow them directly."""
UNIT_UNSPACED = "|".join(sorted(_UNITS_UNSPACED, key=len, reverse=True))
"""Those units as a pattern."""
_CODES = (
    "AED AFN AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP"
    " CNY COP CRC CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG"
    " HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD"
    " MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PGK PHP PKR PLN PYG"
    " QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TRY TTD TWD"
    " TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
"""Currencies in use, ISO 4217; without ALL, CUP, PEN and TOP, which are words in capitals."""
_CURRENCY_CODES = {code: code.lower() for code in _CODES.split()} | {
    "USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "RUB": "₽", "ILS": "₪", "TRY": "₺",
    "VND": "₫", "UAH": "₴", "NGN": "₦", "PHP": "₱", "THB": "฿",
}  # fmt: skip
"""Code → unit."""
_CURRENCY_MARKS = {
    "US$": "$", "R$": "brl", "AU$": "aud", "A$": "aud", "CA$": "cad", "C$": "cad", "HK$": "hkd", "NT$": "twd",
    "S$": "sgd", "NZ$": "nzd", "MX$": "mxn", "Rs.": "₹", "Rs": "₹", "kr.": "kr", "kr": "kr",
    "zł": "pln", "Kč": "czk", "лв": "bgn", "руб.": "₽", "руб": "₽",
}  # fmt: skip
"""Other marks of currencies → unit; a bare `$` is the US dollar's."""
MONEY = (
    rf"{APART}(?:{'|'.join(map(re.escape, _CURRENCY_MARKS))})(?![^\W\d_])|[{CURRENCIES}]"
    rf"|{APART}{any_of(_CURRENCY_CODES)}(?![A-Za-z])"
)
"""A currency as a sign, a code or a mark, as a pattern."""

SCALE_WORDS = {
    **SCALES, **{f"{word}s": power for word, power in SCALES.items()}, "mn": 6, "bn": 9, "tn": 12,
}  # fmt: skip
FOREIGN_SCALES = {
    "tsd": 3, "tausend": 3, "mio": 6, "millionen": 6, "milionów": 6, "millones": 6, "milioni": 6,
    "mln": 6, "млн": 6, "mrd": 9, "milliarde": 9, "milliarden": 9, "milliard": 9, "milliards": 9,
    "miliardi": 9, "mld": 9, "млрд": 9,
}  # fmt: skip
"""Scales in languages that use a decimal comma."""
SCALES_UNSPACED = {"百万": 6, "千万": 7, "万": 4, "萬": 4, "만": 4, "億": 8, "亿": 8, "억": 8}
PLAIN_SCALES = SCALE_WORDS | SCALES_UNSPACED
MONEY_SCALES = PLAIN_SCALES | {"k": 3, "m": 6, "mm": 6, "b": 9}
"""Scales of amounts of money: without a currency, their letters are units such as metres."""
SCALED_MONEY = {
    f"{letter}{currency}": power
    for letter, power in {"T": 3, "k": 3, "K": 3, "M": 6}.items()
    for currency in ("€", "$", "£", "EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK")
}
"""Currencies with a scale before them → its power: `TEUR` and `k€` are thousands of euros, `MNOK` millions."""
SCALED = rf"{any_of(SCALED_MONEY)}(?![^\W\d_])"
"""Those currencies as a pattern."""

UNIT_NAMES = {
    **{sign: sign for sign in f"{CURRENCIES}‰"}, **_CURRENCY_CODES, **_CURRENCY_MARKS, **_UNITS_UNSPACED,
}  # fmt: skip
UNIT_NAMES |= {name: UNIT_NAMES[name[1:]] for name in SCALED_MONEY}
"""Names of units in their own case → the one name of the unit; those in `UNITS` have any case."""
CURRENCY_UNITS = frozenset({*CURRENCIES, *_CURRENCY_CODES.values(), *_CURRENCY_MARKS.values()})
KNOWN_UNITS = frozenset({*UNITS.values(), *UNIT_NAMES.values()})
"""Units that PEARL knows, each by its one name."""
SHARES = {"%": -2, "‰": -3}  # Units of shares → their powers of ten


def unit_named(word: str) -> str:
    """The canonical unit that a word or a sign names; "" for another word."""
    return UNIT_NAMES.get(word) or UNITS.get(word.lower(), "")


def is_year(text: str) -> bool:
    """Whether a text consists only of a year from 1900 to 2099."""
    digits = text.strip()
    return len(digits) == 4 and digits.isascii() and digits.isdigit() and digits[:2] in ("19", "20")


def words_in(text: str) -> list[str]:
    """The words and numbers of a text, without the marks between them."""
    return re.findall(r"\w+", text)


def begins_with_digit(text: str) -> bool:
    """Whether the first letter or digit of a text is a digit or a fraction: `$5`, `"9:15"`, `½`."""
    first = next(filter(str.isalnum, text), "")
    return first.isnumeric() and not first.isalpha()


def singular(word: str) -> str:
    """A noun without its plural ending: `category` for `categories`, `user` for `users`."""
    return re.sub(r"(?<=[a-z]{2})s\Z", "", re.sub(r"ies\Z", "y", word))
