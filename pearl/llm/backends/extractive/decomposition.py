"""Question → its parts, by rule: figures, changes, sums, ratios and margins of named periods.

Where no rule is sure, the part is `other`: a question as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pearl.actions.calculators import calculator_of
from pearl.llm import DecomposeTask
from pearl.llm.backends.extractive.follow_ups import follow_up
from pearl.llm.backends.extractive.standalone import without_background

__all__ = ["decompose"]

MAX_LENGTH = 600
"""Characters of a question that rules are tried on; a longer one is `other`."""
MAX_DEPTH = 4
MAX_PARTS = 24
MAX_TEXT = 300

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_PERIOD = (
    r"(?:(?:the )?(?:fiscal |calendar )?(?:years? )?(?:ended |ending )?"
    rf"(?:(?:the )?(?:first|second|third|fourth) quarter (?:of )?(?:fiscal )?|q[1-4] (?:of )?|{_MONTH} (?:[0-9]{{1,2}} ?,? )?)?"
    r"(?:19|20)[0-9]{2})"
)
_AT = r"(?:in|for|during|at|as of|on|at the end of|by the end of|as at)"
_DATED = re.compile(rf"\A(?P<what>.+?),? {_AT} (?P<period>{_PERIOD})\Z", re.I)
_DATED_FIRST = re.compile(rf"\A{_AT} (?P<period>{_PERIOD}),? (?P<what>.+)\Z", re.I)
_LEAD = re.compile(
    r"(?:(?:please )?(?:calculate|compute|determine|find|give(?: me)?|tell me|show(?: me)?) |"
    r"(?:(?:and|so),? )?(?:what|how much|how many) (?:was|were|is|are) |(?:and|so),? )",
    re.I,
)
_JOINED = re.compile(
    r"\s*[?;]\s*(?:and )?|,? and (?=(?:what|how much|how many|by (?:what|how much)) )", re.I
)
_ARTICLE = re.compile(r"\Athe ", re.I)

_UP = r"(?:changes?|increases?|decreases?|decline|growth|rise|drop|reduction)"
_FROM = rf"(?:from|between) (?P<old>{_PERIOD}) (?:to|and|through) (?P<new>{_PERIOD})"
_RATE = r"(?P<rate>(?:percentage|percent|percentual|relative|growth rate|rate of) )?"
_CHANGES = (
    re.compile(rf"\A(?:net |total )?{_RATE}{_UP} (?:in|of) (?P<what>.+?),? {_FROM}\Z", re.I),
    re.compile(rf"\A(?:net |total )?{_RATE}{_UP} {_FROM} (?:in|of) (?P<what>.+)\Z", re.I),
    re.compile(rf"\A(?P<rate>growth rate) (?:in|of) (?P<what>.+?),? {_FROM}\Z", re.I),
    re.compile(rf"\A(?:net )?difference in (?P<what>.+?),? {_FROM}\Z", re.I),
)
_DID_CHANGE = re.compile(
    r"\A(?:by )?(?:how much|what (?P<rate>percentage|percent)) did (?P<what>.+?) (?:change|increase|decrease|grow|"
    rf"decline|rise|fall|drop),? {_FROM}\Z",
    re.I,
)
_WAS_MORE = re.compile(
    r"\A(?:was|were|is|are) (?P<what>.+?) (?P<how>higher|greater|larger|more|lower|less|smaller) "
    rf"{_AT} (?P<one>{_PERIOD}) than {_AT} (?P<two>{_PERIOD})\Z",
    re.I,
)
_PAIRS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ratio", re.compile(r"\A(?:the )?ratio of (?P<one>.+?) to (?P<two>.+)\Z", re.I)),
    ("share", re.compile(r"\A(?P<one>.+?) as an? (?:percentage|percent|share|portion) of (?P<two>.+)\Z", re.I)),
    ("ratio", re.compile(r"\A(?P<one>.+?),? divided by (?P<two>.+)\Z", re.I)),
    ("difference", re.compile(r"\A(?:net )?difference (?:between|of) (?P<both>.+)\Z", re.I)),
    ("sum", re.compile(r"\A(?:combined )?sum of (?P<both>.+)\Z", re.I)),
    ("average", re.compile(r"\A(?:average|mean) of (?P<both>.+)\Z", re.I)),
)  # fmt: skip
_AND = re.compile(r",? and ", re.I)
_OF = re.compile(r" (?:of|for|at) ", re.I)
_TWO_PERIODS = re.compile(
    rf"\A(?P<what>.+?),? {_AT} (?P<one>{_PERIOD}) and (?:{_AT} )?(?P<two>{_PERIOD})\Z", re.I
)
_OWNER = re.compile(
    r"(?<![\w'’])(?P<name>[A-Z][\w.&-]*(?: (?:(?:of|and|&|the) )?[A-Z&][\w.&-]*)*)(?:['’]s|(?<=s)['’]) "
)
_TERMS_WITH_AND = re.compile(
    r"property, plant,? and equipment|research and development|selling, general,? and administrative|"
    r"cash and (?:cash equivalents|due from banks)|depreciation and amortization|plant and equipment|"
    r"general and administrative|accounts and notes|sales and marketing|goodwill and other intangible",
    re.I,
)
"""Terms of reports that name one thing."""

_UNSURE = re.compile(
    rf"\b(?:and|or|if|which|who|whom|whose|that|when|why|how|than|between|what|where|not|{_UP}|difference|ratio|"
    r"average|mean|sum|variance|variation|percent\w*|proportion|portion|percentage|share of|most|highest|lowest|largest|smallest|"
    r"greatest|greater|higher|lower|minus|plus|times|divided|compared|versus|vs|relative|excluding|except|without|"
    r"each|every|years|months|quarters|did|does|do|would|could|should|was|were|is|are|be|been|it|its|they|their|"
    r"this|those|these|same|previous|prior|last|next|following|respectively|assuming|cumulative|(?:19|20)[0-9]{2})\b"
    r"|[?!:;\"]|%",
    re.I,
)
"""Words that a plain figure has not: what it asks for is something else, or not sure."""


class _UnsureError(Exception):
    """No rule is sure."""


@dataclass(slots=True)
class _Parts:
    """Parts so far."""

    parts: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[tuple[str, str, str], str] = field(default_factory=dict)
    operations: list[str] = field(default_factory=list)

    def add(self, **fields: Any) -> str:
        id = f"p{len(self.parts) + 1}"
        self.parts.append({"id": id, **fields})
        return id

    def figure(self, metric: str, entity: str, period: str) -> str:
        key = (metric, entity, period)
        if key not in self.figures:
            if name := calculator_of(metric):
                self.operations.append(name)
            self.figures[key] = self.add(kind="figure", metric=metric, entity=entity, period=period)
        return self.figures[key]

    def calculation(self, operation: str, *operands: str) -> str:
        if len(set(operands)) < len(operands):
            raise _UnsureError
        self.operations.append(operation)
        return self.add(kind="calculation", operation=operation, operands=list(operands))

    @property
    def level(self) -> int:
        """The difficulty that goes with the parts."""
        if any(part["kind"] == "other" for part in self.parts):
            return 5
        if not self.operations:
            return min(2, len(self.parts))
        return (
            3 if len(self.operations) == 1 and self.operations[0] not in ("sum", "greater") else 4
        )


def decompose(task: DecomposeTask) -> str:
    """What a question consists of, as JSON.

    Example:
        >>> from pearl.dsl.signatures import ActionLibrary
        >>> decompose(DecomposeTask("What were the sales in 2009?", ActionLibrary("none", [])))
        '{"parts": [{"id": "p1", "kind": "figure", "metric": "sales", "entity": "", "period": "2009"}], "level": 1}'
    """
    question = " ".join(task.question.split())
    parts = _Parts()
    try:
        if len(question) > MAX_LENGTH or task.round:
            raise _UnsureError
        asked, background = without_background(question)
        if background:
            _follow_up(asked, background, parts)
        else:
            for clause in filter(None, (one.strip(" .,?") for one in _JOINED.split(question))):
                _clause(clause, parts)
        if not 0 < len(parts.parts) <= MAX_PARTS:
            raise _UnsureError
    except _UnsureError:
        parts = _Parts()
        parts.add(kind="other", question=question[:MAX_TEXT], gives="text")
    return json.dumps({"parts": parts.parts, "level": parts.level}, ensure_ascii=False)


def _clause(clause: str, parts: _Parts) -> None:
    """The parts of one question."""
    if match := _DID_CHANGE.match(clause):
        _change(match, parts)
        return
    if match := _WAS_MORE.match(clause):
        what = _ARTICLE.sub("", match["what"])
        one, two = (_dated(what, match[name], parts) for name in ("one", "two"))
        is_less = match["how"].lower() in ("lower", "less", "smaller")
        parts.calculation("greater", *((two, one) if is_less else (one, two)))
        return
    lead = _LEAD.match(clause)
    said = clause[lead.end() :] if lead else clause
    if lead is None and not (_DATED.match(said) or _DATED_FIRST.match(said)):
        raise _UnsureError
    said = _ARTICLE.sub("", said)
    if (match := _TWO_PERIODS.match(said)) and not _UNSURE.search(_without_terms(match["what"])):
        _both(said, parts)  # two answers
        return
    _expression(said, parts)


def _follow_up(question: str, background: str, parts: _Parts) -> None:
    """What a question computes from the last two figures that were asked for before it.

    Of a change the later figure is the first operand, in whatever order they were asked for.

    Raises:
        _UnsureError: It asks for something else, or they are not two figures of one thing.
    """
    found = follow_up(question, background)
    if found is None or len(found[1]) < 2:
        raise _UnsureError
    operation, earlier = found
    if operation in ("sum", "average") and len(earlier) != 2:
        raise _UnsureError  # of the last two, or of all?
    for turn in earlier[-2:]:
        before = len(parts.parts)
        _clause(turn.strip(" .,?"), parts)
        if len(parts.parts) != before + 1 or parts.operations:
            raise _UnsureError
    one, two = parts.parts
    if (one["metric"], one["entity"]) != (two["metric"], two["entity"]):
        raise _UnsureError
    if operation in ("sum", "average"):
        _combined(operation, [one["id"], two["id"]], parts)
        return
    years = _year(one["period"]), _year(two["period"])
    if years[0] == years[1]:
        raise _UnsureError
    newer, older = (two, one) if years[0] < years[1] else (one, two)
    parts.calculation(operation, newer["id"], older["id"])


def _expression(text: str, parts: _Parts, depth: int = 0) -> str:
    """The id of what a noun phrase asks for.

    Raises:
        _UnsureError: No rule is sure.
    """
    if depth > MAX_DEPTH:
        raise _UnsureError
    text = _ARTICLE.sub("", text.strip(" ,"))
    for name, pattern in _PAIRS[:3]:
        if match := pattern.match(text):
            if _is_twice(name, text):
                raise _UnsureError
            one, two = _shared(match["one"], match["two"])
            operands = [_expression(each, parts, depth + 1) for each in (one, two)]
            return parts.calculation(name, *operands)
    for pattern in _CHANGES:
        if match := pattern.match(text):
            return _change(match, parts)
    for name, pattern in _PAIRS[3:]:
        if match := pattern.match(text):
            return _combined(name, _both(match["both"], parts), parts)
    return _figure(text, parts)


def _shared(one: str, two: str) -> tuple[str, str]:
    """Both sides of a pair with the period that stands behind the second one for both, and its entity."""
    dated, other = _DATED.match(two), re.search(r"(?:19|20)[0-9]{2}", one)
    if dated is None or other:
        return one, two
    end = two[dated.end("what") :]
    of = re.search(r" (?:of|for) (?:the )?[A-Z].*", dated["what"])
    has_own = re.search(r"(?<=.)\b[A-Z]", one.strip())
    return f"{one}{'' if of is None or has_own else of[0]}{end}", two


def _is_twice(name: str, text: str) -> bool:
    """Whether a text has several of the words that make it a pair, so that it is unclear what is within what."""
    return (
        len(
            re.findall(
                r"\bdivided by\b|\bratio of\b|\bas an? (?:percentage|percent|share|portion) of\b",
                text,
                re.I,
            )
        )
        > 1
    )


def _combined(name: str, operands: Sequence[str], parts: _Parts) -> str:
    """What is made of the figures in a list."""
    if name == "difference":
        if len(operands) != 2:
            raise _UnsureError
        return parts.calculation(name, *operands)
    total = operands[0]
    for other in operands[1:]:
        total = parts.calculation("sum", total, other)
    return total if name == "sum" else parts.calculation("ratio", total, str(len(operands)))


def _change(match: re.Match[str], parts: _Parts) -> str:
    """A change from one period to another, of which the later figure is the first operand."""
    what = _ARTICLE.sub("", match["what"])
    old, new = match["old"], match["new"]
    if _year(old) > _year(new) and " between " in f" {match[0].lower()}":
        old, new = new, old
    if _year(old) > _year(new):
        raise _UnsureError
    operands = [_dated(what, period, parts) for period in (new, old)]
    is_rate = "rate" in match.re.groupindex and match["rate"]
    return parts.calculation("percentage change" if is_rate else "difference", *operands)


def _year(period: str) -> int:
    return int(period[-4:])


def _both(text: str, parts: _Parts) -> list[str]:
    """The figures of a list: each with its own metric, or of one metric for several entities or periods.

    Raises:
        _UnsureError: What they share is not sure.
    """
    text = _ARTICLE.sub("", text)
    if (match := _TWO_PERIODS.match(text)) and not _AND.search(_without_terms(match["what"])):
        return [_dated(match["what"], match[name], parts) for name in ("one", "two")]
    sides = _sides(text)
    if len(sides) < 2:
        raise _UnsureError
    period = match["period"] if (match := _DATED.match(sides[-1])) else ""
    if not period:
        raise _UnsureError
    dated = [_DATED.match(side) for side in sides]
    periods = [each["period"] if each else period for each in dated]
    whats = [each["what"] if each else side for each, side in zip(dated, sides, strict=True)]
    if any(each is None for each in dated[:-1]) and any(each for each in dated[:-1]):
        raise _UnsureError
    whats = [
        _ARTICLE.sub("", re.sub(r"\A(?:of|for|at|that of) ", "", what, flags=re.I))
        for what in whats
    ]
    metric, entity = _split(whats[0])
    own = [(metric, entity)]
    for what in whats[1:]:
        split = _split(what)
        # "the operating margins of A in 2015 and B in 2006": only a name is left of the second one.
        own.append((metric, what) if entity and not split[1] and what[:1].isupper() else split)
    named = [each for _, each in own if each]
    if len(own) > len(named) > 0:
        if named != [own[-1][1]]:
            raise _UnsureError
        own = [(each, own[-1][1]) for each, _ in own]  # "the assets and liabilities of A"
    return [_plain(*each, period, parts) for each, period in zip(own, periods, strict=True)]


def _sides(text: str) -> list[str]:
    """The entries of a list, where `and` joins them and nothing else."""
    kept = _TERMS_WITH_AND.sub(lambda match: match[0].replace(" and ", "\0"), text)
    return [side.replace("\0", " and ").strip() for side in _AND.split(kept)]


def _without_terms(text: str) -> str:
    return _TERMS_WITH_AND.sub("", text)


def _figure(text: str, parts: _Parts) -> str:
    """One figure with its period."""
    match = _DATED.match(text) or _DATED_FIRST.match(text)
    if match is None:
        raise _UnsureError
    return _dated(match["what"], match["period"], parts)


def _dated(what: str, period: str, parts: _Parts) -> str:
    return _plain(*_split(_ARTICLE.sub("", what)), period, parts)


def _plain(metric: str, entity: str, period: str, parts: _Parts) -> str:
    """A figure, if nothing of it says that it is more than that."""
    metric, entity = metric.strip(" ,"), entity.strip(" ,")
    if not re.search(r"[^\W\d_]", metric) or len(metric) > MAX_TEXT or len(entity) > MAX_TEXT:
        raise _UnsureError
    is_metric = calculator_of(metric) is not None
    if not is_metric and _UNSURE.search(_without_terms(metric)):
        raise _UnsureError
    if _UNSURE.search(re.sub(r"\b(?:and|&) (?=[A-Z])", "", entity)):
        raise _UnsureError
    return parts.figure(metric, entity, period)


def _split(what: str) -> tuple[str, str]:
    """A metric, and the entity that it is of; "" where no name tells one."""
    if owner := _OWNER.search(what):
        rest = f"{what[: owner.start()]}{what[owner.end() :]}"
        return (rest, owner["name"]) if not _OWNER.search(rest) else (what, "")
    for match in _OF.finditer(what):
        before, after = what[: match.start()], what[match.end() :]
        if calculator_of(before) is not None:
            return before, after
    # The last "of" before the first name that the rest has: "total value of assets of Northern Tool Company".
    if name := re.search(r"(?<= )[A-Z][\w.&-]*", what):
        splits = [match for match in _OF.finditer(what) if match.end() <= name.start()]
        if splits:
            return what[: splits[-1].start()], what[splits[-1].end() :]
    return what, ""
