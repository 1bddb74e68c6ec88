"""Relative periods of a question → fiscal years, by a reference date."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

__all__ = ["Calendar", "resolve_periods"]


@dataclass(frozen=True, slots=True)
class Calendar:
    """What relative periods refer to.

    Attributes:
        as_of: The reference date.
        fiscal_year_end: Month and day on which fiscal years end; a fiscal year is named by the year
            in which it ends.
    """

    as_of: date
    fiscal_year_end: tuple[int, int] = (12, 31)


def resolve_periods(question: str, calendar: Calendar) -> tuple[str, tuple[str, ...]]:
    """The question with absolute years, and a note of each that was put in."""
    return question, ()
