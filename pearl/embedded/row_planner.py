"""Question about rows (patients, reviews, messages) → the steps that count them.

A question is about rows if it asks how many, most, least, per or which share of the units of a collection
(`_UNITS`). "How many letters did Ada write?" is not: the text states what Ada did.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from pearl.actions.operators import operators
from pearl.documents.dates import read_period
from pearl.dsl.nodes import Argument, ListLiteral, Reference, String
from pearl.dsl.signatures import ActionLibrary
from pearl.embedded.questions import AUXILIARY, MAX_LENGTH, NAME, without_lead_in
from pearl.errors.patterns import lazy_pattern

Where = tuple[str, str, str]
"""A field, an operator and the value that the field is compared with."""


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A question that is answered by counting rows; `about` holds its conditions in words."""

    ask: Literal["count", "count_by", "most", "least", "compare", "share"]
    unit: str
    field: str = ""
    about: tuple[str, ...] = ()
    where: tuple[Where, ...] = ()


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
    "user": "User", "date": "Date", "day": "Date", "speaker": "Speaker", "week": "Date by week",
    "month": "Date by month", "quarter": "Date by quarter", "year": "Date by year", "weekday": "Date by weekday",
}  # fmt: skip
_DATED = lazy_pattern(
    r"\b(?:calls?|comments?|data points?|emails?|entr(?:y|ies)|instances?|messages?|posts?|records?"
    r"|reviews?|rows?|tickets?|tweets?|users?)\b",
    re.I,
)
"""Units that have a date; for others, a date in the question may refer to anything."""

_PLURALS = [f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s" for noun in _UNITS]
_NOUN = rf"(?P<noun>{'|'.join(sorted([*_PLURALS, *_UNITS], key=len, reverse=True))})\b"
_FIELD = rf"(?P<field>{'|'.join(_FIELDS)})s?"
_DATE = (
    r"(?:[A-Z][a-z]{2,8}\.? \d{1,2},? \d{4}|\d{1,2}\.? [A-Z][a-z]{2,8}\.?,? \d{4}|[A-Z][a-z]{2,8}\.? \d{4}"
    r"|\d{4}-\d{2}(?:-\d{2})?|\d{1,2}[/.]\d{1,2}[/.]\d{4}|(?:19|20)\d{2})\b"
)

_THERE = lazy_pattern(r"\s*\b(?:are|were|is|was) there\b\s*", re.I)
_BETWEEN = lazy_pattern(
    rf"\b(?:between|from) (?P<first>{_DATE}) (?:and|to|until) (?P<last>{_DATE})(?:,? inclusive)?"
)
_WHEN = lazy_pattern(rf",?\s*\b(?P<word>before|after|since|until|in|on|during) (?P<date>{_DATE})")
_OPERATORS = {"before": "before", "after": "after", "since": "at least", "until": "at most"}
_LEAD_IN = lazy_pattern(
    r"\s*(?:in|according to) (?:the|this|these) (?:above |following )?(?:data|dataset|collection|file|records|rows|table),?\s*",
    re.I,
)
_TIMES = lazy_pattern(r"\b(?:once|twice|times|(?:more|fewer|less) than)\b", re.I)
"""Conditions on the number of rows of a group, which no single row states."""
_STORY = lazy_pattern(r"\b(?:in|of) (?:the|this) (?:story|book|novel|chapter|tale|play|film|poem)\b", re.I)  # fmt: skip
_SUBJECT = lazy_pattern(
    rf"\s*{AUXILIARY}\s+(?:{NAME}|i|you|he|she|it|we|they)\b|.*?\b(?:do|does|did)\b(?! not\b)|\s*per\b",
    re.I,
)
"""Follows a unit if the question has another subject, or asks for a rate."""
_SEVERAL = lazy_pattern(
    r"[?;]|\b(?:and|or|but),? (?:why|when|where|how|who|whom|what|which)\b", re.I
)
_PLAIN = lazy_pattern(
    r"\s*(?:(?:are|were|is|was) (?:there|listed|included|sent|written|posted|made|received|recorded)|exist"
    r"|(?:are|were) there in (?:total|all)|in (?:total|all)|(?:do|does) (?:the|this) \w+ (?:have|contain))?\s*\Z",
    re.I,
)
_DETERMINERS = lazy_pattern(
    r"\b(?:of|the|these|those|all|different|distinct|unique|separate|individual|total|any)\b\s*",
    re.I,
)
_KIND = r"(?P<kind>(?:[\w'’-]+ ){0,3}?)"
_COUNT = lazy_pattern(
    rf"(?:how many|(?:what (?:is|was) )?(?:the )?(?:total )?number of|count(?: all)?) {_KIND}{_NOUN}(?P<rest>.*)",
    re.I,
)
_PER = (
    lazy_pattern(rf"(?P<before>.*?)\s*\b(?:per|for (?:each|every)|by (?:each )?|in each) ?{_FIELD}\s*\Z", re.I),
    lazy_pattern(r"(?P<before>.*?)\s*\b(?:per|for (?:each|every)) (?P<other>[\w'’-]+(?: [\w'’-]+){0,2})\s*\Z", re.I),
)  # fmt: skip
_RANK = r"(?:the )?(?P<rank>most|least|fewest)"
_RANKED = (
    lazy_pattern(rf"which (?:of the )?{_FIELD} (?:is|was|are|were) (?:represented |mentioned )?{_RANK} (?:often|common|frequent\w*|active)\b.*", re.I),
    lazy_pattern(rf"what (?:is|was) {_RANK} (?:common|frequent(?:ly occurring)?|active) {_FIELD}\b.*", re.I),
    lazy_pattern(rf"which (?:of the )?{_FIELD} (?:has|have|had|wrote|sent|posted|made|received|got) {_RANK} {_NOUN}(?P<rest>.*)", re.I),
    lazy_pattern(rf"(?:which|what) (?P<other>[\w'’-]+(?: [\w'’-]+){{0,2}}?) (?:has|have|had) {_RANK} {_NOUN}(?P<rest>.*)", re.I),
)  # fmt: skip
_COMPARED = (
    lazy_pattern(rf"compare how many {_NOUN} (?P<first>.+?) (?:with|to|and) how many (?:(?:of them|(?P=noun)) )?(?P<second>.+)", re.I),
    lazy_pattern(rf"(?:are|were) there more {_NOUN} (?P<first>.+?) than (?:(?P=noun) )?(?P<second>.+)", re.I),
)  # fmt: skip
_SHARE = lazy_pattern(
    rf"(?:what|which) (?:share|percentage|percent|proportion|fraction) of {_KIND}{_NOUN}(?P<rest>.*)",
    re.I,
)


def row_question(question: str) -> RowQuestion | None:
    """The count that a question asks for; None if the question is not about rows.

    Example:
        >>> row_question("How many patients had chest pain?").about
        ('patients had chest pain',)
        >>> row_question("How many letters did Ada write?") is None
        True
    """
    line = " ".join(question.split())
    if len(line) > MAX_LENGTH or _STORY.search(line):
        return None
    core, where = _scoped(line)
    row = _compared(core)
    if row is None and not _SEVERAL.search(core):
        row = _ranked(core) or _counted(core)
    return None if row is None else replace(row, where=where)


def _scoped(line: str) -> tuple[str, tuple[Where, ...]]:
    """The question without its dates, and the conditions on dates."""
    where: list[Where] = []
    if _DATED.search(line):
        if (between := _BETWEEN.search(line)) and _are_dates(between["first"], between["last"]):
            where += [("Date", "at least", between["first"]), ("Date", "at most", between["last"])]
            line = _BETWEEN.sub("", line, count=1)
        for when in _WHEN.finditer(line):
            if _are_dates(when["date"]):
                where.append(("Date", _OPERATORS.get(when["word"].lower(), "is"), when["date"]))
                line = line.replace(when[0], "", 1)
    while (match := _LEAD_IN.match(line)) and match.end():
        line = line[match.end() :]
    return without_lead_in(" ".join(line.split()).strip(" ,.?")), tuple(where)


def _are_dates(*texts: str) -> bool:
    return all(read_period(text)[0] is not None for text in texts)


def _compared(core: str) -> RowQuestion | None:
    """A question that compares two counts."""
    for pattern in _COMPARED:
        if match := pattern.fullmatch(core):
            conditions = [_condition(match["noun"], match[name]) for name in ("first", "second")]
            return RowQuestion("compare", _UNITS[_one(match["noun"])], about=tuple(conditions))
    return None


def _ranked(core: str) -> RowQuestion | None:
    """A question for the most or the least."""
    for pattern in _RANKED:
        match = pattern.fullmatch(core)
        if match is None:
            continue
        groups = match.groupdict(default="")
        field = _FIELDS.get(groups.get("field", "").lower(), groups.get("other", ""))
        noun = groups.get("noun", "")
        if groups.get("other") and _UNITS[_one(noun)] != "entry":
            return None  # the object is not a field: the chapter with most pages
        of = _about(match) if noun else RowQuestion("count", "entry")
        unit = "turn" if field == "Speaker" else _UNITS[_one(noun)] if noun else "entry"
        ask: Literal["most", "least"] = "most" if groups["rank"].lower() == "most" else "least"
        return replace(of, ask=ask, unit=unit, field=field)
    return None


def _counted(core: str) -> RowQuestion | None:
    """A question for a count, a count for each group or a share."""
    share = _SHARE.fullmatch(core)
    grouped = next((match for pattern in _PER if (match := pattern.fullmatch(core))), None)
    match = share or _COUNT.fullmatch(grouped["before"] if grouped else core)
    if match is None or _SUBJECT.match(match["rest"]):
        return None
    row = _about(match)
    noun = _one(match["noun"])
    if share:
        return replace(row, ask="share", unit=_UNITS[noun]) if row.about else None
    if grouped:
        groups = grouped.groupdict()
        field = _FIELDS[groups["field"].lower()] if "field" in groups else groups["other"]
        return replace(row, ask="count_by", unit=_UNITS[noun], field=field)
    if _TIMES.search(match["rest"]) and noun in _FIELDS:
        return None
    return replace(row, unit=_UNITS[noun], field=_FIELDS.get(noun, ""))


def _about(match: re.Match[str]) -> RowQuestion:
    """The condition on the counted rows, if the question has one."""
    groups = match.groupdict(default="")
    kind, rest = _DETERMINERS.sub("", groups.get("kind", "")).strip(), groups.get("rest", "")
    if not kind and _PLAIN.fullmatch(rest):
        return RowQuestion("count", "entry")
    return RowQuestion("count", "entry", about=(_condition(f"{kind} {groups['noun']}", rest),))


def _condition(noun: str, rest: str) -> str:
    """A condition on rows, without `there are`."""
    return _THERE.sub(" ", f"{noun} {rest.strip()}").strip()


def _one(noun: str) -> str:
    """The singular of a noun of `_UNITS`."""
    noun = noun.lower()
    if noun in _UNITS:
        return noun
    return f"{noun[:-3]}y" if noun.endswith("ries") else noun.removesuffix("s")


# Plans --------------------------------------------------------------------------------------------

_USED = (
    "CLASSIFY", "COUNT", "COUNT_BY", "FILTER", "GROUP", "LEAST", "MOST", "RELATION", "SHARE_OF", "SPLIT", "WHERE",
)  # fmt: skip


def plan_rows(asked: RowQuestion, library: ActionLibrary, add: Callable[..., Reference]) -> bool:
    """Add the steps that answer a question about rows, if the library has the operators."""
    known = operators()
    if any(
        name not in library or library[name].signature != known[name].signature for name in _USED
    ):
        return False

    def step(output: str, action: str, explanation: str, *arguments: Argument) -> Reference:
        return add(output, library[action], explanation, *arguments)

    def kept(rows: Argument, condition: str) -> Reference:
        return step("kept", "FILTER", "Those of which it is true", rows, String(condition))

    def count(rows: Argument) -> Reference:
        return step("number", "COUNT", "How many they are", rows)

    rows = step("rows", "SPLIT", f"One row for each {asked.unit}", String(asked.unit))
    for name, operator, value in asked.where:
        goal = f"Those with {name} {operator} {value}"
        condition = (String(name), String(operator), String(value))
        rows = step("chosen", "WHERE", goal, rows, *condition)
    if asked.ask == "share":
        goal, verdicts = "Say of each whether it is so", ListLiteral((String("yes"), String("no")))
        column = step("verdict", "CLASSIFY", goal, rows, verdicts, String(asked.about[0]))
        step("share", "SHARE_OF", "Its share", column, String(column.name), String("yes"))
        return True
    if asked.ask == "compare":
        both = [count(kept(rows, condition)) for condition in asked.about]
        step("relation", "RELATION", "Which of them there are more of", *both)
        return True
    for text in asked.about:
        rows = kept(rows, text)
    if asked.ask == "count":
        if asked.field:
            rows = step("groups", "GROUP", "Each of them once", rows, String(asked.field))
        count(rows)
        return True
    goal = "How many there are of each"
    counts = step("counts", "COUNT_BY", goal, rows, String(asked.field))
    if asked.ask == "most":
        step("most", "MOST", "The one there are most of", counts)
    elif asked.ask == "least":
        step("least", "LEAST", "The one there are fewest of", counts)
    return True
