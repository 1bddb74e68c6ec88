"""Rows in pairs: how a pair reads, and how many there may be."""

from __future__ import annotations

from collections.abc import Iterable

from pearl.documents.rows import Row

MAX_PAIRS = 1_000_000
"""Pairs at most: more would fill the memory, and nobody asks a model about them."""


def pair(a: Row, b: Row) -> Row:
    r"""Two rows as one: their values under one another, and the fields of both.

    Example:
        >>> row = pair(Row("x", {"User": "1", "Age": "3"}), Row("y", {"User": "1", "Age": "4"}))
        >>> row.value, row.fields
        ('A: x\nB: y', {'User': '1', 'Age': '3', 'Age (2)': '4'})
    """
    is_read = a.value is not None and b.value is not None
    text = f"A: {a.value}\nB: {b.value}" if is_read else None
    fields = dict(a.fields)
    for name, value in b.fields.items():
        if name in fields and fields[name] != value:
            name = f"{name} (2)"
        fields[name] = value
    return Row(text, fields, text=text or "", members=(a, b))


def identity(row: Row) -> object:
    """Equal for rows that are one row of the document, and for no others."""
    return row.key if row.spans else id(row)


def unread_pairs(unread: Iterable[Row], others: tuple[Row, ...]) -> list[Row]:
    """What rows that cannot be read might pair with: one doubtful row for each of them."""
    return [Row(None, row.fields, row.spans, row.text, possible=others) for row in unread]


def check_n_pairs(n: int) -> None:
    """Refuse more pairs than fit in memory."""
    if n > MAX_PAIRS:
        raise ValueError(f"{n:,} pairs are too many, {MAX_PAIRS:,} the most; select rows first")
