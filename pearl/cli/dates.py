"""Dates as values of options, which a TOML file may have as dates of its own."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import click


class Day(click.ParamType["date"]):
    """A date of ISO 8601, or `today`."""

    name = "DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """The date; fails where it is none."""
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        try:
            return date.today() if value == "today" else date.fromisoformat(value)
        except (TypeError, ValueError):
            self.fail(f"'{value}' is no date, as 2024-05-01 or today", param, ctx)


class YearEnd(click.ParamType["tuple[int, int]"]):
    """The last day of a fiscal year, as `09-30`."""

    name = "MM-DD"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Month and day; fails where there is no such day."""
        if isinstance(value, tuple):
            return value
        try:
            day = datetime.strptime(f"2000-{value}", "%Y-%m-%d")
        except ValueError:
            self.fail(f"'{value}' is no MM-DD, as 09-30", param, ctx)
        return day.month, day.day
