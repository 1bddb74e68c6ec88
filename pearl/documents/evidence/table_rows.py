"""A quoted row of a Markdown table → the row of the document that has these cells.

Models are shown tables in Markdown, and write rows so, whatever separates the cells of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from pearl.documents.document import Document
from pearl.documents.evidence.normal import normalise
from pearl.documents.table.apart import TablesApart
from pearl.errors import Span

_BAR = re.compile(r"(?<!\\)\|")
_NO_LETTERS = re.compile(r"[\W_]+")


class TableRowFinder:
    r"""Finds rows of the tables of one document.

    Example:
        >>> finder = TableRowFinder(Document("item,2008\nsales,$5\ncosts,$4\n"))
        >>> list(finder.find("| sales | $5 |")), list(finder.find("| sales | $4 |"))
        ([Span(start=10, end=18)], [])
    """

    def __init__(self, document: Document) -> None:
        self._document = document

    def find(self, quote: str) -> Iterator[Span]:
        """The rows that have the cells of a quote beside each other, in its order."""
        bars = quote.strip().removeprefix("|").removesuffix("|")
        quoted = [cell.strip().replace(r"\|", "|") for cell in _BAR.split(bars)]
        bare = [_bare(cell) for cell in quoted]
        if len(quoted) < 2 or not any(bare) or "\n" in quote:
            return
        for span, cells in self._rows.get(max(bare, key=len), ()):
            if any(
                _agree(cells[i : i + len(quoted)], quoted, bare)
                for i in range(len(cells) - len(quoted) + 1)
            ):
                yield span

    @cached_property
    def _rows(self) -> dict[str, list[tuple[Span, tuple[str, ...]]]]:
        """The rows and headers that have a cell, by what it says."""
        found: dict[str, list[tuple[Span, tuple[str, ...]]]] = {}
        everywhere = Span(0, len(self._document.text))
        for table in TablesApart(self._document).tables(everywhere):
            lines = list(table.rows)
            if table.header_span is not None:
                lines.insert(0, (table.header_span, table.header))
            for line in lines:
                for key in set(map(_bare, line[1])):
                    found.setdefault(key, []).append(line)
        return found


def _bare(cell: str) -> str:
    """What is compared first: letters and digits."""
    return _NO_LETTERS.sub("", cell)


def _agree(cells: Sequence[str], quoted: Sequence[str], bare: Sequence[str]) -> bool:
    return all(
        _bare(cell) == key and (cell == other or normalise(cell) == normalise(other))
        for cell, other, key in zip(cells, quoted, bare, strict=True)
    )
