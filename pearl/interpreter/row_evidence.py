"""The rows that outputs are computed from, as evidence of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.values import Fetched
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, full_place
from pearl.documents.rows import Row, Rows, shortened
from pearl.documents.table import cell_span
from pearl.errors import Span
from pearl.interpreter.provenance import leaves
from pearl.interpreter.results import Cited

MAX_COLUMNS = 4  # Maximum columns named in the displayed position of a row


Cell = str | int | float | bool | None  # The value of a field in a flat row


class CellEvidence(Struct, frozen=True):
    """A cell of a row: its column, its text, and its position in the row's source."""

    column: str
    text: str
    span: Span
    page: int | None = None


class RowEvidence(Struct, frozen=True):
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
    page: int | None = None
    ocr: float | None = None
    decided_by: tuple[str, ...] = ()
    """The scorers and escalation models that decided it instead of the main model"""
    quote: str = ""  # The passages that decided its values

    @property
    def line(self) -> str:
        """The row as text on one line."""
        shown = shortened(self.text or self.value or "")
        return shown if self.is_decided else f"undecided: {shown}"

    @property
    def where(self) -> str:
        """The position of the row and the steps that use it, for display."""
        place = ""
        if self.span:
            table = [] if self.number is None else [f"row {self.number:,}"]
            table += [shortened(cell.column, 40) for cell in self.cells[:MAX_COLUMNS]]
            table += ["..."] if len(self.cells) > MAX_COLUMNS else []
            cells = ", ".join(table)
            place = full_place(self.source, self.span, self.page, self.ocr, self.ranks, cells)
            place += "; "
        by = f"; by {', '.join(self.decided_by)}" if self.decided_by else ""
        return f"{place}{', '.join(self.steps)}{by}"

    def flat(self) -> dict[str, Cell]:
        """The row for a data frame: its fields, then its value, text and position."""
        start, end = (None, None) if self.span is None else (self.span.start, self.span.end)
        own: dict[str, Cell] = {
            "value": self.value if self.is_decided else None, "text": self.text,
            "state": "found" if self.is_decided else "undecided", "source": self.source,
            "page": self.page, "start": start, "end": end, "quote": self.quote,
        }  # fmt: skip
        # A table may have a column named `text`.
        return {
            f"{name} (field)" if name in own else name: v for name, v in self.fields.items()
        } | own


def ranks_at(fetched: Iterable[tuple[str, Fetched]], start: int) -> tuple[tuple[str, int], ...]:
    """The ranks, by step, of the retrieved passages that contain a position of the document."""
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
    decided_by: Sequence[Mapping[object, str]] = (),
    deciding: Sequence[Mapping[object, Evidence]] = (),
) -> tuple[RowEvidence, ...]:
    """The rows that outputs are computed from, in the order of the document, without repeats."""
    found: dict[object, Row] = {}
    steps: dict[object, list[str]] = {}
    is_decided: dict[object, bool] = {}
    for output, rows in outputs:
        decided: dict[object, bool] = {}
        for row, is_sure in leaves(rows):
            found.setdefault(row.key, row)
            # A row that is decided in one group counts as decided even if it is undecided in
            # others.
            decided[row.key] = decided.get(row.key, False) or is_sure
        for key, is_sure in decided.items():
            steps.setdefault(key, []).append(output)
            is_decided[key] = is_decided.get(key, True) and is_sure
    return tuple(
        replace(
            _evidence(row, document, fetched, cited),
            steps=tuple(steps[key]),
            is_decided=is_decided[key],
            decided_by=tuple(dict.fromkeys(each[key] for each in decided_by if key in each)),
            quote="\n".join(dict.fromkeys(each[key].marked for each in deciding if key in each)),
        )
        for key, row in sorted(found.items(), key=lambda item: item[1].spans[:1])
    )


def _evidence(
    row: Row, document: Document, fetched: Sequence[tuple[str, Fetched]], cited: Sequence[Cited]
) -> RowEvidence:
    """The evidence of a row: its position in the document, its ranks and the cells that steps cite."""
    evidence = RowEvidence(row.text, row.value, row.fields, ())
    if not row.spans:
        return evidence
    start, end = row.spans[0].start, row.spans[-1].end
    source, at = document.locate(start)
    those = [each for each in cited if start in each.numbers]
    columns = dict.fromkeys(name for each in those for name in each.columns)
    return replace(
        evidence,
        source=source,
        span=Span(at, at + end - start),
        ranks=ranks_at(fetched, start),
        number=those[0].numbers[start] if those else None,
        cells=tuple(_cell(row, name, document) for name in columns if row.fields.get(name)),
        page=document.page_at(start),
        ocr=document.ocr_at(Span(start, end)),
    )


def _cell(row: Row, column: str, document: Document) -> CellEvidence:
    span = cell_span(row, column) or row.spans[0]
    text = row.fields[column] or ""
    start = document.locate(row.spans[0].start)[1] + span.start - row.spans[0].start
    place = Span(start, start + span.end - span.start)
    return CellEvidence(column, text, place, document.page_at(span.start))
