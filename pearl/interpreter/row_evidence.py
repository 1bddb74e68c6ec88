"""The rows that outputs are computed from, as evidence of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from pearl.actions.values import Fetched
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence
from pearl.documents.rows import Row, Rows
from pearl.documents.table import cell_span
from pearl.errors import Span
from pearl.interpreter.provenance import leaves
from pearl.interpreter.results import Cited
from pearl.interpreter.row import CitedCell, DocumentRow, Place


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
    fetched: Sequence[tuple[str, Fetched]],
    cited: Sequence[Cited],
    decided_by: Sequence[Mapping[object, str]],
    deciding: Sequence[Mapping[object, Evidence]],
) -> tuple[DocumentRow, ...]:
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
        _evidence(
            row, document, fetched, cited,
            steps=steps[key], state="found" if is_decided[key] else "undecided",
            decided_by=[*dict.fromkeys(each[key] for each in decided_by if key in each)],
            quote="\n".join(dict.fromkeys(each[key].marked for each in deciding if key in each)),
        )
        for key, row in sorted(found.items(), key=lambda item: item[1].spans[:1])
    )  # fmt: skip


def _evidence(
    row: Row, document: Document, fetched: Sequence[tuple[str, Fetched]], cited: Sequence[Cited], **known: Any
) -> DocumentRow:  # fmt: skip
    """The evidence of a row: its position in the document, its ranks and the cells that steps cite."""
    evidence = DocumentRow(text=row.text, value=row.value, fields={**row.fields}, **known)
    if not row.spans:
        return evidence
    start, end = row.spans[0].start, row.spans[-1].end
    source, at = document.locate(start)
    moved = at - start  # From the joined documents to the source
    those = [each for each in cited if start in each.numbers]
    cells = []
    for name in dict.fromkeys(name for each in those for name in each.columns):
        if text := row.fields.get(name):
            span = cell_span(row, name) or row.spans[0]
            place = Place.at(span.moved(moved))
            cells.append(
                CitedCell(column=name, text=text, page=document.page_at(span.start), **place)
            )
    return replace(
        evidence, source=source, **Place.at(Span(at, end + moved)), ranks=dict(ranks_at(fetched, start)),
        row=those[0].numbers[start] if those else None, cells=cells, page=document.page_at(start),
        ocr=document.ocr_at(Span(start, end)),
    )  # fmt: skip
