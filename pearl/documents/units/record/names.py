"""Names of fields: what may be one, and how a record gets different ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_LENGTH = 40
"""Characters of a name at most."""

MAX_WORDS = 5

MAX_KNOWN = 1_000

_is_name = re.compile(r"[^\W\d_][^:|\t\n]*(?<!\s)").fullmatch


def is_key(text: str) -> bool:
    """Whether a text names a field, and does not begin a sentence.

    Example:
        >>> is_key("Date of birth"), is_key("He said that it was so"), is_key("12")
        (True, False, False)
    """
    if len(text) > MAX_LENGTH or text.count(" ") >= MAX_WORDS:
        return False
    return _is_name(text) is not None


class Keys(dict[str, str]):
    """Text before a colon → the key it is, without blanks around it, or "" if it is none.

    Documents have the same ones in every record.
    """

    def __missing__(self, text: str) -> str:
        name = text.strip()
        known = name if is_key(name) else ""
        if len(self) < MAX_KNOWN:
            self[text] = known
        return known


def fields_of(names: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """The fields of a record; a name that occurs twice is numbered.

    Example:
        >>> fields_of(["note", "note"], ["a", "b"])
        {'note': 'a', 'note (2)': 'b'}
    """
    fields = dict(zip(names, values, strict=True))
    return fields if len(fields) == len(names) else dict(zip(columns(names), values, strict=True))


def columns(header: Sequence[str]) -> tuple[str, ...]:
    """The names of columns: none is blank, none occurs twice.

    Example:
        >>> columns(["id", " note ", "", "note"])
        ('id', 'note', 'column 3', 'note (2)')
    """
    names: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for column, cell in enumerate(header, 1):
        name = unique = cell.strip() or f"column {column}"
        while unique in names:
            numbers[name] = numbers.get(name, 1) + 1
            unique = f"{name} ({numbers[name]})"
        names[unique] = None
    return tuple(names)
