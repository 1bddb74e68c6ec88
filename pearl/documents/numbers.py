"""The number in a text, with its unit and scale; an ambiguous text is refused."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from pearl.documents.english import NUMBER_WORD, SCALES, SMALL_NUMBERS, UNITS
from pearl.errors.patterns import lazy_pattern

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


_CODES = (
    "AED AFN AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP"
    " CNY COP CRC CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG"
    " HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD"
    " MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PGK PHP PKR PLN PYG"
    " QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TRY TTD TWD"
    " TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
"""Currencies in use, ISO 4217; without ALL, CUP, PEN and TOP, which are words in capitals."""
CURRENCY_CODES = {code: code.lower() for code in _CODES.split()} | {
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
    rf"|{APART}(?:{'|'.join(CURRENCY_CODES)})(?![A-Za-z])"
)
"""A currency as a sign, a code or a mark, as a pattern."""
_UNIT_AFTER = lazy_pattern(
    rf"\s?({MONEY}|[%‰¢]|°[CF]|[^\W\d_{UNSPACED}]+(?:[23](?!\w))?|{UNIT_UNSPACED})"
)
_CURRENCY_BEFORE = lazy_pattern(rf"({MONEY})\s?\Z")


CURRENCY_UNITS = frozenset({*CURRENCIES, *CURRENCY_CODES.values(), *_CURRENCY_MARKS.values()})
KNOWN_UNITS = CURRENCY_UNITS | {*UNITS.values(), *_UNITS_UNSPACED.values(), "‰"}
"""Units that PEARL knows, each by its one name."""
SHARES = {"%": -2, "‰": -3}  # Units of shares → their powers of ten


def unit_of(text: str, start: int, end: int) -> str:
    """The canonical unit of a number; "" if it has no known unit."""
    before = _CURRENCY_BEFORE.search(text, max(start - 5, 0), start)
    sign = before[1] if before else text[start:end].lstrip("-+−")[:1]
    if before or (sign and sign in CURRENCIES):
        return unit_named(sign)
    after = _UNIT_AFTER.match(text, end)
    return unit_named(after[1]) if after else ""


def unit_named(word: str) -> str:
    """The canonical unit that a word or a sign names; "" for another word."""
    return (
        CURRENCY_CODES.get(word) or _CURRENCY_MARKS.get(word) or _UNITS_UNSPACED.get(word)
        or (word if word in CURRENCIES or word == "‰" else UNITS.get(word.lower(), ""))
    )  # fmt: skip


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
_SCALES = SCALE_WORDS | SCALES_UNSPACED
MONEY_SCALES = _SCALES | {"k": 3, "m": 6, "mm": 6, "b": 9}
"""With those of amounts of money; without a currency these letters are units such as metres."""

_DIGITS = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})++(?![0-9])|[0-9]++)(?:\.[0-9]++)?|\.[0-9]++"
_VULGAR = "¼½¾⅐-⅞"
FRACTION = rf"\s?[{_VULGAR}]|[ ][1-9][0-9]?[/⁄][1-9][0-9]?(?![0-9/⁄.,])"
"""A fraction behind a whole number."""
RAISED = "⁰¹²³⁴-⁹"  # Raised digits, for a class of a pattern
_FOOTNOTE_MARK = lazy_pattern(
    rf"(?<=[0-9],[0-9]{{3}})(?<![0-9]{{4}})[{RAISED}]{{1,2}}(?![{RAISED}⁻])"
)
"""The mark of a footnote: no power has a base with groups of thousands."""
_BETWEEN_DIGITS = lazy_pattern(r"(?<=[0-9])[.,](?=[0-9])")
_GROUPED_BY_POINTS = lazy_pattern(
    r"(?<![0-9.,])[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})++,[0-9]++|(?:\.[0-9]{3}){2,}+)(?![.,]?[0-9])"
)
"""Digits that have one reading: `1.234,56`, `1.234.567`."""
_SWAPPED = {".": ",", ",": "."}
_FIGURE = lazy_pattern(
    rf"""
      (?P<sign>(?:(?<![\w)])[-+−]|(?<=[{UNSPACED}])−)(?=[{CURRENCIES}A-Z]|\.?[0-9]))?
      (?:(?P<currency>{MONEY})\s?(?P<late>[-−])?|{APART})
      (?:
        (?P<digits>{_DIGITS})
        (?P<exponent>[eE][-+]?[0-9]{{1,3}}\b)?
        (?P<part>(?<![0-9]{{4}})(?:{FRACTION}))?
        | (?P<alone>[{_VULGAR}])
      )
    """,
    re.X,
)
IN_BRACKETS = lazy_pattern(
    rf"((?:{MONEY})?)\s*\(\s*((?:{MONEY})?\s*(?:{_DIGITS})\s*(?:%|(?:thousand|[mbtr]+illion)s?)?)\s*\)(\s*[^()]*)"
)
"""A negative number in accounting notation."""
_WORD = lazy_pattern(
    rf"\s?(?P<word>[^\W\d_{UNSPACED}]+|{'|'.join(SCALES_UNSPACED)})(?![千百十兆천백십])\.?"
)
_CAPTION = lazy_pattern(
    rf"\s?(?:\((?:[{CURRENCIES}]\s)?(?:in\s)?|in\s)(?:(?:[{CURRENCIES}]|USD|US\$)\s?)?"
    r"(?P<word>thousands|millions|billions|trillions)(?:\s(?:of\s)?(?:U\.?S\.?\s)?(?:dollars|USD))?\)?",
    re.I,
)
"""A scale after a number: `138.0 (in millions)`."""
_COMMA = lazy_pattern(rf"(?<=[0-9]),(?=[0-9]{{1,2}}\s?(?:{'|'.join(FOREIGN_SCALES)})(?!\w))", re.I)
"""A decimal comma."""

_OTHER_NUMBER = lazy_pattern(
    r"\s?+(?:(?:[kKM]|MM|cr|hundred|dozen|lakh|crore|quarter)s?\b"
    r"|(?i:hundert|mill(?:ion|iarde?)\w*|milli[oó]n\w*|bill?ion\w*|mil(?:iardi|ioni|hão|hões|e)?|mille|"
    r"bilhão|bilhões|tys|тыс\w*|миллион\w*|миллиард\w*|duzend|douzaines?|docenas?)\b"
    r"|[만억천백십千百十兆万萬億亿])"
    r"|[ _^]?[²³]|_\d|[eExX][-+]?\d|\s?+(?i:bps|basis points?)\b|\s?[%‰]?[?+]|[xX×](?![^\W\d_])|(?i:st|nd|rd|th)\b"
)
"""Suffixes that change the value of the preceding digits or make it ambiguous."""
_IN_WORDS = lazy_pattern(
    rf"\b(?:{NUMBER_WORD}|"
    r"halb\w?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|deux|trois|quatre|cinq|huit|dix|"
    r"dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez)\b",
    re.I,
)
_BOUND = lazy_pattern(
    r"[<>≤≥]|\b(?:(?:more|less|fewer|greater|higher|lower|larger|smaller|other)\s+than|at\s+(?:least|most)|up\s+to"
    r"|over|under|above|below|exceed(?:s|ed|ing)?|nearly|almost)\s+[$€£¥]?\s?[-−]?\d"
    r"|\d\s(?:[^\W\d]++\s)?or\s(?:more|less|fewer)\b",
    re.I,
)
_NEGATIVE = lazy_pattern(r"\b(?:minus|negative)\s\Z", re.I)
_MAY_BE_NEGATIVE = lazy_pattern(r"(?:[-−–—‒⁻‐‑(+]\s*+|\b(?:moins|menos|meno)\s)\Z", re.I)
_MINUSES = ("-", "−")  # Behind a number, as in accounts: `5.50-`
_NO_AMOUNT = lazy_pattern(rf"(?:[~≈≃±]\s?|#DIV/|[^\W\d_{UNSPACED}](?=\Z)|[0-9][.,])\Z")
"""Signs before a number that is approximate, an error of a spreadsheet, letters of another dollar: `A$5`, and the digits of a name: `v1.10`."""
_NUMERAL = lazy_pattern(
    rf"[¼-¾⅐-↋①-⓿〇一二三四五六七八九十百千万萬億亿兆]|(?<![^\W\d_])[{RAISED}⁻₀-₉]"
)
"""What is numeric without being a digit; a raised digit behind a letter belongs to it: `H₂O`, `m³`."""
_OTHER_DIGITS = lazy_pattern(r"(?<![^\W\d_])[²³]")  # a power of a number, not of a unit
_MAY_BE_GROUPED = lazy_pattern(r"[1-9][0-9]{0,2}\.[0-9]{3}")  # 1.250 is 1250 in most of Europe
_FOOTNOTE = lazy_pattern(r"[0-9]{1,2}")
_BLANK_GROUPS = lazy_pattern(
    r"(?<![\d.,])\d{1,3}(?:(?:[\u00a0\u2007\u2009\u202f'’]\d{3})++|(?: 000){2,})(?!\d)"
)
"""Groups of thousands divided by blanks or apostrophes; a plain space may also separate two numbers."""
MAX_DIGITS = 40
"""Maximum digits: longer numbers are not quantities, and Python limits the length it parses."""
_MAX_POWER = 300


class UnclearNumberError(ValueError):
    """A text has no number, several, or one that can be read in two ways."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, with its unit and scale."""

    value: Decimal
    unit: str = ""
    scale: int = 0

    @property
    def amount(self) -> Decimal:
        """The exact value: 0.125 for `12.5%`, 3200000 for `$3.2 million`."""
        return self.value.scaleb(SHARES.get(self.unit, self.scale))

    @property
    def number(self) -> Decimal:
        """The number as written, scaled, with percentages in percent: 12.5 for `12.5%`, 3200000 for `$3.2 million`."""
        return self.value if self.unit in SHARES else self.amount


_EMPHASIS = lazy_pattern(r"(\*\*|__(?![a-z0-9_]{1,60}__(?!\w))|`)(?=\S)(.{1,200}?)(?<=\S)\1")


def plain(line: str) -> str:
    """A line without Markdown emphasis and zero-width characters, with ASCII digits and blanks."""
    line = _BLANK_GROUPS.sub(lambda match: re.sub(r"\D", "", match[0]), line)
    if not line.isascii():
        line = "".join(map(plain_character, line))
    return _EMPHASIS.sub(r"\2", line)


_OTHER_SIGNS = dict(zip("％‰＄￥￡．－＋（）：٪٫٬", "%‰$¥£.-+():%.,", strict=True))


def plain_character(character: str) -> str:
    """A character with ASCII digits, signs and blanks; "" for an invisible one."""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    return " " if category == "Zs" else _OTHER_SIGNS.get(character, character)


def find_figures(line: str) -> Iterator[tuple[int, int]]:
    """The places of the numbers in a plain line, each from its sign, currency or word for a minus."""
    for figure in _FIGURE.finditer(line):
        yield (_minus_before(line, figure.start()) or figure).start(), figure.end()


def _minus_before(line: str, at: int) -> re.Match[str] | None:
    return _NEGATIVE.search(line, max(at - 10, 0), at)


def quantities(text: str) -> Iterator[tuple[str, Decimal | str, str]]:
    """The numbers of a running text, in digits or small English words: as written, their value (its text if it is unclear: `1.250`, `3 dozen`) and their unit."""
    line = _SMALL.sub(lambda word: str(SMALL_NUMBERS[word[0].casefold()]), plain(text))
    line = _RUN.sub(lambda run: _canonical(run[0]), _PER_CENT.sub("%", line))
    end = 0
    for figure in _FIGURE.finditer(line):
        if figure.start() < end:  # within an unclear one
            continue
        word = _minus_before(line, figure.start())
        begin, end = (word or figure).start(), figure.end()
        currency = unit_named(figure["currency"] or "")
        value: Decimal | None = None
        power = 0
        try:
            if not _ORDINAL.match(line, end):
                power, end = _scale(line, figure, line, is_money=bool(currency))
            if not _MORE.match(line, end):
                value = _value(figure, line).scaleb(power)
        except UnclearNumberError:
            behind = _OTHER_NUMBER.match(line, end) or _WORD.match(line, end)
            end = behind.end() if behind else end
        if more := _MORE.match(line, end):
            end = more.end()
        connected = _OF.match(line, end) if power else None
        unit = currency or unit_of(line, end, connected.end() if connected else end)
        if not power and unit not in SHARES and _MAY_BE_GROUPED.fullmatch(figure["digits"] or ""):
            value = None
        is_negative = bool(word or figure["late"] or figure["sign"] in _MINUSES)
        shown = line[begin:end]
        yield shown, shown.casefold() if value is None else -value if is_negative else value, unit


_SMALL = lazy_pattern(
    rf"\b(?:{'|'.join(sorted(SMALL_NUMBERS.keys() - {'one'}, key=len, reverse=True))})\b", re.I
)
"""Without "one", which is seldom a number."""
_PER_CENT = lazy_pattern(r"\bp(?:er|our)\s+cent\b", re.I)
_ORDINAL = lazy_pattern(r"(?:st|nd|rd|th)\b")
_OF = lazy_pattern(r"\s(?:of\s|de\s|d['’]\s?)")
"""What stands between a scale and its unit: `39 millions d'euros`."""
_RUN = lazy_pattern(
    rf"{APART}(?<![0-9.,])(?:[0-9]{{1,3}}(?: [0-9]{{3}}(?![0-9]))+|[0-9]++)(?:[.,][0-9]++)*+"
)
_MORE = lazy_pattern(rf"[.,][0-9][0-9.,]*+|\s?[{_VULGAR}]")
"""What makes digits a number of other marks, as in `1,5,3` and `1,200½`."""


def _canonical(run: str) -> str:
    """Digits with a decimal point and no groups, if they have one reading: `65,5`, `18.888.383`, `26 151 997`."""
    bare = run.replace(" ", "")
    if bare.isdigit():
        return bare
    read = find_quantity(bare, decimal="," if re.fullmatch(r"[0-9]+,[0-9]{1,2}", bare) else "")
    return bare if read is None else f"{read.value:f}"


def read_number(text: str) -> int | float:
    """The only number in a text, without its unit."""
    number = quantity(text).number
    return int(number) if number == number.to_integral_value() else float(number)


def once(text: str) -> str:
    """A text where a number that stands again in brackets is read once: "thirty (30) days" is "30 days"."""
    return _TWICE.sub(
        lambda m: m[2] if str(SMALL_NUMBERS.get(m[1].casefold(), m[1])) == m[2] else m[0], text
    )


_TWICE = lazy_pattern(
    rf"(?<![\w.,-])({'|'.join(sorted(SMALL_NUMBERS, key=len, reverse=True))}|[0-9]+) ?\(([0-9]+)\)",
    re.I,
)


def quantity(text: str, *, decimal: str = "") -> Quantity:
    """The only number in a text, with its unit and scale; `decimal` is the mark (`.`, `,`, or `.,` for both) that other numbers show."""
    if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS:
        return Quantity(Decimal(text))
    line = plain(text).replace("\\$", "$").strip()
    if decimal == ".," and _BETWEEN_DIGITS.search(line):
        raise UnclearNumberError(f"a mark of decimals or of thousands in {quoted(text)}")
    if decimal == "," or (not decimal and _GROUPED_BY_POINTS.search(line)):
        line = _BETWEEN_DIGITS.sub(lambda mark: _SWAPPED[mark[0]], line)
    line = once(_FOOTNOTE_MARK.sub("", _COMMA.sub(".", line)))
    brackets = IN_BRACKETS.fullmatch(line) if len(line) <= 2 * MAX_DIGITS else None
    if brackets:
        line = "".join(part.strip() for part in brackets.groups())
    if brackets and _FOOTNOTE.fullmatch(line):
        raise UnclearNumberError(f"a number of a footnote, or below 0, in {quoted(text)}")
    figures = list(islice(_FIGURE.finditer(line), 2))
    if len(figures) != 1:
        raise UnclearNumberError(f"{'more than one' if figures else 'no'} number in {quoted(text)}")
    (figure,) = figures
    currency = unit_named(figure["currency"] or "")
    scale, end = _scale(line, figure, text, is_money=bool(currency))
    before, after = line[: figure.start()], line[end:]
    unit = currency or unit_of(line, end, end)
    is_share = unit in SHARES
    if (is_share and (scale or after.startswith("%%"))) or (currency and after.startswith("%")):
        raise UnclearNumberError(f"a percentage that is something else, too, in {quoted(text)}")
    is_point = decimal == "." or is_share or scale
    if not is_point and _MAY_BE_GROUPED.fullmatch(figure["digits"] or ""):
        raise UnclearNumberError(
            f"a point that may group thousands or begin decimals in {quoted(text)}"
        )
    value = _value(figure, text)
    is_negative = _NEGATIVE.search(before) is not None
    is_behind = after.strip() in _MINUSES
    n_signs = is_negative + bool(brackets) + bool(figure["sign"]) + bool(figure["late"]) + is_behind
    if (
        n_signs > 1
        or (is_behind and after[0].isspace())
        or (not is_negative and _MAY_BE_NEGATIVE.search(before))
    ):
        raise UnclearNumberError(f"a number that may be below 0 in {quoted(text)}")
    _check_rest(line, before, after, text)
    value = -value if n_signs and figure["sign"] != "+" else value
    if scale % 3:  # 万 and 亿, which no word of results can name
        value, scale = value.scaleb(scale), 0
    return Quantity(value, unit, scale)


def _value(figure: re.Match[str], text: str) -> Decimal:
    digits = (figure["digits"] or "0").replace(",", "") + (figure["exponent"] or "")
    if len(digits) > MAX_DIGITS:
        raise UnclearNumberError(f"the number is too long in {quoted(text)}")
    value = Decimal(digits)
    if value and value.adjusted() > _MAX_POWER:
        raise UnclearNumberError(f"the number is too large in {quoted(text)}")
    part = figure["part"] or figure["alone"]
    return value + _fraction(part.strip(), text) if part else value


def _fraction(part: str, text: str) -> Decimal:
    """The value of a fraction below one that has an end in decimals."""
    above, _, below = unicodedata.normalize("NFKC", part).replace("/", "⁄").partition("⁄")
    value = Decimal(above) / Decimal(below)
    if value >= 1 or len(value.as_tuple().digits) > MAX_DIGITS // 4:
        raise UnclearNumberError(f"a fraction without an end in decimals in {quoted(text)}")
    return value


def _scale(line: str, figure: re.Match[str], text: str, *, is_money: bool) -> tuple[int, int]:
    """The power of ten that the words after the digits name (0 for none), and where these words end."""
    end = figure.end()
    if match := _CAPTION.match(line, end) or _WORD.match(line, end):
        word = match["word"].lower()
        own = MONEY_SCALES if is_money else _SCALES
        power = own.get(word) or FOREIGN_SCALES.get(word)
        if power and word not in own and (figure["digits"] or "")[-4:-3] in (".", ","):
            raise UnclearNumberError(f"a mark before three digits, in {quoted(text)}")
        if power:
            return power, match.end()
    if _OTHER_NUMBER.match(line, end):
        raise UnclearNumberError(f"a number that is not written out in {quoted(text)}")
    return 0, end


def _check_rest(line: str, before: str, after: str, text: str) -> None:
    """Refuse a number whose value the text around it changes."""
    is_mixed = any(_NUMERAL.search(part) for part in (before, after))
    is_word = _IN_WORDS.search(before) or _IN_WORDS.search(after)
    if is_mixed or is_word or _OTHER_DIGITS.search(line):
        raise UnclearNumberError(
            f"more than one number in {quoted(text)}, one of them not in digits"
        )
    if is_bound(line):
        raise UnclearNumberError(f"{quoted(text)} is a bound, not a number")
    if _NO_AMOUNT.search(before):
        raise UnclearNumberError(f"{quoted(text)} is not an exact number")


def find_quantity(text: str, *, decimal: str = "") -> Quantity | None:
    """Like `quantity`, but None instead of an error."""
    try:
        return quantity(text, decimal=decimal)
    except UnclearNumberError:
        return None


def is_bound(text: str) -> bool:
    """Whether a text gives a bound instead of a number: `less than $5`."""
    return _BOUND.search(text) is not None


def whole_number(number: int | float, name: str, *, least: int | None) -> int:
    """Convert to a whole number, of any sign but not 0 if there is no least one, or raise ValueError."""
    if number != int(number) or (not number if least is None else number < least):
        what = "other than 0" if least is None else f"from {least}"
        raise ValueError(f"{name} has to be a whole number {what}, not {number:g}")
    return int(number)


def quoted(text: str) -> str:
    """A text in quotes for a message, cut to 60 characters."""
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
