"""Fiscal and calendar years, quarters and months, counted from a reference date."""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Literal, Self

from pearl.documents.english import MONTHS, ONES, ORDINALS, TENS, month_number
from pearl.errors import UsageError
from pearl.errors.patterns import lazy_pattern

Unit = Literal["year", "quarter", "month"]
"""The unit of a period."""

Style = Literal["", "fiscal", "calendar"]
"""The kind of year; "" if fiscal years are calendar years."""

MAX_YEARS = 200
"""Periods farther from the reference date stay as they are."""

_AS_OF = range(1700, 2200)
"""Years of a reference date: with `MAX_YEARS`, all years have four digits."""

_PER_YEAR: dict[Unit, int] = {"year": 1, "quarter": 4, "month": 12}


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """One year, quarter or month.

    Example:
        >>> quarter = CalendarPeriod("quarter", 4 * 2024 + 2, "fiscal")
        >>> str(quarter), str(quarter.later(2)), quarter.year
        ('Q3 of fiscal 2024', 'Q1 of fiscal 2025', 2024)
    """

    unit: Unit
    index: int
    style: Style = ""

    @property
    def year(self) -> int:
        """The year of the period."""
        return self.index // _PER_YEAR[self.unit]

    def later(self, n: int) -> Self:
        """The period `n` units later."""
        return replace(self, index=self.index + n)

    def __str__(self) -> str:
        number = self.index % _PER_YEAR[self.unit]
        year = f"{self.style} {self.year}".strip()
        if self.unit == "quarter":
            return f"Q{number + 1} {'of ' if self.style else ''}{year}"
        return year if self.unit == "year" else f"{MONTHS[number]} {self.year}"


@dataclass(frozen=True, slots=True)
class Calendar:
    """The reference of relative periods.

    Example:
        >>> calendar = Calendar(date(2024, 11, 5), (9, 30))
        >>> str(calendar.current("year")), str(calendar.current("year", "calendar"))
        ('fiscal 2025', 'calendar 2024')
        >>> [day.isoformat() for day in calendar.days(calendar.current("quarter"))]
        ['2024-10-01', '2024-12-31']
    """

    as_of: date
    fiscal_year_end: tuple[int, int] = (12, 31)

    def __post_init__(self) -> None:
        if not isinstance(self.as_of, date) or isinstance(self.as_of, datetime):
            raise UsageError(
                f"as_of must be a date, not {self.as_of!r}", help="as datetime.date(2024, 5, 1)"
            )
        if self.as_of.year not in _AS_OF:
            raise UsageError(
                f"as_of is from {_AS_OF[0]} to {_AS_OF[-1]}, not {self.as_of}",
                help="leave it out for no reference date",
            )
        try:
            month, day = self.fiscal_year_end
            date(2000, month, day)
        except (TypeError, ValueError):
            raise UsageError(
                f"fiscal_year_end must be a month and a day, not {self.fiscal_year_end!r}",
                help="as (9, 30) for 30 September",
            ) from None

    def current(self, unit: Unit, style: Style = "") -> CalendarPeriod:
        """The period in progress on the reference date."""
        if unit == "month":
            return CalendarPeriod(unit, 12 * self.as_of.year + self.as_of.month - 1)
        style = style or ("" if self.fiscal_year_end == (12, 31) else "fiscal")
        # The fiscal year in progress is named after this calendar year or the next one.
        first = CalendarPeriod(unit, _PER_YEAR[unit] * self.as_of.year, style)
        return next(
            period
            for n in range(2 * _PER_YEAR[unit])
            if self.as_of <= self.days(period := first.later(n))[1]
        )

    def days(self, period: CalendarPeriod) -> tuple[date, date]:
        """The first and the last day of a period."""
        return self._end(period.later(-1)) + timedelta(days=1), self._end(period)

    def _end(self, period: CalendarPeriod) -> date:
        months = 12 // _PER_YEAR[period.unit]
        last_month = months * (period.index + 1) - 1
        is_shifted = period.unit != "month" and period.style != "calendar"
        month, day = self.fiscal_year_end if is_shifted else (12, 31)
        year, before = divmod(last_month - (12 - month), 12)
        n_days = monthrange(year, before + 1)[1]
        # 28 February as well: a year that ends on it ends on the 29th in leap years.
        is_last = day >= monthrange(2001, month)[1]
        return date(year, before + 1, n_days if is_last else min(day, n_days))


COUNT = (
    rf"(?:\d{{1,3}} | (?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(ONES[1:10])}))? | {'|'.join(ONES[1:])}"
    r" | (?:a\ )?couple\ of | an? )"
)
"""A number of units."""

KIND = r"(?:(?P<kind>fiscal|financial|calendar)\s+)?"
YEAR = r"(?:1[5-9]|2[0-3])\d\d"
MONTH = rf"(?:{'|'.join(f'{name}|{name[:3]}' for name in MONTHS)})\b\.?"
DAY = r"\d{1,2}(?:st|nd|rd|th)?\b,?"


def pattern(text: str) -> re.Pattern[str]:
    """A verbose pattern that ignores case."""
    return lazy_pattern(text, re.IGNORECASE | re.VERBOSE)


_named = pattern(
    rf"""(?<![\w$€£]) (?<!\d,) (?<!\d\.)
    (?: (?: Q(?P<quarter>[1-4]) | (?P<ordinal>{"|".join(ORDINALS[:4])})\s+quarter
          | (?P<month>{MONTH})(?:\s+{DAY})? ) [\s,-]* (?:(?:of|in)\s+(?:the\s+)?)?
      | \d{{1,2}}[./]\d{{1,2}}[./] )?
    (?: (?P<style>fiscal|financial|calendar|FY)(?:\s+years?)?[\s-]* )?
    (?: (?P<year>{YEAR})(?P<several>[/–-]\d\d(?!\d)|s\b)? | (?<=FY)(?P<short>\d\d) | ['’](?P<cut>\d\d) )
    (?! [\w%] | [.,]\d
      | \s*(?:million|billion|thousand|percent|people|employees|shares|units|stores)\b )"""
)
"""A year that the question names, with or without a quarter or month."""

Named = tuple[int, int, "CalendarPeriod | None"]
"""Start, end and period of a year in a question; None where it may be several periods."""


def _period(match: re.Match[str]) -> CalendarPeriod | None:
    """A period that a question names; None where it may be several."""
    if match["cut"] or (match["year"] is None and match["short"] is None):
        return None
    year = int(match["year"] or f"20{match['short']}")
    suffix = match["several"]
    if suffix and (suffix == "s" or (year + 1) % 100 == int(suffix[1:])):
        return None
    style = _as_style(match["style"])
    if match["quarter"] or match["ordinal"]:
        quarter = int(match["quarter"] or 1 + ORDINALS.index(match["ordinal"].lower()))
        return CalendarPeriod("quarter", 4 * year + quarter - 1, style)
    if match["month"]:
        return CalendarPeriod("month", 12 * year + month_number(match["month"]) - 1)
    return CalendarPeriod("year", year, style)


def _as_style(word: str | None) -> Style:
    if not word:
        return ""
    return "calendar" if word.lower() == "calendar" else "fiscal"


def style_of(match: re.Match[str]) -> Style:
    """The kind of year in a phrase, by its groups `kind` and `unit`."""
    return _as_style("FY" if match["unit"].lower() == "fy" else match["kind"])


def unit_of(match: re.Match[str]) -> Unit:
    """The unit of a phrase."""
    word = match["unit"].lower()
    return "quarter" if word.startswith("q") else "month" if word.startswith("m") else "year"


def count_of(match: re.Match[str]) -> int:
    """How many units; a decade is ten years."""
    word = (match["count"] or "a").lower()
    per_unit = 10 if match["unit"].lower().startswith("decade") else 1
    if word.isdigit():
        return per_unit * int(word)
    if word.endswith("couple of"):
        return per_unit * 2
    tens, _, ones = word.replace("-", " ").partition(" ")
    small = {"": 0, "a": 1, "an": 1, **{name: n for n, name in enumerate(ONES)}}
    if tens in TENS:
        return per_unit * (10 * (2 + TENS.index(tens)) + small[ones])
    return per_unit * small[word]


_quoted = lazy_pattern(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|‘[^’]*’|`[^`]*`|(?<!\w)'[^']*'(?!\w)")
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
"""Words after which a period needs no "in"."""

SEVERAL = "the question asks about several years"
"""The reason why "in which years did it exceed the previous year" is left unchanged."""

_NEAR = 60
"""Characters before a phrase that decide on its preposition."""


@dataclass(frozen=True, slots=True)
class PeriodReading:
    """The periods that a phrase means."""

    first: CalendarPeriod
    last: CalendarPeriod
    since: str = ""
    remark: str = ""
    form: str = "{}"
    lead: str = "in"

    @property
    def span(self) -> str:
        """The name of the periods from the first to the last."""
        if self.first == self.last:
            return str(self.first)
        return f"{self.first} to {self.last.year if self.last.unit == 'year' else self.last}"


Read = Callable[["Substitution", re.Match[str]], PeriodReading | str | None]
"""Reads a match: the periods, why they are ambiguous, or None if the phrase means something else."""

Rule = tuple[re.Pattern[str], Read]


@dataclass
class Substitution:
    """One pass of rules over a question, from left to right."""

    text: str
    calendar: Calendar
    notes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        own_date = _own_date.search(self.text)
        self.own_date = own_date[0] if own_date else ""
        # the question contains "in which year" or "each year"
        self.is_of_several = _for_each.search(self.text) is not None
        self.named = [(m.start(), m.end(), _period(m)) for m in _named.finditer(self.text)]

    def before(self, place: int) -> str:
        """The words before an offset."""
        return self.text[max(0, place - _NEAR) : place].rstrip()

    def run(self, rules: Sequence[Rule]) -> str:
        """Apply the rules and return the question."""
        quoted = [match.span() for match in _quoted.finditer(self.text)]
        is_heading = all(word[0].isupper() for word in re.findall(r"[^\W\d_]{4,}", self.text))
        pieces, done = list[str](), 0
        matches = [(match, read) for rule, read in rules for match in rule.finditer(self.text)]
        # Matches at the same place stay in the order of their rules, because the sort is stable.
        for match, read in sorted(matches, key=lambda each: each[0].start("phrase")):
            start, end = match.span()
            is_title = match["unit"].istitle() and not is_heading
            is_quoted = any(first < end and start < last for first, last in quoted)
            if start < done or is_title or is_quoted or (reading := read(self, match)) is None:
                continue
            if isinstance(reading, PeriodReading):
                as_of, years = self.calendar.as_of, (reading.first.year, reading.last.year)
                if self.own_date and not reading.since:
                    reading = f'the question gives its own date, "{self.own_date}"'
                elif max(abs(year - as_of.year) for year in years) > MAX_YEARS:
                    reading = f"more than {MAX_YEARS} years from {as_of}"
            if isinstance(reading, str):
                self.left.append(f'"{match["phrase"]}" is left as it is: {reading}')
                continue
            if reading.lead == "in":
                start = match.start("phrase")
            name = reading.form.format(reading.span)
            self.notes.append(f'"{match["phrase"]}" read as {name}{self._why(reading)}')
            # Later phrases count from the inserted period.
            places = [each for each, _, _ in self.named]
            at = slice(bisect_left(places, start), bisect_left(places, end))
            self.named[at] = [(start, end, reading.last)]
            pieces += self.text[done:start], self._lead(match, start, reading.lead), name
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
        """The named period that a phrase is counted from, or why it is ambiguous."""
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
                return "several years precede it"
        elif target or len(behind) != 1:
            return f"the {unit} to count from is ambiguous"
        else:
            period = behind.pop()
        if period is not None and unit == "year":
            return CalendarPeriod("year", period.year, style_of(match) or period.style)
        if period is None or period.unit != unit:
            return f"the {unit} to count from is ambiguous"
        return period

    def _why(self, found: PeriodReading) -> str:
        """The derivation of a reading, for its note."""
        if found.since:
            return f" (counted from {found.since})"
        reasons = [f"as of {self.calendar.as_of}"]
        days = ""
        if found.first.style == "fiscal" or found.first.unit == "quarter":
            first, last = self.calendar.days(found.first)[0], self.calendar.days(found.last)[1]
            days = f", {first} to {last}"
        if found.first.style == "fiscal":
            month, day = self.calendar.fiscal_year_end
            reasons.append(f"fiscal years end on {month:02}-{day:02}")
        return f"{days} ({'; '.join([*reasons, *filter(None, [found.remark])])})"

    def _lead(self, match: re.Match[str], start: int, lead: str) -> str:
        """The preposition that a period needs here, followed by a blank."""
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


def _is_listed(text: str, one: Named, two: Named) -> bool:
    """Whether two named periods are the ends of a range or a list, as in "2012 to 2013"."""
    (_, end, first), (start, _, last) = one, two
    is_rising = first is not None and last is not None and first.year < last.year
    return is_rising and _listed.fullmatch(text, end, start) is not None


_OFFSETS = {
    **dict.fromkeys(("last", "past", "latest", "recent", "previous", "prior", "preceding"), -1),
    **dict.fromkeys(("before", "earlier"), -1),
    **dict.fromkeys(("this", "current"), 0),
    **dict.fromkeys(("next", "coming", "following", "subsequent", "after", "later"), 1),
}

_WHOLE = r"(?:(?:full|whole|complete|completed|reported)\s+)?"
_THE = r"(?:\b(?P<the>the|this|its|their|our|his|her|my|your)\s+(?:immediately\s+)?)?"
_LEAD = r"(?:\b(?P<lead>in|over|during|within|across|throughout|through|for)\s+)?"
_NUMBER = rf"(?<![\w.,/–-]) (?P<count>{COUNT})\s+"
_VAGUE = rf"""(?P<vague>(?:(?:more|less|fewer)\s+than | over | under | at\s+(?:least|most)
    | {COUNT}\s*(?:or|to|[-–]))\s*)?"""
_UNIT = r"(?P<unit>year|FY|quarter|month)\b"
_UNITS = r"(?P<unit>years?|yrs?|quarters?|months?|decades?)\b"

# Text that may not follow a phrase, because the phrase then means something else.
_NOT_OF = r"(?!-\w | \s+of\b)"
_NO_ITEM = r"(?!\s+(?:adjustments?|items?|development|reserves?|claims|end)\b)"
_NO_MORE = r"""(?=\s*(?:[?.!,;:)]|$) | ['’]s | \s+(?:and|or|to|versus|vs|did|was|is|were)\b)"""

_year_behind = pattern(rf"\s*[(,:]?\s*(?:FY|fiscal\s+)?{YEAR}\b | \s+end(?:ed|ing)\b")
_which_behind = pattern(
    r"""\s+(?:for\s+which|in\s+which|that|when|where|with|shown|listed|presented|available|covered
    |included|reported|given|mentioned|on\s+record)\b"""
)
_asked_for = pattern(r"\b(?:what|which)\s+(?:is|was)$")
_year_before = pattern(rf"\b{YEAR}\s*\(?$")


def _by_place(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """Read phrases such as "last year", "the current fiscal year", "next quarter"."""
    the, which = (match["the"] or "").lower(), match["which"].split()[-1].lower()
    is_of_year = unit_of(match) == "year"
    if the == "the" and (which == "next" or _which_behind.match(run.text, match.end())):
        return None  # counted from a named year, or "the last year that is shown"
    before, ends = run.before(match.start()), not re.match(r"['’]s?|\s+\w", run.text[match.end() :])
    if before.endswith("that") or (the == "the" and ends and _asked_for.search(before)):
        return None  # "in that last year", "what is the last year?"
    if the not in ("", "the", "this") and not match["kind"]:
        return None  # "in its last year as a company"
    if which in ("latest", "recent") and is_of_year and not style_of(match):
        return None  # the latest year of the document
    if _year_behind.match(run.text, match.end()) or _year_before.search(run.before(match.start())):
        return None
    period = run.current(match).later(_OFFSETS[which])
    is_open = is_of_year and not match["kind"] and (which == "past" or (the and which == "last"))
    remark = "the last full one, not the twelve months before that day" if is_open else ""
    return PeriodReading(period, period, remark=remark)


def _ago(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """Read phrases such as "13 years ago", "two quarters from now"."""
    if match["vague"]:
        return None
    n = count_of(match) * (-1 if match["way"].lower() in ("ago", "back") else 1)
    period = run.current(match).later(n)
    return PeriodReading(period, period)


def _last_ones(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """Read phrases such as "the last three years", "the next two quarters", "the past decade"."""
    n = count_of(match)
    is_anchored = run.named and match["which"].lower() == "next" and match["the"]
    if not n or is_anchored:  # "in 2010 and the next two years"
        return None
    now = run.current(match)
    if _OFFSETS[match["which"].lower()] > 0:
        first, last = now.later(1), now.later(n)
    else:
        first, last = now.later(-n), now.later(-1)
    remark = f"without {now}, which is in progress"
    return PeriodReading(first, last, remark=remark, lead="from")


def _this_decade(run: Substitution, match: re.Match[str]) -> PeriodReading:
    first = CalendarPeriod("year", run.calendar.as_of.year // 10 * 10)
    return PeriodReading(first, first.later(9), lead="from")


def _year_before_last(run: Substitution, match: re.Match[str]) -> PeriodReading:
    period = run.current(match).later(-2)
    return PeriodReading(period, period)


def _year_end(run: Substitution, match: re.Match[str]) -> PeriodReading:
    """Read phrases such as "at last year-end"."""
    period = run.current(match).later(_OFFSETS[match["which"].lower()])
    return PeriodReading(period, period, form="the end of {}", lead="at")


def _to_date(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """Read phrases such as "year to date", "YTD"."""
    if _year_behind.match(run.text, match.end()) or _year_before.search(run.before(match.start())):
        return None  # "YTD 2023"
    now = run.current(match)
    days = f"{run.calendar.days(now)[0]} to {run.calendar.as_of}"
    return PeriodReading(now, now, form=days, lead="from")


def _from_named(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """Read phrases such as "the year before", "two years prior to that", "the three years after 2010"."""
    if not (match["the"] or match["count"]) or (match["vague"] and match["count"]):
        return None
    offset = _OFFSETS[match["way"].split()[0].lower()]
    return _neighbours(run, match, offset, is_range=bool(match["the"] and match["count"]))


def _beside_named(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """Read phrases such as "the previous year", "the following two years"."""
    which = match["which"].lower()
    if which in ("next", "following", "subsequent") and not match["the"]:
        return None
    if not run.named and which not in ("following", "subsequent"):
        return None  # counted from the reference date
    return _neighbours(run, match, _OFFSETS[which], is_range=bool(match["count"]))


def _neighbours(
    run: Substitution, match: re.Match[str], offset: int, *, is_range: bool
) -> PeriodReading | str | None:
    target = match.groupdict().get("target")
    since = run.anchor(match, offset, target)
    if isinstance(since, str):
        return since
    far = since.later(offset * count_of(match))
    if not is_range or far == since:
        return PeriodReading(far, far, str(since))
    first, last = sorted((far, since.later(offset)), key=lambda period: period.index)
    return PeriodReading(first, last, str(since), lead="from")


def _beside_date(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """Read "the previous year" from the reference date, if the question names no other year."""
    if run.named or match["which"].lower() in ("following", "subsequent"):
        return None
    if match["which"].lower() == "next" and (match["lead"] or "").lower() == "within":
        return None  # "due within the next year": from the day of the report
    if run.is_of_several:
        return SEVERAL
    if match["count"]:
        return _last_ones(run, match)
    period = run.current(match).later(_OFFSETS[match["which"].lower()])
    return PeriodReading(period, period)


_TO_DATE = pattern(
    rf"""{_LEAD}(?P<phrase>(?:\bthe\s+)?(?:\b(?:this|current)\s+)?{KIND}
    \b(?P<unit>YTD\b | year(?=[\s-]to[\s-]date\b))(?:[\s-]to[\s-]date)?)"""
)
_BEFORE_LAST = pattern(
    rf"""(?P<phrase>\bthe\s+{KIND}(?P<unit>year)\s+before\s+last(?:\s+year)?\b
    (?!\s+(?:quarter|month|week|decade|\w+\s+year)))"""
)
_YEAR_END = pattern(
    rf"(?P<phrase>(?:\bthe\s+)?\b(?P<which>last|this|current|next)\s+{KIND}(?P<unit>year)[\s-]end\b)"
)
_AGO = pattern(rf"{_VAGUE}(?P<phrase>{_NUMBER}{KIND}{_UNITS}\s+(?P<way>ago|back|from\s+now)\b)")
_LAST_ONES = pattern(
    rf"""{_LEAD}(?P<phrase>{_THE}\b(?P<which>last|past|next|coming)\s+{_WHOLE}
    (?:(?P<count>{COUNT})\s+{_WHOLE})?{KIND}
    (?P<unit>(?(count)(?:years?|quarters?|months?|decades?)|decade))\b['’]?(?!\w){_NOT_OF})"""
)
_THIS_DECADE = pattern(
    rf"{_LEAD}(?P<phrase>\b(?:this|the\s+current)\s+(?P<unit>decade)\b{_NOT_OF})"
)
_BY_PLACE = pattern(
    rf"""(?P<phrase>{_THE}\b(?P<which>last|past|this|current|next|latest|most\s+recent)\s+(?:past\s+)?
    {_WHOLE}{KIND}{_UNIT}{_NOT_OF})"""
)
_FROM = pattern(
    rf"""{_VAGUE}{_LEAD}(?P<phrase>{_THE}(?:{_NUMBER})?{KIND}{_UNITS}\s+
    (?P<way>before|after|earlier|later|prior(?:\s+to)?|preceding|following)
    (?: \s+(?P<target>that(?:\s+(?:year|quarter|month))?\b
        | (?:Q[1-4]\s+(?:of\s+)?)?(?:FY\s?|(?:fiscal|calendar)\s+(?:year\s+)?)?{YEAR}\b) | {_NO_MORE} ))"""
)
_BESIDE = pattern(
    rf"""{_LEAD}(?P<phrase>(?<!\ba\s)(?<!\bany\s)(?<!\bno\s) {_THE}
    \b(?P<which>previous|prior|preceding|next|following|subsequent)\s+{_WHOLE}
    (?:(?P<count>{COUNT})\s+{_WHOLE})?{KIND}
    (?P<unit>(?(count)(?:years?|quarters?|months?|decades?)|(?:year|FY|quarter|month)))\b['’]?(?!\w)
    {_NOT_OF}{_NO_ITEM})"""
)

_FROM_DATE: tuple[Rule, ...] = (
    (_TO_DATE, _to_date),
    (_BEFORE_LAST, _year_before_last),
    (_YEAR_END, _year_end),
    (_AGO, _ago),
    (_LAST_ONES, _last_ones),
    (_THIS_DECADE, _this_decade),
    (_BY_PLACE, _by_place),
)
"""Periods counted from the reference date; if two rules match in one place, the first one applies."""

_FROM_NAMED: tuple[Rule, ...] = ((_FROM, _from_named), (_BESIDE, _beside_named))
"""Periods counted from a period that the question names."""

_WITHOUT_NAMED: tuple[Rule, ...] = ((_BESIDE, _beside_date),)
"""Phrases counted from the reference date if the question names no period."""

MAX_LENGTH = 10_000
"""Maximum characters of a question; longer questions stay as they are."""


def resolve_periods(question: str, calendar: Calendar) -> tuple[str, tuple[str, ...]]:
    """The question with absolute periods, and a note about each replaced or ambiguous phrase.

    Example:
        >>> from datetime import date
        >>> question, notes = resolve_periods("What was revenue last year?", Calendar(date(2024, 5, 1)))
        >>> question
        'What was revenue in 2023?'
        >>> notes
        ('"last year" read as 2023 (as of 2024-05-01)',)
    """
    if len(question) > MAX_LENGTH:
        return question, ()
    notes: list[str] = []
    while True:  # "two years before last year": another phrase may count from an inserted period
        before, left = question, list[str]()
        for rules in (_FROM_DATE, _FROM_NAMED, _WITHOUT_NAMED):
            run = Substitution(question, calendar)
            question = run.run(rules)
            notes += run.notes
            left += run.left
        if question == before:
            return question, tuple(dict.fromkeys([*notes, *left]))
