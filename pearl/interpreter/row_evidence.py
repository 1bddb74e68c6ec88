"""The rows behind an answer → its evidence and a table.

A count is backed by the rows that were counted: each with its fields and its place in the document.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from pearl.actions.searching import Fetched
from pearl.documents.document import Document
from pearl.documents.evidence import shown_ranks
from pearl.documents.rows import Row, Rows, shortened
from pearl.documents.table import cell_span
from pearl.errors import Span
from pearl.errors.escaping import inert

MAX_COLUMNS = 4
"""Columns of a row that people are shown as the place of an answer."""


@dataclass(frozen=True, slots=True)
class Cited:
    """The cells of a table that a step is computed from."""

    numbers: Mapping[int, int]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CellEvidence:
    """A cell of a row: its column, what it reads, and where that is in the text of the row's source."""

    column: str
    text: str
    span: Span

    def to_json(self) -> dict[str, Any]:
        """The cell as JSON data."""
        place = {"start": self.span.start, "end": self.span.end}
        return {"column": self.column, "text": self.text, **place}


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """A row that an answer is computed from."""

    text: str
    value: str | None
    fields: Mapping[str, str | None]
    steps: tuple[str, ...]
    source: str = ""
    span: Span | None = None
    is_decided: bool = True
    ranks: tuple[tuple[str, int], ...] = ()
    number: int | None = None
    cells: tuple[CellEvidence, ...] = ()

    @property
    def line(self) -> str:
        """The row on one line."""
        shown = shortened(self.text or self.value or "")
        return shown if self.is_decided else f"undecided: {shown}"

    @property
    def where(self) -> str:
        """The place of the row and the steps that are computed from it, for people."""
        place = ""
        if self.span:
            ranks = shown_ranks(self.ranks)
            table = "" if self.number is None else f", row {self.number:,}"
            if self.cells:
                names = [shortened(cell.column, 40) for cell in self.cells]
                more = ", ..." if len(names) > MAX_COLUMNS else ""
                table += f", {', '.join(names[:MAX_COLUMNS])}{more}"
            place = (
                f"{self.source}{table}, characters {self.span.start:,}-{self.span.end:,}{ranks}; "
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
            **({} if self.number is None else {"row": self.number}),
            **({"cells": [cell.to_json() for cell in self.cells]} if self.cells else {}),
            "steps": list(self.steps),
            "state": "found" if self.is_decided else "undecided",
            **({"ranks": dict(self.ranks)} if self.ranks else {}),
        }


@dataclass(slots=True)
class _Found:
    """One row of the document and what is computed from it."""

    row: Row
    is_decided: bool = True
    steps: list[str] = field(default_factory=list)


def ranks_at(fetched: Iterable[tuple[str, Fetched]], start: int) -> tuple[tuple[str, int], ...]:
    """The ranks of the passages that hold a place of the document, by the step that found them."""
    found: dict[str, int] = {}
    for output, each in fetched:
        for hit in each.hits:
            if hit.span.start <= start < hit.span.end:
                found.setdefault(output, hit.rank)
    return tuple(found.items())


def row_evidence(
    outputs: Sequence[tuple[str, Rows]],
    document: Document,
    fetched: Sequence[tuple[str, Fetched]] = (),
    cited: Sequence[Cited] = (),
) -> tuple[RowEvidence, ...]:
    """The rows behind outputs, in the order of the document, each once."""
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
    return tuple(_evidence(each, document, fetched, cited) for each in ordered)


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


def _evidence(
    found: _Found,
    document: Document,
    fetched: Sequence[tuple[str, Fetched]],
    cited: Sequence[Cited],
) -> RowEvidence:
    row = found.row
    source, span = "", None
    ranks: tuple[tuple[str, int], ...] = ()
    number: int | None = None
    cells: tuple[CellEvidence, ...] = ()
    if row.spans:
        start, end = row.spans[0].start, row.spans[-1].end
        source, at = document.locate(start)
        span = Span(at, at + end - start)
        ranks = ranks_at(fetched, start)
        those = [each for each in cited if start in each.numbers]
        number = those[0].numbers[start] if those else None
        columns = dict.fromkeys(name for each in those for name in each.columns)
        cells = tuple(_cell(row, name, at - start) for name in columns if row.fields.get(name))
    return RowEvidence(
        row.text,
        row.value,
        row.fields,
        tuple(found.steps),
        source,
        span,
        found.is_decided,
        ranks,
        number,
        cells,
    )


def _cell(row: Row, column: str, shift: int) -> CellEvidence:
    """A cell of a row of the document; `shift` is from the document's text to that of its source."""
    span = cell_span(row, column) or row.spans[0]
    text = row.fields[column] or ""
    return CellEvidence(column, text, Span(span.start + shift, span.end + shift))


_OWN = ("id", "value", "text", "source", "start", "end", "state")


def write_rows(file: IO[str], answers: Sequence[tuple[str, Sequence[RowEvidence]]]) -> None:
    """Write rows as CSV: their value and text, their place, and a column for each field.

    A cell that a spreadsheet would evaluate begins with an apostrophe.
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
