"""Relative periods of a question → absolute ones, by rules and a reference date.

"Last year" is counted from the reference date, "the year before" from a year that the question names; what is
open stays as it is. English is read: years, quarters, months and decades.

Libraries for dates do not fit: they know no fiscal years, make one day of a period, and read too much: dateparser 1
reads "in 13 years ago" as 2037 and "May margins" as a month.
"""

from __future__ import annotations

from pearl.planner.periods.calendar import Calendar
from pearl.planner.periods.rules import FROM_DATE, FROM_NAMED, WITHOUT_NAMED
from pearl.planner.periods.substitution import Substitution

__all__ = ["MAX_LENGTH", "Calendar", "resolve_periods"]

MAX_LENGTH = 10_000
"""Characters of a question; longer ones are left as they are."""


def resolve_periods(question: str, calendar: Calendar) -> tuple[str, tuple[str, ...]]:
    """The question with absolute periods, and a note of each that was put in or is open.

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
    while True:  # "two years before last year": what was put in may be what another is counted from
        before, left = question, list[str]()
        for rules in (FROM_DATE, FROM_NAMED, WITHOUT_NAMED):
            run = Substitution(question, calendar)
            question = run.run(rules)
            notes += run.notes
            left += run.left
        if question == before:
            return question, tuple(dict.fromkeys([*notes, *left]))
