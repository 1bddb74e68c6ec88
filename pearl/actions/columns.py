"""A name in a plan → the column of rows that it means.

A plan is written without the document, so its names are looked up tolerantly, but never guessed
between two columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pearl.documents.rows import TEXT_COLUMN, Row, Rows

__all__ = ["Column", "find_column"]

MAX_SHOWN = 12
"""Names of fields in a message at most."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of rows.

    Attributes:
        name: As in the rows; `text` for what they read, or the name of their value.
        is_value: Whether it is their current value.
    """

    name: str
    is_value: bool = False

    def value(self, row: Row) -> str | None:
        """The row's value there; "" if it has no such field, None if that is undecided."""
        if self.is_value:
            return row.value
        if self.name == TEXT_COLUMN and TEXT_COLUMN not in row.fields:
            return row.text or row.value
        return row.fields.get(self.name, "")


def find_column(rows: Rows, name: str) -> Column:
    """The column that a name means: exact, else in other case or number ("user IDs" for "User").

    Raises:
        ValueError: There is none, or several.

    Example:
        >>> rows = Rows((Row("x", {"User": "7", "Date": "2023-01-02"}),))
        >>> find_column(rows, "users").name
        'User'
        >>> find_column(rows, "drug")
        Traceback (most recent call last):
            ...
        ValueError: there is no field 'drug'; the rows have: User, Date, text
    """
    names = dict.fromkeys(rows.names)
    if name in names:
        return Column(name)
    if name in (rows.column, TEXT_COLUMN):
        return Column(name, is_value=name == rows.column)
    for spelled in (str.casefold, _bare, _stem):
        close = [each for each in (*names, TEXT_COLUMN) if spelled(each) == spelled(name)]
        if len(close) == 1:
            return Column(close[0])
        if len(close) > 1:
            raise ValueError(f"'{name}' may mean any of the fields {', '.join(close)}")
    known = [*names, TEXT_COLUMN]
    shown = ", ".join(known[:MAX_SHOWN]) + (", ..." if len(known) > MAX_SHOWN else "")
    raise ValueError(f"there is no field '{name}'; the rows have: {shown}")


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _stem(name: str) -> str:
    """A name without plural endings and words for identifiers.

    Example:
        >>> _stem("user IDs"), _stem("Categories")
        ('user', 'category')
    """
    words = [word for word in re.split(r"[\W_]+", name.casefold()) if word]
    if len(words) > 1 and words[-1] in ("id", "ids", "name", "names", "number", "numbers"):
        words.pop()
    return " ".join(re.sub(r"(?<=[a-z]{2})s\Z", "", re.sub(r"ies\Z", "y", word)) for word in words)
