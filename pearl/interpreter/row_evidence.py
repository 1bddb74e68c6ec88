"""The rows behind an answer → its evidence and a table.

A count is backed by the rows that were counted: each with its fields and its place in the document.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from pearl.documents.document import Document
from pearl.documents.rows import Row, Rows, shortened
from pearl.errors import Span
from pearl.errors.escaping import inert

__all__ = ["RowEvidence", "row_evidence", "write_rows"]


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """A row that an answer is computed from.

    Attributes:
        text: What it reads in the document; "" if it is from an earlier output.
        value: Its value; None if it is undecided.
        fields: Its named values.
        steps: Outputs that are computed from it.
        source: The file it is in; "" if it is from an earlier output.
        span: Where, in characters of that file's text; None likewise.
        is_decided: Whether it surely belongs to the rows and has a value.
    """

    text: str
    value: str | None
    fields: Mapping[str, str | None]
    steps: tuple[str, ...]
    source: str = ""
    span: Span | None = None
    is_decided: bool = True

    @property
    def line(self) -> str:
        """The row on one line."""
        shown = shortened(self.text or self.value or "")
        return shown if self.is_decided else f"undecided: {shown}"

    @property
    def where(self) -> str:
        """The place of the row and the steps that are computed from it, for people."""
        place = (
            f"{self.source}, characters {self.span.start:,}-{self.span.end:,}; "
            if self.span
            else ""
        )
        return f"{place}{', '.join(self.steps)}"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON data; positions are in the text of its source."""
        place = {"start": self.span.start, "end": self.span.end} if self.span else {}
        return {
            "match": "row",
            "text": self.text,
            "value": self.value,
            "fields": dict(self.fields),
            **place,
            "source": self.source,
            "steps": list(self.steps),
            "state": "found" if self.is_decided else "undecided",
        }


@dataclass(slots=True)
class _Found:
    """One row of the document and what is computed from it."""

    row: Row
    is_decided: bool = True
    steps: list[str] = field(default_factory=list)


def row_evidence(
    outputs: Sequence[tuple[str, Rows]], document: Document
) -> tuple[RowEvidence, ...]:
    """The rows behind outputs, in the order of the document, each once.

    Args:
        outputs: The outputs that form the answer, with the rows behind them.
        document: What the rows are of.
    """
    found: dict[object, _Found] = {}
    for output, rows in outputs:
        decided: dict[object, bool] = {}
        for row, is_decided in _leaves(rows):
            found.setdefault(row.key, _Found(row))
            # Surely in one group, it does not matter that it may be in others.
            decided[row.key] = decided.get(row.key, False) or is_decided
        for key, is_decided in decided.items():
            found[key].steps.append(output)
            found[key].is_decided &= is_decided
    ordered = sorted(found.values(), key=lambda each: each.row.spans[:1])
    return tuple(_evidence(each, document) for each in ordered)


def _leaves(rows: Rows) -> Iterator[tuple[Row, bool]]:
    """The rows of the document that a collection consists of, and whether each is decided."""
    for row in rows:
        yield from _parts(row, is_decided=row.value is not None, shows_possible=rows.shows_possible)
    for row in rows.doubtful:
        yield from _parts(row, is_decided=False, shows_possible=True)


def _parts(row: Row, *, is_decided: bool, shows_possible: bool) -> Iterator[tuple[Row, bool]]:
    if row.spans or not (row.members or row.possible):
        yield row, is_decided
        return
    for member in row.members:
        yield from _parts(member, is_decided=is_decided, shows_possible=shows_possible)
    for member in row.possible if shows_possible else ():
        yield from _parts(member, is_decided=False, shows_possible=True)


def _evidence(found: _Found, document: Document) -> RowEvidence:
    row = found.row
    source, span = "", None
    if row.spans:
        start, end = row.spans[0].start, row.spans[-1].end
        source, at = document.locate(start)
        span = Span(at, at + end - start)
    return RowEvidence(
        row.text, row.value, row.fields, tuple(found.steps), source, span, found.is_decided
    )


_OWN = ("id", "value", "text", "source", "start", "end", "state")


def write_rows(file: IO[str], answers: Sequence[tuple[str, Sequence[RowEvidence]]]) -> None:
    """Write rows as CSV: their value and text, their place, and a column for each field.

    A cell that a spreadsheet would evaluate begins with an apostrophe.

    Args:
        file: Open for writing, with `newline=""`.
        answers: The id of each answer with its rows.
    """
    every = [row for _, rows in answers for row in rows]
    names = dict.fromkeys(name for row in every for name in row.fields)
    columns = [name if name not in _OWN else f"{name} (field)" for name in names]
    writer = csv.writer(file)
    writer.writerow([*_OWN, *map(inert, columns)])
    for id, rows in answers:
        for row in rows:
            place = (row.span.start, row.span.end) if row.span else ("", "")
            state = "found" if row.is_decided else "undecided"
            own = (id, _shown(row.value), row.text, row.source, *place, state)
            cells = [*own, *(_shown(row.fields.get(name, "")) for name in names)]
            writer.writerow(map(inert, cells))


def _shown(value: str | None) -> str:
    return "undecided" if value is None else value
