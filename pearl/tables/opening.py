"""Opening hours → intervals of the week, and what may be asked of them.

A closed list of forms is read and nothing is guessed: `Sun-Thu 08:00-16:00; Fri 8-12`, `Mon, Wed
9am-1pm and 4pm-7pm`, `daily 10:00-02:00`, `Sat closed`, `24/7`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DAY = 24 * 60
WEEK = 7 * DAY
"""Minutes; a week begins on Monday at 00:00."""

_MAX_LENGTH = 300
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?\.?"
_TIME = r"(?:[01]?\d|2[0-4])(?!\d)(?:[:.][0-5]\d(?!\d))?\s*(?:[ap]\.?m\b\.?)?"
_TO = r"\s*(?:-|–|to|until|till)\s*"
_days = re.compile(rf"({_DAY})(?:{_TO}({_DAY}))?", re.I)
_range = re.compile(rf"({_TIME}){_TO}({_TIME})", re.I)
_EVERY = r"(?:daily|every ?day|all week|mon(?:day)?-sun(?:day)?)"
_part = re.compile(
    rf"(?P<days>{_EVERY}|{_DAY}(?:{_TO}{_DAY})?(?:(?:\s*[,&+/]\s*|\s+and\s+){_DAY}(?:{_TO}{_DAY})?)*)\s*:?\s*"
    rf"(?P<hours>closed|24 ?h(?:ours)?|{_TIME}{_TO}{_TIME}(?:(?:\s*[,&+/]\s*|\s+and\s+){_TIME}{_TO}{_TIME})*)",
    re.I,
)
_time = re.compile(r"(\d{1,2})(?:[:.](\d\d))?\s*(?:([ap])\.?m\b\.?)?", re.I)
_moment = re.compile(
    rf"(?:on\s+)?(?P<day>{_DAY})(?:\s*,?\s*(?:at\s+|from\s+)?(?P<start>{_TIME})(?:{_TO}(?P<end>{_TIME}))?)?",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of the week for which something is asked to be open."""

    start: int
    end: int
    is_whole: bool


def read_hours(text: str) -> tuple[tuple[int, int], ...] | None:
    """Opening hours → intervals from and to a minute of the week; None if they cannot be read.

    An interval that goes over the end of the week is two. `()` is closed.

    Example:
        >>> read_hours("Tue 08:00-16:30; Sat closed")
        ((1920, 2430),)
        >>> read_hours("by appointment") is None
        True
    """
    if len(text) > _MAX_LENGTH:
        return None
    text = " ".join(text.split())
    if re.fullmatch(r"24 ?/ ?7|always open|open 24 hours(?: daily)?", text, re.I):
        return ((0, WEEK),)
    found: set[tuple[int, int]] = set()
    at = 0
    while at < len(text):
        part = _part.match(text, at)
        if part is None:
            return None
        for day in _days_of(part["days"]):
            intervals = _hours_of(part["hours"])
            if intervals is None:
                return None
            for start, end in intervals:
                found |= _in_week(day * DAY + start, day * DAY + end)
        at = part.end()
        between = re.compile(r"\s*(?:[;,|.]\s*|\Z)").match(text, at)
        if between is None:
            return None
        at = between.end()
    return tuple(_merged(found)) if text else None


def read_moment(text: str) -> Moment | None:
    """What may be asked of opening hours: a day, or a day with a time or a range of times.

    Example:
        >>> read_moment("Friday 11:00")
        Moment(start=6420, end=6420, is_whole=True)
        >>> read_moment("Friday").is_whole, read_moment("soon")
        (False, None)
    """
    match = _moment.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    day = _number(match["day"]) * DAY
    if match["start"] is None:
        return Moment(day, day + DAY, is_whole=False)
    start = _minutes(match["start"])
    if start is None:
        return None
    if match["end"] is None:
        return Moment(day + start, day + start, is_whole=True)
    end = _minutes(match["end"])
    if end is None or end == start:
        return None
    return Moment(day + start, day + (end if end > start else end + DAY), is_whole=True)


def _number(day: str) -> int:
    return _DAYS.index(day[:3].lower())


def _days_of(text: str) -> list[int]:
    if re.fullmatch(_EVERY, text, re.I):
        return list(range(7))
    days: list[int] = []
    for match in _days.finditer(text):
        first = _number(match[1])
        last = _number(match[2]) if match[2] else first
        days += [day % 7 for day in range(first, (last if last >= first else last + 7) + 1)]
    return days


def _hours_of(text: str) -> list[tuple[int, int]] | None:
    if text.lower() == "closed":
        return []
    if text.lower().startswith("24"):
        return [(0, DAY)]
    intervals = []
    for match in _range.finditer(text):
        start, end = _minutes(match[1]), _minutes(match[2])
        if start is None or end is None or start == end:
            return None
        intervals.append((start, end if end > start else end + DAY))
    return intervals


def _minutes(text: str) -> int | None:
    match = _time.fullmatch(text.strip())
    assert match
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[3].lower() == "p" else 0)
    return hour * 60 + minute if hour * 60 + minute <= DAY else None


def _in_week(start: int, end: int) -> set[tuple[int, int]]:
    return {(start, end)} if end <= WEEK else {(start, WEEK), (0, end - WEEK)}


def _merged(intervals: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same time in as few intervals as there can be: midnight is no end."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
