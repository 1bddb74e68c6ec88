"""Question → its parts, each with its form, by patterns that match only if the form is certain.

A part of uncertain form is a `thing`, which is searched for unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pearl.documents.passages import terms
from pearl.errors.patterns import lazy_pattern

MAX_LENGTH = 600
"""Maximum characters of a question with a form."""
MAX_PARTS = 6
"""Maximum parts; a question with more parts is not split."""
_MAX_LEAD_INS = 4

Form = Literal[
    "advice", "claim", "comparison", "definition", "duration", "emotion", "list", "manner", "number",
    "person", "place", "reason", "summary", "thing", "time",
]  # fmt: skip

AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might"
    r"|must|ca|wo)(?:n['’]t|not)?"
)
NAME = r"(?:(?-i:[A-Z])[\w.'’-]*(?:\s+(?:(?:of|de|van|von)\s+)?(?-i:[A-Z])[\w.'’-]*)*)"
_WH = r"(?:who|whom|whose|what|which|when|where|why|how)"
_BEFORE_WH = (
    r"(?:(?:in|at|on|by|for|since|until|till|to|from|with|of|about|under|after|before|during"
    r"|through|into|around|and|but|so|then|now)\s+){0,2}"
)
_DOCUMENT = (
    r"(?:the |this |that |a )?(?:whole |entire |following )?(?:story|text|article|document|report|essay"
    r"|book|passage|paper|transcript|conversation|consultation|note|letter|visit)s?"
)
_IS = r"(?:is|are|was|were)"
_DO = r"(?:do|does|did)"
_TIMES = r"(?:time|day|date|year|month|week|hour|century|decade|season|period|age|morning|evening)"
_PLACES = r"(?:place|city|town|village|country|street|building|room|house|location|island|river|state|region)"
_PERSONS = r"(?:person|people|man|woman|boy|girl|character|doctor|nurse|author|company|organi[sz]ation|group)"
_AMOUNTS = (
    r"(?:number|percentage|proportion|amount|price|cost|sum|share|dose|weight|height|distance"
    r"|temperature|size|length|fee|salary|total|speed|depth|width|population|rate|rent|budget|quantity)"
)
_ITSELF = rf"(?=\W*\Z| (?:{AUXILIARY}|of|in|who|that|which|when|where)\b| [\w'’-]+ed\b)"
"""Text after the requested noun; excludes the first word of a compound (`school bus`)."""

_FORMS: tuple[tuple[Form, str], ...] = (
    ("summary", r"(?:summari[sz]e|sum up|(?:give )?(?:a |the )?(?:summary|gist|overview) of) ?(?P<topic>.*)"
     rf"|what {_IS} (?P<whole>{_DOCUMENT})(?: all| mainly)? about"),
    ("comparison", r"(?:compare|contrast) (?P<topic>.+?) (?:and|with|to|against) (?P<other>.+)"
     rf"|what {_IS} the (?:difference|similarit(?:y|ie))s? between (?P<x>.+?) and (?P<y>.+)"
     rf"|how {_DO} (?P<x2>(?:(?!\b{_WH}\b).)+?) differ from (?P<y2>(?:(?!\b{_WH}\b).)+)"),
    ("emotion", rf"(?:how|what) {_DO} (?P<topic>(?:(?!\b{_WH}\b).)+?) (?:feel|felt|react|think)\b"
     r"(?: (?:about|towards?|to|of))? ?(?P<other>.*)"),
    ("advice", rf"what (?:should|ought|must)\b.*|what {_IS} .+? (?:advised|told|recommended|urged) to do\b.*"
     r"|(?:what|which) .*\b(?:advice|recommendations?)\b.*"),
    ("definition", rf"what {_DO} (?P<topic>.+?) (?:mean|stand for|refer to)|what {_IS} (?:the )?(?:meaning|definition) of"
     r" (?P<of>.+)|what is meant by (?P<by>.+)|define (?P<define>.+)|what is (?P<thing>(?-i:an? [a-z-]+))"),
    ("reason", r"(?:for what reason|what for|how come|why)\b.*"
     rf"|what (?:{_IS} )?(?:(?:the|a|one) )?(?:[\w'’-]+ )?(?:reasons?|causes?|motives?|motivation|explanation)\b.*"
     r"|(?:what|who) (?:makes?|made|causes?|caused|leads?|led|prompts?|prompted|drove|persuaded|enable[sd]?)\b.*"),
    ("duration", r"(?:for |since )?how (?:long|often|frequently|old|soon)\b.*"
     r"|how many (?:more )?(?:years|months|weeks|days|hours|minutes|seconds|decades)\b.*"),
    ("number", r"(?:(?:in|by|to|for|at|of|with|into|about) )?how (?:many|much|few|far|tall|high|deep|wide|big|large|heavy|fast)\b.*"
     rf"|(?:(?:in|by|to|for|at) )?(?:what|which)(?: {_IS})?(?: the)?(?: (?!name)\w+)? {_AMOUNTS}\b.*"),
    ("time", rf"(?:since |until |till |by |from )?when\b(?!.*, {_WH}\b).*|{_BEFORE_WH}(?:what|which) (?:\w+ )?{_TIMES}{_ITSELF}.*"),
    ("place", rf"(?:from |to )?where\b(?!.*, {_WH}\b).*|{_BEFORE_WH}(?:what|which) (?:\w+ )?{_PLACES}{_ITSELF}.*"),
    ("person", rf"{_BEFORE_WH}(?:who|whom|whose)\b.*|{_BEFORE_WH}(?:what|which) (?:\w+ )?{_PERSONS}{_ITSELF}.*"),
    ("list", r"(?:list|enumerate|extract)(?: me)? (?:(?:all|every|each|the)\b)?\s*(?P<topic>.+)"
     r"|(?:name|identify|find)(?: me)? (?:all|every|each)\s+(?P<each>.+)"),
    ("manner", rf"how\b(?!.*\b{_WH}\b) (?:{_DO}|can|to)\b.*"),
    ("claim", rf"{AUXILIARY}\b(?!,|.*\bor\b).+"),
)  # fmt: skip
_PATTERNS = [(form, lazy_pattern(rf"(?:{pattern})\Z", re.I | re.S)) for form, pattern in _FORMS]
_UNSURE = lazy_pattern(r"\b(?-i:NOT|EXCEPT)\b|\b(?:what|which)\b.* not\b|\bif\b", re.I)
"""Words that change the meaning of a form."""

_POLITE = lazy_pattern(
    rf"(?:please,?\s+|(?:according to|in|within|from|based on) {_DOCUMENT},?\s+"
    r"|(?:can|could|would|will) you (?:please )?(?=(?:tell|explain|describe|give|find|list|show|summari[sz]e|compare)\b)"
    r"|(?:tell|show) me,? (?:about )?|(?:explain|describe) (?=wh|how))",
    re.I,
)
_NEXT = lazy_pattern(
    rf"(?:,|;|\s[-–—])?\s+(?:and|or|but)(?: also| then)?,?\s+(?={_BEFORE_WH}(?:(?:when|where|why) {AUXILIARY}"
    rf"|(?!when|where|why){_WH}\s+(?!or\b|and\b)\S))",
    re.I,
)
_BARE = lazy_pattern(
    r"(?:,|;)?\s+and\s+(?P<bare>why|when|where|how(?: (?:often|long|much|many))?|(?:by |with |for )whom|who)\W*\Z",
    re.I,
)
_ASKS = lazy_pattern(rf"(?:{_BEFORE_WH}{_WH}|{AUXILIARY})\s", re.I)
_PRONOUN = lazy_pattern(
    r"\b(?:it|its|he|him|his|she|hers?|they|them|theirs?|this|that|these|those|there|so|then|ones?)\b",
    re.I,
)
_TALLY = lazy_pattern(r"how many (?:times|(?:\w+ )?(?:different|distinct|separate))\b", re.I)
_THING_OF = lazy_pattern(
    rf"(?:what|which) {_IS} (?P<thing>(?:(?:the|some|any) )?(?:[\w'’-]+ ){{0,4}}?[\w'’-]+)"
    r" (?:of|for|between|against|behind|associated with) (?P<of>.+)\Z",
    re.I | re.S,
)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a question.

    `topics` are its subjects if the form names them, two for a comparison. `background` is the text that its
    pronouns may refer to.
    """

    form: Form
    text: str
    topics: tuple[str, ...] = ()
    background: str = ""

    @property
    def asked(self) -> str:
        """The text, with a question mark if it is a question."""
        return f"{self.text}?" if _ASKS.match(self.text) else self.text

    @property
    def topic(self) -> str:
        """The only topic, else the whole question."""
        return self.topics[0] if len(self.topics) == 1 else self.asked

    @property
    def is_tally(self) -> bool:
        """Whether the part asks for a number that is counted, not stated."""
        return bool(_TALLY.match(self.text))

    @property
    def is_about_document(self) -> bool:
        """Whether the part is about the document as a whole."""
        return not self.topics or bool(re.fullmatch(rf"(?:{_DOCUMENT}|it|this)?", self.topic, re.I))

    @property
    def thing_of(self) -> tuple[str, str]:
        """`symptoms`, `flu` in `What are the symptoms of flu`; "", "" for another form."""
        match = _THING_OF.match(self.text)
        return (match["thing"], match["of"]) if match else ("", "")


def parts(question: str) -> tuple[Part, ...]:
    """Split a question into its parts.

    Example:
        >>> [(part.form, part.asked) for part in parts("Who sold the mill, and why?")]
        [('person', 'Who sold the mill?'), ('reason', 'why')]
    """
    split: list[Part] = []
    for text in _split(" ".join(question.split())):
        text = without_lead_in(text.strip(" ?？!.…") or text)
        is_short = len(terms(text, drop_stop_words=True)) < 2
        may_refer = split and (is_short or _PRONOUN.search(text))
        form, topics = recognise(text)
        split.append(Part(form, text, topics, split[0].text if may_refer else ""))
    return tuple(split)


def recognise(question: str) -> tuple[Form, tuple[str, ...]]:
    """The form of one question, and its topics.

    Example:
        >>> recognise("How did Ada feel about the mill")
        ('emotion', ('Ada', 'the mill'))
    """
    if len(question) <= MAX_LENGTH and not _UNSURE.search(question):
        for form, pattern in _PATTERNS:
            if match := pattern.match(question):
                groups = match.groupdict(default="").values()
                return form, tuple(topic for group in groups if (topic := group.strip(" ,:")))
    return "thing", ()


def without_lead_in(text: str) -> str:
    """A question without a polite beginning.

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


def _split(line: str) -> list[str]:
    """The texts of the parts of a question."""
    rows = [row for row in re.split(r"(?<=[?？])[\"”'’)]*\s*", line) if row.strip(" ?？!.")]
    texts: list[str] = []
    for row in rows:
        if row.startswith("(") and texts:  # an aside: the words of an earlier question
            texts[-1] += f" {row}"
        else:
            texts += _clauses(row)
    return texts if texts and len(texts) <= MAX_PARTS else [line]


def _clauses(row: str) -> Iterator[str]:
    """The questions joined by `and` in one sentence."""
    row = row.strip(" ?？!.…")
    if len(row) > MAX_LENGTH:
        yield row
        return
    bare: list[str] = []
    while (last := _BARE.search(row)) and last.start():
        bare.insert(0, last["bare"])
        row = row[: last.start()]
    if _ASKS.match(row) and (match := _NEXT.search(row, 8)):
        yield from _clauses(row[: match.start()])
        yield from _clauses(row[match.end() :])
    elif row:
        yield row
    yield from bare
