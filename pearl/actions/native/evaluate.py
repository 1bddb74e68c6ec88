"""EVALUATE(CTX, PROGRAM): arithmetic in steps, over the numbers of a table."""

from collections.abc import Sequence
from dataclasses import replace

from pearl.actions.arithmetic.evaluation import Amount, Result, evaluate
from pearl.actions.arithmetic.faults import UnfitUnitsError
from pearl.actions.arithmetic.operands import Figures, places, with_unit
from pearl.actions.arithmetic.program import Operand, Program, parse
from pearl.actions.values import Scalar, Value, as_text
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.documents.table import Table
from pearl.documents.table.finding import tables_in, tables_of_rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "EVALUATE",
    (Parameter("CTX", ValueType.CONTEXT, "rows"), Parameter("PROGRAM", reads="value")),
    'Carry out the arithmetic of PROGRAM, such as "subtract(5735, 5180), divide(#0, 5180)" or "table_sum(revenue, none)", '
    "with the rows of CTX as its table, and return the result",
    is_native=True,
)
IS_SPECIALISED = True

_OF_DOCUMENTS = {"Document"}


def run(rows: Rows, program: Value) -> Value:
    """Evaluate a program; the rows behind it are those its numbers come from.

    Example:
        >>> table = Rows((Row("| revenue | 110 | 100 |", {"": "revenue", "2008": "110", "2007": "100"}),))
        >>> run(table, "subtract(110, 100), divide(#0, 100)").value
        '0.1'
        >>> run(table, "table_sum(revenue, none)").value
        '210'
    """
    parsed = parse(as_text(program).strip())
    figures = Figures(_tables(rows))
    found: list[Row] = []
    notes: list[str] = []
    amounts: dict[str, Amount] = {}
    for operand in dict.fromkeys(each for each in parsed.operands if each.kind == "number"):
        cells = figures.holding(operand)
        read = [row for row, _ in cells] or places(operand, rows)
        found += read
        notes.append(_source(operand, [str(cell) for _, cell in cells], len(read)))
        if amount := with_unit(operand, [cell for _, cell in cells]):
            amounts[operand.text] = amount
    result = _with_units(parsed, figures, amounts, notes)
    behind = Rows(
        without_duplicates([*found, *figures.used]),
        "PROGRAM",
        tuple(row for row in figures.used if row in rows.doubtful),
        tuple(dict.fromkeys([*rows.notes, *_told(result), *notes, *figures.notes])),
    )
    return Scalar(result.text, behind)


def _tables(rows: Rows) -> list[Table]:
    """The tables that selected rows are of, or those in the text of documents."""
    every = [*rows.rows, *rows.doubtful]
    if any(row.fields.keys() - _OF_DOCUMENTS for row in every):
        return tables_of_rows(every)
    return [
        table
        for row in every
        for table in tables_in(row.value or "", row.spans[0].start if row.spans else None)
    ]


def _with_units(
    program: Program, figures: Figures, amounts: dict[str, Amount], notes: list[str]
) -> Result:
    """The result, with the units of the cells as far as they fit each other."""
    if amounts:
        try:
            return evaluate(_named(program, amounts), figures.amounts, amounts)
        except UnfitUnitsError as error:
            notes.append(f"units of the cells do not fit: {error}")
            figures.used.clear()
            figures.notes.clear()
    return evaluate(program, figures.amounts)


def _named(program: Program, amounts: dict[str, Amount]) -> Program:
    """The program with names for the numbers of which the unit is known."""

    def named(operand: Operand) -> Operand:
        is_known = operand.kind == "number" and operand.text in amounts
        return replace(operand, kind="name") if is_known else operand

    steps = (replace(s, operands=tuple(map(named, s.operands))) for s in program.steps)
    return Program(tuple(steps), named(program.value) if program.value else None)


def _source(operand: Operand, cells: Sequence[str], n_places: int) -> str:
    """Where a number comes from."""
    if len(cells) == 1:
        return f"{operand.text}: {cells[0]}"
    if cells:
        return f"{operand.text}: in {len(cells)} cells, {cells[0]} the first"
    if n_places:
        return f"{operand.text}: in the text, {n_places} time{'s' * (n_places > 1)}"
    return f"{operand.text}: not in the document"


def _told(result: Result) -> list[str]:
    """The formula, and whether the result is rounded."""
    notes = [result.formula]
    if result.is_rounded:
        notes.append(f"rounded to {result.text}")
    return notes
