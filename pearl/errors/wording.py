"""Words of messages."""

from __future__ import annotations


def counted(n: int, thing: str) -> str:
    """How many there are of a thing.

    Example:
        >>> counted(1, "row"), counted(1_200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
