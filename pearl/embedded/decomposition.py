"""Question → its parts, by rule: figures, changes, sums, ratios and comparisons of named periods.

If no rule matches with certainty, the result is one part of the kind `other`: the whole question.
"""

from __future__ import annotations

import json
import re
from functools import partial, reduce
from typing import Any

from pearl.actions.calculators import calculator_of
from pearl.data.samples import without_background
from pearl.documents.english import MONTH, ORDINALS, YEAR
from pearl.errors.patterns import lazy_pattern
from pearl.llm import DecomposeTask

MAX_LENGTH = 600
"""Maximum length of a question that the rules read, in characters; a longer one is `other`."""
MAX_DEPTH = 4
MAX_PARTS = 24
MAX_TEXT = 300

_PERIOD = (
    r"(?:(?:the )?(?:fiscal |calendar )?(?:years? )?(?:ended |ending )?"
    rf"(?:(?:the )?(?:{'|'.join(ORDINALS[:4])}) quarter (?:of )?(?:fiscal )?|q[1-4] (?:of )?"
    rf"|{MONTH}\.? (?:[0-9]{{1,2}} ?,? )?)?{YEAR})"
)
_AT = r"(?:in|for|during|at|as of|on|at the end of|by the end of|as at)"
_DATED = lazy_pattern(rf"(?P<what>.+?),? {_AT} (?P<period>{_PERIOD})\Z", re.I)
_TWO_PERIODS = lazy_pattern(
    rf"(?P<what>.+?),? {_AT} (?P<one>{_PERIOD}) (?:and|or) (?:{_AT} )?(?P<two>{_PERIOD})\Z", re.I
)
_LEAD = lazy_pattern(
    r"(?:(?:please )?(?:calculate|compute|determine|find|give(?: me)?|tell me|show(?: me)?) |"
    r"(?:what|how much|how many) (?:was|were|is|are) )",
    re.I,
)
_JOINED = lazy_pattern(r"\s*[?;]\s*(?:and )?|,? and (?=(?:what|how much|how many|by (?:what|how much)) )", re.I)  # fmt: skip
_UP = r"(?:changes?|increases?|decreases?|decline|growth|rise|drop|reduction)"
_FROM = rf"(?:from|between) (?P<old>{_PERIOD}) (?:to|and|through) (?P<new>{_PERIOD})"
_CHANGES = (
    lazy_pattern(
        rf"(?:net |total )?(?:(?P<rate>(?:percentage|percent|relative|rate of) {_UP}|growth rate)|{_UP}|difference)"
        rf" (?:in|of) (?P<what>.+?),? {_FROM}\Z",
        re.I,
    ),
    lazy_pattern(
        r"(?:by )?(?:how much|what (?P<rate>percentage|percent)) did (?P<what>.+?) (?:change|increase|decrease|grow"
        rf"|decline|rise|fall|drop),? {_FROM}\Z",
        re.I,
    ),
)
_WAS_MORE = lazy_pattern(
    r"(?:was|were|is|are) (?P<what>.+?) (?:(?P<more>higher|greater|larger|more)|lower|less|smaller) "
    rf"{_AT} (?P<one>{_PERIOD}) than {_AT} (?P<two>{_PERIOD})\Z",
    re.I,
)
_WHICH = lazy_pattern(
    r"which (?:was|were|is|are) (?:the )?(?:greater|higher|larger|bigger|lower|less|smaller)[,:]? (?P<pair>.+ or .+)\Z",
    re.I,
)
_PAIRS = (
    ("ratio", lazy_pattern(r"ratio of (?P<one>.+?) to (?P<two>.+)\Z", re.I)),
    ("share", lazy_pattern(r"(?P<one>.+?) as an? (?:percentage|percent|share|portion) of (?P<two>.+)\Z", re.I)),
    ("ratio", lazy_pattern(r"(?P<one>.+?),? divided by (?P<two>.+)\Z", re.I)),
)  # fmt: skip
_PAIRING = lazy_pattern(
    r"\bdivided by\b|\bratio of\b|\bas an? (?:percentage|percent|share|portion) of\b", re.I
)
_LIST = lazy_pattern(
    r"(?:net |combined )?(?:(?P<difference>difference (?:between|of))|(?P<sum>sum of)|(?:average|mean) of) (?P<all>.+)\Z",
    re.I,
)
_OF = lazy_pattern(r" (?:of|for|at) ", re.I)
_OWNER = lazy_pattern(
    r"(?<![\w'’])(?P<name>[A-Z][\w.&-]*(?: (?:(?:of|and|&|the) )?[A-Z&][\w.&-]*)*)(?:['’]s|(?<=s)['’]) "
)
_TERMS_WITH_AND = lazy_pattern(
    r"property, plant,? and equipment|research and development|selling, general,? and administrative|"
    r"cash and (?:cash equivalents|due from banks)|depreciation and amortization|general and administrative|"
    r"sales and marketing|goodwill and other intangible",
    re.I,
)
"""Names of single report items that contain `and`."""
_UNSURE = lazy_pattern(
    rf"\b(?:and|or|if|which|who|whom|whose|that|when|why|how|than|between|what|where|not|{_UP}|difference|ratio|"
    r"average|mean|sum|variance|variation|percent\w*|proportion|portion|percentage|share of|most|highest|lowest|largest|smallest|"
    r"greatest|greater|higher|lower|minus|plus|times|divided|compared|versus|vs|relative|excluding|except|without|"
    r"each|every|years|months|quarters|did|does|do|would|could|should|was|were|is|are|be|been|it|its|they|their|"
    rf"this|those|these|same|previous|prior|last|next|following|respectively|assuming|cumulative|{YEAR})\b"
    r"|[?!:;\"]|%",
    re.I,
)
"""Words that are not part of a plain figure: the question asks for more than a figure, or is ambiguous."""


class NoRuleError(Exception):
    """No rule matches with certainty."""


def decompose(task: DecomposeTask) -> str:
    """The parts of a question and its difficulty, as JSON.

    Example:
        >>> from pearl.dsl.signatures import ActionLibrary
        >>> decompose(DecomposeTask("What were the sales in 2009?", ActionLibrary("none", [])))
        '{"parts": [{"id": "p1", "kind": "figure", "metric": "sales", "entity": "", "period": "2009"}], "level": 1}'
    """
    question = " ".join(task.question.split())
    draft = _Draft()
    try:
        if task.round or len(question) > MAX_LENGTH or without_background(question)[1]:
            raise NoRuleError
        clauses = [clause for text in _JOINED.split(question) if (clause := text.strip(" .,?"))]
        results = [id for clause in clauses for id in draft.clause(clause)]
        operands = {id for part in draft.parts.values() for id in part.get("operands", ())}
        is_within = len(set(results)) < len(results) or not operands.isdisjoint(results)
        if is_within or not 0 < len(draft.parts) <= MAX_PARTS:
            raise NoRuleError
        parts = list(draft.parts.values())
    except NoRuleError:
        parts = [{"id": "p1", "kind": "other", "question": question[:MAX_TEXT], "gives": "text"}]
    return json.dumps({"parts": parts, "level": _level(parts)}, ensure_ascii=False)


def _level(parts: list[dict[str, Any]]) -> int:
    """The difficulty of a question with these parts."""
    if any(part["kind"] == "other" for part in parts):
        return 5
    operations = [part["operation"] for part in parts if part["kind"] == "calculation"]
    operations += filter(None, (calculator_of(part.get("metric", "")) for part in parts))
    if not operations:
        return min(2, len(parts))
    return 3 if len(operations) == 1 and operations[0] not in ("sum", "greater") else 4


class _Draft:
    """The parts found so far, by id, in the format of a reply."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, Any]] = {}

    def _add(self, **fields: Any) -> str:
        """The id of a part; equal parts share one id."""
        for id, part in self.parts.items():
            if part == {"id": id, **fields}:
                return id
        id = f"p{len(self.parts) + 1}"
        self.parts[id] = {"id": id, **fields}
        return id

    def _calculation(self, operation: str, *operands: str) -> str:
        if len(set(operands)) < len(operands):
            raise NoRuleError
        return self._add(kind="calculation", operation=operation, operands=list(operands))

    def clause(self, clause: str) -> list[str]:
        """The ids of the results of one clause."""
        if match := _CHANGES[1].match(clause):
            return [self._change(match)]
        if match := _WAS_MORE.match(clause):
            what = _without_article(match["what"])
            one, two = (self._dated(what, match[name]) for name in ("one", "two"))
            return [self._calculation("greater", *((one, two) if match["more"] else (two, one)))]
        if match := _WHICH.match(
            clause
        ):  # the question itself names the greater or the lesser as the answer
            text = re.sub(rf" or (?:{_AT} )?(?!{YEAR})", " and ", match["pair"])
            return [self._calculation("greater", *_pair(self._all(text)))]
        lead = _LEAD.match(clause)
        text = _without_article(clause[lead.end() :] if lead else clause)
        if lead is None and not _DATED.match(text):
            raise NoRuleError
        if (match := _TWO_PERIODS.match(text)) and not _is_unsure(match["what"]):
            return self._all(text)  # the question has two answers
        return [self._expression(text)]

    def _expression(self, text: str, depth: int = 0) -> str:
        """The id of the result of a noun phrase."""
        text = _without_article(text.strip(" ,"))
        if depth > MAX_DEPTH:
            raise NoRuleError
        for name, pattern in _PAIRS:
            if match := pattern.match(text):
                if len(_PAIRING.findall(text)) > 1:  # nested pairs are ambiguous
                    raise NoRuleError
                sides = _shared(match["one"], match["two"])
                return self._calculation(
                    name, *(self._expression(side, depth + 1) for side in sides)
                )
        if match := _CHANGES[0].match(text):
            return self._change(match)
        if match := _LIST.match(text):
            operands = self._all(match["all"])
            if match["difference"]:
                return self._calculation("difference", *_pair(operands))
            total = reduce(partial(self._calculation, "sum"), operands)
            return total if match["sum"] else self._calculation("ratio", total, str(len(operands)))
        match = _DATED.match(text)
        if match is None:
            raise NoRuleError
        return self._dated(match["what"], match["period"])

    def _change(self, match: re.Match[str]) -> str:
        """A change between two periods; the later figure is the first operand."""
        old, new = match["old"], match["new"]
        if old[-4:] > new[-4:]:
            if " between " not in f" {match[0].lower()}":
                raise NoRuleError
            old, new = new, old
        operands = [self._dated(match["what"], period) for period in (new, old)]
        return self._calculation("percentage change" if match["rate"] else "difference", *operands)

    def _all(self, text: str) -> list[str]:
        """The figures of a list of metrics, or of one metric for several entities or periods."""
        text = _without_article(text)
        if (match := _TWO_PERIODS.match(text)) and " and " not in _TERMS_WITH_AND.sub(
            "", match["what"]
        ):
            return [self._dated(match["what"], match[name]) for name in ("one", "two")]
        kept = _TERMS_WITH_AND.sub(lambda match: match[0].replace(" and ", "\0"), text)
        sides = [
            side.replace("\0", " and ").strip() for side in re.split(r",? and ", kept, flags=re.I)
        ]
        dated = [_DATED.match(side) for side in sides]
        last = dated[-1]
        if len(sides) < 2 or last is None or any(dated[:-1]) != all(dated[:-1]):
            raise NoRuleError
        periods = [each["period"] if each else last["period"] for each in dated]
        whats = [each["what"] if each else side for each, side in zip(dated, sides, strict=True)]
        whats = [
            _without_article(re.sub(r"\A(?:of|for|at|that of) ", "", what, flags=re.I))
            for what in whats
        ]
        metric, entity = _split(whats[0])
        own = [(metric, entity)]
        for what in whats[1:]:
            split = _split(what)
            # "the operating margins of A in 2015 and B in 2006": the second entry is only a name.
            is_name = entity and not split[1] and what[:1].isupper()
            own.append((metric, what) if is_name else split)
        named = [entity for _, entity in own if entity]
        if len(own) > len(named) > 0:
            if named != [own[-1][1]]:
                raise NoRuleError
            own = [(metric, named[0]) for metric, _ in own]  # "the assets and liabilities of A"
        return [self._figure(*each, period) for each, period in zip(own, periods, strict=True)]

    def _dated(self, what: str, period: str) -> str:
        return self._figure(*_split(_without_article(what)), period)

    def _figure(self, metric: str, entity: str, period: str) -> str:
        """The id of a figure, if its words contain nothing else."""
        metric, entity = metric.strip(" ,"), entity.strip(" ,")
        if not re.search(r"[^\W\d_]", metric) or len(metric) > MAX_TEXT or len(entity) > MAX_TEXT:
            raise NoRuleError
        if calculator_of(metric) is None and _is_unsure(metric):
            raise NoRuleError
        if _UNSURE.search(re.sub(r"\b(?:and|&) (?=[A-Z])", "", entity)):
            raise NoRuleError
        return self._add(kind="figure", metric=metric, entity=entity, period=period)


def _pair(ids: list[str]) -> list[str]:
    if len(ids) != 2:
        raise NoRuleError
    return ids


def _shared(one: str, two: str) -> tuple[str, str]:
    """Both sides of a pair; the period and entity of the second side complete the first."""
    dated = _DATED.match(two)
    if dated is None or re.search(YEAR, one):
        return one, two
    of = re.search(r" (?:of|for) (?:the )?[A-Z].*", dated["what"])
    has_own = re.search(r"(?<=.)\b[A-Z]", one.strip())
    return f"{one}{'' if of is None or has_own else of[0]}{two[dated.end('what') :]}", two


def _is_unsure(text: str) -> bool:
    return _UNSURE.search(_TERMS_WITH_AND.sub("", text)) is not None


def _without_article(text: str) -> str:
    return re.sub(r"\Athe ", "", text, flags=re.I)


def _split(what: str) -> tuple[str, str]:
    """A metric and its entity; "" if no entity is named."""
    if owner := _OWNER.search(what):
        rest = f"{what[: owner.start()]}{what[owner.end() :]}"
        return (rest, owner["name"]) if not _OWNER.search(rest) else (what, "")
    splits = [(what[: match.start()], what[match.end() :]) for match in _OF.finditer(what)]
    for before, after in splits:
        if calculator_of(before) is not None:
            return before, after
    # Split at the last "of" before the first name: "total value of assets of Northern Tool Company".
    if name := re.search(r"(?<= )[A-Z][\w.&-]*", what):
        end = len(what) - name.start()
        fitting = [(before, after) for before, after in splits if len(after) >= end]
        if fitting:
            return fitting[-1]
    return what, ""
