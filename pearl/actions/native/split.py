"""SPLIT(CTX, UNIT): a document split into rows."""

from itertools import chain

from pearl import plugins
from pearl.actions.values import Value
from pearl.documents.rows import TEXT_COLUMN, Row, Rows, shortened
from pearl.documents.table import same_columns_note, scale_notes, tables_of_pieces, titles_of
from pearl.documents.table.totals import Parted, joined, part_rows
from pearl.documents.units import UNITS, Piece, left_out, left_out_note
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.errors import Span

ACTION = Action(
    "SPLIT",
    (Parameter("CTX", ValueType.CONTEXT, "rows"), Parameter("UNIT", choices=UNITS)),
    f"Return the rows that CTX consists of, one for each UNIT: {', '.join(UNITS)}",
    returns=ValueType.LIST,
    is_native=True,
    traits=frozenset({"splits"}),
)

OF_TABLES = ("record", "entry")  # units whose pieces may be the rows of tables

MAX_TABLES = 12  # maximum tables that a note names; records of more kinds are no tables

MAX_AROUND = 0.1
"""Maximum share of text before the first row and after the last one that needs no note."""


def run(rows: Rows, unit: str) -> Value:
    """Split every row. A document comes as one row, several joined documents as one row each."""
    if unit not in UNITS:
        raise ValueError(f"unknown unit '{unit}'; units are {', '.join(UNITS)}")
    reasons: list[str] = []
    notes: list[str] = []
    more_notes: list[str] = []  # on scales and totals
    parts = [_parts(rows, row, unit, reasons, notes, more_notes) for row in rows.every]
    if reasons and not any(each.rows or each.totals for each in parts):
        raise ValueError(reasons[0])
    if reasons:
        notes = [f"{len(reasons):,} of {len(parts):,} texts left out: {reasons[0]}", *notes]
    if len(notes) > 1:
        notes = [notes[0], f"{len(notes) - 1:,} more notes on what was left out"]
    sure, unsure = parts[: len(rows)], parts[len(rows) :]
    split = Rows(
        tuple(chain.from_iterable(each.rows for each in sure)),
        TEXT_COLUMN,
        tuple(
            chain(
                chain.from_iterable(each.doubtful for each in sure),
                chain.from_iterable((*each.rows, *each.doubtful) for each in unsure),
            )
        ),
        rows.notes, pages=rows.pages, is_in_order=rows.is_in_order,
        totals=tuple(chain.from_iterable(each.totals for each in parts)),
    )  # fmt: skip
    return split.noting(*notes, *more_notes)


def _parts(
    rows: Rows, row: Row, unit: str, reasons: list[str], notes: list[str], more_notes: list[str]
) -> Parted:
    """Split a row; also return the total rows of tables, which are not among the pieces. A row with an undecided text stays whole."""
    text = row.text if rows.is_answered and row.text else row.value
    if text is None:
        return Parted((row,))
    start = row.spans[0].start if row.spans and text == row.text else None
    parts: tuple[tuple[str, int], ...] = ()
    if unit == "page" and start is not None:
        before = [page for page in rows.pages if page[1] <= start][-1:]
        inside = [page for page in rows.pages if start < page[1] < start + len(text)]
        parts = tuple((name, max(0, at - start)) for name, at in (*before, *inside))
    try:
        pieces = plugins.load("pearl.documents.units", unit).split(text, parts)
    except ValueError as error:
        reasons.append(str(error))
        return Parted(())
    first, last = (pieces[0].start, pieces[-1].end) if pieces else (0, len(text))
    spans = left_out(text, pieces) if pieces else ()
    is_between = any(first < span.start < last for span in spans)
    if is_between or sum(span.end - span.start for span in spans) > MAX_AROUND * len(text):
        notes.append(left_out_note(spans, unit))
    if unit == "record":
        more_notes += scale_notes(text, pieces)
    if unit not in OF_TABLES:
        return Parted(tuple(_part(row, text, start, piece) for piece in pieces))
    tables = list(tables_of_pieces(text, pieces))
    columns = dict.fromkeys(tuple(those[0].fields) for those in tables if len(those) > 1)
    if 1 < len(columns) <= MAX_TABLES:
        named = "; ".join(shortened(", ".join(names), 60) for names in columns)
        more_notes.append(f"rows of {len(columns)} tables with different columns: {named}")
    titles: dict[tuple[str, ...], list[str]] = {}
    for names, title in titles_of(text, tables):
        titles.setdefault(names, []).append(title)
    if len(columns) <= MAX_TABLES:
        more_notes += filter(None, (same_columns_note(titles[names]) for names in columns))
    table = joined(
        part_rows([_part(row, text, start, piece) for piece in those], [p.fields for p in those])
        for those in tables
    )
    more_notes += table.notes
    return table


def _part(row: Row, text: str, start: int | None, piece: Piece) -> Row:
    value = text[piece.start : piece.end]
    fields = {**row.fields, **piece.fields} if row.fields else piece.fields
    if start is None:
        return Row(value, fields, row.spans, value)
    return Row(value, fields, (Span(start + piece.start, start + piece.end),), value)
