"""Rows by key, and how large the groups are whatever the undecided rows turn out to be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pearl.actions.columns import Column
from pearl.documents.rows import Row, Rows, shortened

MAX_SPELLINGS = 3
"""Pairs of spellings that a note names at most."""


def group(rows: Rows, column: Column) -> Rows:
    """One row for each key, in order of first occurrence, with the rows that have it as members.

    A doubtful row is a possible member. A row whose key is undecided may be in any group, or in one
    of its own: it becomes a doubtful group without a key.
    """
    members: dict[str, list[Row]] = {}
    possible: dict[str, list[Row]] = {}
    unread: list[Row] = []
    for found, keys, wanted in (
        (rows.rows, column.values, members),
        (rows.doubtful, column.doubtful, possible),
    ):
        for row, key in zip(found, keys, strict=True):
            if key is None:
                unread.append(row)
            else:
                wanted.setdefault(key.strip(), []).append(row)
    name = column.name
    sure = (
        Row(key, {name: key}, members=tuple(each), possible=tuple(possible.get(key, ())))
        for key, each in members.items()
    )
    unsure = (
        Row(key, {name: key}, possible=tuple(each))
        for key, each in possible.items()
        if key not in members
    )
    keyless = (Row(None, {name: None}, row.spans, row.text, possible=(row,)) for row in unread)
    notes = (*rows.notes, *column.notes, *spelling_note([*members, *possible], name))
    return Rows(
        tuple(sure),
        name,
        (*unsure, *keyless),
        tuple(dict.fromkeys(notes)),
        sample=rows.sample,
    )


def counted(groups: Rows) -> Rows:
    """Groups that show their sizes, in a field `count`, too."""
    name = "count" if groups.column != "count" else "rows"
    rows = tuple(row.with_fields({name: str(len(row.members))}) for row in groups)
    return replace(groups, rows=rows, shows_possible=True)


def are_groups(rows: Rows) -> bool:
    """Whether there are rows with members, or that may have some."""
    return any(row.members or row.possible for row in (*rows.rows, *rows.doubtful))


def n_of_any(groups: Rows) -> int:
    """How many rows may belong to any group, because their key is undecided."""
    return sum(max(1, len(row.possible)) for row in groups.doubtful if row.value is None)


def size_range(row: Row, n_any: int) -> tuple[int, int]:
    """The least and the most rows of a group."""
    return len(row.members), len(row.members) + len(row.possible) + n_any


def spelling_note(keys: Iterable[str], name: str) -> list[str]:
    """A note on keys that differ only in case, which are different."""
    spelled: dict[str, dict[str, None]] = {}
    for key in keys:
        spelled.setdefault(key.casefold(), {})[key] = None
    alike = [list(each) for each in spelled.values() if len(each) > 1]
    if not alike:
        return []
    shown = "; ".join(", ".join(map(shortened, each)) for each in alike[:MAX_SPELLINGS])
    more = "; ..." if len(alike) > MAX_SPELLINGS else ""
    return [f"{name}: different, although only in case: {shown}{more}"]
