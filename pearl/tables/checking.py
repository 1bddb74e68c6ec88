"""Query + columns of a table → the same query with the table's own column names, or a list of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pearl.documents.comparisons import ORDERED
from pearl.documents.dates import part_of_dates, read_period
from pearl.documents.lexicon import is_year, singular
from pearl.documents.numbers import listed
from pearl.documents.table import base_name
from pearl.errors import did_you_mean
from pearl.errors.patterns import lazy_pattern
from pearl.tables import specification
from pearl.tables.columns import PARTS, QueryTable, TypedColumn, fold, plain_number

_SHOWN = 12  # Maximum names of columns in a message
_VALUES_SHOWN = 6  # Maximum values of a column in a message
_ELSE = (
    "arithmetic of columns is {"
    + "|".join(f'"{name}"' for name in specification.SIGNS)
    + ": [columns and numbers]}; "
    'if no column has what is asked, {"cannot": reason}'
)
_NAMES = {"text": "texts", "number": "numbers", "date": "dates"}

_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)(?:[a-z]*day)?s?\.?"
_TO = r"\s*(?:[ap]\.?m\.?\s*)?(?:-|–|to|until|till)\s*"
_HOURS = lazy_pattern(rf"\b{_DAY}{_TO}{_DAY}|\b\d\d?[:.]\d\d{_TO}\d", re.I)
"""A range of weekdays or times of day in a cell: `Mon-Fri 8-16`, `09:00 to 17:00`."""
_TIME = lazy_pattern(rf"\b{_DAY}(?!\w)|\b\d\d?[:.]\d\d\b|\d\s*[ap]\.?m\b|\A\s*\d\d?\s*\Z", re.I)
"""A weekday or time of day in a value; it may lie within a range that does not contain its words."""


def check(query: specification.Query, table: QueryTable) -> specification.Query:
    """Return the query with the table's own column names; raise an error that lists its flaws."""
    return _Checker(table).query(query)


class _Checker:
    def __init__(self, table: QueryTable) -> None:
        self.table = table
        self.flaws: list[tuple[str, str]] = []  # Message and the column it concerns, if any

    def query(self, query: specification.Query) -> specification.Query:
        select = tuple(dict.fromkeys(self.column(name) for name in query.select))
        where = query.where and self.where(query.where)
        group = tuple(dict.fromkeys(self.name(name) for name in query.group))
        aggregate = tuple(
            one
            if one.column is None
            else one.model_copy(update={"column": self.figure(one.function, one.column)})
            for one in query.aggregate
        )
        if group and not aggregate:
            aggregate = (type(query).model_validate({"aggregate": {"function": "count"}})).aggregate
        checked = query.model_copy(
            update={"select": select, "where": where, "group": group, "aggregate": aggregate}
        )
        figures = {fold(one.name): one.name for one in aggregate}
        sort = tuple(
            one.model_copy(update={"by": self.sorted_by(one.by, checked, figures)})
            for one in query.sort
        )
        if self.flaws:
            column = next((name for _, name in self.flaws if name), "")
            raise specification.QueryError("\n".join(message for message, _ in self.flaws), column)
        return checked.model_copy(update={"sort": sort})

    def column(self, column: specification.Column) -> specification.Column:
        """A column with the table's own names; the columns of a formula must be numeric."""
        if not isinstance(column, specification.Arithmetic):
            return self.name(column)
        operands = []
        for one in column.operands:
            if isinstance(one, str | specification.Arithmetic):
                one = self.column(one)
            found = self.table.column(one) if isinstance(one, str) else None
            if found and found.kind != "number":
                message = (
                    f"'{column.operation}' needs numbers; {one} is a column of {_NAMES[found.kind]}"
                )
                self.flaws.append((f"{message} and has {_some(found.values)}", found.name))
            operands.append(one)
        return column.model_copy(update={column.operation: tuple(operands)})

    def name(self, name: str) -> str:
        """The table's own name for a column."""
        found = self._name(name)
        if found in self.table.twins:
            raise specification.UndecidableError(
                f"the table has several columns called '{base_name(found)}' with different values"
            )
        return found

    def _name(self, name: str) -> str:
        names = self.table.names
        if self.table.column(name):
            return name
        part = part_of_dates(name)
        if part and part[1] in PARTS and not any(fold(name) == fold(one) for one in names):
            of = f"{self._name(part[0])} by {part[1]}"
            if self.table.column(of):
                return of
            self.flaws.append((f"'{name[:60]}' is not a part of a column of dates", ""))
            return name
        for spelled in (fold, _bare, _singular):
            close = [each for each in names if spelled(each) == spelled(name)]
            if len(close) == 1:
                return close[0]
            if close:
                self.flaws.append((f"'{name}' may mean any of the columns {', '.join(close)}", ""))
                return name
        if is_year(name):  # Columns of other years first
            names = tuple(sorted(names, key=lambda each: not is_year(each)))
        # Similar names of numeric columns are different quantities: 'Net price' and 'Unit price',
        # 'Q1' and 'Q2'.
        meant = did_you_mean(
            name, [each for each in names if self.table.known(each).kind != "number"]
        )
        help = f"did you mean '{meant}'? " if meant else ""
        self.flaws.append(
            (
                f"the table has no column '{name[:60]}'; {help}it has: {listed(names, _SHOWN)}; {_ELSE}",
                "",
            )
        )
        return name

    def where(self, where: specification.Where) -> specification.Where:
        match where:
            case specification.AllOf():
                return specification.AllOf(all=tuple(map(self.where, where.all)))
            case specification.AnyOf():
                return specification.AnyOf(any=tuple(map(self.where, where.any)))
            case specification.Not():
                return specification.Not(no=self.where(where.no))
            case specification.Condition():
                return self.condition(where)

    def condition(self, one: specification.Condition) -> specification.Condition:
        name = self.column(one.column)
        if column := not self.flaws and self.table.column(name):
            flaws = (_value_flaw(column, one.op, value) for value in one.value)
            self.flaws += [(flaw, str(name)) for flaw in flaws if flaw]
        return one.model_copy(update={"column": name})

    def figure(self, function: str, name: specification.Column) -> specification.Column:
        name = self.column(name)
        column = None if self.flaws else self.table.column(name)
        kinds = {"sum": ("number",), "mean": ("number",), "min": ("number", "date"),
                 "max": ("number", "date")}.get(function)  # fmt: skip
        if column and kinds and column.kind not in kinds:
            message = f"'{function}' needs {' or '.join(kinds)}s; {name} is a column of {_NAMES[column.kind]}"
            self.flaws.append((f"{message} and has {_some(column.values)}", str(name)))
        return name

    def sorted_by(
        self, by: specification.Column, query: specification.Query, figures: dict[str, str]
    ) -> specification.Column:
        if not query.aggregate:
            shown = {fold(str(one)): one for one in query.select}
            return shown.get(fold(str(by))) or self.column(by)
        by = str(by)
        if fold(by) in figures:
            return figures[fold(by)]
        close = [each for each in (*query.group, *figures.values()) if _bare(each) == _bare(by)]
        if len(close) == 1:
            return close[0]
        if fold(by) in ("count", "value") and len(figures) == 1:
            return next(iter(figures.values()))
        names = ", ".join((*query.group, *figures.values()))
        self.flaws.append((f"the result has no '{by[:60]}' to sort by; it has: {names}", ""))
        return by


def _value_flaw(column: TypedColumn, op: str, value: str) -> str | None:
    """The error of comparing a column with a value; None if the comparison is possible."""
    is_time = _TIME.search(value) and not _HOURS.search(value)
    if is_time and (hours := next(filter(_HOURS.search, column.values), None)):
        return (
            f"'{value[:60]}' may lie within a cell of {column.name} such as {hours[:40]!r}, which no operator reads; "
            'if the answer depends on it, {"cannot": reason}'
        )
    if op not in (*ORDERED, "is", "is not", "in", "not in"):
        return None
    is_a_cell = op not in ORDERED and fold(value) in map(fold, column.values)
    if column.kind == "number":
        found = plain_number(value)
        if found is None:
            return None if is_a_cell else f"{column.name} is a column of numbers; '{value[:60]}' is not clearly a number; it has {_some(column.values)}"  # fmt: skip
        if found.unit and found.unit != column.unit:
            own = f"in {column.unit}" if column.unit else "without a unit"
            return f"{column.name} is a column of numbers {own}; '{value[:60]}' is in {found.unit}"
        return None
    if column.kind == "date":
        if read_period(value)[0] is None and not is_a_cell:
            return f"{column.name} is a column of dates; '{value[:60]}' is not a date; it has {_some(column.values)}"
        return None
    if op in ORDERED:
        return (
            f"'{op}' compares numbers and dates; {column.name} is a column of {_NAMES[column.kind]} and has "
            f"{_some(column.values)}"
        )
    return None


def _some(values: Sequence[str]) -> str:
    shown = [repr(value[:40]) for value in values[:_VALUES_SHOWN]]
    return ", ".join(shown) or "no values"


def _bare(name: str) -> str:
    return _letters_only(fold(name)).replace(" ", "")


def _singular(name: str) -> str:
    """A name with its words in the singular."""
    return " ".join(map(singular, _letters_only(fold(name)).split()))


def _letters_only(text: str) -> str:
    """A text with all characters but letters and digits replaced by blanks."""
    return "".join(character if character.isalnum() else " " for character in text)
