"""SPLIT(CTX, UNIT): the rows that a document consists of."""

from dataclasses import replace

from pearl import plugins
from pearl.actions.native import Value
from pearl.documents.rows import TEXT_COLUMN, Row, Rows
from pearl.documents.units import UNITS, Piece
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.errors import Span

ACTION = Action(
    "SPLIT",
    (Parameter("CTX", ValueType.CONTEXT, "rows"), Parameter("UNIT", choices=UNITS)),
    f"Return the rows that CTX consists of, one for each UNIT: {', '.join(UNITS)}",
    returns=ValueType.LIST,
    is_native=True,
)


def run(rows: Rows, unit: str) -> Value:
    r"""Split every row; a document is one row, several joined documents are one each.

    Raises:
        ValueError: There is no such unit, or none of it in any of them.

    Example:
        >>> rows = run(Rows((Row("a b\nc", {}, (Span(0, 5),), "a b\nc"),)), "line")
        >>> [(row.value, row.spans) for row in rows]
        [('a b', (Span(start=0, end=3),)), ('c', (Span(start=4, end=5),))]
    """
    if unit not in UNITS:
        raise ValueError(f"'{unit}' is no unit; units are {', '.join(UNITS)}")
    split = plugins.load("pearl.documents.units", unit).split
    found: list[Row] = []
    reasons: list[str] = []
    for row in rows:
        text = row.value or ""
        try:
            found += [_part(row, text, piece) for piece in split(text, _pages(rows, row))]
        except ValueError as error:
            reasons.append(str(error))
    if reasons and not found:
        raise ValueError(reasons[0])
    notes = [f"{len(reasons):,} of {len(rows):,} texts left out: {reasons[0]}"] if reasons else []
    return replace(
        rows, rows=tuple(found), column=TEXT_COLUMN, notes=(*rows.notes, *notes),
        is_answered=False, pages=(),
    )  # fmt: skip


def _pages(rows: Rows, row: Row) -> list[tuple[str, int]]:
    """The pages of a whole document, in its own offsets."""
    if not (rows.pages and row.spans):
        return []
    start, end = row.spans[0].start, row.spans[0].end
    return [(name, at - start) for name, at in rows.pages if start <= at < end]


def _part(row: Row, text: str, piece: Piece) -> Row:
    value = text[piece.start : piece.end]
    fields = {**row.fields, **piece.fields} if row.fields else piece.fields
    if row.spans and text == row.text:
        start = row.spans[0].start
        return Row(value, fields, (Span(start + piece.start, start + piece.end),), value)
    return Row(value, fields, row.spans, value)
