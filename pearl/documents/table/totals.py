"""Separate the rows of a table from its totals, found by their figures or names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice, pairwise
from typing import NamedTuple

from pearl.documents.dates import read_dates
from pearl.documents.lexicon import begins_with_digit, is_year
from pearl.documents.numbers import is_blank, read_column, unit_of
from pearl.documents.rows import Row, shortened
from pearl.errors.patterns import lazy_pattern

TOTAL_WORD = (
    r"(?:(?:(?:in|grand|sub|sous)[\s-]*)?(?:totals?|sum|altogether|overall|insgesamt|gesamt(?:summe|betrag|ergebnis)?"
    r"|(?:zwischen|teil|end)?summe|somme|suma|(?:sub)?totale|(?:sub)?totaal|totalt|sammanlagt|yhteensä|razem|ogółem"
    r"|celkem|итого|всего|σύνολο|toplam|合[计計]|[总總総小][计計]|합계|총계|소계|المجموع|الإجمالي|कुल|योग)"
    r"(?:\s+(?:g[eé]n[eé]rale?|geral))?)"  # total général, total geral
)
"""A word for the sum of other entries, in tables and in lists of replies."""

_NAMES_TOTAL = lazy_pattern(rf"\b{TOTAL_WORD}\b", re.I)  # Total assets
_IS_TOTAL = lazy_pattern(rf"[\W_]*{TOTAL_WORD}[\W_]*", re.I)  # "**Total:**" alone

_SWAPPED = str.maketrans(",.", ".,")

_SAMPLE = 30  # filled cells to look at, to decide whether a column has figures or dates
_MAX_LABEL = 100  # characters; longer cells are prose
_MAX_STARTS = 3  # most recent rows from which a block with the wanted sum may begin
_MAX_NAMED = 3  # maximum rows in a note
_MAX_ROUNDED = Decimal("0.01")
"""Maximum share of a total that rounding explains; a larger gap means a hidden or unreadable row."""


class Totals(NamedTuple):
    """Indices of the totals among rows, each with the text of its note."""

    certain: Mapping[int, str] = {}
    possible: Mapping[int, str] = {}

    @property
    def notes(self) -> list[str]:
        """Notes that name the rows."""
        notes = []
        for kind, found in (
            ("totals, which are not counted as rows", self.certain),
            ("undecided whether it is a total or a row", self.possible),
        ):
            more = f"; and {len(found) - _MAX_NAMED:,} more" * (len(found) > _MAX_NAMED)
            if found:
                notes.append(f"{kind}: {'; '.join(islice(found.values(), _MAX_NAMED))}{more}")
        return notes


def names_total(text: str) -> bool:
    """Whether a short text has a word for totals."""
    return len(text) <= _MAX_LABEL and _NAMES_TOTAL.search(text) is not None


class _Table:
    """The cells of a table by column, which columns have figures or name the rows, and the totals among the rows."""

    def __init__(self, rows: Sequence[Mapping[str, str | None]]) -> None:
        names = list(dict.fromkeys(name for row in rows for name in row))
        self.cells = {name: [row.get(name) or "" for row in rows] for name in names}
        samples = {
            name: list(islice((cell for cell in cells if not is_blank(cell)), _SAMPLE))
            for name, cells in self.cells.items()
        }
        self.figures = [name for name in names if _are_figures(name, samples[name])]
        others = [name for name in names if name not in self.figures]
        # A date, or the same word in every row, is not the name of a row.
        self.labels = [
            name
            for name in others
            if not _are_dates(samples[name]) and len({*self.cells[name], ""}) > 2
        ] or others
        self._n = len(rows)
        self._n_rows = [0]  # with figures before each row, without totals
        self._certain: dict[int, str] = {}
        self._possible: dict[int, str] = {}
        self._read: dict[str, list[Decimal | None]] = {}
        self._sums: list[_Sums] = []

    def has_no_label(self, i: int) -> bool:
        """Whether a row has no label although others have one."""
        return bool(self.labels) and all(is_blank(self.cells[name][i]) for name in self.labels)

    def totals(self) -> Totals:
        """Classify rows with a word for totals, rows without a label, and the last row."""
        if self.figures and self._n > 1:
            words = [set(filter(names_total, set(cells))) for cells in self.cells.values()]
            named = {
                i
                for cells, found in zip(self.cells.values(), words, strict=True)
                for i, cell in enumerate(cells if found else ())
                if cell in found
            }
            blank = {i for i in range(2, self._n) if self.has_no_label(i)}  # below two rows or more
            if named or blank:
                self._sums = [_Sums(self._numbers(name)) for name in self.figures]
                self._read_down(named, blank)
                # A row that is a total only by name may sum up the rows below it, up to the next total or the end.
                for i, end in list(pairwise([*self._possible, self._n])):
                    if self._sums_up(i, [(i + 1, end), (i + 1, self._n)], 2):
                        del self._possible[i]
            self._judge_last()
        return Totals(self._certain, self._possible)

    def _read_down(self, named: set[int], blank: set[int]) -> None:
        """Compare each candidate with rows above it: its block, the rows below a heading, or all."""
        begin = heading = 0
        for i in range(self._n):
            blocks = [(start, i) for start in dict.fromkeys((begin, heading, 0))]
            if i in named and (first := next((s for s in self._sums if s.numbers[i]), None)):
                # The blocks whose sum is its first figure
                blocks += ((start, i) for start in reversed(first.starts(i)))
            if i in named and self._is_called_total(i):
                if not self._sums_up(i, blocks, 1):
                    self._possible[i] = self._format_range(i, begin, i)
            elif i in named or i in blank:
                self._judge_sum(i, blocks)
            is_total = i in self._certain or i in self._possible
            has_figures = any(sums.numbers[i] is not None for sums in self._sums)
            if is_total:
                begin = i + 1
            elif not has_figures:
                heading = i + 1
            self._n_rows.append(self._n_rows[-1] + (has_figures and not is_total))
            for sums in self._sums:
                sums.add(i, is_total=is_total)

    def _sums_up(self, i: int, blocks: Sequence[tuple[int, int]], n_least: int) -> bool:
        """Whether a figure of a row that is called a total is the sum of a block, exactly or else rounded."""
        filled = [sums for sums in self._sums if sums.numbers[i]]
        for is_rounded in (False, True):
            for start, end in blocks:
                for sums in filled:
                    if sums.n_summed(start, end) >= n_least and (
                        sums.is_rounded(i, start, end)
                        if is_rounded
                        else sums.numbers[i] == sums.total(start, end)
                    ):
                        self._certain[i] = self._format_range(i, start, end)
                        return True
        return False

    def _judge_sum(self, i: int, blocks: Iterable[tuple[int, int]]) -> None:
        """Mark a row as a total if all its figures are sums of a block, at least one of them of two rows or more."""
        filled = [sums for sums in self._sums if sums.numbers[i] is not None]
        for start, end in blocks:
            # Of running numbers, 3 is the sum of 0, 1 and 2 by chance.
            is_sum = any(
                sums.numbers[i] and not sums.are_running and sums.n_summed(start, end) > 1
                for sums in filled
            )
            if is_sum and all(sums.numbers[i] == sums.total(start, end) for sums in filled):
                self._certain[i] = self._format_range(i, start, end)
                return

    def _judge_last(self) -> None:
        """Mark the last row as a possible total if it has two figures or more, and each is the sum of all rows above."""
        found = {*self._certain, *self._possible}
        last = self._n - 1
        n_sums = 0
        for name in self.figures if last not in found else ():
            numbers = self._numbers(name)
            if numbers[last] is None or all(n == (m or 0) + 1 for m, n in pairwise(numbers)):
                continue  # blank, or running numbers: 1, 2, 3
            above = [number for i, number in enumerate(numbers[:last]) if number and i not in found]
            if sum(above) != numbers[last]:
                return
            n_sums += len(above) > 1
        if n_sums > 1:
            self._possible[last] = f"{self._name(last)}, the sum of all rows above"

    def _numbers(self, name: str) -> list[Decimal | None]:
        if name not in self._read:
            read = read_column(name, self.cells[name])
            if not any(read):  # sums show whether commas are decimal
                read = read_column(name, [cell.translate(_SWAPPED) for cell in self.cells[name]])
            self._read[name] = [None if found is None else found.number for found in read]
        return self._read[name]

    def _is_called_total(self, i: int) -> bool:
        """Whether the label of a row is only a word for totals."""
        labels = [cell for name in self.labels if not is_blank(cell := self.cells[name][i])]
        labels += [cell for name in self.figures if names_total(cell := self.cells[name][i])]
        return bool(labels) and all(map(_IS_TOTAL.fullmatch, labels))

    def _name(self, i: int) -> str:
        labels = (self.cells[name][i] for name in (*self.labels, *self.figures))
        label = next((cell for cell in labels if any(map(str.isalpha, cell))), "")
        return f"row {i + 1:,}" + (f" '{shortened(label, 60)}'" if label else " without a name")

    def _format_range(self, i: int, start: int, end: int) -> str:
        """Describe a total: the rows that it sums up, or its first figure that differs from the sum."""
        n_rows = self._n_rows[end] - self._n_rows[start]
        rows = f"{n_rows:,} row{'s' * (n_rows != 1)}"
        filled = [sums for sums in self._sums if sums.numbers[i]]
        if not filled:
            return f"{self._name(i)} has no clear figure"
        if any(sums.numbers[i] == sums.total(start, end) for sums in filled):
            return f"{self._name(i)}, the sum of {rows}"
        if not n_rows:
            return f"{self._name(i)} is the sum of no other rows"
        said, total = filled[0].numbers[i], filled[0].total(start, end)
        return f"{self._name(i)} says {said:f} where {rows} come to {total:f}"


class _Sums:
    """A column of figures with running sums, without totals."""

    def __init__(self, numbers: Sequence[Decimal | None]) -> None:
        self.numbers = numbers
        self.are_running = all(n == (m or 0) + 1 for m, n in pairwise(numbers))  # as in 0, 1, 2, 3
        self.before = [Decimal(0)]
        self.n_before = [0]  # rows that are not zero
        self._starts: defaultdict[Decimal, list[int]] = defaultdict(list)  # without the first row

    def add(self, i: int, *, is_total: bool) -> None:
        """Add the figure of row `i`, unless the row is a total."""
        number = Decimal(0) if is_total else self.numbers[i] or Decimal(0)
        self.before.append(self.before[-1] + number)
        self.n_before.append(self.n_before[-1] + bool(number))
        self._starts[self.before[-1]].append(i + 1)

    def starts(self, i: int) -> list[int]:
        """The starts of the nearest blocks above row `i` whose sums equal its figure."""
        return self._starts.get(self.before[i] - (self.numbers[i] or 0), [])[-_MAX_STARTS:]

    def total(self, start: int, end: int) -> Decimal:
        """The sum of the rows from `start` up to `end`."""
        return self.before[end] - self.before[start]

    def n_summed(self, start: int, end: int) -> int:
        """The rows from `start` up to `end` that are not zero."""
        return self.n_before[end] - self.n_before[start]

    def is_rounded(self, i: int, start: int, end: int) -> bool:
        """Whether the figure of row `i` differs from a sum only by rounding."""
        number = self.numbers[i] or Decimal(0)
        unit = Decimal(1).scaleb(int(number.as_tuple().exponent))  # of its last digit: 0.1 for 12.5
        # Rounding changes each row, and the total, by half a unit at most.
        most = min((self.n_summed(start, end) + 1) * unit / 2, abs(number) * _MAX_ROUNDED)
        return abs(number - self.total(start, end)) <= most


def _are_figures(name: str, cells: Sequence[str]) -> bool:
    """Whether more than half of the cells are numbers, clear or not, and not years or dates."""
    n_clear = sum(found is not None for found in read_column(name, cells))
    n_begin = sum(map(begins_with_digit, cells))
    return 2 * n_clear > len(cells) or (2 * n_begin > len(cells) and not _are_dates(cells))


def _are_dates(cells: Sequence[str]) -> bool:
    periods = read_dates(cells).periods
    n = sum(is_year(cell) or found is not None for cell, found in zip(cells, periods, strict=True))
    return 2 * n > len(cells)


MIN_GROUPS = 3
"""Minimum groups of rows, equally long and separated by blank lines, that are one table; of two, the second may be another."""


class Parted(NamedTuple):
    """The rows of a table. `doubtful` rows may not be rows; `totals` are certain and possible totals."""

    rows: tuple[Row, ...]
    doubtful: tuple[Row, ...] = ()
    totals: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()


def part_rows(rows: Sequence[Row], fields: Sequence[Mapping[str, str | None]]) -> Parted:
    """Separate the rows of one table; `fields` are the table's own fields if the rows have more."""
    if not any(fields):
        return Parted(tuple(rows))  # parts of a text
    cells = chain.from_iterable(each.values() for each in fields)
    out, totals, doubtful, notes = set[int](), set[int](), set[int](), list[str]()
    if len(rows) > 2 or any(not cell or names_total(cell) for cell in cells):
        # Other tables of two rows are not read: records of many kinds are as many tables.
        table = _Table(fields)
        found = table.totals()
        out, doubtful, notes = {*found.certain}, {*found.possible}, found.notes
        totals = out | doubtful
        has_units, unit_note = _first_row_of_units(table)
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


def _first_row_of_units(table: _Table) -> tuple[bool, str]:
    """Whether the first row gives units instead of figures, and a note if it does or may do so."""
    said = {name: table.cells[name][0] for name in table.figures}
    said = {name: cell.strip("()[] ") for name, cell in said.items() if not is_blank(cell)}
    if (
        not said
        or not table.has_no_label(0)
        or any(map(str.isdecimal, chain.from_iterable(said.values())))
    ):
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
    """Yield rows that may not belong to the table or may be misread, with the reason."""
    names = list(fields[0]) if fields else []
    are_beside = any(  # a name before a column without one is repeated after it
        name.startswith("column ") and any(f"{before} (2)" in names[i:] for before in names[:i])
        for i, name in enumerate(names)
    )
    if are_beside:
        why = "undecided what is a row: tables with the same columns stand side by side"
        yield why, set(range(len(rows)))
    text = rows[0].text if rows else "{"
    if text.startswith("{") or any(f"{name}:" in text for name in names):
        return  # each record has its own names, or there is no row
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
        if row.spans and other.spans and other.spans[0].start - row.spans[0].end > 1  # a line break
    ]
    sizes = {end - start for start, end in pairwise([0, *begins, len(rows)])}
    if begins and (len(begins) < MIN_GROUPS - 1 or len(sizes) > 1):
        n = len(rows) - begins[0]
        yield (
            f"undecided whether {n:,} row{'s' * (n > 1)} below a blank line or other text are of this table",
            set(range(begins[0], len(rows))),
        )
