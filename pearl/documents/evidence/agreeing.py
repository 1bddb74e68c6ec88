"""A value and the passage that is to bear it out → the value in its normal form, or why they disagree.

Nothing is guessed: where a passage can be read in two ways, or states a bound instead of a number, the
value does not follow from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from pearl.documents.dates import find_dates
from pearl.documents.english import DIMENSIONS, NUMBER_WORD, ONES, SCALES, TENS, UNITS
from pearl.documents.evidence.finding import n_words, negations
from pearl.documents.evidence.normal import NormalText, is_inside_token, normalise
from pearl.documents.numbers import (
    APART,
    CURRENCIES,
    CURRENCY_UNITS,
    FOREIGN_SCALES,
    FRACTION,
    MONEY,
    SCALE_WORDS,
    SCALES_UNSPACED,
    SHARES,
    UNIT_UNSPACED,
    UNSPACED,
    UnclearNumberError,
    plain,
    quantity,
    quoted,
    unit_named,
)
from pearl.documents.passages import STOP_WORDS
from pearl.documents.record import Basis, FieldScalar
from pearl.documents.table.quantities import scale_of
from pearl.dsl.fields import Field
from pearl.errors.patterns import lazy_pattern

Stated = str | Decimal | bool
"""A value in a reply, before it is read as the type of its field."""

MAX_DIGITS = 30

MAX_BESIDE = 40
"""Characters around a passage that may change its numbers."""


class DisagreementError(ValueError):
    """A value does not follow from its quote; the message says why."""


def agreed(
    field: Field, value: Stated, pieces: Sequence[str], before: str = "", after: str = ""
) -> tuple[FieldScalar, Basis]:
    """The value of a field and how it follows from a passage; `DisagreementError` if it does not.

    The passage is divided where its quote leaves something out; `before` and `after` stand around it in
    the document.
    """
    passage = " … ".join(pieces)
    if field.type == "bool" or _truths(field):
        return _truth(field, value, passage, before, after)
    return _READERS[field.type](field, value, passage, before, after)


def same_value(field: Field, one: FieldScalar, other: FieldScalar) -> bool:
    """Whether two values of a field are equal, however they are written."""
    if isinstance(one, str) and isinstance(other, str) and field.type in ("str", "text"):
        return sorted(_tokens(one)) == sorted(_tokens(other))
    return one == other


def n_standing(field: Field, value: Stated, passage: str) -> int:
    """How often a passage has a value in it; 0 for one that does not stand in it as it is."""
    if isinstance(value, Decimal):
        return sum(amount.number == value for amount in _amounts(plain(passage)))
    if isinstance(value, bool):
        return 0
    whole, text = _normal(passage.casefold()), _normal(" ".join(value.casefold().split()))
    n, place = 0, whole.find(text)
    while place is not None and place[0] < place[1]:
        n, place = n + 1, whole.find(text, place[1])
    return n


def _text(value: Stated) -> str:
    if isinstance(value, bool):
        raise DisagreementError(f"{str(value).lower()} is no text")
    return value if isinstance(value, str) else f"{value:f}"


# ---------------------------------------------------------------------------------------------
# Negations

_CODE = lazy_pattern(r"\bn(?:o|r|[°º])s?[.:°º]?\s*(?=[#(]?\w*\d)", re.I)
"""`No. 12`, which denies nothing."""
_CLAUSE = lazy_pattern(
    r"[.;!?|](?!\d)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bProf\.)|\n(?!\s?(?-i:[a-zà-ÿ]))"
    r"|\b(?:but|however|although|though|aber|mais)\b",
    re.I,
)
"""Ends of clauses; a line that goes on with a small letter is wrapped."""
_PART = lazy_pattern(r"[,:]\s|\band\b")
_BRACKETS = str.maketrans("()[]", "  , ")


@lru_cache(maxsize=4096)
def _negations(text: str) -> list[str]:
    """The negations in a text, also those in brackets; cached, because forms repeat their labels."""
    text = _CODE.sub(" ", text.translate(_BRACKETS)).replace("on-", "on ")  # non-smoker
    return [word.strip().casefold() for word in negations(text)]


_DENIED = lazy_pattern(
    r"(?:\s*[:=|(–-]+\s*(?:no|none|nil|nein|keine?)(?=\W*(?:\Z|\n|[.,;|)]))"
    r"|[\s:=|(–-]*(?:(?:is|was|are|were|be|been|has|have|had|can|could|did|does)\s)*"
    r"(?:denied|absent|negative|ruled\sout|excluded|(?:not|never)\s(?:been\s)?(?:given|taken|used|seen|found"
    r"|present|detected|confirmed|started|develop(?:ed)?|occur(?:red)?)))\b",
    re.I,
)
"""What denies the words before it: `fever: none`, `fever was not seen`."""
_EXCEPT = lazy_pattern(r"\b(?:other than|apart from|except(?:ing|\sfor)?)\s\Z", re.I)


def _refuse_denied(
    field: Field, before: str, value: str, after: str, *, in_part: bool = False
) -> None:
    """Refuse a value if the text around it denies it, unless the field is of what is denied."""
    clause = _CLAUSE.split(before)[-1]
    if in_part:
        clause = _PART.split(clause)[-1]
    words = list(_negations(clause))
    words += [match[0].strip() for match in (_EXCEPT.search(clause), _DENIED.match(after)) if match]
    if words and not _negations(_words_of(field)):
        raise DisagreementError(f"'{words[-1]}' beside {quoted(value)} in the document denies it")


def _words_of(field: Field) -> str:
    """The name of a field as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.\W]+", " ", field.name)


# ---------------------------------------------------------------------------------------------
# Texts and labels


def _tokens(text: str) -> list[str]:
    words = (w.strip(".:!?()[]\"'") for w in re.split(r"[\s,;]+", normalise(text).casefold()))
    return [word for word in words if word]


_APART = r"(?<![\w.,'’/$€£¥<>-])"


def _copied(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    """A value that stands in its passage, apart from commas; `Keller, Maria` may be `Maria Keller`."""
    text = " ".join(_text(value).split())
    start, end = _place(text, passage) or (-1, -1)
    if start < 0:
        *first, last = [re.escape(word) for word in re.split(r"[,\s]+", text)]
        in_order = "[,\\s]+".join([*first, last])
        turned = rf"(?:\A|[:|;(\n])\s*{last},\s+{' '.join(first)}(?=\s*(?:\Z|[,;.|(\n]))"
        match = (
            re.search(rf"{_APART}{in_order}(?![\w'’/-]|[.,]\d)|{turned}", passage, re.I)
            if first
            else None
        )
        if match is None:
            raise DisagreementError(f"{quoted(text)} is not in the quote")
        start, end = match.span()
    lead, rest = before + passage[:start], passage[end:] + after
    if _is_cut(lead, text, rest):
        raise DisagreementError(f"{quoted(text)} is a part of a longer number or name in the quote")
    _refuse_denied(field, lead, text, rest)
    return text, "quoted"


def _is_cut(lead: str, text: str, rest: str) -> bool:
    """Whether a text is a part of a number or code in groups, or of an address of mail."""
    if is_inside_token(lead + text, len(lead)) or is_inside_token(text + rest, len(text)):
        return True
    if re.search(r"\d[ ]\w*\d\w*\Z", text) and re.match(r"[ ]\d", rest):
        return True
    if re.match(r"\w*\d\w*[ ]\d", text) and re.search(r"\d[ ]\Z", lead):
        return True
    return "@" in text and bool(re.search(r"[\w.+-]\Z", lead) or re.match(r"[\w-]|\.\w", rest))


_normal = lru_cache(maxsize=1024)(NormalText)


def _place(text: str, passage: str) -> tuple[int, int] | None:
    """Where a text stands in a passage, in any case and typography."""
    folded = passage.casefold()
    if len(folded) == len(passage):
        passage, text = folded, text.casefold()
    whole = _normal(passage)
    match = whole.find(_normal(text))
    if match is None or match[0] == match[1]:
        return None
    span = whole.original(*match)
    return span.start, span.end


def _summary(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    """A text that stands in its passage or sums it up: with no other number, negation or subject."""
    text = _text(value).strip()
    if _place(text, passage) is not None:
        return text, "quoted"
    stated = list(_amounts(passage))
    for amount in _amounts(text):
        if not any(
            {amount.number, amount.text} & {s.number, s.text} - {None} and amount.has_unit_of(s)
            for s in stated
        ):
            raise DisagreementError(f"{quoted(amount.text)} is not in the quote")
    days = {day.period for day in find_dates(passage)} - {None}
    for day in find_dates(text):
        if day.period not in days:
            raise DisagreementError(f"{quoted(text[day.start : day.end])} is not in the quote")
    if bool(_negations(text)) != bool(_negations(passage)):
        has, lacks = ("value", "quote") if _negations(text) else ("quote", "value")
        raise DisagreementError(f"the {has} has a negation, the {lacks} has none")
    stems = {word[:5] for word in _tokens(passage) if word not in STOP_WORDS and word.isalpha()}
    if not any(word[:5] in stems for word in _tokens(text)):
        raise DisagreementError("the value shares no word with its quote")
    return text, "summary"


def label_of(field: Field, value: str) -> str | None:
    """The label that a text means, in any case; None for another text."""
    key = _label_key(value)
    return next((label for label in field.labels if _label_key(label) == key), None)


_CHANCE = 3
"""Maximum letters of a label that is not looked for within words."""


def _label_key(text: str) -> str:
    return " ".join(re.sub(r"[_\s]+", " ", text).casefold().split()).strip(" .\"'")


def _label(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    label = label_of(field, str(value))
    if label is None:
        labels = ", ".join(field.labels)
        raise DisagreementError(f"{quoted(str(value))} is not one of the labels {labels}")
    left = passage
    standing: dict[str, tuple[int, int]] = {}
    for each in sorted(field.labels, key=len, reverse=True):  # `type 2 diabetes` before `diabetes`
        while place := _place(each.replace("_", " "), left):
            start, end = place
            standing.setdefault(each, place)
            left = left[:start] + "\x00" * (end - start) + left[end:]
    others = [each for each in standing if each != label]
    if others:
        raise DisagreementError(f"the quote says {quoted(others[0])}")
    if label in standing:
        start, end = standing[label]
        rest = passage[end:] + after
        part = _PART.split(_CLAUSE.split(rest)[0])[0]
        denied = [] if _negations(_words_of(field)) else _negations(part)
        if denied:
            raise DisagreementError(
                f"'{denied[0]}' after {quoted(label)} in the document denies it"
            )
        _refuse_denied(field, before + passage[:start], label, rest)
        return label, "quoted"
    # Letters such as `no` stand in many words by chance.
    telling = [each for each in field.labels if not (each.isalpha() and len(each) <= _CHANCE)]
    inside = next((each for each in telling if _label_key(each) in passage.casefold()), None)
    if inside is not None:
        raise DisagreementError(
            f"the quote has {quoted(inside)} only inside another word or number"
        )
    return label, "judged"


# ---------------------------------------------------------------------------------------------
# Yes and no

_YES = frozenset({"yes", "true", "y", "ja", "oui", "sí", "si"})
_NO = frozenset({"no", "false", "n", "nein", "non"})
_LITERAL = lazy_pattern(
    rf"(?:[:=|\t?]|\A)[ \t]*[\[(]?(?P<word>{'|'.join(sorted(_YES | _NO, key=len, reverse=True))})[\])]?[ \t]*(?=[.|;,\n]|\Z)",
    re.I,
)
"""The answer in `Smoker: no`."""
_OPEN_TRUTH = lazy_pattern(
    r"\b(?:stop(?:s|ped)|quit|ceased|gave up|given up|discontinued|former(?:ly)?|ex|previous(?:ly)?|used to|until"
    r"|possibl[ey]|suspect(?:s|ed)|probabl[ey]|(?:un)?likely|may|might|could|unclear|questionable|if)\b|\?|[☐□]|\[ \]",
    re.I,
)
"""Words of what was so once, or may be so."""


def _truths(field: Field) -> dict[str, bool]:
    """The labels of a field that mean yes and no, if it has both."""
    keys = {label: _label_key(label) for label in field.labels}
    truths = {label: key in _YES for label, key in keys.items() if key in _YES | _NO}
    return truths if len(set(truths.values())) == 2 else {}


def _truth(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    """Yes or no: a quote with a negation means no, any other quote yes; a short one is read in its clause."""
    truths = _truths(field)
    result: FieldScalar
    if field.type == "bool":
        word = _label_key(str(value))
        if word not in _YES | _NO:
            raise DisagreementError(f"{quoted(str(value))} is neither yes nor no")
        result = is_yes = word in _YES
    else:
        if isinstance(value, bool):
            value = next(label for label, is_true in truths.items() if is_true == value)
        label = label_of(field, str(value))
        if label is None or label not in truths:
            return _label(field, value, passage, before, after)
        result, is_yes = label, truths[label]
    literals = [match["word"] for match in _LITERAL.finditer(passage)]
    if not literals and (match := _LITERAL.match(after.lstrip(" *"))):
        literals = [match["word"]]
    for word in literals:
        if (word.casefold() in _YES) != is_yes:
            raise DisagreementError(f"the quote says '{word}'")
    if literals:
        return result, "quoted"
    if n_words(passage) <= 2:
        passage = f"{_CLAUSE.split(before)[-1]} {passage} {_CLAUSE.split(after)[0]}"
    name = _words_of(field).casefold()
    doubt = _OPEN_TRUTH.search(passage)
    if doubt and doubt[0].casefold() not in name:
        raise DisagreementError(f"'{doubt[0]}' in the quote leaves it open")
    stems = [word[:4] for word in name.split() if len(word) > 3]
    clauses = _CLAUSE.split(passage)  # `smokes; no alcohol`: only the clause of the field counts
    own_clauses = [each for each in clauses if any(stem in each.casefold() for stem in stems)]
    denied = Counter(_negations(" ; ".join(own_clauses or clauses)))
    own = Counter(_negations(name))
    if missing := own - denied:
        raise DisagreementError(f"the quote lacks the '{next(iter(missing))}' of the field's name")
    more = denied - own
    if is_yes and more:
        raise DisagreementError(f"the quote says '{next(iter(more))}'")
    if not is_yes and not more:
        raise DisagreementError("the quote denies nothing")
    return result, "judged"


# ---------------------------------------------------------------------------------------------
# Dates


def _date(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    text = _text(value).strip()
    stated = find_dates(text)
    if len(stated) != 1 or (stated[0].start, stated[0].end) != (0, len(text)):
        raise DisagreementError(f"{quoted(text)} is no date with day, month and year")
    if stated[0].period is None:
        raise DisagreementError(f"the day and the month of {quoted(text)} may be swapped")
    day = stated[0].period.first
    unclear = ""
    for match in find_dates(passage):
        shown = passage[match.start : match.end].strip()
        lead = before + passage[: match.start]
        if match.period is None:
            unclear = unclear or f"the day and the month of {quoted(shown)} may be swapped"
        elif match.period.first != day:
            continue
        elif bound := _AROUND.search(lead):
            unclear = f"{quoted(bound[0].strip())} before {quoted(shown)} leaves the day open"
        else:
            _refuse_denied(field, lead, shown, passage[match.end :] + after, in_part=True)
            return day.isoformat(), "quoted"
    raise DisagreementError(unclear or f"{day.isoformat()} is not in the quote")


_AROUND = lazy_pattern(
    r"(?:\b(?:before|after|prior to|later than|earlier than|around|about|approximately|approx\.?|circa|ca\.|c\."
    r"|between|estimated|possibly|probably)\s+(?:the\s)?|\bbetween\s[^.;\n]*|\d\s?(?:[-–—/]|to|and|or)\s?)\Z",
    re.I,
)


# ---------------------------------------------------------------------------------------------
# Numbers


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number in a text; with a flaw, it is not certain that the text states this number."""

    text: str
    start: int
    number: Decimal | None
    scale: int = 0
    unit: str = ""
    flaw: str = ""

    def has_unit_of(self, other: _Amount) -> bool:
        units = {self.unit, other.unit} - {""}
        return len({unit for unit in units if not unit.startswith("?")}) < 2


_TENS = {word: 10 * n for n, word in enumerate(TENS, start=2)}
_WORDS = {
    "one": 1, **{word: n for n, word in enumerate(ONES)}, **_TENS,
    **{f"{ten}{mark}{ONES[n]}": tens + n for ten, tens in _TENS.items() for n in range(1, 10) for mark in " -"},
}  # fmt: skip
_WORD = rf"(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![^\W_])"
_NUMBER = lazy_pattern(
    rf"{APART}\.?\d+(?:[.,'’]\d+|[ ]\d{{3}}(?!\d))*(?:(?<!\d{{4}})(?:{FRACTION}))?|[¼-¾⅐-⅞]|\b(?:half(?![^\W_])|{_WORD})",
    re.I,
)
_DECIMAL_COMMA = lazy_pattern(r"\d{1,3}(?:[. ]\d{3})+,\d{1,2}|\d+,\d{1,2}")
_BLANK_IN_NUMBER = lazy_pattern(r"(?<=\d)[ ](?=\d{3}(?!\d))")
_UNIT = rf"(?P<unit>°\s?[CcFf]|[%‰{CURRENCIES}]|{UNIT_UNSPACED}|[^\W\d_]+(?:[23](?!\w))?)(?:\s?(?:/|\bper\s)\s?(?P<per>[^\W\d_]+))?"
_AFTER = lazy_pattern(rf"(?P<gap>\s?-?){_UNIT}")
_ANY_NUMBER = rf"(?:\d|\b(?:{NUMBER_WORD}|one)\b)"
_OPEN_BEFORE = lazy_pattern(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|some|circa|ca\.?|c\.|est(?:imated|\.)|nearly|almost|close to"
    r"|(?:max|min)(?:\.|imum)?(?:\sof)?|possibly|probably)|[≈~<>≤≥±]|\bbetween\s[^.;]*"
    rf"|{_ANY_NUMBER}\s?(?:[^\W\d_]{{1,8}}\s?)?(?:[-–—/±]|\b(?:to|bis|until|or))|\d[:/])\s*[{CURRENCIES}]?\s*\Z",
    re.I,
)
_OPEN_AFTER = lazy_pattern(
    r"\A(?:\s?(?:[^\W\d_]+\s)?(?:or\s(?:so|more|less|fewer|above|over)\b|and\s(?:more|above|over)\b)|\s?\+|\^"
    rf"|-(?:odd|some)|[:/]\d|\s?(?:[^\W\d_]{{1,8}}\s?)?(?:[-–—/±]|\b(?:to|bis|until|or)\b)\s?[{CURRENCIES}]?\s?{_ANY_NUMBER})",
    re.I,
)
"""What makes a number a bound, an end of a range, or a part of another figure."""
_PAIR = lazy_pattern(r"(?<![\d/.])\d{2,3}\s?/\s?\d{2,3}(?![\d/])")
"""Two readings in one: a blood pressure of `120/80`."""
_NUMERAL = lazy_pattern(r"(?<=[^\W\d])[一二三四五六七八九十](?=[^\W\d])")
"""A numeral within other letters, as in the name 张三."""
_LIST_MARK = lazy_pattern(r"\A\s*[-–•*]\s+|(?<=[\w:.)])\s+[-–—]\s+\Z")
_ASIDE = lazy_pattern(r"\s(?:\((?!in\s)|[<>≤≥~])|[;\n]")
"""The end of what belongs to a number: `184 mg/l (ref < 5)`."""
_IN_CAPTION = lazy_pattern(r"\((?:in\s)?(?P<words>[^()\d]{1,30})\)(?P<tail>[^\w()]{0,5})\Z")
"""What may be the scale and currency of a number behind it: `Revenue (in Mio. EUR): 500`."""
_CAPTION_WORD = lazy_pattern(rf"{MONEY}|[^\W\d_]+")
_REACH = 2 * MAX_BESIDE  # characters before a number that may make it a bound
_NAMES_OF_UNITS = {
    **UNITS, **{unit: unit for dimension in DIMENSIONS for unit in dimension}, "pct": "%",
    "celsius": "°c", "fahrenheit": "°f", "kmh": "km/hour", "kph": "km/hour", "mph": "mile/hour",
}  # fmt: skip


def _amounts(text: str, low: int = 0, high: int | None = None) -> Iterator[_Amount]:
    """The numbers of a part of a text in digits and in words, except those in dates other than years."""
    text = _PAIR.sub(lambda pair: pair[0].replace("/", ";"), text)
    in_dates = {at for day in find_dates(text) for at in range(day.start, day.end)}
    matches = list(_NUMBER.finditer(text))
    for i, match in enumerate(matches):
        start, end = match.span()
        if not low <= start < (len(text) if high is None else high):
            continue
        if start in in_dates:
            if len(match[0]) == 4:
                yield _Amount(match[0], start, Decimal(match[0]))
            continue
        before = text[matches[i - 1].end() if i else 0 : start]
        after = text[end : matches[i + 1].start() if i + 1 < len(matches) else len(text)]
        flaw = ""
        if before.strip() in SCALES_UNSPACED or (
            after.strip() in SCALES_UNSPACED and matches[i + 1 :]
        ):
            flaw = f"{quoted(match[0])} is a part of another figure in the quote"  # 2万5千
        if _OPEN_BEFORE.search(text, max(start - _REACH, 0), start) or _OPEN_AFTER.match(
            text[end : end + _REACH]
        ):
            flaw = f"{quoted(match[0])} is a bound, an end of a range or a part of another figure in the quote"
        yield _amount(match[0], start, before, after, flaw)


def _amount(shown: str, start: int, before: str, after: str, flaw: str) -> _Amount:
    """A number with the text between it and its neighbours."""
    digits = shown
    if not shown.isascii() or shown[0].isalpha():
        digits = str(_WORDS.get(" ".join(shown.casefold().split()), shown))
    else:
        digits = _BLANK_IN_NUMBER.sub("", shown)
    before = _NUMERAL.sub("", _LIST_MARK.sub(" ", before))
    after = _NUMERAL.sub("", _ASIDE.split(after, maxsplit=1)[0])
    if before.endswith("(") and not after.startswith(")"):
        before = before[:-1]
    caption = _IN_CAPTION.search(before[-MAX_BESIDE:])
    named = _CAPTION_WORD.findall(caption["words"]) if caption else []
    powers = [
        SCALE_WORDS.get(word) or FOREIGN_SCALES.get(word) for word in map(str.casefold, named)
    ]
    power = next(filter(None, powers), 0)
    if caption and power:
        before = caption["tail"]
    try:
        line = f"{before[-MAX_BESIDE:]}{digits}{after[:MAX_BESIDE]}"
        read = quantity(line, decimal="," if _DECIMAL_COMMA.fullmatch(shown) else "")
    except UnclearNumberError as error:
        number = Decimal(digits) if re.fullmatch(r"\d{1,30}(?:\.\d{1,30})?", digits) else None
        return _Amount(shown, start, number, flaw=flaw or str(error))
    after = after.lstrip(_FOOTNOTE_MARKS)  # `quantity` refuses a power
    is_scaled = read.scale > 0 or after.lstrip().startswith(tuple(SCALES_UNSPACED))
    match = _AFTER.match(_SCALE.sub("", after) if is_scaled else after)
    unit = _unit(match)
    if read.unit in CURRENCY_UNITS:
        unit = read.unit
    elif match and not unit:
        word = match["unit"].replace(" ", "")
        if not match["gap"] and not re.match(f"[{UNSPACED}]", word):
            flaw = flaw or f"{quoted(shown + word)} is not a number alone"
        unit = f"?{word}" if word.casefold() not in STOP_WORDS else ""
    if read.unit not in CURRENCY_UNITS:
        units = [name for name in map(unit_named, named) if name in CURRENCY_UNITS]
        unit = next(iter(units), unit)
    scale = read.scale or (0 if read.unit in SHARES or is_scaled else power)
    return _Amount(shown, start, read.number.scaleb(scale - read.scale), scale, unit, flaw)


def _unit(match: re.Match[str] | None) -> str:
    """The unit that a text names, with what it is per; "" for another word."""
    word = match["unit"].replace(" ", "") if match else ""
    unit = _NAMES_OF_UNITS.get(word.lower(), "") or unit_named(word)
    if match and unit and (per := match["per"]):
        return f"{unit}/{_NAMES_OF_UNITS.get(per.lower(), per.casefold())}"
    return unit


_SCALE = lazy_pattern(rf"\A\s?(?:{'|'.join(SCALES_UNSPACED)}|[^\W\d_]+)")
_FOOTNOTE_MARKS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_CALENDAR = frozenset({"year", "month", "day", "week", "hour", "minute", "second"})
"""Names such as `start_year` are no durations."""
_LAST_UNIT = lazy_pattern(rf"\s{_UNIT}\Z")
_IN_UNIT = lazy_pattern(
    rf"(?:\b(?:in|as)|,)\s(?:(?:{'|'.join(SCALES)})s?\s(?:of\s)?)?{_UNIT}", re.I
)


@lru_cache(maxsize=1024)
def _unit_of_field(field: Field) -> str:
    """The unit that the name or the description of a field states; "" for none."""
    words = re.sub(r"(?<=temp |ture )(?=[cf]\Z)", "°", _words_of(field).rstrip().casefold())
    if (
        code := unit_named(words.rpartition(" ")[2].upper())
        if re.search(r"\s[a-z]{3}\Z", words)
        else ""
    ):
        return code
    if words.rpartition(" ")[2] not in _CALENDAR and (unit := _unit(_LAST_UNIT.search(words))):
        return unit
    about = field.description
    about = f"in {about}" if len(about.split()) == 1 else about
    return next(filter(None, map(_unit, _IN_UNIT.finditer(about))), "")


def _factor(unit: str, wanted: str) -> Decimal | None:
    """What a number in one unit is multiplied by in another one; None if they do not convert."""
    if unit == wanted or not unit or not wanted:
        return Decimal(1)
    for dimension in DIMENSIONS:
        if unit in dimension and wanted in dimension:
            return Decimal(dimension[unit]) / Decimal(dimension[wanted])
    return None


def _number(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    unit = _unit_of_field(field)
    number = _stated_number(value, unit)
    if field.type == "int" and number != number.to_integral_value():
        raise DisagreementError(f"{number:f} is not a whole number")
    scale = scale_of(f"{_words_of(field)} {field.description}") or 0
    flaw = ""
    # "more than" may stand before the quote
    lead, passage, rest = map(plain, (before[-MAX_BESIDE:], passage, after[:MAX_BESIDE]))
    around = lead + passage + rest
    for amount in _amounts(around, len(lead), len(lead) + len(passage)):
        if amount.number is None:
            flaw = flaw or amount.flaw
            continue
        factor = _factor(amount.unit, unit)
        wanted = {number.scaleb(scale)}
        if scale and not amount.scale:
            wanted.add(number)  # the scale stands in a caption
        if not unit and amount.unit == "%":
            wanted.add(number * 100)
        if amount.number * (factor or 1) not in wanted:
            continue
        if factor is None:
            given = f"{amount.text} {amount.unit.lstrip('?')}"
            flaw = amount.flaw or f"the quote gives '{given}', the field is in {unit}"
        elif amount.flaw:
            flaw = amount.flaw
        else:
            start = amount.start - len(lead)
            end = start + len(amount.text)
            tail = passage[end:] + rest
            behind = _AFTER.match(tail)
            tail = tail[behind.end() :] if behind and amount.unit else tail
            _refuse_denied(field, before + passage[:start], amount.text, tail, in_part=True)
            is_whole = number == number.to_integral_value()
            return (int(number) if is_whole else float(number)), "quoted"
    raise DisagreementError(flaw or f"{number.normalize():f} is not in the quote")


def _stated_number(value: Stated, unit: str) -> Decimal:
    """The number that a reply gives, in the unit of its field."""
    if isinstance(value, bool):
        raise DisagreementError(f"{str(value).lower()} is no number")
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > MAX_DIGITS:
            raise DisagreementError("the number is too large")
        return value
    amounts = list(_amounts(plain(value)))
    if len(amounts) != 1 or amounts[0].number is None or amounts[0].flaw:
        why = amounts[0].flaw if len(amounts) == 1 else "it is not one number"
        raise DisagreementError(f"{quoted(value)} is no number: {why}")
    (amount,) = amounts
    factor = _factor(amount.unit, unit)
    if factor is None or amount.number is None:
        raise DisagreementError(f"{quoted(value)} is not in {unit}")
    return amount.number * factor


_READERS = {
    "str": _copied, "text": _summary, "label": _label, "date": _date, "int": _number, "number": _number,
}  # fmt: skip
