"""What is asked of a window, as data: the words, the plan and the reference are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

__all__ = ["MONTHS", "Ask", "Condition", "Kind", "Query", "UserPredicate"]

Ask = Literal[
    "most", "least", "second", "count", "compare", "dates_seen", "shares",
    "first_month", "months_more", "months_top", "pairs",
]  # fmt: skip
Kind = Literal["label", "user", "date", "comparison", "month", "number", "pairs"]
"""What an answer is, which says how it is scored."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Condition:
    """A user has at least, or exactly, `n` entries with one of the labels."""

    labels: tuple[str, ...]
    n: int = 1
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class UserPredicate:
    """What a user of a pair has to fulfil.

    Attributes:
        conditions: All of them.
        all_of: If given, all entries of the user with this label are strictly on one side of `day`.
        is_after: Which side.
    """

    conditions: tuple[Condition, ...]
    all_of: str = ""
    is_after: bool = True
    day: date = date(2023, 1, 6)


@dataclass(frozen=True, slots=True)
class Query:
    """A question about a window.

    Attributes:
        ask: What is asked for.
        of: Of `most`, `least` and `second`: the field whose values are counted.
        label: The label asked about; of `most` and `second` users: their entries with this label.
        other: Of comparisons, the second label.
        users: Only entries of these users.
        month: Only entries of this month of any year, 1 to 12.
        between: Only entries from the first to the second date, inclusive.
        day: Of `shares`, before and after which date.
        n: Of `dates_seen`, exactly how many times.
        pair: Of `pairs`, what both users fulfil, or one and the other.
    """

    ask: Ask
    of: Literal["label", "user", "date"] = "label"
    label: str = ""
    other: str = ""
    users: tuple[str, ...] = ()
    month: int = 0
    between: tuple[date, date] | None = None
    day: date = date.min
    n: int = 0
    pair: tuple[UserPredicate, ...] = ()

    @property
    def kind(self) -> Kind:
        """What its answer is."""
        match self.ask:
            case "most" | "least" | "second":
                return self.of
            case "compare" | "shares":
                return "comparison"
            case "first_month":
                return "month"
            case "pairs":
                return "pairs"
            case _:
                return "number"

    @property
    def reads_labels(self) -> bool:
        """Whether it cannot be answered from users and dates alone."""
        return (self.of == "label" and self.ask != "dates_seen") or bool(self.label)
