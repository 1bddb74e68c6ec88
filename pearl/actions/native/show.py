"""SHOW(A, B, ...): columns side by side."""

from pearl.actions.values import Value
from pearl.documents.rows import Row, Rows, unused_name
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "SHOW",
    (Parameter("A", ValueType.LIST, "rows"), Parameter("B", ValueType.LIST, "rows")),
    "Return a table of the rows, the values of each argument in a column of its own",
    is_variadic=True,
    returns=ValueType.LIST,
    is_native=True,
)


def run(*columns: Rows) -> Value:
    """Join rows that are the same one of the document; what a column lacks is blank.

    A row is undecided if it is in none of the columns surely, or a value of it is.

    Example:
        >>> rows = Rows((Row("a", text="a"), Row("b", text="b")))
        >>> labels = Rows((Row("x", text="a"), Row(None, text="b")), "label")
        >>> run(rows, labels).lines()
        ['| text | label |', '| --- | --- |', '| a | x |', '| b | undecided |']
    """
    cells: dict[str, dict[object, str | None]] = {}
    found: dict[object, Row] = {}
    sure: set[object] = set()
    for rows in columns:
        name = unused_name(rows.column, cells)
        keyed = [(row.key, row) for row in rows]
        cells[name] = {key: row.value for key, row in keyed}
        if rows.shows_possible:
            sizes = {key: str(len(row.members)) for key, row in keyed if row.members}
            cells[unused_name("count", cells)] = dict(sizes)
        sure |= cells[name].keys()
        for row in rows.doubtful:
            cells[name].setdefault(row.key, None)
            keyed.append((row.key, row))
        for key, row in keyed:
            found.setdefault(key, row)
    table: list[Row] = []
    unsure: list[Row] = []
    for key, row in found.items():
        shown = {name: column.get(key, "") for name, column in cells.items()}
        (table if key in sure else unsure).append(row.with_fields(shown))
    return Rows(
        tuple(table),
        columns[0].column,
        tuple(unsure),
        tuple(dict.fromkeys(note for rows in columns for note in rows.notes)),
        columns=tuple(cells),
    )
