"""Question → what it counts, if it counts rows: patients, reviews, messages, letters.

The rule: a question is about rows if it says how many, most, least, per, before and after, which share
or more than of things that collections consist of (`_UNITS`), and these are what the question is
about. Things that somebody in a text has, writes or does are not: `How many letters did Ada write?`
goes by what the text says of Ada. A user, a date or a speaker is a field of rows, not a row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from pearl.documents.dates import read_period
from pearl.llm.backends.extractive.forms import AUXILIARY, MAX_LENGTH, NAME
from pearl.llm.backends.extractive.questions import without_lead_in

Ask = Literal["count", "count_by", "most", "least", "second", "compare", "share", "shares", "sizes"]
"""How many; how many of each; the most, the least, the second most; more, less or the same; which
share; the same of shares before and after a day; how many groups of a size."""

LABEL = "label"
"""The field that stands for what a model labels rows with."""

MAX_ROW_QUESTION = 10 * MAX_LENGTH
"""Characters of a question; lists of users and of labels may be long."""

Where = tuple[str, str, str | tuple[str, ...]]
"""A field, an operator and what the field is compared with."""


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A question that is answered by counting rows."""

    ask: Ask
    unit: str
    field: str = ""
    about: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    where: tuple[Where, ...] = ()
    day: str = ""
    size: tuple[str, int] = ("", 0)


_UNITS = {
    noun: unit
    for unit, nouns in {
        "entry": "call comment customer email entry instance message participant patient post record respondent "
        "review row submission survey ticket tweet user",
        "document": "article contract document file letter",
        "line": "line",
        "page": "page",
        "paragraph": "paragraph",
        "section": "clause section",
        "sentence": "sentence",
        "turn": "speaker turn utterance",
    }.items()
    for noun in nouns.split()
} | {"data point": "entry"}  # fmt: skip
_FIELDS = {
    "user": "User", "date": "Date", "day": "Date", "speaker": "Speaker", "label": LABEL, "week": "Date by week",
    "month": "Date by month", "quarter": "Date by quarter", "year": "Date by year", "weekday": "Date by weekday",
}  # fmt: skip
_DATED = re.compile(
    r"\b(?:calls?|comments?|data points?|dates?|emails?|entr(?:y|ies)|instances?|labels?|messages?|posts?|records?"
    r"|reviews?|rows?|tickets?|tweets?|users?)\b",
    re.I,
)
"""What has a date of its own; of others, a date in the question may be that of anything."""
_ANOTHER = "another label"

_PLURALS = sorted(
    (f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s" for noun in _UNITS), key=len
)
_NOUN = rf"(?P<noun>{'|'.join([*_PLURALS[::-1], *sorted(_UNITS, key=len)[::-1]])})\b"
_FIELD = rf"(?P<field>{'|'.join(_FIELDS)})s?"
_MONTHS = "january february march april may june july august september october november december"
_DATE = (
    r"(?:[A-Z][a-z]{2,8}\.? \d{1,2},? \d{4}|\d{1,2}\.? [A-Z][a-z]{2,8}\.?,? \d{4}|[A-Z][a-z]{2,8}\.? \d{4}"
    r"|\d{4}-\d{2}(?:-\d{2})?|\d{1,2}[/.]\d{1,2}[/.]\d{4}|(?:19|20)\d{2})\b"
)
_QUOTED = r"['‘\"“](?P<{}>[^'’\"”]+)['’\"”]?"

_LISTED = re.compile(
    r"\b(?:the|these|those|following) labels(?: are| is)?:\s*(?P<labels>[^.?]+)", re.I
)
_FORM = re.compile(
    r"\s*\b(?:give|provide|return|write|state|report) (?:me )?(?:your|the) (?:final )?answer\b.*",
    re.I | re.S,
)
_USERS = re.compile(r"\busers?(?: with)? ids? (?P<ids>\w+(?:, ?(?:and )?\w+)*(?: and \w+)?)", re.I)
_ANY_MONTH = re.compile(rf"\bin (?P<month>{_MONTHS.replace(' ', '|')}) of any year\b", re.I)
_BETWEEN = re.compile(
    rf"\b(?:between|from) (?P<first>{_DATE}) (?:and|to|until) (?P<last>{_DATE})(?:,? inclusive)?"
)
_WHEN = re.compile(rf",?\s*\b(?P<word>before|after|since|until|in|on|during) (?P<date>{_DATE})")
_OPERATORS = {"before": "before", "after": "after", "since": "at least", "until": "at most"}
_LEAD_IN = re.compile(
    r"\s*(?:(?:in|according to) (?:the|this|these) (?:above |following )?(?:data|dataset|collection|corpus|file|records|rows|table),?|among [^,?]*,)\s*",
    re.I,
)
_SUBSET = re.compile(
    r"(?:for the following question, )?only consider (?:[^.?]|\.(?=\S))*\.\s*", re.I
)
_STORY = re.compile(
    r"\b(?:in|of|by the end of) (?:the|this) (?:story|book|novel|chapter|tale|play|film|poem)\b",
    re.I,
)

_SUBJECT = re.compile(
    rf"\s*{AUXILIARY}\s+(?:{NAME}|i|you|he|she|it|we|they)\b|.*?\b(?:do|does|did)\b(?! not\b)|\s*per\b",
    re.I,
)
"""What follows a noun that is not what the question is about: somebody else is, or a rate."""
_SEVERAL = re.compile(r"[?;]|\b(?:and|or|but),? (?:why|when|where|how|who|whom|what|which)\b", re.I)
"""More than one question."""
_PLAIN = re.compile(
    r"\s*(?:(?:are|were|is|was) (?:there|listed|included|mentioned here|sent|written|posted|made|received|recorded|given)"
    r"|exist|occur(?:red)?|(?:are|were) there in (?:total|all)|in (?:total|all)|(?:do|does) (?:the|this) \w+ (?:have|contain))?\s*\Z",
    re.I,
)  # fmt: skip
_DETERMINERS = re.compile(
    r"\b(?:of|the|these|those|all|different|distinct|unique|separate|individual|total|any)\b\s*",
    re.I,
)
_AS_LABEL = re.compile(
    r"\s*(?:(?:should be |are |were |can be )?(?:classified|labell?ed|categori[sz]ed) as|(?:have|has|with)) (?:the )?(?:label )?"
    + _QUOTED.format("label"),
    re.I,
)  # fmt: skip

_COUNT = re.compile(
    rf"(?:how many|(?:what (?:is|was) )?(?:the )?(?:total )?number of|count(?: all)?) (?P<kind>(?:[\w'’-]+ ){{0,3}}?){_NOUN}(?P<rest>.*)",
    re.I,
)
_DID_EACH = re.compile(rf"\s*(?:do|does|did|has|have) (?:each|every) {_FIELD}\b.*", re.I)
_PER = (
    re.compile(rf"(?P<before>.*?)\s*\b(?:per|for (?:each|every)|by (?:each )?|in each) ?{_FIELD}\s*\Z", re.I),
    re.compile(r"(?P<before>.*?)\s*\b(?:per|for (?:each|every)) (?P<other>[\w'’-]+(?: [\w'’-]+){0,2})\s*\Z", re.I),
)  # fmt: skip
_SIZES = re.compile(
    rf"how many {_FIELD} (?:are|were|is|was)? ?(?:represented|seen|mentioned|found|occur|appear|have|posted|wrote|sent) "
    r"(?P<op>exactly|at least|at most|more than|fewer than|less than) (?P<n>\d+|once|twice)(?: times?| \w+)?",
    re.I,
)
_RANK = r"(?P<rank>(?:the )?second[- ]most|(?:the )?most|(?:the )?least|(?:the )?fewest)"
_RANKED = (
    re.compile(rf"which (?:of the )?{_FIELD} (?:is|was|are|were) (?:represented |mentioned |seen )?{_RANK} (?:often|common|frequent\w*|active)\b.*", re.I),
    re.compile(rf"which (?:of the )?{_FIELD} (?:occurs?|appears?|posted|posts|wrote|writes?|sent|speaks?|spoke) {_RANK} (?:often|frequently)\b.*", re.I),
    re.compile(rf"what (?:is|was) {_RANK} (?:common|frequent(?:ly occurring)?|active) {_FIELD}\b.*", re.I),
    re.compile(rf"which (?:of the )?{_FIELD} (?:has|have|had|wrote|writes|sent|posted|posts|made|received|got) {_RANK} {_NOUN}(?P<rest>.*)", re.I),
    re.compile(rf"(?:which|what) (?P<other>[\w'’-]+(?: [\w'’-]+){{0,2}}?) (?:has|have|had) {_RANK} {_NOUN}(?P<rest>.*)", re.I),
    re.compile(rf"(?:which|what) (?:is|was) {_RANK} (?:common|frequent) (?P<other>[\w'’-]+(?: [\w'’-]+)?) (?:of|among|in|across) (?:the |all )?{_NOUN}(?P<rest>)\s*\Z", re.I),
)  # fmt: skip
_OF_TWO = re.compile(
    rf"which user has more {_NOUN}(?P<rest>.*?): user (?P<one>\w+) or user (?P<two>\w+)", re.I
)
_SHARES = re.compile(
    rf"(?:was|were|is|are) (?:the )?label {_QUOTED.format('label')} more common, less common,? or the same frequency "
    rf"before (?P<day>{_DATE}),? as compared to after.*",
    re.I,
)
_LABELS = re.compile(
    rf"(?:is|are|was|were) (?:the )?label {_QUOTED.format('one')} more common, less common,? or the same frequency as "
    rf"(?:the )?label {_QUOTED.format('two')}.*",
    re.I,
)
_COMPARED = (
    re.compile(rf"compare how many {_NOUN} (?P<first>.+?) (?:with|to|and) how many (?:(?:of them|(?P=noun)) )?(?P<second>.+)", re.I),
    re.compile(rf"(?:are|were) there more {_NOUN} (?P<first>.+?) than (?:(?P=noun) )?(?P<second>.+)", re.I),
)  # fmt: skip
_SHARE = re.compile(
    rf"(?:what|which) (?:share|percentage|percent|proportion|fraction|part) of (?P<kind>(?:[\w'’-]+ ){{0,3}}?){_NOUN}(?P<rest>.*)",
    re.I,
)


def row_question(question: str) -> RowQuestion | None:
    """What a question counts; None if it is not about rows.

    Example:
        >>> row_question("How many patients had chest pain?")
        RowQuestion(ask='count', unit='entry', field='', about=('the patient had chest pain',), labels=(), where=(), day='', size=('', 0))
        >>> row_question("How many letters did Ada write?") is None
        True
    """
    line = " ".join(question.split())
    if len(line) > MAX_ROW_QUESTION or _STORY.search(line):
        return None
    listed = _LISTED.search(line)
    labels = _entries(listed["labels"]) if listed else ()
    core, where = _scoped(_FORM.sub("", line))
    asked = _compared(core)
    if asked is None and not _SEVERAL.search(core):
        asked = _shared(core) or _ranked(core) or _counted(core)
    if asked is None:
        return None
    if asked.labels or asked.field == LABEL:
        if not labels and not asked.about:
            return None  # nobody says what the labels are
        labels = labels or (*asked.about, _ANOTHER)
        asked = replace(asked, labels=labels)
    return replace(asked, where=(*where, *asked.where))


def _scoped(line: str) -> tuple[str, tuple[Where, ...]]:
    """The question itself, and which rows it is about as far as fields of rows tell."""
    where: list[Where] = []
    if users := _USERS.search(line):
        ids = (id for id in re.findall(r"\w+", users["ids"]) if id != "and")
        where.append(("User", "in", tuple(dict.fromkeys(ids))))
    if month := _ANY_MONTH.search(line):
        number = _MONTHS.split().index(month["month"].lower()) + 1
        where.append(("Date by month", "contains", f"-{number:02}"))
    if _SHARES.search(line) or not _DATED.search(line):
        return _bare(line), tuple(where)
    if (between := _BETWEEN.search(line)) and _are_dates(between["first"], between["last"]):
        where += [("Date", "at least", between["first"]), ("Date", "at most", between["last"])]
        line = _BETWEEN.sub("", line, count=1)
    for when in _WHEN.finditer(line):
        if _are_dates(when["date"]):
            where.append(("Date", _OPERATORS.get(when["word"].lower(), "is"), when["date"]))
            line = line.replace(when[0], "", 1)
    return _bare(line), tuple(where)


def _bare(line: str) -> str:
    """The question without lead-in, subset and question mark."""
    line = _SUBSET.sub("", line)
    while (match := _LEAD_IN.match(line)) and match.end():
        line = line[match.end() :]
    return without_lead_in(" ".join(line.split()).strip(" ,.?"))


def _are_dates(*texts: str) -> bool:
    return all(read_period(text)[0] is not None for text in texts)


def _entries(text: str) -> tuple[str, ...]:
    """The entries of a list in a sentence; an "and" within one of them belongs to it.

    Example:
        >>> _entries("spam, ham and eggs, or neither"), _entries("spam and ham")
        (('spam', 'ham and eggs', 'neither'), ('spam', 'ham'))
    """
    between = r",\s*(?:(?:and|or)\s)?\s*|\s+or\s+" if "," in text else r"\s+(?:and|or)\s+"
    found = (entry.strip(" '‘’\"“”") for entry in re.split(between, text))
    return tuple(dict.fromkeys(entry for entry in found if entry))


# ---------------------------------------------------------------------------------------------
# Forms


def _compared(core: str) -> RowQuestion | None:
    """More, less or the same."""
    if match := _SHARES.fullmatch(core):
        label = match["label"]
        return RowQuestion("shares", "entry", about=(label,), labels=(label,), day=match["day"])
    if match := _LABELS.fullmatch(core):
        both = (match["one"], match["two"])
        return RowQuestion("compare", "entry", about=both, labels=both)
    for pattern in _COMPARED:
        if match := pattern.fullmatch(core):
            conditions = (_condition(match["noun"], match[name]) for name in ("first", "second"))
            return RowQuestion("compare", _unit(match["noun"]), about=tuple(conditions))
    return None


def _shared(core: str) -> RowQuestion | None:
    """Which share."""
    match = _SHARE.fullmatch(core)
    if match is None or _SUBJECT.match(match["rest"]):
        return None
    of = _about(match)
    return replace(of, ask="share", unit=_unit(match["noun"])) if of.about else None


def _ranked(core: str) -> RowQuestion | None:
    """The most, the second most, the least."""
    if match := _OF_TWO.fullmatch(core):
        of = _about(match)
        users: Where = ("User", "in", (match["one"], match["two"]))
        return replace(of, ask="most", unit=_unit(match["noun"]), field="User", where=(users,))
    for pattern in _RANKED:
        match = pattern.fullmatch(core)
        if match is None:
            continue
        found = match.groupdict(default="")
        rank = found["rank"].lower()
        ask: Ask = "second" if "second" in rank else "most" if "most" in rank else "least"
        field = _FIELDS.get(found.get("field", "").lower(), found.get("other", ""))
        noun = found.get("noun", "")
        if found.get("other") and noun and _unit(noun) != "entry":
            return None  # what else has most pages is no field
        of = _about(match) if noun else RowQuestion(ask, "entry")
        unit = "turn" if field == "Speaker" else _unit(noun) if noun else "entry"
        return replace(of, ask=ask, unit=unit, field=field)
    return None


def _counted(core: str) -> RowQuestion | None:
    """How many, in all, of each or of a size."""
    if match := _SIZES.fullmatch(core):
        n = {"once": 1, "twice": 2}.get(match["n"].lower()) or int(match["n"])
        op = {
            "exactly": "is",
            "at least": "at least",
            "at most": "at most",
            "more than": "at least",
        }
        operator = op.get(match["op"].lower(), "at most")
        n += {"more than": 1, "fewer than": -1, "less than": -1}.get(match["op"].lower(), 0)
        return RowQuestion("sizes", "entry", field=_field(match["field"]), size=(operator, n))
    for pattern in _PER:
        if match := pattern.fullmatch(core):
            inner = _COUNT.fullmatch(match["before"])
            if inner is None or _SUBJECT.match(inner["rest"]):
                return None
            found = match.groupdict()
            field = _field(found["field"]) if "field" in found else found["other"]
            return replace(_about(inner), ask="count_by", unit=_unit(inner["noun"]), field=field)
    match = _COUNT.fullmatch(core)
    if match is None:
        return None
    if each := _DID_EACH.fullmatch(match["rest"]):
        return RowQuestion("count_by", _unit(match["noun"]), field=_field(each["field"]))
    if _SUBJECT.match(match["rest"]):
        return None
    field = _FIELDS.get(_one(match["noun"]), "")
    return replace(_about(match), ask="count", unit=_unit(match["noun"]), field=field)


def _about(match: re.Match[str]) -> RowQuestion:
    """What is said of the rows that are counted: a label, a condition or nothing."""
    found = match.groupdict(default="")
    noun, rest = found["noun"], found.get("rest", "")
    if label := _AS_LABEL.fullmatch(rest):
        return RowQuestion("count", "entry", about=(label["label"],), labels=(label["label"],))
    kind = _DETERMINERS.sub("", found.get("kind", "")).strip()
    said = [f"the {_one(noun)} is {kind}"] if kind else []
    if not _PLAIN.fullmatch(rest):
        said.append(_condition(noun, rest))
    return RowQuestion("count", "entry", about=(" and ".join(said),) if said else ())


def _condition(noun: str, rest: str) -> str:
    """What is said of a row, as a sentence.

    Example:
        >>> _condition("reviews", " are there about the food"), _condition("patients", " had a fever")
        ('the review is one about the food', 'the patient had a fever')
    """
    rest = _THERE.sub("", rest.strip())
    that = _THAT.match(rest)
    verb = _LATER_VERB.search(rest, that.end() if that else 0)
    if verb and (that or _PREPOSITION.match(rest)):
        which = f"{'that ' if that else ''}{rest[that.end() if that else 0 : verb.start()]}"
        return f"the {_one(noun)} {which} {_SINGULAR.get(verb[1], verb[1])} {rest[verb.end() :]}"
    rest = _THAT.sub("", rest)
    word, _, more = rest.partition(" ")
    if _PREPOSITION.match(rest):
        rest = f"is one {rest}"
    elif word.islower() and word.isalpha() and not _FINITE.fullmatch(word):
        rest = f"{_SINGULAR.get(word, f'{word}s')} {more}"
    return f"the {_one(noun)} {rest}".rstrip()


_PREPOSITION = re.compile(
    r"(?:about|above|after|aged|at|before|below|between|by|for|from|in|of|on|over|to|under|with|without|\w+ing)\b",
    re.I,
)
_LATER_VERB = re.compile(r"\s(had|has|have|are|is|was|were)\s")
_THAT = re.compile(r"\A(?:(?:(?:are|were|is|was) there|that|who|which)\b\s*)+", re.I)
_THERE = re.compile(r"\s+(?:are|were|is|was) there\s*\Z", re.I)
_SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
_FINITE = re.compile(
    r".*(?:ed|s)|am|became|began|bought|brought|built|came|can|caught|chose|could|did|drank|drove|fell|felt|fought|found"
    r"|gave|got|had|held|hit|hurt|is|kept|knew|led|left|lost|made|may|met|might|must|never|not|paid|ran|said|sang|sat|saw"
    r"|sent|should|sold|spent|spoke|stood|taught|thought|told|took|underwent|was|went|will|won|would|wrote",
    re.I,
)
"""Verbs that are the same for one as for many."""


def _one(noun: str) -> str:
    """The singular of a noun of `_UNITS`."""
    noun = noun.lower()
    if noun in _UNITS:
        return noun
    return f"{noun[:-3]}y" if noun.endswith("ries") else noun.removesuffix("s")


def _unit(noun: str) -> str:
    return _UNITS[_one(noun)]


def _field(name: str) -> str:
    return _FIELDS[name.lower()]
