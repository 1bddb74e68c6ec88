"""Question → its parts, each with its form and topics, by regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from pearl.documents.passages import terms
from pearl.llm.backends.extractive.cues import Kind
from pearl.llm.backends.extractive.forms import (
    AUXILIARY,
    BEFORE_WH,
    DOCUMENT,
    IS,
    MAX_LENGTH,
    NAME,
    WH,
    Form,
    recognise,
)

MAX_PARTS = 6
"""Maximum parts; a question with more is one part."""
_MAX_LEAD_INS = 4

_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)} | {"hypothesis": "effect"}
"""The kind of thing that answers a form; other forms are answered by anything."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Who does what to whom."""

    deed: str
    others: tuple[str, ...]
    is_doer: bool


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a question."""

    form: Form
    text: str
    topic: str
    other: str = ""
    background: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of its answer."""
        if self.form == "duration" and re.match(r"(?:\w+ )?how old\b", self.text, re.I):
            return "age"
        return _KINDS.get(self.form, "thing")

    @property
    def asked(self) -> str:
        """The text, with a question mark if it is a question."""
        return f"{self.text}?" if _ASKS.match(self.text) else self.text

    @property
    def roles(self) -> Roles | None:
        """The roles in the question, if its form tells them."""
        if match := _WHO_DID.match(self.text):
            deed, *others = terms(match["rest"], drop_stop_words=True)[:3] or [""]
            return Roles(deed, tuple(others), is_doer=False) if others else None
        if match := _DID.search(self.text):
            named, deeds = (
                terms(match[name], drop_stop_words=True) for name in ("subject", "deed")
            )
            return Roles(deeds[0], tuple(named), is_doer=True) if named and deeds else None
        return None

    @property
    def is_clause(self) -> bool:
        """Whether the topic can stand on its own: it is not the question itself."""
        return self.topic != self.text and not re.match(rf"{AUXILIARY}\s", self.topic, re.I)

    @property
    def is_tally(self) -> bool:
        """Whether it asks for a number that is counted, not stated."""
        return bool(_TALLY.match(self.text))

    @property
    def is_about_document(self) -> bool:
        """Whether it is about the document as a whole."""
        return bool(_WHOLE_DOCUMENT.fullmatch(self.topic)) or self.topic == self.text

    @property
    def thing_of(self) -> tuple[str, str]:
        """`symptoms`, `flu` in `What are the symptoms of flu`; "", "" for another form."""
        found = _THING_OF.match(self.text)
        return (found["thing"], found["of"]) if found else ("", "")


_POLITE = re.compile(
    r"(?:(?:please|kindly|hello|hi|hey|so|well|now|ok|okay)[,!]?\s+|(?:according to|in|within|from"
    r"|based on) (?:the|this) (?:\w+ )?(?:text|document|article|story|passage|report|essay|book"
    r"|paper|author|transcript|note|notes|letter)s?,?\s+|of the following \w+,?\s+"
    r"|(?:can|could|would|will) you (?:please |kindly )?(?=(?:tell|explain|describe|give|find|list"
    r"|show|say|provide|summari[sz]e|compare|name|help)\b)"
    r"|(?:tell|show) (?:me|us),? (?:about )?|(?:provide|give)(?: me| us)? (?:\w+ )?(?:information"
    r"|details) (?:about|on|for) |help (?:me|us) (?:to )?|(?:i|we) (?:want|need|would like|['’]d like)"
    r" to (?:know|understand) |do you (?:know|think) (?=wh|how|if)|say (?=wh|how)|explain (?=wh|how)"
    r"|describe (?=wh|how)|how (?:would|could|can|do|should) (?:you|one|we) (?:best )?(?:describe|characteri[sz]e) )",
    re.I,
)
_NEXT = re.compile(
    rf"(?:,|;|\s[-–—])?\s+(?:and|or|but|and also|and then)?,?\s*\b(?={BEFORE_WH}(?:(?:when|where|why) {AUXILIARY}"
    rf"|(?!when|where|why){WH}\s+(?!or\b|and\b)\S))",
    re.I,
)
_NEXT_CLAIM = re.compile(
    rf",\s+(?:and|or|but)\s+(?={AUXILIARY}\s+(?:the|a|an|it|he|she|they|we|i|you|his|her|their|its"
    r"|this|that|there|these|those|any|[A-Z]))",
    re.I,
)
_BARE = re.compile(
    r"(?:,|;)?\s+and\s+(?P<bare>why|(?:by |since |until )?when|where|how(?: (?:often|long|much|many))?"
    r"|(?:by |with |for )whom|who)\W*\Z",
    re.I,
)
_WHY_NOT = re.compile(r"(?<!\W)\W*\bwhy(?: or why)? not\W*\Z|(?<!\W)\W*\bif so, (?P<so>.+)\Z", re.I)
_BOTH = re.compile(
    rf"(?P<one>{BEFORE_WH}{WH})\s*(?:,|and|or|,\s*and)\s+(?P<two>{BEFORE_WH}{WH}(?: (?!{AUXILIARY}\b)\w+)?)\s+(?P<rest>{AUXILIARY}\s.+)\Z",
    re.I | re.S,
)
_ASKS = re.compile(rf"(?:{BEFORE_WH}{WH}|{AUXILIARY})\s", re.I)
_STATEMENT_END = re.compile(r"(?<=[.!])[\"”'’)]*\s+(?=[A-Z])")
_PRONOUN = re.compile(
    r"\b(?:it|its|he|him|his|she|her|hers|they|them|their|theirs|this|that|these|those|there|so"
    r"|then|one|ones)\b",
    re.I,
)


def parts(question: str) -> tuple[Part, ...]:
    """Split a question into its parts.

    Example:
        >>> [(part.form, part.topic) for part in parts("Who sold the mill, and why?")]
        [('person', 'sold the mill'), ('reason', 'sold the mill')]
    """
    line = " ".join(question.split())
    found: list[Part] = []
    texts, told = _split(line)
    for text in texts:
        part = _part(text)
        before = f"{told} {found[0].text}".strip() if found else told
        if found and len(terms(part.topic, drop_stop_words=True)) < 1:
            part = Part(part.form, part.text, found[0].topic, part.other, before)
        elif (
            not found
            or _PRONOUN.search(part.text)
            or len(terms(part.text, drop_stop_words=True)) < 3
        ):
            part = Part(part.form, part.text, part.topic, part.other, before)
        found.append(part)
    return tuple(found)


def options(text: str) -> tuple[str, ...]:
    """The options that a question lists.

    Example:
        >>> options("Which is NOT a fault: old data, vague wording or poor printing?")
        ('old data', 'vague wording', 'poor printing')
    """
    found = _OPTIONS.search(text)
    rows = re.split(r",\s*(?:or|and)\s+|,\s*|\s+(?:or|and)\s+", found["options"]) if found else []
    return tuple(row.strip() for row in rows if row.strip())


def _split(line: str) -> tuple[list[str], str]:
    """The texts of the parts of a question, at least one and none blank, and the statements before them."""
    line = _WHY_NOT.sub(lambda match: f", and {match['so']}" if match["so"] else "", line) or line
    asked: list[str] = []
    told: list[str] = []
    rows = [row for row in re.split(r"(?<=[?？])[\"”'’)]*\s*", line) if row.strip(" ?？!.")]
    for row in rows:
        if row.startswith("(") and asked:  # an aside
            asked[-1] += f" {row}"
            continue
        last = _STATEMENT_END.split(row)[-1]
        if last != row and _ASKS.match(last):
            told.append(row.removesuffix(last).strip())
            row = last
        asked += _clauses(row)
    if not asked or len(asked) > MAX_PARTS:
        return [line], ""
    return asked, " ".join(told)


def _clauses(row: str) -> Iterator[str]:
    """The questions joined by `and` in one sentence."""
    row = row.strip(" ?？!.…").strip()
    if len(row) > MAX_LENGTH:
        yield row
        return
    if both := _BOTH.match(row):
        yield f"{both['one']} {both['rest']}"
        yield f"{both['two']} {both['rest']}"
        return
    bare: list[str] = []
    while (last := _BARE.search(row)) and last.start():
        bare.insert(0, last["bare"])
        row = row[: last.start()]
    if _ASKS.match(row):
        for pattern in (_NEXT, _NEXT_CLAIM):
            for match in pattern.finditer(row, 8):
                if not re.search(r"\b(?:and|or|but)\b", match[0], re.I):
                    continue
                yield from _clauses(row[: match.start()])
                row = row[match.end() :]
                break
    if row:
        yield row
    yield from bare


def without_lead_in(text: str) -> str:
    """A question without what only leads to it.

    Example:
        >>> without_lead_in("Please tell me how it ends")
        'how it ends'
    """
    for _ in range(_MAX_LEAD_INS):
        match = _POLITE.match(text)
        if not match or match.end() == len(text):
            break
        text = text[match.end() :]
    return text


def _part(text: str) -> Part:
    """One question with its form."""
    text = without_lead_in(text.strip(" ?？!.…") or text)
    form, about = recognise(text)
    other = " ".join(about[1:])
    if form == "number" and (counted := _COUNTED.match(text)):
        other = counted["noun"]
    return Part(form, text, (about[0] if about else "") or text, other)


_WHOLE_DOCUMENT = re.compile(
    rf"(?:of )?{DOCUMENT}|(?:it|this|everything|the whole thing|the main points?)?", re.I
)
_TALLY = re.compile(
    r"how many (?:times|(?:\w+ )?(?:different|distinct|separate)|of the following|sentences|words)\b",
    re.I,
)
_THING_OF = re.compile(
    rf"(?:what|which) {IS} (?P<thing>(?:(?:the|some|any) )?(?:[\w'’-]+ ){{0,4}}?[\w'’-]+) (?:of|for|between|against|behind"
    r"|associated with) (?P<of>.+)\Z",
    re.I | re.S,
)
_OPTIONS = re.compile(
    r"[:(]\s*(?P<options>[^:()?]+?,[^:()?]+?(?:,|\s+(?:or|and)\s)[^:()?]+)\)?\s*[?.]?\Z"
)
_COUNTED = re.compile(
    rf"\W*{BEFORE_WH}how (?:many|much) (?P<noun>(?:[\w'’-]+ ){{0,3}}?[\w'’-]+)(?= {AUXILIARY}\b| [\w'’-]+ed\b|\Z)",
    re.I,
)
_WHO_DID = re.compile(
    rf"who (?:(?:first|originally|really|actually|later|then|has|had) )*(?!{AUXILIARY}\b|else\b)(?P<rest>\w+ .+)",
    re.I | re.S,
)
_DID = re.compile(
    rf"\b(?:does|did|do|has|had|have) (?P<subject>(?>{NAME})(?<!['’]s)) (?P<deed>[a-z]+)\b", re.I
)
