"""A value and the passage that is to bear it out → the value in its normal form, or why they disagree.

Nothing is guessed: where a passage can be read in two ways, or states a bound instead of a number, the
value does not follow from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from pearl.documents.dates import find_dates
from pearl.documents.english import DIMENSIONS, NUMBER_WORD, ONES, SCALES, TENS, UNITS
from pearl.documents.evidence.finding import n_words, negations
from pearl.documents.evidence.normal import NormalText
from pearl.documents.numbers import CURRENCIES, UnclearNumberError, plain, quantity, quoted
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
    if field.type == "bool" or (field.type == "label" and _truths(field)):
        return _truth(field, value, " ".join(pieces), before, after)
    if field.type == "text":
        return _summary(_text(value), " ... ".join(pieces))
    reasons = []
    for i, piece in enumerate(pieces):
        try:
            context = "" if i else before, "" if pieces[i + 1 :] else after
            return _READERS[field.type](field, value, piece, *context)
        except DisagreementError as error:
            reasons.append(str(error))
    raise DisagreementError(reasons[0])


def same_value(field: Field, one: FieldScalar, other: FieldScalar) -> bool:
    """Whether two values of a field are equal, however they are written."""
    if isinstance(one, str) and isinstance(other, str) and field.type in ("str", "text"):
        return sorted(_tokens(one)) == sorted(_tokens(other))
    return one == other


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
    r"|\b(?:but|however|although|though|aber|mais)\b"
    r"|\b(?:no|not|none|without)\b[^.;!?]*?\b(?:apart from|except(?:ing| for)?|other than|besides)\b",
    re.I,
)
"""Ends of clauses; a line that goes on with a small letter is wrapped, `no ... except` denies nothing more."""
_PART = lazy_pattern(r"[,:]\s|\band\b")


@lru_cache(maxsize=4096)
def _negations(text: str) -> list[str]:
    """The negations in a text, also those in brackets; cached, because forms repeat their labels."""
    text = _CODE.sub(" ", text.translate(_BRACKETS)).replace("on-", "on ")  # non-smoker
    return [word.strip().casefold() for word in negations(text)]


_BRACKETS = str.maketrans("()[]", "  , ")


_DENIED = lazy_pattern(
    r"[ \t]*(?:[:=|(–-]+[ \t]*(?P<word>no|none|nil|negative|denied|absent|nein|keine?)(?=\W*(?:\Z|\n|[.,;|)]))"
    r"|(?:(?:is|was|are|were)[ ])?(?P<said>denied|absent|negative|not present|ruled out|excluded)\b)",
    re.I,
)
"""What denies the words before it: `fever: none`, `fever was absent`."""


def _refuse_denied(
    field: Field, before: str, value: str, after: str = "", *, in_part: bool = False
) -> None:
    """Refuse a value if the text around it denies it, unless the field is of what is denied."""
    clause = _CLAUSE.split(before)[-1]
    if in_part:
        clause = _PART.split(clause)[-1]
    words = [
        *_negations(clause),
        *(filter(None, d.groups()) if (d := _DENIED.match(after)) else ()),
    ]
    if words and not _negations(_words_of(field)):
        raise DisagreementError(f"'{words[-1]}' beside {quoted(value)} in the document denies it")


def _words_of(field: Field) -> str:
    """The name of a field as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.\W]+", " ", field.name)


# ---------------------------------------------------------------------------------------------
# Texts and labels


def _tokens(text: str) -> list[str]:
    text = unicodedata.normalize("NFC", text).casefold()
    words = (word.strip(".:!?()[]\"'“”‘’") for word in re.split(r"[\s,;]+", text))
    return [word for word in words if word]


def _copied(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    """A value that stands in its passage, or all of whose words stand there side by side."""
    text = " ".join(_text(value).split())
    start = _place(text, passage)
    if start is None:
        wanted, words = _tokens(text), _tokens(passage)
        n = len(wanted)
        windows = (words[i : i + n] for i in range(len(words) - n + 1))
        if n < 2 or not any(Counter(window) == Counter(wanted) for window in windows):
            missing = [word for word in wanted if word not in words]
            if missing:
                raise DisagreementError(f"{quoted(missing[0])} is not in the quote")
            raise DisagreementError(f"{quoted(text)} does not stand together in the quote")
        start = max(passage.casefold().find(min(wanted, key=words.index)), 0)
    _refuse_denied(field, before + passage[:start], text, (passage + after)[start + len(text) :])
    return text, "quoted"


def _place(text: str, passage: str) -> int | None:
    """Where a text stands in a passage, in any case and typography."""
    folded = passage.casefold()
    is_plain = len(folded) == len(passage) and text[:1].isalpha() and text[-1:].isalpha()
    at = folded.find(text.casefold()) if is_plain else -1
    if at >= 0 and _EDGE.fullmatch(f"{passage[:at][-1:]}|{passage[at + len(text) :][:2]}"):
        return at
    if len(folded) != len(passage):
        folded = passage
    whole = NormalText(folded)
    match = whole.find(NormalText(text.casefold() if folded is not passage else text))
    return None if match is None or match[0] == match[1] else whole.original(*match).start


_EDGE = lazy_pattern(r"[\s(]?\|(?:[\s);|][\s\S]?|[.,:!?]\s?)?")
"""Characters around a text that surely divide it from the words beside it."""


def _summary(value: str, passage: str) -> tuple[FieldScalar, Basis]:
    """A text that stands in its passage or sums it up: with no other number, negation or subject."""
    text = value.strip()
    if _place(text, passage) is not None:
        return text, "quoted"
    words = set(_tokens(passage))
    stated: set[object] = {
        known for amount in _amounts(passage) for known in (amount.number, amount.text)
    }
    stated |= {day.period for day in find_dates(passage)} - {None}
    for amount in _amounts(text):
        if not stated & {amount.number, amount.text}:
            raise DisagreementError(f"{quoted(amount.text)} is not in the quote")
    for day in find_dates(text):
        if day.period not in stated:
            raise DisagreementError(f"{quoted(text[day.start : day.end])} is not in the quote")
    if bool(_negations(text)) != bool(_negations(passage)):
        has, lacks = ("value", "quote") if _negations(text) else ("quote", "value")
        raise DisagreementError(f"the {has} has a negation, the {lacks} has none")
    content = [word for word in _tokens(text) if word not in STOP_WORDS and word.isalpha()]
    stems = {word[:5] for word in words}
    if not any(word[:5] in stems for word in content):
        raise DisagreementError("the value shares no word with its quote")
    return text, "summary"


def label_of(field: Field, value: str) -> str | None:
    """The label that a text means, in any case; None for another text."""
    key = _label_key(value)
    return next((label for label in field.labels if _label_key(label) == key), None)


def _label_key(text: str) -> str:
    return " ".join(re.sub(r"[_\s]+", " ", text).casefold().split()).strip(" .\"'")


def _label(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    label = label_of(field, _text(value) if not isinstance(value, bool) else str(value))
    if label is None:
        labels = ", ".join(field.labels)
        raise DisagreementError(f"{quoted(str(value))} is none of the labels {labels}")
    left = passage
    standing: dict[str, int] = {}
    for each in sorted(field.labels, key=len, reverse=True):  # `type 2 diabetes` before `diabetes`
        text = re.sub(r"_", " ", each)
        while (start := _place(text, left)) is not None:
            standing.setdefault(each, start)
            left = left[:start] + "\x00" * len(text) + left[start + len(text) :]
    if label in standing:
        end = standing[label] + len(label)
        _refuse_denied(field, before + passage[: standing[label]], label, (passage + after)[end:])
        return label, "quoted" if len(standing) == 1 else "judged"
    if standing:
        raise DisagreementError(f"the quote says {quoted(next(iter(standing)))}")
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
    r"|possibl[ey]|suspect(?:s|ed)|probabl[ey]|likely|may|might|could|unclear|questionable|if)\b",
    re.I,
)
"""Words of what was so once, or may be so."""


def _truths(field: Field) -> dict[str, bool]:
    """The labels of a field that mean yes and no, if it has both."""
    truths = {
        label: _label_key(label) in _YES
        for label in field.labels
        if _label_key(label) in _YES | _NO
    }
    return truths if len(set(truths.values())) == 2 else {}


def _truth(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    """Yes or no: a quote with a negation means no, any other quote yes; a short one is read in its clause."""
    truths = _truths(field)
    result: FieldScalar
    if isinstance(value, Decimal):
        raise DisagreementError(f"{value:f} is neither yes nor no")
    if field.type == "bool":
        word = _label_key(str(value))
        if word not in _YES | _NO:
            raise DisagreementError(f"{quoted(str(value))} is neither yes nor no")
        result = is_yes = word in _YES
    else:
        if isinstance(value, bool):
            value = next(label for label, is_true in truths.items() if is_true == value)
        label = label_of(field, value)
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
    doubt = _OPEN_TRUTH.search(passage)
    if doubt and doubt[0].casefold() not in _words_of(field).casefold():
        raise DisagreementError(f"'{doubt[0]}' in the quote leaves it open")
    denied, own = Counter(_negations(passage)), Counter(_negations(_words_of(field)))
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
    for found in find_dates(passage):
        shown = passage[found.start : found.end].strip()
        lead = before + passage[: found.start]
        if found.period is None:
            unclear = unclear or f"the day and the month of {quoted(shown)} may be swapped"
        elif found.period.first != day:
            continue
        elif bound := _AROUND.search(lead) or _DATE_RANGE.search(lead):
            unclear = f"{quoted(bound[0].strip())} before {quoted(shown)} leaves the day open"
        else:
            _refuse_denied(field, lead, shown, in_part=True)
            return day.isoformat(), "quoted"
    raise DisagreementError(unclear or f"{day.isoformat()} is not in the quote")


_AROUND = lazy_pattern(
    r"\b(?:before|after|prior to|later than|earlier than|around|about|approximately|approx\.?|circa|ca\.|c\."
    r"|between|estimated)\s+(?:the\s)?\Z",
    re.I,
)
_DATE_RANGE = lazy_pattern(r"\d\s?(?:[-–—/]|to|and)\s?\Z")


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


_FIRST_WORD = rf"(?:half|{'|'.join((*sorted(ONES, key=len, reverse=True), *TENS))})(?![^\W_])"
_WORDS = rf"(?:one|{NUMBER_WORD})(?![^\W_])"
_NUMBER = lazy_pattern(
    r"(?<!\w)(?P<digits>\.?\d+(?:[.,'’\u00a0\u2009\u202f]\d+|[ ]\d{3}(?!\d))*)"
    rf"|\b(?P<words>{_FIRST_WORD}(?:(?:\s|-|\sand\s){_WORDS})*)",
    re.I,
)
_DECIMAL_COMMA = lazy_pattern(r"\d{1,3}(?:[.\u00a0\u2009\u202f ]\d{3})+,\d+|\d+,(?:\d{1,2}|\d{4,})")
_GROUPED = lazy_pattern(
    r"\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:(?P<gap>['’\u00a0\u2009\u202f ])\d{3}(?:(?P=gap)\d{3})*)(?:\.\d+)?"
)
_READABLE = lazy_pattern(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*(?:\.\d+)?")
_AFTER = lazy_pattern(
    r"(?P<gap>\s?-?)(?P<unit>°\s?[CF]|[%$€£¥]|[^\W\d_]+)(?:\s?(?:/|\bper\s)\s?(?P<per>[^\W\d_]+))?"
)
_ABOUT = lazy_pattern(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|some|circa|ca\.?|c\.|est(?:imated|\.)|nearly|almost|close to)|[≈~<>≤≥±])"
    rf"\s*[{CURRENCIES}]?\s*\Z",
    re.I,
)
_OPEN = lazy_pattern(
    r"\A\s?(?:[^\W\d_]+\s)?(?:or\s(?:so|more|less|fewer|above|over)\b|and\s(?:more|above|over)\b)|\A\s?\+",
    re.I,
)
_RANGE_AFTER = lazy_pattern(
    rf"\A\s?(?:[^\W\d_]{{1,8}}\s?)?(?:[-–—]|\b(?:to|bis|until|or)\b)\s?[{CURRENCIES}]?\s?(?:\d|{_WORDS})",
    re.I,
)
_RANGE_BEFORE = lazy_pattern(
    rf"(?:\d|\b{_WORDS})\s?(?:[^\W\d_]{{1,8}}\s?)?(?:[-–—]|\b(?:to|bis|until|or))\s?[{CURRENCIES}]?\s?\Z|\bbetween\s[^.;]*\Z",
    re.I,
)
_PAIR = lazy_pattern(r"(?<![\d/])\d{2,3}/\d{2,3}(?![\d/])")
"""Two readings in one: a blood pressure of `120/80`."""
_LIST_MARK = lazy_pattern(r"\A\s*[-–•*]\s+|(?<=[\w:.)])\s+[-–—]\s+\Z")
_ASIDE = lazy_pattern(r"\s(?:\((?!in\s)|[<>≤≥~])|[;\n]")
"""The end of what belongs to a number: `184 mg/l (ref < 5)`."""
_NAMES_OF_UNITS = {
    **UNITS, **{unit: unit for dimension in DIMENSIONS for unit in dimension}, "pct": "%",
}  # fmt: skip


def _amounts(text: str, low: int = 0, high: int | None = None) -> Iterator[_Amount]:
    """The numbers of a part of a text in digits and in words, except those in dates other than years."""
    high = len(text) if high is None else high
    text = plain(text) if not text.isascii() else text
    dates = find_dates(text)
    matches = list(_NUMBER.finditer(text))
    pairs = {pair.start(): pair.end() for pair in _PAIR.finditer(text)}
    for i, match in enumerate(matches):
        start, end = match.span()
        before = text[matches[i - 1].end() if i else 0 : start]
        after = text[end : matches[i + 1].start() if i + 1 < len(matches) else len(text)]
        in_date = any(d.start <= start < d.end for d in dates)
        if not low <= start < high or (in_date and len(match[0]) != 4):
            continue
        if in_date:
            before, after = "", ""
        elif start in pairs:
            after = text[pairs[start] :][: len(after) or 8]
        elif end in pairs.values():
            before = ""
        is_alone = in_date or start in pairs or end in pairs.values()
        yield _amount(match, before, after, text, is_alone=is_alone)


def _amount(match: re.Match[str], before: str, after: str, text: str, *, is_alone: bool) -> _Amount:
    shown, start = match[0], match.start()
    digits = _in_digits(match)
    if digits is None:
        return _Amount(shown, start, None, flaw=f"{quoted(shown)} can be read in two ways")
    flaw = ""
    if not is_alone:
        lead, rest = text[:start], text[match.end() :]
        if _ABOUT.search(lead) or _OPEN.search(rest):
            flaw = f"the quote says about {shown}, not exactly"
        elif _RANGE_AFTER.search(rest) or _RANGE_BEFORE.search(lead):
            flaw = f"{shown} is an end of a range in the quote"
        elif (lead[-1:] in ":/" and lead[-2:-1].isdigit()) or re.match(r"[:/]\d", rest):
            flaw = f"{shown} is part of another figure in the quote"
    before = _LIST_MARK.sub(" ", before)
    after = _ASIDE.split(after, maxsplit=1)[0]
    if before.endswith("(") and not after.startswith(")"):
        before = before[:-1]
    try:
        read = quantity(
            f"{before[-MAX_BESIDE:]}{digits}{after[:MAX_BESIDE]}", is_point_decimal="," in shown
        )
    except UnclearNumberError as error:
        number = _DIGITS_ONLY.fullmatch(digits) and Decimal(digits)
        return _Amount(shown, start, number or None, flaw=flaw or str(error))
    unit, is_attached = _unit_after(after, read.scale)
    if read.unit in CURRENCIES and read.unit:
        unit = read.unit
    elif unit.startswith("?") and is_attached:
        flaw = flaw or f"{quoted(shown + unit[1:])} is not a number alone"
    return _Amount(shown, start, read.number, read.scale, unit, flaw)


_DIGITS_ONLY = lazy_pattern(r"\d+(?:\.\d+)?")


def _in_digits(match: re.Match[str]) -> str | None:
    """The number in digits, with a point before its decimals; None if it can be read in two ways."""
    if match["words"]:
        return _of_words(match["words"])
    digits = match["digits"]
    if len(digits) > MAX_DIGITS:
        return None
    if _READABLE.fullmatch(digits):
        return digits
    if _DECIMAL_COMMA.fullmatch(digits):
        return re.sub(r"[.\s]", "", digits).replace(",", ".")
    if _GROUPED.fullmatch(digits):
        whole, point, decimals = digits.rpartition(".")
        if not point or re.fullmatch(r"[\d.]+", digits):
            return re.sub(r"\D", "", digits)
        return re.sub(r"\D", "", whole) + point + decimals
    return None


def _of_words(text: str) -> str | None:
    """A number in words: `twenty-one`, `three hundred and five`; None for other words."""
    total = current = 0
    least = 0  # the next word has to be smaller
    for word in re.split(r"[\s-]+", text.casefold()):
        word = word.removesuffix("s") if word[:-1] in SCALES else word
        if word == "and":
            continue
        if word in ONES or word in TENS:
            value = ONES.index(word) if word in ONES else 10 * (TENS.index(word) + 2)
            if least and value >= least:
                return None
            current, least = current + value, 10 if word in TENS else 1
        elif word == "hundred":
            current, least = (current or 1) * 100, 100
        elif word in SCALES:
            total, current, least = total + (current or 1) * 10 ** SCALES[word], 0, 1000
        else:
            return None
    return str(total + current)


def _unit_after(after: str, scale: int) -> tuple[str, bool]:
    """The unit after a number, and whether it stands right behind it; `?word` for another word."""
    if scale:
        after = re.sub(r"\A\s?[^\W\d_]+", "", after)
    match = _AFTER.match(after)
    if match is None:
        return "", False
    word = match["unit"].replace(" ", "")
    unit = _NAMES_OF_UNITS.get(word.lower(), "")
    if not unit:
        is_said = word.casefold() not in STOP_WORDS or not match["gap"]
        return (f"?{word}" if is_said else ""), not match["gap"]
    if per := match["per"]:
        unit = f"{unit}/{_NAMES_OF_UNITS.get(per.lower(), per.casefold())}"
    return unit, not match["gap"]


@lru_cache(maxsize=1024)
def _unit_of_field(name: str, description: str) -> str:
    """The unit that the name or the description of a field states; "" for none."""
    parts = re.split(r"[_\W]+|(?<=[a-z])(?=[A-Z])", name.rpartition(".")[2])
    units = [_NAMES_OF_UNITS.get(part.lower(), "") for part in parts]
    if len(parts) > 2 and parts[-2].lower() == "per" and units[-3]:
        return f"{units[-3]}/{units[-1] or parts[-1].casefold()}"
    if len(parts) > 1 and units[-1] and parts[-1].lower() not in _CALENDAR:
        return f"{units[-2]}/{units[-1]}" if len(parts) > 2 and units[-2] else units[-1]
    said = _IN_UNIT.search(f"in {description}" if len(description.split()) == 1 else description)
    unit = _NAMES_OF_UNITS.get(said["unit"].replace(" ", "").lower(), "") if said else ""
    if said and unit and said["per"]:
        unit = f"{unit}/{_NAMES_OF_UNITS.get(said['per'].lower(), said['per'].casefold())}"
    return unit


_CALENDAR = frozenset({"year", "month", "day", "week", "hour", "minute", "second"})
"""Names such as `start_year` are no durations."""
_IN_UNIT = lazy_pattern(
    rf"\b(?:in|as)\s(?:(?:{'|'.join(SCALES)})s?\s(?:of\s)?)?(?P<unit>°\s?[CF]|[%$€£¥]|[^\W\d_]+)(?:\s?(?:/|\bper\s)\s?(?P<per>[^\W\d_]+))?",
    re.I,
)


def _factor(unit: str, wanted: str) -> Decimal | None:
    """What a number in one unit is multiplied by in another one; None if they do not convert."""
    if unit == wanted:
        return Decimal(1)
    for dimension in DIMENSIONS:
        if unit in dimension and wanted in dimension:
            return Decimal(dimension[unit]) / Decimal(dimension[wanted])
    return None


def _number(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[FieldScalar, Basis]:
    unit = _unit_of_field(field.name, field.description)
    number = _stated_number(value, unit)
    if field.type == "int" and number != number.to_integral_value():
        raise DisagreementError(f"{number:f} is not a whole number")
    scale = scale_of(f"{_words_of(field)} {field.description}") or 0
    flaw = ""
    lead = before[-MAX_BESIDE:]  # "more than" may stand before the quote
    around = lead + passage + after[:MAX_BESIDE]
    for amount in _amounts(around, len(lead), len(lead) + len(passage)):
        if amount.number is None:
            flaw = flaw or amount.flaw
            continue
        why = amount.flaw
        factor: Decimal | None = Decimal(1)
        if unit and amount.unit:
            factor = _factor(amount.unit, unit)
            why = why or (
                "" if factor is not None
                else f"the quote gives '{amount.text} {amount.unit.lstrip('?')}', the field is in {unit}"
            )  # fmt: skip
        there = amount.number * (factor or 1)
        wanted = {number.scaleb(scale)}
        if scale and not amount.scale:
            wanted.add(number)  # the scale stands in a caption
        if not unit and amount.unit == "%":
            wanted.add(number * 100)
        if there not in wanted:
            continue
        if why:
            flaw = why
            continue
        start = amount.start - len(lead)
        _refuse_denied(field, before + passage[:start], amount.text, in_part=True)
        is_whole = number == number.to_integral_value()
        return (int(number) if is_whole else float(number)), "quoted"
    raise DisagreementError(flaw or f"{_shown(number)} is not in the quote")


def _shown(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _stated_number(value: Stated, unit: str) -> Decimal:
    """The number that a reply gives, in the unit of its field."""
    if isinstance(value, bool):
        raise DisagreementError(f"{str(value).lower()} is no number")
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > MAX_DIGITS:
            raise DisagreementError("the number is too large")
        return value
    amounts = list(_amounts(value))
    if len(amounts) != 1 or amounts[0].number is None or amounts[0].flaw:
        why = amounts[0].flaw if len(amounts) == 1 else "it is not one number"
        raise DisagreementError(f"{quoted(value)} is no number: {why}")
    (amount,) = amounts
    factor = _factor(amount.unit, unit) if unit and amount.unit else Decimal(1)
    if factor is None:
        raise DisagreementError(f"{quoted(value)} is not in {unit}")
    assert amount.number is not None
    return amount.number * factor


_READERS = {
    "str": _copied, "label": _label, "date": _date, "int": _number, "number": _number,
}  # fmt: skip
