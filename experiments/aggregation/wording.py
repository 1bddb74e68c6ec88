"""A query in words, and words back as a query: the forms of OOLONG's questions.

`read` also reads the published questions; what it cannot read it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

from aggregation.queries import MONTHS, Query

__all__ = ["read", "words"]

_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def words(query: Query, labels: Sequence[str]) -> str:
    """The question in words, with the form of its answer.

    Args:
        query: Not of pairs.
        labels: All labels.
    """
    return f"{_scope(query)}{_asked(query)} {_form(query, labels)}"


def _scope(query: Query) -> str:
    only = "For the following question, only consider the subset of"
    if query.users and query.of == "user" and len(query.users) != 2:
        return f"{only} users with IDs {', '.join(query.users)}. Among these users, "
    if query.users and query.of == "label":
        ids = ", ".join(query.users)
        return (
            f"{only} instances that are associated with user IDs {ids}. Among instances associated "
            "with these users, "
        )
    if query.month:
        name = _MONTH_NAMES[query.month - 1]
        return f"{only} instances that occur in {name} of any year. Among instances occurring in {name}, "
    if query.between:
        start, end = map(_day, query.between)
        return (
            f"{only} instances that occur between {start} and {end}, inclusive. Among instances "
            "occurring in this date range, "
        )
    is_bare = query.ask in ("first_month", "months_more", "months_top")
    return "" if is_bare else "In the above data, "


def _asked(query: Query) -> str:
    one, other = f"'{query.label}'", f"'{query.other}'"
    match query.ask:
        case "most" | "least" if query.of == "label":
            return f"which of the labels is the {query.ask} common?"
        case "most" if query.of == "user" and len(query.users) == 2:
            first, second = query.users
            return f"which user has more instances with the label {one}: User {first} or User {second}?"
        case "most" if query.of == "user" and query.label:
            return f"which user has the most instances with the label {one}?"
        case "most" | "second":
            rank = "most often" if query.ask == "most" else "the second most often"
            return f"which {query.of} is represented {rank}?"
        case "count":
            return f"how many data points should be classified as label {one}?"
        case "compare":
            return (
                f"is label {one} more common, less common, or the same frequency as label {other}?"
            )
        case "dates_seen":
            return f"how many dates are represented exactly {query.n} times?"
        case "shares":
            day = _day(query.day)
            return (
                f"was label {one} more common, less common, or the same frequency before {day}, as "
                f"compared to after {day}?"
            )
        case "first_month":
            return (
                f"In which month did the label {one} first occur more often than the label {other}?"
            )
        case "months_more":
            return (
                f"For how many months does the label {one} occur more frequently than the label {other}? "
                "Disregard months where there is a tie."
            )
        case "months_top":
            return (
                f"For how many months is the label {one} the single most frequently occurring label? "
                "Disregard months where there is a tie for the most common label."
            )
    raise ValueError(f"no words for {query.ask}")


def _form(query: Query, labels: Sequence[str]) -> str:
    form = {
        "label": f"'Label: answer' where answer is one of the labels: {', '.join(labels)}",
        "user": "'User: [X]', where [X] is the user ID",
        "date": "'Date: [X]', where [X] is the date in the format MM/DD/YYYY",
        "number": "'Answer: number'",
        "month": "'Answer: [month] [year]'",
        "comparison": "'Answer: [X]', where [X] is 'more common', 'less common' or 'same frequency'",
    }[query.kind]
    return f"Give your final answer in the form {form}."


def _day(day: date) -> str:
    return f"{day:%b %d, %Y}"


_LABEL = r"['‘](.+?)['’]?"
"""The published form of one question lacks the closing mark."""
_DATE = r"([A-Z][a-z]{2,8}\.? \d{1,2},? \d{4}|\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{4})"
_FORMATS = ("%b %d, %Y", "%B %d, %Y", "%Y-%m-%d", "%m/%d/%Y")

_FORMS: tuple[tuple[str, Callable[..., dict[str, Any]]], ...] = (
    (rf"In which month did the label {_LABEL} first occur more often than the label {_LABEL}\?",
     lambda one, other: {"ask": "first_month", "label": one, "other": other}),
    (rf"how many months does the label {_LABEL} occur more frequently than the label {_LABEL}\?",
     lambda one, other: {"ask": "months_more", "label": one, "other": other}),
    (rf"how many months is the label {_LABEL} the single most frequent",
     lambda one: {"ask": "months_top", "label": one}),
    (rf"was label {_LABEL} more common, less common,? or the same frequency before {_DATE}",
     lambda one, day: {"ask": "shares", "label": one, "day": _date(day)}),
    (rf"is label {_LABEL} more common, less common,? or the same frequency as label {_LABEL}\?",
     lambda one, other: {"ask": "compare", "label": one, "other": other}),
    (rf"classified as label {_LABEL}\?", lambda one: {"ask": "count", "label": one}),
    (r"which of the labels is the (most|least) common", lambda ask: {"ask": ask}),
    (rf"which user has more instances with the label {_LABEL}: User (\d+) or User (\d+)",
     lambda one, a, b: {"ask": "most", "of": "user", "label": one, "users": (a, b)}),
    (rf"which user has the most instances with the label {_LABEL}\?",
     lambda one: {"ask": "most", "of": "user", "label": one}),
    (r"which (user|date) is represented (the second )?most often",
     lambda of, second: {"ask": "second" if second else "most", "of": of}),
    (r"how many dates are represented exactly (\d+) times?",
     lambda n: {"ask": "dates_seen", "of": "date", "n": int(n)}),
)  # fmt: skip

_SCOPES: tuple[tuple[str, Callable[..., dict[str, Any]]], ...] = (
    (r"user(?:s with)? IDs? ?(\d[\d, ]*\d|\d)", lambda ids: {"users": tuple(re.findall(r"\d+", ids))}),
    (r"occur in ([A-Z][a-z]+) of any year",
     lambda name: {"month": MONTHS.index(name[:3]) + 1}),
    (rf"occur between {_DATE} and {_DATE}, inclusive",
     lambda start, end: {"between": (_date(start), _date(end))}),
)  # fmt: skip


def read(question: str) -> Query:
    """The query that a question in one of OOLONG's forms asks.

    Raises:
        ValueError: It is in none of them.

    Example:
        >>> read("In the above data, which user is represented the second most often?").ask
        'second'
    """
    for form, fields in _FORMS:
        if found := re.search(form, question):
            said = fields(*found.groups())
            for scope, more in _SCOPES:
                if "users" not in said and (within := re.search(scope, question)):
                    said |= more(*within.groups())
            return Query(**said)
    raise ValueError(f"a question of no known form: {question[:200]!r}")


def _date(text: str) -> date:
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    raise ValueError(f"no date: {text!r}")
