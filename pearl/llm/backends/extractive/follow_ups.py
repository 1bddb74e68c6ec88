"""A question about the results of earlier ones → what is computed from them, where a rule is sure.

"What is the net change?" after the sales of 2017 and of 2016 were asked for is the difference of the
two, the later less the earlier one. Which of several figures is meant, or in which order, is never
guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pearl.documents.passages import terms
from pearl.llm.backends.extractive.part_drafts import NoRuleError, PartDraft
from pearl.llm.backends.extractive.standalone import may_refer

_CHANGE = r"(?:change|difference|increase|decrease|decline|growth|reduction|rise|drop|variation|fluctuation)"
_THIS = r"(?:the|this|that)"
_VALUES = r"(?:years|values|figures|amounts|numbers|periods)"
_TWO = rf"(?:(?:the|these|those) (?:two|2)(?: {_VALUES})?|(?:the|these|those) {_VALUES}|both {_VALUES}|them)"
_SPAN = (
    rf"(?:,? (?:(?:during|over|in|for|through|throughout) (?:this|that|the|this same|that same) "
    rf"(?:time|period|time period|year|years)|(?:over|during|in|of) {_TWO}|between {_TWO}|in (?:the |that |this )?values?|of (?:this|that|the) value))*"
)
_YEAR = r"(?:19|20)[0-9]{2}"
_VALUE = r"(?:value|amount|figure|number|total|one|price|rate|balance)"
_OVER = r"(?P<over>over|divided? by|as an? (?:percentage|percent|share|portion|proportion) of|(?:in relation|relative) to)"
_IN_PERCENT = r"(?:,? in (?:percentage|percent))?"
_NUMBER = r"\$? ?(?P<number>[0-9]{1,12}(?:\.[0-9]{1,12})?)"
_COUNTS = {"two": 2, "2": 2, "both": 2, "three": 3, "3": 3, "four": 4, "4": 4, "five": 5, "5": 5}
_ALL = (
    rf"(?: (?:of|for|between|over) (?:all )?(?:(?:the|these|those) )?(?:(?P<n>{'|'.join(_COUNTS)}) )?"
    rf"(?:{_VALUES}|them|two|three)| of (?:these|those)| per year|{_SPAN})"
)


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern})\Z")


_LEAD = re.compile(
    r"\A(?:(?:and|so|but|then|now|combined)\b,? ?)*(?:what(?: (?:is|are|was|were|would be)|['’]s)(?: then)? |what about |"
    r"calculate |compute )?(?:the )?"
)
_IS_CHANGE = _rule(rf"(?:(?:net|total|overall) )*{_CHANGE}{_SPAN}")
_DID_CHANGE = _rule(
    r"(?:by )?(?:how much|what amount) did (?:it|this|that|they|these|those|(?:the|this|that) (?:value|figure|amount)) "
    rf"(?:change|increase|decrease|grow|decline|rise|fall|drop){_SPAN}"
)
_IS_RATE = _rule(
    rf"(?:(?:percentage|percent|relative) (?:of )?{_CHANGE}|growth rate|rate of (?:change|growth)|growth){_SPAN}|"
    rf"what (?:percentage|percent|growth rate)(?: {_CHANGE})? (?:does|did) (?:this|that)(?: {_CHANGE})? represent{_SPAN}|"
    rf"{_THIS} {_CHANGE} as a (?:percentage|percent)|as a percentage(?: {_CHANGE})?"
)
_BETWEEN = _rule(
    rf"(?P<rate>(?:percentage|percent) )?(?:net )?{_CHANGE} (?:from|between) (?P<old>{_YEAR}) (?:to|and) (?P<new>{_YEAR})"
)
_LESS = _rule(
    rf"(?:{_CHANGE} (?:of|in) (?:the )?)?(?P<one>{_YEAR}) {_VALUE} (?:less|minus) (?:(?:the|that) )?(?:in )?"
    rf"(?P<two>{_YEAR})(?: {_VALUE})?"
)
_RATIO = _rule(
    rf"ratio of (?:the )?(?P<one>{_YEAR})(?: {_VALUE})? to (?:the )?(?P<two>{_YEAR})(?: {_VALUE})?"
)
_PART_OF = _rule(
    rf"(?:{_THIS} )?(?P<what>(?:net )?{_CHANGE}|it|this|that|(?:this|that) (?:value|amount|figure|result)) {_OVER} "
    rf"(?P<whole>.+?){_IN_PERCENT}"
)
_REPRESENTS = _rule(
    rf"(?:how much|what (?:percentage|percent)) (?:does|did) (?:this|that|the) (?P<what>{_CHANGE}) represent "
    rf"(?P<over>in relation to|relative to|of) (?P<whole>.+?){_IN_PERCENT}"
)
_OF_YEAR = _rule(
    rf"(?:(?:the|this|that|those|its) )?(?P<year>{_YEAR})(?: (?P<noun>[a-z][a-z '-]*))?|"
    rf"(?:the|this|that|those|its) (?P<noun2>[a-z][a-z '-]*?) (?:in|of|for) (?P<year2>{_YEAR})"
)
_WITH_NUMBER = _rule(
    rf"(?:this|that|it|(?:this|that) (?:value|amount|figure|result|sum|total|{_CHANGE})) "
    rf"(?P<how>divided by|times|multiplied by|less|minus|plus)(?: an)?(?: initial)? {_NUMBER}(?: investment)?"
)
_IS_SUM = _rule(
    rf"(?:(?:total|combined|all) )?(?:sum|total){_ALL}|(?:sum|total) of (?P<both>both)(?: {_VALUES})?"
)
_IS_MEAN = _rule(rf"average{_ALL}")
_IS_VALUE = _rule(
    rf"(?:(?P<year>{_YEAR}) (?P<noun>{_VALUE})|(?P<noun2>{_VALUE}) (?:in|of|for) (?P<year2>{_YEAR}))(?: (?:again|specifically))?"
)
_OPERATIONS = {
    "divided by": "ratio", "times": "product", "multiplied by": "product",
    "less": "difference", "minus": "difference", "plus": "sum",
}  # fmt: skip


@dataclass(slots=True)
class EarlierQuestions:
    """The questions before, and the ids of what each asked for; none where no rule is sure."""

    questions: list[str] = field(default_factory=list)
    results: list[list[str]] = field(default_factory=list)
    clear: list[str] = field(default_factory=list)

    def add(self, question: str, results: Sequence[str], *, is_clear: bool) -> None:
        """Add a question with the ids of what it asked for, and whether it says itself what it is about."""
        self.questions.append(question)
        self.results.append(list(results))
        if is_clear:
            self.clear.append(question)

    def is_continued_by(self, question: str) -> bool:
        """Whether a question may be about the results of those before it."""
        same = _without_year(question)
        if any(same == _without_year(each) for each in self.clear):
            return False  # the same of another year
        return bool(self.questions) and may_refer(question, self.questions)

    @property
    def last(self) -> str:
        """The result of the last question."""
        if not self.results or len(self.results[-1]) != 1:
            raise NoRuleError
        return self.results[-1][0]

    def figures(self, draft: PartDraft) -> tuple[list[str], bool]:
        """The figures that were asked for since something was computed, and whether all before them is known."""
        found: list[str] = []
        for results in reversed(self.results):
            if not results:
                return found, False
            if not all(map(draft.is_figure, results)):
                break
            found = [*results, *found]
        return list(dict.fromkeys(found)), True


def follow_up(clause: str, said: EarlierQuestions, draft: PartDraft) -> str:
    """The id of what a question asks for, computed from what was asked before."""
    text = re.sub(r",? then\b,?", "", " ".join(clause.lower().split())).strip(" .,")
    text = _LEAD.sub("", text, count=1)
    if _IS_CHANGE.match(text) or _DID_CHANGE.match(text):
        return _change(said, draft)
    if _IS_RATE.match(text):
        return draft.calculation("percentage change", *_compared(_change(said, draft), draft))
    if match := _BETWEEN.match(text):
        if match["old"] >= match["new"]:
            raise NoRuleError
        new, old = (_of_year(match[name], "", said.last, draft) for name in ("new", "old"))
        return draft.calculation("percentage change" if match["rate"] else "difference", new, old)
    if match := _IS_VALUE.match(text):
        noun = match["noun"] or match["noun2"]
        return _of_year(match["year"] or match["year2"], noun, said.last, draft)
    for pattern, operation in ((_LESS, "difference"), (_RATIO, "ratio")):
        if match := pattern.match(text):
            one, two = (_of_year(match[name], "", said.last, draft) for name in ("one", "two"))
            return draft.calculation(operation, one, two)
    if match := _PART_OF.match(text) or _REPRESENTS.match(text):
        return _part_of(match["what"], match["over"], match["whole"], said, draft)
    if match := _WITH_NUMBER.match(text):
        return draft.calculation(_OPERATIONS[match["how"]], said.last, match["number"])
    if match := _IS_SUM.match(text):
        return _sum(_all(_n(match), said, draft), draft)
    if match := _IS_MEAN.match(text):
        return _mean(_n(match), said, draft)
    raise NoRuleError


def _without_year(question: str) -> str:
    return re.sub(_YEAR, "", question.lower())


def _change(said: EarlierQuestions, draft: PartDraft) -> str:
    """The change that was asked for last, or that of the two figures that were asked for last."""
    figures, _ = said.figures(draft)
    for results in reversed(said.results):
        if len(results) == 1 and draft.operands(results[0], "difference"):
            # "what was the 2016 value?" after the change from 2016 does not begin anew
            if set(figures) <= set(draft.within(results[0])):
                return results[0]
            break
        if not results or not all(map(draft.is_figure, results)):
            break
    if len(figures) < 2:
        raise NoRuleError
    old, new = sorted(figures[-2:], key=lambda id: _year(id, draft))
    if draft.subject(old) != draft.subject(new) or not _are_alike(old, new, draft):
        raise NoRuleError
    return draft.calculation("difference", new, old)


def _compared(change: str, draft: PartDraft) -> list[str]:
    """What a change is the difference of, if the first is compared with the second."""
    new, old = draft.operands(change, "difference")
    if old in draft.parts and draft.subject(change) is None:
        raise NoRuleError
    return [new, old]


def _part_of(what: str, over: str, whole: str, said: EarlierQuestions, draft: PartDraft) -> str:
    """The ratio or the share of a result and a figure that was asked for, or a number."""
    is_change = re.search(_CHANGE, what) is not None
    part = _change(said, draft) if is_change else said.last
    if re.fullmatch(_NUMBER, whole) and not re.fullmatch(_YEAR, whole):
        return draft.calculation("ratio", part, whole.strip("$ "))
    match = _OF_YEAR.match(whole)
    if match is None:
        raise NoRuleError
    year, noun = match["year"] or match["year2"], match["noun"] or match["noun2"] or ""
    divisor = _of_year(year, noun, part, draft)
    if is_change and divisor not in draft.within(part):
        raise NoRuleError
    is_ratio = over == "over" or over.startswith("divide")
    return draft.calculation("ratio" if is_ratio else "share", part, divisor)


def _of_year(year: str, noun: str, id: str, draft: PartDraft) -> str:
    """The figure of a year, of what a result is about."""
    subject = draft.subject(id)
    if subject is None:
        raise NoRuleError
    named = set(terms(noun)) - set(terms("value amount figure number"))
    if not named <= set(terms(" ".join(subject))):
        raise NoRuleError
    periods = {
        re.sub(_YEAR, year, draft.parts[each]["period"])
        for each in draft.within(id)
        if draft.is_figure(each)
    }
    if len(periods) != 1:
        raise NoRuleError
    return draft.figure(*subject, periods.pop())


def _all(n: int | None, said: EarlierQuestions, draft: PartDraft) -> list[str]:
    """The figures that were asked for, of which a question means all: n if it says how many."""
    figures, is_known = said.figures(draft)
    if n is not None and (len(figures) == n or (len(figures) > n and n > 2)):
        figures = figures[-n:]
    elif n is not None or not is_known or len(figures) > 2:
        raise NoRuleError
    if len(figures) < 2:
        raise NoRuleError
    return figures


def _sum(figures: Sequence[str], draft: PartDraft) -> str:
    total, *others = figures
    for other in others:
        total = draft.calculation("sum", total, other)
    return total


def _mean(n: int | None, said: EarlierQuestions, draft: PartDraft) -> str:
    """The mean of the figures that were added up last, or that were asked for last."""
    total = said.results[-1][0] if len(said.results[-1]) == 1 else ""
    if not (total and draft.operands(total, "sum")):
        total = _sum(_all(n, said, draft), draft)
    added = [each for each in draft.within(total) if not draft.operands(each, "sum")]
    if not all(map(draft.is_figure, added)) or n not in (None, len(added)):
        raise NoRuleError
    return draft.calculation("ratio", total, str(len(added)))


def _n(match: re.Match[str]) -> int | None:
    """How many figures a question says that it means."""
    return _COUNTS.get(match.groupdict().get("n") or match.groupdict().get("both") or "")


def _year(id: str, draft: PartDraft) -> int:
    return int(draft.parts[id]["period"][-4:])


def _are_alike(one: str, two: str, draft: PartDraft) -> bool:
    """Whether two periods are of one kind: two years, two ends of a March."""
    periods: list[str] = [draft.parts[id]["period"] for id in (one, two)]
    return periods[0] != periods[1] and periods[0][:-4] == periods[1][:-4]
