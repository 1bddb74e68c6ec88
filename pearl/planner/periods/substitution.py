"""One way of a set of rules through a question: what each phrase stands for, in its place and with a note."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pearl.planner.periods.calendar import MAX_YEARS, Calendar, CalendarPeriod
from pearl.planner.periods.words import DAY, MONTH, YEAR, find_named, pattern, style_of, unit_of

_quoted = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|‘[^’]*’|`[^`]*`|(?<!\w)'[^']*'(?!\w)")
_own_date = pattern(rf"\bas\ (?:of|at)\b[^.?!;]{{0,20}}?\b{YEAR}\b")
_for_each = pattern(r"\b(?:each|every|any|which|what)\s+(?:fiscal\s+|calendar\s+)?years?\b")
_listed = pattern(
    r"[\s,]*(?:to|and|or|through|until|versus|vs\.?|[-–—&/])?[\s,]*(?:in\s+)?(?:the\s+)?"
)
_month_before = pattern(rf"\b{MONTH}(?:\s+{DAY})?(?:\s+of)?$")
_part_before = pattern(r"\b(?:Q[1-4]|quarter|half)$")
_asks = pattern(r"\s*,|\s+(?:what|how|who|which|when|where|why|did|does|do|has|had)\b")

_NO_LEAD = frozenset((
    "in", "of", "for", "from", "to", "since", "until", "till", "through", "during", "over", "by", "than",
    "between", "versus", "vs", "vs.", "with", "against", "before", "after", "and", "or", "&", "compared",
    "throughout", "within", "per", "at", "on", "about", "around", "as", "like", "is", "was", "were", "are",
    "compare", "comparing", "both", "either", "beyond", "past", "a",
))  # fmt: skip
"""Words between which and a period there is no "in"."""

SEVERAL = "it is asked of several years"
"""Why "the previous year" is open in "in which years did it exceed the previous year"."""

_NEAR = 60
"""Characters before a phrase that decide on its preposition."""


@dataclass(frozen=True, slots=True)
class PeriodReading:
    """What a phrase stands for."""

    first: CalendarPeriod
    last: CalendarPeriod
    since: str = ""
    remark: str = ""
    form: str = "{}"
    lead: str = "in"


Read = Callable[["Substitution", re.Match[str]], PeriodReading | str | None]
"""Reads a match: what it stands for, why that is open, or None where it says something else."""

Rule = tuple[re.Pattern[str], Read]


@dataclass
class Substitution:
    """A question that rules go through once, from left to right."""

    text: str
    calendar: Calendar
    named: list[tuple[int, int, CalendarPeriod | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.named = find_named(self.text)

    @cached_property
    def own_date(self) -> str:
        """The date that the question gives for itself, as in "as of 31 March 2012"; else ""."""
        found = _own_date.search(self.text)
        return "" if found is None else found[0]

    @cached_property
    def is_of_several(self) -> bool:
        """Whether it is asked of several years, as in "in which year"."""
        return _for_each.search(self.text) is not None

    def before(self, place: int) -> str:
        """The words before a place."""
        return self.text[max(0, place - _NEAR) : place].rstrip()

    def run(self, rules: Sequence[Rule]) -> str:
        """The question after these rules."""
        quoted = [match.span() for match in _quoted.finditer(self.text)]
        is_heading = all(word[0].isupper() for word in re.findall(r"[^\W\d_]{4,}", self.text))
        pieces, done = list[str](), 0
        for match, read in _matches(self.text, rules):
            start, end = match.span()
            is_title = match["unit"].istitle() and not is_heading
            is_quoted = any(first < end and start < last for first, last in quoted)
            if start < done or is_title or is_quoted or (found := read(self, match)) is None:
                continue
            if isinstance(found, PeriodReading) and self._is_far(found):
                found = f"more than {MAX_YEARS} years from {self.calendar.as_of}"
            if isinstance(found, str):
                self.left.append(f'"{match["phrase"]}" is left as it is: {found}')
                continue
            if found.lead == "in":
                start = match.start("phrase")
            name = found.form.format(_span(found))
            self.notes.append(f'"{match["phrase"]}" read as {name}{self._why(found)}')
            self._name(start, end, found.last)
            pieces += self.text[done:start], self._lead(match, start, found.lead), name
            done = end
        return "".join([*pieces, self.text[done:]])

    def current(self, match: re.Match[str]) -> CalendarPeriod:
        """The period in progress, of the kind that a phrase is about."""
        style = style_of(match)
        if not style and _month_before.search(self.before(match.start("phrase"))):
            return replace(self.calendar.current(unit_of(match), "calendar"), style="")
        return self.calendar.current(unit_of(match), style)

    def anchor(
        self, match: re.Match[str], offset: int, target: str | None = None
    ) -> CalendarPeriod | str:
        """The named period that a phrase is counted from, or why that is open.

        It is the nearest one before the phrase, else the only one behind it.
        """
        places = [start for start, _, _ in self.named]
        at = bisect_left(places, match.start("phrase"))
        behind = {period for *_, period in self.named[at:]}
        unit = unit_of(match)
        if target and not target.startswith("that"):
            period = self.named[bisect_left(places, match.start("target"))][2] if behind else None
        elif self.is_of_several:
            return SEVERAL
        elif at:
            period = self.named[at - 1][2]
            if at > 1 and offset < 0 and _is_listed(self.text, *self.named[at - 2 : at]):
                return "it follows several years"
        elif target or len(behind) != 1:
            return f"which {unit} it is counted from is open"
        else:
            period = behind.pop()
        if period is not None and unit == "year":
            return CalendarPeriod("year", period.year, style_of(match) or period.style)
        if period is None or period.unit != unit:
            return f"which {unit} it is counted from is open"
        return period

    def _is_far(self, found: PeriodReading) -> bool:
        year = self.calendar.as_of.year
        return max(abs(each.year - year) for each in (found.first, found.last)) > MAX_YEARS

    def _name(self, start: int, end: int, period: CalendarPeriod) -> None:
        """Have later phrases counted from what was put in; what was in its place is not there any more."""
        places = [each for each, _, _ in self.named]
        self.named[bisect_left(places, start) : bisect_left(places, end)] = [(start, end, period)]

    def _why(self, found: PeriodReading) -> str:
        """How a reading came about, for its note."""
        if found.since:
            return f" (counted from {found.since})"
        said = [f"as of {self.calendar.as_of}"]
        days = ""
        if found.first.style == "fiscal" or found.first.unit == "quarter":
            first, last = self.calendar.days(found.first)[0], self.calendar.days(found.last)[1]
            days = f", {first} to {last}"
        if found.first.style == "fiscal":
            month, day = self.calendar.fiscal_year_end
            said.append(f"fiscal years end on {month:02}-{day:02}")
        return f"{days} ({'; '.join([*said, *filter(None, [found.remark])])})"

    def _lead(self, match: re.Match[str], start: int, lead: str) -> str:
        """The preposition that a period needs in this place, with the blank behind it."""
        before, end = self.before(start), match.end()
        is_first = not before or before[-1] in ".?!"
        led = f"{lead.capitalize() if is_first and self.text[start].isupper() else lead} "
        if start < match.start("phrase"):
            return led
        if self.text[end : end + 1] in {"'", "’"} or before.endswith(("'s", "’s", "s'", "s’")):
            return ""
        if is_first:
            return led if _asks.match(self.text, end) else ""
        last = before.split()[-1].lower()
        if last in _NO_LEAD or before[-1] in "([:/-–—" or _month_before.search(before):
            return ""
        return "of " if _part_before.search(before) else led


def _matches(text: str, rules: Sequence[Rule]) -> list[tuple[re.Match[str], Read]]:
    """Every match from left to right; of those in one place that of the first rule before the others."""
    found = [(match, read) for pattern, read in rules for match in pattern.finditer(text)]
    return sorted(found, key=lambda each: each[0].start("phrase"))


def _is_listed(
    text: str,
    one: tuple[int, int, CalendarPeriod | None],
    two: tuple[int, int, CalendarPeriod | None],
) -> bool:
    """Whether two named periods are the ends of a range or a list, as in "2012 to 2013"."""
    (_, end, first), (start, _, last) = one, two
    is_rising = first is not None and last is not None and first.year < last.year
    return is_rising and _listed.fullmatch(text, end, start) is not None


def _span(found: PeriodReading) -> str:
    """The name of the periods from the first to the last."""
    first, last = found.first, found.last
    if first == last:
        return str(first)
    return f"{first} to {last.year if last.unit == 'year' else last}"
