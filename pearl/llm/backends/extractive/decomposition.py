"""Question → its parts, by rule: figures, changes, sums, ratios and margins of named periods.

Where no rule is sure, the part is `other`: a question as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pearl.actions.calculators import calculator_of
from pearl.data.samples import without_background
from pearl.llm import DecomposeTask
from pearl.llm.backends.extractive.follow_ups import EarlierQuestions, follow_up
from pearl.llm.backends.extractive.part_drafts import NoRuleError, PartDraft, level

MAX_LENGTH = 600
"""Characters of a question that rules are tried on; a longer one is `other`."""
MAX_BACKGROUND = 2_000
"""Characters of the questions before it, likewise."""
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
_MORE = (
    r"(?:greater|greatest|higher|highest|larger|largest|bigger|lower|lowest|less|smaller|smallest)"
)
_WHICH = re.compile(
    rf"\A(?:which (?:was|were|is|are) (?:the )?{_MORE}[,:]? (?P<pair>.+ or .+)"
    rf"|(?:in )?which (?:fiscal )?year (?:was|were) (?P<what>.+?) (?:the )?{_MORE},? "
    rf"(?:{_AT} )?(?P<one>{_PERIOD}) or (?:{_AT} )?(?P<two>{_PERIOD}))\Z",
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


def decompose(task: DecomposeTask) -> str:
    """What a question consists of, as JSON.

    Example:
        >>> from pearl.dsl.signatures import ActionLibrary
        >>> decompose(DecomposeTask("What were the sales in 2009?", ActionLibrary("none", [])))
        '{"parts": [{"id": "p1", "kind": "figure", "metric": "sales", "entity": "", "period": "2009"}], "level": 1}'
    """
    question = " ".join(task.question.split())
    asked, background = without_background(question)
    draft = PartDraft()
    try:
        if task.round:
            raise NoRuleError
        said = _conversation(background, draft) if background else None
        results = [id for clause in _clauses(asked) for id in _asked(clause, draft, said)]
        if _is_one_within_another(results, draft):  # it would not be told
            raise NoRuleError
        parts = draft.only(results)
        if not 0 < len(parts) <= MAX_PARTS:
            raise NoRuleError
    except NoRuleError:
        parts = [{"id": "p1", "kind": "other", "question": question[:MAX_TEXT], "gives": "text"}]
    return json.dumps({"parts": parts, "level": level(parts)}, ensure_ascii=False)


def _clauses(question: str) -> list[str]:
    """The questions that a text asks."""
    if len(question) > MAX_LENGTH:
        raise NoRuleError
    return [clause for one in _JOINED.split(question) if (clause := one.strip(" .,?"))]


def _asked(clause: str, draft: PartDraft, said: EarlierQuestions | None) -> list[str]:
    """The ids of what one question asks for, after others if there are any."""
    return _clause(clause, draft) if said is None else [follow_up(clause, said, draft)]


def _conversation(background: str, draft: PartDraft) -> EarlierQuestions:
    """What the earlier questions asked for, as far as rules are sure of it."""
    if len(background) > MAX_BACKGROUND:
        raise NoRuleError
    said = EarlierQuestions()
    for question in background.split("; "):
        is_clear = not said.is_continued_by(question)
        try:
            if not is_clear:
                results = [follow_up(clause, said, draft) for clause in _clauses(question)]
            else:
                results = [id for each in _clauses(question) for id in _clause(each, draft)]
        except NoRuleError:
            results = []
        said.add(question, results, is_clear=is_clear)
    return said


def _is_one_within_another(ids: Sequence[str], draft: PartDraft) -> bool:
    return len(set(ids)) < len(ids) or any(
        other in draft.within(id) for id in ids for other in ids if other != id
    )


def _clause(clause: str, parts: PartDraft) -> list[str]:
    """The ids of what one question asks for."""
    if match := _DID_CHANGE.match(clause):
        return [_change(match, parts)]
    if match := _WAS_MORE.match(clause):
        what = _ARTICLE.sub("", match["what"])
        one, two = (_dated(what, match[name], parts) for name in ("one", "two"))
        is_less = match["how"].lower() in ("lower", "less", "smaller")
        return [parts.calculation("greater", *((two, one) if is_less else (one, two)))]
    if match := _WHICH.match(
        clause
    ):  # the plan tells by the question whether the greater or the lesser is meant
        pair = match["pair"] or f"{match['what']} in {match['one']} or {match['two']}"
        sides = _both(re.sub(r" or (?:(?:in|for) (?=(?:19|20)[0-9]{2}\Z))?", " and ", pair), parts)
        if len(sides) != 2:
            raise NoRuleError
        return [parts.calculation("greater", *sides)]
    lead = _LEAD.match(clause)
    said = clause[lead.end() :] if lead else clause
    if lead is None and not (_DATED.match(said) or _DATED_FIRST.match(said)):
        raise NoRuleError
    said = _ARTICLE.sub("", said)
    if (match := _TWO_PERIODS.match(said)) and not _UNSURE.search(_without_terms(match["what"])):
        return _both(said, parts)  # two answers
    return [_expression(said, parts)]


def _expression(text: str, parts: PartDraft, depth: int = 0) -> str:
    """The id of what a noun phrase asks for."""
    if depth > MAX_DEPTH:
        raise NoRuleError
    text = _ARTICLE.sub("", text.strip(" ,"))
    for name, pattern in _PAIRS[:3]:
        if match := pattern.match(text):
            if _is_twice(name, text):
                raise NoRuleError
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


def _combined(name: str, operands: Sequence[str], parts: PartDraft) -> str:
    """What is made of the figures in a list."""
    if name == "difference":
        if len(operands) != 2:
            raise NoRuleError
        return parts.calculation(name, *operands)
    total = operands[0]
    for other in operands[1:]:
        total = parts.calculation("sum", total, other)
    return total if name == "sum" else parts.calculation("ratio", total, str(len(operands)))


def _change(match: re.Match[str], parts: PartDraft) -> str:
    """A change from one period to another, of which the later figure is the first operand."""
    what = _ARTICLE.sub("", match["what"])
    old, new = match["old"], match["new"]
    if _year(old) > _year(new) and " between " in f" {match[0].lower()}":
        old, new = new, old
    if _year(old) > _year(new):
        raise NoRuleError
    operands = [_dated(what, period, parts) for period in (new, old)]
    is_rate = "rate" in match.re.groupindex and match["rate"]
    return parts.calculation("percentage change" if is_rate else "difference", *operands)


def _year(period: str) -> int:
    return int(period[-4:])


def _both(text: str, parts: PartDraft) -> list[str]:
    """The figures of a list: each with its own metric, or of one metric for several entities or periods."""
    text = _ARTICLE.sub("", text)
    if (match := _TWO_PERIODS.match(text)) and not _AND.search(_without_terms(match["what"])):
        return [_dated(match["what"], match[name], parts) for name in ("one", "two")]
    sides = _sides(text)
    if len(sides) < 2:
        raise NoRuleError
    period = match["period"] if (match := _DATED.match(sides[-1])) else ""
    if not period:
        raise NoRuleError
    dated = [_DATED.match(side) for side in sides]
    periods = [each["period"] if each else period for each in dated]
    whats = [each["what"] if each else side for each, side in zip(dated, sides, strict=True)]
    if any(each is None for each in dated[:-1]) and any(each for each in dated[:-1]):
        raise NoRuleError
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
            raise NoRuleError
        own = [(each, own[-1][1]) for each, _ in own]  # "the assets and liabilities of A"
    return [_plain(*each, period, parts) for each, period in zip(own, periods, strict=True)]


def _sides(text: str) -> list[str]:
    """The entries of a list, where `and` joins them and nothing else."""
    kept = _TERMS_WITH_AND.sub(lambda match: match[0].replace(" and ", "\0"), text)
    return [side.replace("\0", " and ").strip() for side in _AND.split(kept)]


def _without_terms(text: str) -> str:
    return _TERMS_WITH_AND.sub("", text)


def _figure(text: str, parts: PartDraft) -> str:
    """One figure with its period."""
    match = _DATED.match(text) or _DATED_FIRST.match(text)
    if match is None:
        raise NoRuleError
    return _dated(match["what"], match["period"], parts)


def _dated(what: str, period: str, parts: PartDraft) -> str:
    return _plain(*_split(_ARTICLE.sub("", what)), period, parts)


def _plain(metric: str, entity: str, period: str, parts: PartDraft) -> str:
    """A figure, if nothing of it says that it is more than that."""
    metric, entity = metric.strip(" ,"), entity.strip(" ,")
    if not re.search(r"[^\W\d_]", metric) or len(metric) > MAX_TEXT or len(entity) > MAX_TEXT:
        raise NoRuleError
    is_metric = calculator_of(metric) is not None
    if not is_metric and _UNSURE.search(_without_terms(metric)):
        raise NoRuleError
    if _UNSURE.search(re.sub(r"\b(?:and|&) (?=[A-Z])", "", entity)):
        raise NoRuleError
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
