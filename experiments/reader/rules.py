"""Whether an answer is right: by the rule of its question, which Python decides.

| rule | right |
|---|---|
| `all` | every group has one of its wordings in the answer |
| `list` | the same, each group being an entry |
| `number` | the number with one of `units`, or alone where the question names the unit; no other one with it but `besides`; `also` is the same in another unit |
| `verdict` | `yes` or `no` |
| `not_stated` | the answer says that the text does not tell |

`not` are wordings that make an answer wrong. All are compared in lower case without accents, marks and
thousands separators, numbers and ordinals in digits; a wording begins where a word begins.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

Outcome = Literal["right", "wrong", "not found"]

MAX_WORDS = {"fact": 60, "number": 60, "yesno": 60, "not stated": 60}
MAX_OTHER = 120
"""A longer reply copies the text, it does not answer."""

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen"""
_ORDINAL = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
)
_TEN = "twenty thirty forty fifty sixty seventy eighty ninety"
_ONES, _ORDINALS, _TENS = (words.split() for words in (_SMALL, _ORDINAL, _TEN))
_NUMBERS = (
    {word: n for n, word in enumerate(_ONES)}
    | {word: n for n, word in enumerate(_ORDINALS)}
    | {word: n for n, word in zip(range(20, 100, 10), _TENS, strict=True)}
    | {
        f"{tens} {ones}": 10 * n + k
        for n, tens in enumerate(_TENS, start=2)
        for k, ones in enumerate(_ONES[1:10], start=1)
    }
)
_NUMBER_WORDS = re.compile(
    rf"\b({'|'.join(sorted(_NUMBERS, key=len, reverse=True))})( hundred| thousand)?\b"
)
_SILENT = re.compile(
    r"\bno information\b|\bnothing (was )?found\b|\bnot found\b|\bunknown\b|\bn a\b|\bunspecified\b"
    r"|\b(not|never|n t|cannot|nowhere) (\w+ )?(be )?(explicitly |specifically |directly |yet )?"
    r"(stated?|say|says|said|tell|told|mention(ed)?|specif(y|ied)|given?|provided?|known|named?"
    r"|indicated?|determined?|disclosed?|reveal(ed)?|described?|clear|available|contain|included?"
    r"|answer(ed)?|recorded)\b|\bno (mention|answer|detail|name|number|date|figure)\b"
)
_NEGATIVE = re.compile(r"\b(no|not|never|none|nothing|nobody|neither|n t|cannot|refused|false)\b")


def normal(text: str) -> str:
    """The text as wordings are compared."""
    text = unicodedata.normalize("NFKD", text.casefold())
    text = "".join(char for char in text if not unicodedata.combining(char))
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"[£$€]\s?(\d[\d.]*)", r"\1 pounds", text)
    text = text.replace("%", " percent ").replace("per cent", "percent").replace("°", " degrees ")
    text = re.sub(r"n['’]t\b", " n t", text)
    text = re.sub(r"(?<!\d)[.](?!\d)|(?<=\d)[.](?!\d)|(?<!\d)[.](?=\d)|[^\w.]", " ", text)
    text = re.sub(r"(?<=\d)(?=[a-z])", " ", text)
    text = _NUMBER_WORDS.sub(_in_digits, " ".join(text.split()))
    return " ".join(re.sub(r"(?<=\d) (st|nd|rd|th)\b", "", text).split())


def _in_digits(match: re.Match[str]) -> str:
    scale = {" hundred": 100, " thousand": 1000}.get(match[2], 1)
    return str(_NUMBERS[match[1]] * scale)


def has(answer: str, wording: str) -> bool:
    """Whether the normal answer has the wording, from where a word begins; digits are whole numbers."""
    wanted = normal(wording)
    end = r"(?!\.?\d)" if wanted[-1:].isdigit() else ""
    return re.search(rf"(?<![\w.]){re.escape(wanted)}{end}", answer) is not None


def is_silent(answer: str | None) -> bool:
    """Whether the answer says that the text does not tell."""
    return not (text := normal(answer or "")) or text == "null" or bool(_SILENT.search(text))


def outcome(answer: str | None, question: Mapping[str, Any]) -> Outcome:
    """How the answer to the question is judged; `not found` where one that exists is denied."""
    rule, text = question["rule"], normal(answer or "")
    if len(text.split()) > MAX_WORDS.get(question["kind"], MAX_OTHER):
        return "wrong"
    if any(has(text, wording) for wording in rule.get("not", ())):
        return "wrong"
    if rule.get("not_stated"):
        return "right" if is_silent(answer) else "wrong"
    if text and _holds(text, rule, question["question"]):
        return "right"
    return "not found" if is_silent(answer) else "wrong"


def _holds(text: str, rule: Mapping[str, Any], question: str) -> bool:
    if groups := rule.get("all") or rule.get("list"):
        return all(any(has(text, wording) for wording in group) for group in groups)
    if "number" in rule:
        return _is_number(text, rule, normal(question))
    return verdict(text) == rule["verdict"]


def verdict(text: str) -> str | None:
    """The yes or no of a normal text: its first word, or whether its sentence denies."""
    if first := re.match(r"(?:the )?(?:answer )?(?:is )?(yes|no|true|false)\b", text):
        return "yes" if first[1] in ("yes", "true") else "no"
    if is_silent(text):
        return None
    return "no" if _NEGATIVE.search(text) else "yes"


def _is_number(text: str, rule: Mapping[str, Any], question: str) -> bool:
    units = [normal(unit) for unit in rule["units"]]
    others = {float(each) for each in rule.get("besides", ())}
    is_in_question = any(has(question, unit) for unit in units)
    with_unit, alone = set(), set()
    for match in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?![\d.])", text):
        rest = text[match.end() :].strip()
        if any(re.match(rf"{re.escape(unit)}(s|es)?\b", rest) for unit in units):
            with_unit.add(float(match[0]))
        else:
            alone.add(float(match[0]))
    found = with_unit or (alone if is_in_question else set())
    right = {float(each) for each in (rule["number"], *rule.get("also", ()))}
    return bool(right & found) and found <= right | others
