"""The rows of a table → those that certainly are rows, apart from totals, rows of units and what may be no row, each with a note."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from pearl.documents.numbers import unit_of
from pearl.documents.rows import Row, shortened
from pearl.documents.table.quantities import is_blank
from pearl.documents.table.totals import Layout, find_totals, names_total
from pearl.errors.patterns import lazy_pattern

MIN_GROUPS = 3
"""Groups of equally many rows between blank lines are rows of one table; of fewer, the second may be another table."""

_HAS_DIGIT = lazy_pattern(r".*\d").match


class Parted(NamedTuple):
    """The rows of a table; `doubtful` may be rows, and `totals` has all rows that sum up others or may do so."""

    rows: tuple[Row, ...]
    doubtful: tuple[Row, ...] = ()
    totals: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()


def part_rows(rows: Sequence[Row], fields: Sequence[Mapping[str, str | None]] = ()) -> Parted:
    """Part the rows of one table; `fields` are those of the table if its rows have more.

    Example:
        >>> table = [Row("", {"city": city, "n": n}) for city, n in (("Bonn", "1"), ("Ulm", "2"), ("Total", "3"))]
        >>> parted = part_rows(table)
        >>> len(parted.rows), parted.notes
        (2, ("totals, which are not counted as rows: row 3 'Total', the sum of 2 rows",))
    """
    fields = fields or [row.fields for row in rows]
    if not any(fields):
        return Parted(tuple(rows))  # parts of a text
    cells = chain.from_iterable(each.values() for each in fields)
    out, totals, doubtful, notes = set[int](), set[int](), set[int](), list[str]()
    if len(rows) > 2 or any(not cell or names_total(cell) for cell in cells):
        # Other tables of two rows are not typed, because records of many kinds are as many tables.
        layout = Layout(fields)
        found = find_totals(layout)
        out, doubtful, notes = {*found.certain}, {*found.possible}, found.notes
        totals = out | doubtful
        has_units, unit_note = _first_row_of_units(layout)
        if unit_note:
            (out if has_units else doubtful).add(0)
            notes.append(unit_note)
    for why, some in _strays(rows, fields):
        if some - out:
            doubtful |= some - out
            notes.append(why)
    return Parted(
        tuple(row for i, row in enumerate(rows) if i not in doubtful and i not in out),
        tuple(rows[i] for i in sorted(doubtful)),
        tuple(rows[i] for i in sorted(totals)),
        tuple(notes),
    )


def joined(tables: Iterable[Parted]) -> Parted:
    """The rows of several tables."""
    every = zip(*(list(tables) or [Parted(())]), strict=True)
    return Parted(*(tuple(chain.from_iterable(each)) for each in every))


def _first_row_of_units(layout: Layout) -> tuple[bool, str]:
    """Whether the first row gives units instead of figures, and a note if it does or may do so."""
    said = {name: layout.cells[name][0] for name in layout.figures}
    said = {name: cell.strip("()[] ") for name, cell in said.items() if not is_blank(cell)}
    if not said or not layout.has_no_label(0) or any(map(_HAS_DIGIT, said.values())):
        return False, ""
    shown = ", ".join(
        f"{shortened(name, 40)} in {shortened(unit, 20)}" for name, unit in said.items()
    )
    if all(unit_of(f"1 {unit}", 0, 1) for unit in said.values()):
        return True, f"row 1 has the units of columns and is not counted as a row: {shown}"
    return False, f"undecided whether row 1 is a row or has units of columns: {shown}"


def _strays(
    rows: Sequence[Row], fields: Sequence[Mapping[str, str | None]]
) -> Iterator[tuple[str, set[int]]]:
    """Rows that may not belong to the table or not be read as they are meant, with the reason."""
    names = list(fields[0]) if fields else []
    are_beside = any(  # a name before a column without one is repeated after it
        name.startswith("column ") and any(f"{before} (2)" in names[i:] for before in names[:i])
        for i, name in enumerate(names)
    )
    if are_beside:
        yield (
            "undecided what is a row: tables with the same columns stand side by side",
            set(range(len(rows))),
        )
    if (
        not rows
        or rows[0].text.startswith("{")
        or any(f"{name}:" in rows[0].text for name in names)
    ):
        return  # each record has its own names
    open_quotes = {
        i
        for i, (row, cells) in enumerate(zip(rows, fields, strict=True))
        if row.text.count('"') % 2 and any(cell and cell.startswith('"') for cell in cells.values())
    }
    if open_quotes:
        first = min(open_quotes) + 1
        yield (f"undecided where row {first:,} ends: a quotation mark is open", open_quotes)
    begins = [
        i
        for i, (row, other) in enumerate(pairwise(rows), 1)
        if row.spans and other.spans and other.spans[0].start - row.spans[0].end > 1
    ]
    sizes = {end - start for start, end in pairwise([0, *begins, len(rows)])}
    if begins and (len(begins) < MIN_GROUPS - 1 or len(sizes) > 1):
        n = len(rows) - begins[0]
        yield (
            f"undecided whether {n:,} row{'s' * (n > 1)} below a blank line or other text are of this table",
            set(range(begins[0], len(rows))),
        )
