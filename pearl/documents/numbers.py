"""Read numbers with units and scales from texts and columns; ambiguous ones are refused, never guessed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice

from msgspec import Struct

from pearl.documents.dates import read_dates
from pearl.documents.lexicon import (
    APART,
    CURRENCIES,
    CURRENCY_UNITS,
    FOREIGN_SCALES,
    MONEY,
    MONEY_SCALES,
    NUMBER_WORD,
    PLAIN_SCALES,
    SCALED,
    SCALED_MONEY,
    SCALES,
    SCALES_UNSPACED,
    SHARES,
    SMALL_NUMBER,
    SMALL_NUMBERS,
    UNIT_UNSPACED,
    UNSPACED,
    is_year,
    unit_named,
)
from pearl.errors.patterns import lazy_pattern

_UNIT_AFTER = lazy_pattern(  # TEUR, €, %, °C, mg, m2, 公斤
    rf"\s?({SCALED}|{MONEY}|[%‰¢]|°[CF]|[^\W\d_{UNSPACED}]+(?:[23](?!\w))?|{UNIT_UNSPACED})"
)
_CURRENCY_BEFORE = lazy_pattern(rf"({MONEY})\s?\Z")  # US$ before 5


def unit_of(text: str, start: int, end: int) -> str:
    """The canonical unit of a number; "" if it has no known unit."""
    before = _CURRENCY_BEFORE.search(text, max(start - 5, 0), start)
    sign = before[1] if before else text[start:end].lstrip("-+−")[:1]
    if before or (sign and sign in CURRENCIES):
        return unit_named(sign)
    after = _UNIT_AFTER.match(text, end)
    return unit_named(after[1]) if after else ""


_DIGITS = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})++(?![0-9])|[0-9]++)(?:\.[0-9]++)?|\.[0-9]++"
VULGAR = "¼-¾⅐-⅞"  # Fractions of one character, for a class of a pattern
FRACTION = rf"\s?[{VULGAR}]|[ ][1-9][0-9]?[/⁄][1-9][0-9]?(?![0-9/⁄.,])"
"""A fraction after a whole number: 2½, 1 1/2."""
RAISED = "⁰¹²³⁴-⁹"  # Raised digits, for a class of a pattern
_FOOTNOTE_MARK = lazy_pattern(
    rf"(?<=[0-9],[0-9]{{3}})(?<![0-9]{{4}})[{RAISED}]{{1,2}}(?![{RAISED}⁻])"
)
"""The mark of a footnote, 1,250¹: no power has a base with groups of thousands."""
_BETWEEN_DIGITS = lazy_pattern(r"(?<=[0-9])[.,](?=[0-9])")  # not at the end of a sentence
_GROUPED_BY_POINTS = lazy_pattern(
    r"(?<![0-9.,])[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})++,[0-9]++|(?:\.[0-9]{3}){2,}+)(?![.,]?[0-9])"
)
"""Digits that have one reading: `1.234,56`, `1.234.567`."""
_SWAPPED = {".": ",", ",": "."}
_FIGURE = lazy_pattern(  # -$5, CHF -1,234.50, 1.5e3, 2½, ¾
    rf"""
      (?P<sign>(?:(?<![\w)])[-+−]|(?<=[{UNSPACED}])−)(?=[{CURRENCIES}A-Z]|\.?[0-9]))?
      (?:(?P<currency>{APART}{SCALED}|{MONEY})\s?(?P<late>[-−])?|{APART})
      (?:
        (?P<digits>{_DIGITS})
        (?P<exponent>[eE][-+]?[0-9]{{1,3}}\b)?
        (?P<part>(?<![0-9]{{4}})(?:{FRACTION}))?
        | (?P<alone>[{VULGAR}])
      )
    """,
    re.X,
)
IN_BRACKETS = lazy_pattern(
    rf"((?:{SCALED}|{MONEY})?)\s*\(\s*((?:{SCALED}|{MONEY})?\s*(?:{_DIGITS})\s*(?:%|(?:thousand|[mbtr]+illion)s?)?)\s*\)(\s*[^()]*)"
)
"""A negative number in accounting notation: (1,315), $ (5), (TEUR 5), (2.5%), (5.3 million)."""
_WORD = lazy_pattern(  # million, Mio., 億
    rf"\s?(?P<word>[^\W\d_{UNSPACED}]+|{'|'.join(SCALES_UNSPACED)})(?![千百十兆천백십])\.?"
)
_CAPTION = lazy_pattern(
    rf"\s?(?:\((?:[{CURRENCIES}]\s)?(?:in\s)?|in\s)(?:(?:[{CURRENCIES}]|USD|US\$)\s?)?"
    r"(?P<word>thousands|millions|billions|trillions)(?:\s(?:of\s)?(?:U\.?S\.?\s)?(?:dollars|USD))?\)?",
    re.I,
)
"""A scale after a number: `138.0 (in millions)`."""
_COMMA = lazy_pattern(
    rf"(?<=[0-9]),(?=[0-9]{{1,2}}\s?(?:(?:{'|'.join(FOREIGN_SCALES)})(?!\w)|{SCALED}))", re.I
)
"""A decimal comma: 2,5 Mio., 2,5 TEUR."""

_OTHER_NUMBER = lazy_pattern(
    r"\s?+(?:(?:[kKM]|MM|cr|hundred|dozen|lakh|crore|quarter)s?\b"
    r"|(?i:hundert|mill(?:ion|iarde?)\w*|milli[oó]n\w*|bill?ion\w*|mil(?:iardi|ioni|hão|hões|e)?|mille|"
    r"bilhão|bilhões|tys|тыс\w*|миллион\w*|миллиард\w*|duzend|douzaines?|docenas?)\b"
    r"|[만억천백십千百十兆万萬億亿])"
    r"|[ _^]?[²³]|_\d|[eExX][-+]?\d|\s?+(?i:bps|basis points?)\b|\s?[%‰]?[?+]|[xX×](?![^\W\d_])|(?i:st|nd|rd|th)\b"
)
"""Text that changes the value of the digits before it, or makes it unclear: 5k, 3 dozen, 2万5千, 3x, 1st."""
_IN_WORDS = lazy_pattern(  # five, drei, cinq, cinco
    rf"\b(?:{NUMBER_WORD}|"
    r"halb\w?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|deux|trois|quatre|cinq|huit|dix|"
    r"dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez)\b",
    re.I,
)
_BOUND = lazy_pattern(  # < 5, more than 5, up to $5, 60 or more
    r"[<>≤≥]|\b(?:(?:more|less|fewer|greater|higher|lower|larger|smaller|other)\s+than|at\s+(?:least|most)|up\s+to"
    r"|over|under|above|below|exceed(?:s|ed|ing)?|nearly|almost)\s+[$€£¥]?\s?[-−]?\d"
    r"|\d\s(?:[^\W\d]++\s)?or\s(?:more|less|fewer)\b",
    re.I,
)
_MAY_BE_NEGATIVE = lazy_pattern(  # `- ` or `(` or "moins" before 5
    r"(?:[-−–—‒⁻‐‑(+]\s*+|\b(?:moins|menos|meno)\s)\Z", re.I
)
_MINUSES = ("-", "−")  # Behind a number, as in accounts: `5.50-`
_NO_AMOUNT = lazy_pattern(rf"(?:[~≈≃±]\s?|#DIV/|[^\W\d_{UNSPACED}](?=\Z)|[0-9][.,])\Z")
"""Signs before a number that is approximate, an error of a spreadsheet, letters of another dollar: `A$5`, and the digits of a name: `v1.10`."""
_NUMERAL = lazy_pattern(
    rf"[¼-¾⅐-↋①-⓿〇一二三四五六七八九十百千万萬億亿兆]|(?<![^\W\d_])[{RAISED}⁻₀-₉]"
)
"""A numeral other than a digit: ½, ③, 三; but a raised digit after a letter belongs to it: `H₂O`, `m³`."""
_MAY_BE_GROUPED = lazy_pattern(r"[1-9][0-9]{0,2}\.[0-9]{3}")  # 1.250 is 1250 in most of Europe
_BLANK_GROUPS = lazy_pattern(
    r"(?<![\d.,])\d{1,3}(?:(?:[\u00a0\u2007\u2009\u202f'’]\d{3})++(?P<comma>(?=,(?:\d{1,2}|\d{4,})(?![\d.,])))?"
    r"|(?: 000){2,})(?!\d)"
)
"""Groups of thousands divided by blanks or apostrophes; a plain space may also separate two numbers. A comma behind
them begins decimals, unless three digits follow."""
MAX_DIGITS = 40
"""Maximum digits: longer numbers are not quantities, and Python limits the length it parses."""
_MAX_POWER = 300  # larger numbers do not fit a float


class UnclearNumberError(ValueError):
    """A text has no number, several, or one that can be read in two ways."""


class Quantity(Struct, frozen=True):
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


# **5**, __5__ and `5`, but not names such as __init__
_EMPHASIS = lazy_pattern(r"(\*\*|__(?![a-z0-9_]{1,60}__(?!\w))|`)(?=\S)(.{1,200}?)(?<=\S)\1")


def plain(line: str) -> str:
    """A line without Markdown emphasis and zero-width characters, with ASCII digits and blanks."""
    # 1 234,50 becomes 1.234,50, which has one reading
    line = _BLANK_GROUPS.sub(
        lambda match: re.sub(r"\D", "" if match["comma"] is None else ".", match[0]), line
    )
    if not line.isascii():
        line = "".join(c if c.isascii() else _plain_character(c) for c in line)
    return _EMPHASIS.sub(r"\2", line)


_OTHER_SIGNS = dict(zip("％‰＄￥￡．－＋（）：٪٫٬", "%‰$¥£.-+():%.,", strict=True))


def _plain_character(character: str) -> str:
    """A character with ASCII digits, signs and blanks; "" for an invisible one."""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    return " " if category == "Zs" else _OTHER_SIGNS.get(character, character)


def find_figures(line: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the numbers in a plain line; a number starts at its sign, currency or the word `minus`."""
    for figure in _FIGURE.finditer(line):
        yield _begin(line, figure.start()), figure.end()


def _begin(line: str, at: int) -> int:
    """Where a number at an offset begins: at the word `minus` or `negative` before it, if there is one."""
    for word in ("minus", "negative"):
        start = at - len(word) - 1
        is_word = line[max(start, 0) : at - 1].casefold() == word and line[at - 1].isspace()
        if is_word and not (start and line[start - 1].isalnum()):
            return start
    return at


def quantities(text: str) -> Iterator[tuple[str, Decimal | str, str]]:
    """Yield each number of a running text: its text, value and unit. Unclear numbers (`1.250`, `3 dozen`) have their text as value."""
    line = _SMALL.sub(lambda word: str(SMALL_NUMBERS[word[0].casefold()]), plain(text))
    line = _RUN.sub(lambda run: _canonical(run[0]), _PER_CENT.sub("%", line))
    end = 0
    for figure in _FIGURE.finditer(line):
        if figure.start() < end:  # within an unclear one
            continue
        begin, end = _begin(line, figure.start()), figure.end()
        currency = unit_named(figure["currency"] or "")
        value: Decimal | None = None
        power = 0
        try:
            is_ordinal = line[end : end + 2] in ("st", "nd", "rd", "th")
            if not is_ordinal or line[end + 2 : end + 3].isalnum():  # 5th, no 5thousand
                power, end = _scale(line, figure, line)
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
        is_negative = begin < figure.start() or bool(figure["late"]) or figure["sign"] in _MINUSES
        shown = line[begin:end]
        yield shown, shown.casefold() if value is None else -value if is_negative else value, unit


_SMALL = lazy_pattern(rf"\b(?!one\b){SMALL_NUMBER}\b", re.I)
"""Number words except "one", which is seldom a number."""
_PER_CENT = lazy_pattern(r"\bp(?:er|our)\s+cent\b", re.I)
_OF = lazy_pattern(r"\s(?:of\s|de\s|d['’]\s?)")
"""The word between a scale and its unit: `39 millions d'euros`."""
_RUN = lazy_pattern(  # 65,5 or 18.888.383 or 26 151 997
    rf"{APART}(?<![0-9.,])(?:[0-9]{{1,3}}(?: [0-9]{{3}}(?![0-9]))+|[0-9]++)(?:[.,][0-9]++)*+"
)
_MORE = lazy_pattern(rf"[.,][0-9][0-9.,]*+|\s?[{VULGAR}]")
"""Marks after digits that make them another number, as in `1,5,3` and `1,200½`."""


def _canonical(run: str) -> str:
    """Rewrite digits with a decimal point and without groups if they have one reading: `65,5`, `18.888.383`, `26 151 997`."""
    bare = run.replace(" ", "")
    if bare.isdigit():
        return bare
    whole, _, decimals = bare.partition(",")
    is_comma = whole.isdigit() and decimals.isdigit() and len(decimals) < 3
    read = find_quantity(bare, decimal="," if is_comma else "")
    return bare if read is None else f"{read.value:f}"


def read_number(text: str) -> int | float:
    """The only number in a text, without its unit."""
    number = quantity(text).number
    return int(number) if number == number.to_integral_value() else float(number)


def once(text: str) -> str:
    """Remove a number that is repeated in brackets: "thirty (30) days" becomes "30 days"."""
    return _TWICE.sub(
        lambda m: m[2] if str(SMALL_NUMBERS.get(m[1].casefold(), m[1])) == m[2] else m[0], text
    )


_TWICE = lazy_pattern(  # thirty (30)
    rf"(?<![\w.,-])({SMALL_NUMBER}|[0-9]+) ?\(([0-9]+)\)",
    re.I,
)


def quantity(text: str, *, decimal: str = "") -> Quantity:
    """Read the only number in a text, with unit and scale. `decimal` is the decimal mark of other numbers: `.`, `,`, or `.,` for both."""
    if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS:
        return Quantity(Decimal(text))
    line = plain(text).replace("\\$", "$").strip()
    if decimal == ".," and _BETWEEN_DIGITS.search(line):
        raise UnclearNumberError(f"a decimal or a thousands mark in {quoted(text)}")
    if decimal == "," or (not decimal and _GROUPED_BY_POINTS.search(line)):
        line = _BETWEEN_DIGITS.sub(lambda mark: _SWAPPED[mark[0]], line)
    line = once(_FOOTNOTE_MARK.sub("", _COMMA.sub(".", line)))
    brackets = IN_BRACKETS.fullmatch(line) if len(line) <= 2 * MAX_DIGITS else None
    if brackets:
        line = "".join(part.strip() for part in brackets.groups())
    if brackets and line.isdigit() and len(line) < 3:
        raise UnclearNumberError(f"brackets of a footnote or a negative number in {quoted(text)}")
    figures = list(islice(_FIGURE.finditer(line), 2))
    if len(figures) != 1:
        raise UnclearNumberError(f"{'more than one' if figures else 'no'} number in {quoted(text)}")
    (figure,) = figures
    currency = unit_named(figure["currency"] or "")
    scale, end = _scale(line, figure, text)
    before, after = line[: figure.start()], line[end:]
    unit = currency or unit_of(line, end, end)
    is_share = unit in SHARES
    if (is_share and (scale or after.startswith("%%"))) or (currency and after.startswith("%")):
        raise UnclearNumberError(f"a percentage with a scale or a currency in {quoted(text)}")
    is_point = decimal == "." or is_share or scale
    if not is_point and _MAY_BE_GROUPED.fullmatch(figure["digits"] or ""):
        raise UnclearNumberError(
            f"a point that may group thousands or begin decimals in {quoted(text)}"
        )
    value = _value(figure, text)
    is_negative = _begin(line, figure.start()) < figure.start()
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
    if part := figure["part"] or figure["alone"]:
        above, _, below = (
            unicodedata.normalize("NFKC", part.strip()).replace("/", "⁄").partition("⁄")
        )
        fraction = Decimal(above) / Decimal(below)
        if fraction >= 1 or len(fraction.as_tuple().digits) > MAX_DIGITS // 4:  # 1/3
            raise UnclearNumberError(f"a fraction with endless decimals in {quoted(text)}")
        value += fraction
    return value


def _scale(line: str, figure: re.Match[str], text: str) -> tuple[int, int]:
    """Return the power of ten that the currency or the words after a number name (0 for none), and where these words end."""
    end, currency = figure.end(), figure["currency"] or ""
    power, is_english = SCALED_MONEY.get(currency, 0), currency not in SCALED_MONEY
    behind = _UNIT_AFTER.match(line, end)
    if is_scaled := behind is not None and behind[1] in SCALED_MONEY:
        power, is_english = SCALED_MONEY[behind[1]], False
    elif match := _CAPTION.match(line, end) or _WORD.match(line, end):
        word = match["word"].lower()
        own = MONEY_SCALES if currency else PLAIN_SCALES
        if more := own.get(word) or FOREIGN_SCALES.get(word):
            if power:
                raise UnclearNumberError(f"two scales in {quoted(text)}")
            power, is_english, end = more, word in own, match.end()
    if not is_english and (figure["digits"] or "")[-4:-3] in (".", ","):  # 1.250 Mio. EUR
        raise UnclearNumberError(f"a decimal or a thousands mark in {quoted(text)}")
    if end == figure.end() and not is_scaled and _OTHER_NUMBER.match(line, end):
        raise UnclearNumberError(f"a number that is not written out in {quoted(text)}")
    return power, end


def _check_rest(line: str, before: str, after: str, text: str) -> None:
    """Refuse a number whose value the text around it changes."""
    is_mixed = any(_NUMERAL.search(part) for part in (before, after))
    is_word = _IN_WORDS.search(before) or _IN_WORDS.search(after)
    if is_mixed or is_word:
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
    """Convert to a whole number of at least `least` (None allows any but 0), or raise ValueError."""
    if number != int(number) or (not number if least is None else number < least):
        what = "other than 0" if least is None else f"from {least}"
        raise ValueError(f"{name} has to be a whole number {what}, not {number:g}")
    return int(number)


def quoted(text: str) -> str:
    """A text in quotes for a message, cut to 60 characters."""
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def listed(items: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first items of a list for a message, with an ellipsis if there are more."""
    return separator.join(items[:most]) + f"{separator}..." * (len(items) > most)


# Cells of a column, read together: a cell that cannot be read with certainty is None. Other cells resolve
# ambiguous ones: two digits behind a point show that `1.250` has decimals, a number without brackets that `(15)` is negative.

MAX_LENGTH = 60  # maximum characters of a numeric cell
CODE = lazy_pattern(r"\W*0[0-9]+\W*")  # 0048: a code or a telephone number, not a quantity
_ASIDE = lazy_pattern(r"[^(]*[^\W_%][^(]*\((?!.*(?:thousand|[mbtr]illion)s\b)", re.I)
"""Brackets after a number that do not hold its scale: 12 (1), 5 (2019: 4)."""
_SMALL_IN_BRACKETS = lazy_pattern(r"\(\s*([0-9]{1,2})\s*\)")
"""A negative number in a cell; `read_quantities` decides whether it may be the number of a footnote."""

_RESTATED = lazy_pattern(r"(?P<first>[^()]+?)\s*\(\s*(?P<again>[^()]+?)\s*\)\s*(?P<percent>%?)")
# 1,234 (a), 1,234*, 1,234 [2]
_CELL_NOTE = lazy_pattern(r"\s*(?:\(\s*[a-z]\s*\)|[*†‡]+|\[[0-9a-z]{1,2}\])\s*\Z")
_BLANKS = frozenset({
    "", "-", "--", "—", "–", "―", "−", "n/a", "na", "n.a.", "nm", "n/m", "none", "nil", "null", "nan",
    "$ -", "$-", "$ —", "$—",
})  # fmt: skip


def is_blank(text: str) -> bool:
    """Whether a cell has no value: it is blank, a dash, or a word such as `none`."""
    return " ".join(text.split()).casefold() in _BLANKS


def read_quantity(text: str, *, decimal: str = "") -> Quantity | None:
    """The number in a cell; None if it has none, or an ambiguous one."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    if text.isascii() and text.isdecimal() and text[0] != "0" and len(text) <= MAX_DIGITS:
        return Quantity(Decimal(text))  # fast path for most cells of long tables
    text = _CELL_NOTE.sub("", text)
    if restated := _RESTATED.fullmatch(text):
        # It is repeated in brackets without its sign: `-27 ( 27 % )`
        first = read_quantity(restated["first"], decimal=decimal)
        again = read_quantity(restated["again"] + restated["percent"], decimal=decimal)
        if first and again and abs(first.value) == again.value:
            unit = first.unit or again.unit
            if again.unit in ("", unit):
                return Quantity(first.value, unit, first.scale or again.scale)
    if below_zero := _SMALL_IN_BRACKETS.fullmatch(text):
        return Quantity(-Decimal(below_zero[1]))
    if CODE.fullmatch(text):
        return None
    if _ASIDE.match(text):
        # EUR (1,315), but EUR (1) may have a footnote
        below_zero = IN_BRACKETS.fullmatch(plain(text))
        if not below_zero or len(below_zero[2].strip()) < 3:
            return None
    return find_quantity(text, decimal=decimal)


def scale_of(text: str) -> int | None:
    """Return the power of ten that a caption or header names; None if it names none, or different ones."""
    words = [match[match.lastgroup or 0] for match in _CAPTION_SCALE.finditer(text)]
    powers = {SCALED_MONEY.get(word) or _CAPTION_WORDS[word.casefold()] for word in words}
    return powers.pop() if len(powers) == 1 else None


_CAPTION_WORDS = MONEY_SCALES | FOREIGN_SCALES | {"000": 3}
_WORDS_BESIDE_MONEY = "|".join(["bn", "mn", "tn", *sorted(FOREIGN_SCALES, key=len, reverse=True)])
_CAPTION_SCALE = lazy_pattern(
    rf"""
      \b(?P<word>(?i:{"|".join(SCALES)}))[sS]?\b                         # in thousands, EUR million
    | (?<![\w.,])['’](?P<quoted>000)\b                                   # £'000
    | (?:{MONEY})\s?(?P<zeros>000)s?(?![\w.,'’])                        # US$ 000, $000s
    | (?<![\w.,'’])(?P<plural>000)['’]?s\b                              # in 000s, 000's
    | {APART}(?P<scaled>{SCALED})                                       # TEUR, k€
    | (?:{MONEY})(?P<letter>mm|[kmbKMB])\b                              # £m, US$M
    | (?:{MONEY})\s?(?P<behind>(?i:{_WORDS_BESIDE_MONEY}))\b           # EUR bn, € Mio.
    | \b(?P<before>(?i:{_WORDS_BESIDE_MONEY}))\.?\s?(?={MONEY})        # Mio. EUR, bn €
    | \b[Ii]n\s(?P<alone>(?i:{"|".join(FOREIGN_SCALES)}))\b               # in Tsd.
    | \((?P<bracketed>(?i:{"|".join(FOREIGN_SCALES)}))\.?\)               # (Mrd.)
    """,
    re.X,
)
"""The scale that a caption or a header names: a word, or an abbreviation beside a currency. `£2,000` and `5 m` name none."""


_DIGIT = lazy_pattern(rf"\d|[{VULGAR}]")
_DECIMAL_POINT = lazy_pattern(
    r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})*\.(?:[0-9]{1,2}|[0-9]{4,})(?![0-9.,])"  # 2.50, 1,200.5
    r"|[0-9],[0-9]{3}\.[0-9]|(?<![0-9])0\.[0-9]"  # 1,200.500, 0.125
)
_COMMA_DIGITS = r"(?<![0-9.,])[0-9]++(?:\.[0-9]{3})*,(?:[0-9]{1,2}|[0-9]{4,})(?![0-9.,])"
_DECIMAL_COMMA = lazy_pattern(_COMMA_DIGITS)
"""Certain if two cells have it; one alone, such as `3,14`, may be two numbers."""
_CERTAIN_COMMA = lazy_pattern(
    r"(?<![0-9.,])(?:[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]++|0,[0-9]++)(?![0-9.,])"
    rf"|{_COMMA_DIGITS}\s?(?:%|{MONEY})|(?:{MONEY})\s?{_COMMA_DIGITS}"
)
# 310², but not 10²
_RAISED_MARK = lazy_pattern(rf"(?<=[0-9]{{2}})(?<!\b10)[{RAISED}]{{1,2}}(?=[^0-9{RAISED}⁻]*\Z)")
# $ (5) %
_BRACKETS = lazy_pattern(r"\s*[$€£¥]?\s*\(.*\)\s*%?\s*", re.S)


def read_column(name: str, cells: Sequence[str], scale: int = 0) -> list[Quantity | None]:
    """Read the numbers of a column. A number without a scale gets that of the column. A column of dates has no numbers."""
    filled = [cell for cell in cells if not is_blank(cell)]
    read, _ = read_quantities(cells)
    if filled and all(map(is_year, filled)):
        return [None] * len(read)
    if 2 * sum(quantity is not None for quantity in read) > len(filled):
        scale = scale_of(name) or scale
        return [
            Quantity(each.value, each.unit, scale)
            if each and not each.scale and each.unit in ("", *CURRENCY_UNITS)
            else each
            for each in read
        ]
    is_date = 2 * sum(period is not None for period in read_dates(filled).periods) > len(filled)
    return [None] * len(read) if is_date else read


def read_quantities(cells: Sequence[str]) -> tuple[list[Quantity | None], str]:
    """Read the number of each cell; the cells together show the decimal mark, which is also returned: `.,` if unclear."""
    different = [cell for cell in dict.fromkeys(cells) if _DIGIT.search(cell)]
    plain_cells = [cell if cell.isascii() else plain(cell) for cell in different]
    is_point = any(map(_DECIMAL_POINT.search, plain_cells))
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


def read_numbers(values: Sequence[str]) -> list[Quantity | None]:
    """Read the number of each value like `read_quantities`, also in short texts such as `about 5 (est.)`."""
    read, decimal = read_quantities(values)
    return [
        found or find_quantity(value, decimal=decimal)
        for value, found in zip(values, read, strict=True)
    ]


def numbers_of(items: Sequence[str]) -> list[Decimal]:
    """Read the number of each entry; other entries resolve ambiguous ones. Refuse different units."""
    in_column, decimal = read_quantities(items)
    read = [
        found or quantity(item, decimal=decimal)
        for item, found in zip(items, in_column, strict=True)
    ]
    units = {each.unit: item for each, item in zip(read, items, strict=True)}
    if not units.keys() & SHARES.keys():
        units.pop("", None)  # numbers without a unit take that of the others
    if len(units) > 1:
        one, other, *_ = (f"'{item[:60]}'" for item in units.values())
        raise UnclearNumberError(f"numbers in different units: {one} and {other}")
    return [each.number for each in read]
