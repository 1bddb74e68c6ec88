"""A document, or rows → the tables that questions can be asked of, and the one that a question means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePath

from pearl.documents.document import Document
from pearl.documents.passages import terms
from pearl.documents.rows import DOCUMENT, Row, Rows, shortened
from pearl.documents.table import mended, scale_word
from pearl.documents.table.finding import table_rows
from pearl.documents.table.quantities import scale_of
from pearl.tables.lookup import Lookup
from pearl.tables.query_table import QueryTable

_MAX_NAMED = 4
"""Columns, or tables, that a message names."""
_MAX_KEPT = 2
"""Documents of which the tables are kept: what is made of 23,000 rows takes seconds."""


class SeveralTablesError(ValueError):
    """A question fits several tables equally."""


@dataclass(frozen=True)
class FoundTable:
    """A table of a document, or of several that have the same columns."""

    rows: Rows
    numbers: tuple[int, ...]
    caption: str = ""
    source: str = ""

    @cached_property
    def lookup(self) -> Lookup:
        """What questions are asked of."""
        return Lookup(QueryTable(self.rows))

    @property
    def label(self) -> str:
        """It, for messages: its caption, or the first columns."""
        names = [name for name in self.rows.names if name != DOCUMENT]
        more = ", ..." if len(names) > _MAX_NAMED else ""
        columns = f"{', '.join(shortened(name, 40) for name in names[:_MAX_NAMED])}{more}"
        return f"'{shortened(self.caption, 60)}' ({columns})" if self.caption else columns

    @property
    def name(self) -> str:
        """What it is called: its caption, and its file without folder and suffix."""
        return f"{self.caption} {PurePath(self.source).stem}".strip()

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of all that it says."""
        cells = {cell for row in self.rows for cell in row.fields.values() if cell}
        return frozenset(terms(" ".join([self.caption, *self.rows.names, *cells])))


@lru_cache(_MAX_KEPT)
def tables_of_document(document: Document) -> tuple[FoundTable, ...]:
    r"""The tables of a document, or of each of a corpus; those with the same columns are one.

    Example:
        >>> text = "In millions:\n\n| item | 2008 |\n|---|---|\n| sales | $5 |\n"
        >>> (table,) = tables_of_document(Document(text, "report.md"))
        >>> table.numbers, table.caption, table.rows.notes
        ((1,), 'In millions:', ('numbers of the table are in millions, as its caption or header says',))
    """
    groups: dict[tuple[tuple[str, ...], int], list[tuple[str, str, Sequence[Row]]]] = {}
    numbers: dict[tuple[tuple[str, ...], int], list[int]] = {}
    for each in table_rows(document):
        rows = mended(each.rows)
        names = tuple(dict.fromkeys(name for row in rows for name in row.fields))
        if document.parts:
            rows = [row._replace(fields={DOCUMENT: each.source, **row.fields}) for row in rows]
        key = names, scale_of(names[0]) or scale_of(each.caption) or 0
        groups.setdefault(key, []).append((each.caption, each.source, rows))
        numbers.setdefault(key, []).extend(range(1, len(rows) + 1))
    if not groups:
        raise ValueError("there is no table: no records with named columns")
    found = []
    for (names, scale), parts in groups.items():
        captions = {caption for caption, _, _ in parts}
        sources = {source for _, source, _ in parts}
        said = f"numbers of the table are in {scale_word(scale)}, as its caption or header says"
        rows = tuple(row for _, _, part in parts for row in part)
        found.append(
            FoundTable(
                Rows(rows, notes=(said,) if scale else ()),
                tuple(numbers[names, scale]),
                captions.pop() if len(captions) == 1 else "",
                sources.pop() if len(sources) == 1 else "",
            )
        )
    return tuple(found)


def tables_of_rows(rows: Rows) -> tuple[FoundTable, ...]:
    """The tables that selected rows are of: those with the same fields are one."""
    groups: dict[tuple[str, ...], tuple[list[Row], list[Row]]] = {}
    for is_doubtful, those in enumerate((rows.rows, rows.doubtful)):
        for row in those:
            if row.fields:
                groups.setdefault(tuple(row.fields), ([], []))[is_doubtful].append(row)
    if not groups:
        raise ValueError("there is no table: the rows have no fields")
    return tuple(
        FoundTable(
            Rows(tuple(sure), doubtful=tuple(doubtful), notes=rows.notes),
            tuple(range(1, len(sure) + 1)),
        )
        for sure, doubtful in groups.values()
    )


def meant(question: str, tables: Sequence[FoundTable]) -> FoundTable:
    """The table that has most of the words of a question, in its caption, columns or cells.

    Example:
        >>> towns, fees = (Rows((Row("", {name: cell}),)) for name, cell in [("Town", "Lod"), ("Fee", "9")])
        >>> meant("Which towns?", [*tables_of_rows(towns), *tables_of_rows(fees)]).label
        'Town'
    """
    if len(tables) == 1:
        return tables[0]
    asked = set(terms(question, drop_stop_words=True))
    shares = [len(asked & table.words) for table in tables]
    best = [table for table, n in zip(tables, shares, strict=True) if n == max(shares)]
    if len(best) > 1:
        named = "; ".join(table.label for table in best[:_MAX_NAMED])
        raise SeveralTablesError(
            f"{len(best):,} tables fit the question equally, and it has to say which: {named}"
        )
    return best[0]
