"""The rules: relative periods in English, counted from the reference date or from a period that is named."""

from __future__ import annotations

import re

from pearl.data.samples import without_background
from pearl.planner.periods.calendar import CalendarPeriod
from pearl.planner.periods.substitution import SEVERAL, PeriodReading, Rule, Substitution
from pearl.planner.periods.words import COUNT, KIND, YEAR, count_of, pattern, style_of, unit_of

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

# What may not follow: a phrase says something else then.
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


def _of_date(run: Substitution) -> str | None:
    """Why nothing is counted from the reference date; None where all is."""
    return f'the question has a date of its own, "{run.own_date}"' if run.own_date else None


def _by_place(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """As in "last year", "the current fiscal year", "next quarter"."""
    the, which = (match["the"] or "").lower(), match["which"].split()[-1].lower()
    is_of_year = unit_of(match) == "year"
    if the == "the" and (which == "next" or _which_behind.match(run.text, match.end())):
        return None  # from the year that is named, if there is one; "the last year that is shown"
    before, ends = run.before(match.start()), not re.match(r"['’]s?|\s+\w", run.text[match.end() :])
    if before.endswith("that") or (the == "the" and ends and _asked_for.search(before)):
        return None  # "in that last year", "what is the last year?"
    if the not in ("", "the", "this") and not match["kind"]:
        return None  # "in its last year as a company"
    if which in ("latest", "recent") and is_of_year and not style_of(match):
        return None  # of those in the document
    if _year_behind.match(run.text, match.end()) or _year_before.search(run.before(match.start())):
        return None
    if why := _of_date(run):
        return why
    period = run.current(match).later(_OFFSETS[which])
    is_open = is_of_year and not match["kind"] and (which == "past" or (the and which == "last"))
    remark = "the last full one, not the twelve months before that day" if is_open else ""
    return PeriodReading(period, period, remark=remark)


def _ago(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """As in "13 years ago", "two quarters from now"."""
    if match["vague"]:
        return None
    n = count_of(match) * (-1 if match["way"].lower() in ("ago", "back") else 1)
    period = run.current(match).later(n)
    return _of_date(run) or PeriodReading(period, period)


def _last_ones(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """As in "the last three years", "the next two quarters", "the past decade"."""
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
    return _of_date(run) or PeriodReading(first, last, remark=remark, lead="from")


def _this_decade(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    first = run.calendar.as_of.year // 10 * 10
    return _of_date(run) or PeriodReading(
        CalendarPeriod("year", first), CalendarPeriod("year", first + 9), lead="from"
    )


def _year_before_last(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    period = run.current(match).later(-2)
    return _of_date(run) or PeriodReading(period, period)


def _year_end(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """As in "at last year-end"."""
    period = run.current(match).later(_OFFSETS[match["which"].lower()])
    return _of_date(run) or PeriodReading(period, period, form="the end of {}", lead="at")


def _to_date(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """As in "year to date", "YTD"."""
    if _year_behind.match(run.text, match.end()) or _year_before.search(run.before(match.start())):
        return None  # "YTD 2023"
    now = run.current(match)
    days = f"{run.calendar.days(now)[0]} to {run.calendar.as_of}"
    return _of_date(run) or PeriodReading(now, now, form=days, lead="from")


def _from_named(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """As in "the year before", "two years prior to that", "the three years after 2010"."""
    if not (match["the"] or match["count"]) or (match["vague"] and match["count"]):
        return None
    offset = _OFFSETS[match["way"].split()[0].lower()]
    return _neighbours(run, match, offset, is_range=bool(match["the"] and match["count"]))


def _beside_named(run: Substitution, match: re.Match[str]) -> PeriodReading | str | None:
    """As in "the previous year", "the following two years"."""
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
    """As in "the previous year", where the question names no other: counted from the reference date."""
    if run.named or match["which"].lower() in ("following", "subsequent"):
        return None
    if match["which"].lower() == "next" and (match["lead"] or "").lower() == "within":
        return None  # "due within the next year": from the day of the report
    if run.is_of_several:
        return SEVERAL
    if without_background(run.text)[1]:
        return "the questions before it name no year"
    if match["count"]:
        return _last_ones(run, match)
    period = run.current(match).later(_OFFSETS[match["which"].lower()])
    return _of_date(run) or PeriodReading(period, period)


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

FROM_DATE: tuple[Rule, ...] = (
    (_TO_DATE, _to_date),
    (_BEFORE_LAST, _year_before_last),
    (_YEAR_END, _year_end),
    (_AGO, _ago),
    (_LAST_ONES, _last_ones),
    (_THIS_DECADE, _this_decade),
    (_BY_PLACE, _by_place),
)
"""Periods counted from the reference date; of two in one place, the first rule reads it."""

FROM_NAMED: tuple[Rule, ...] = ((_FROM, _from_named), (_BESIDE, _beside_named))
"""Periods counted from one that the question names."""

WITHOUT_NAMED: tuple[Rule, ...] = ((_BESIDE, _beside_date),)
"""What of them is counted from the reference date where the question names none."""
