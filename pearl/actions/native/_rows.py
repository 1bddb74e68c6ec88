"""Native actions that make, select or show rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from msgspec.structs import replace

from pearl.actions.columns import judge, read_column
from pearl.actions.groups import first_of, sizes
from pearl.actions.native import Family
from pearl.actions.values import MAY_CHANGE, Scalar, Value, argument, as_text, behind
from pearl.documents import comparisons
from pearl.documents.comparisons import OPERATORS, placed
from pearl.documents.numbers import UnclearNumberError, numbers_of, whole_number
from pearl.documents.rows import DOCUMENT, TEXT_COLUMN, Row, Rows, unused_name
from pearl.documents.table.totals import names_total
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()


@PLUGINS.action(
    "FIELD", (Parameter.named("ROWS"), Parameter("FIELD")),
    'Return the same rows with their FIELD as their value, or all that they read for "text"',
    returns=ValueType.LIST, traits=["by_field"],
)  # fmt: skip
def field(rows: Rows, name: str) -> Value:
    """Take a field of every row; it may be a part of a date (`Date by month`)."""
    column = read_column(rows, name)
    valued = tuple(row.valued(v) for row, v in zip(rows.every, column.values, strict=True))
    n = len(rows)
    totals = rows.totals
    if totals:
        cells = read_column(rows.where(totals), name).values
        totals = tuple(row.valued(v) for row, v in zip(totals, cells, strict=False))
    n_other = sum(column.name not in row.fields for row in rows.every)
    without = [f"rows without a field {column.name}: {n_other:,}"]
    without *= 0 < n_other < len(rows.every)
    return replace(
        rows, rows=valued[:n], doubtful=valued[n:], column=column.name, is_answered=False,
        shows_possible=False, columns=(), totals=totals,
    ).noting(*column.notes, *without)  # fmt: skip


@PLUGINS.action(
    "WHERE",
    (
        Parameter.named("ROWS"),
        Parameter("FIELD"),
        Parameter("OP", choices=OPERATORS),
        Parameter("X", reads="value"),
    ),
    f"Return those ROWS whose FIELD compares with X as OP says: {', '.join(OPERATORS)}",
    returns=ValueType.LIST, traits=["selects", "condition"],
)  # fmt: skip
def where(rows: Rows, name: str, operator: str, x: Value) -> Value:
    """Select rows; undecided ones become doubtful. The row of a total is selected only by its name."""
    meant, totals = _totals(rows, name, operator, x)
    if meant:
        keys = {row.key for row in meant}
        rows = replace(rows, doubtful=tuple(row for row in rows.doubtful if row.key not in keys))
    if (bounds := sizes(rows, name)) is not None:
        size = argument(x, Parameter("X", reads="number"))
        verdicts, notes, stated = _of_size(rows, bounds, operator, size)
    else:
        verdicts, notes, stated = judge(rows, name, operator, x)
    judged, n = list(zip(rows.every, verdicts, strict=True)), len(rows)
    found = [*(row for row, verdict in judged[:n] if verdict), *meant]
    if meant and rows.is_in_order:
        found.sort(key=lambda row: row.spans)
    return replace(
        rows,
        rows=tuple(found),
        doubtful=(
            *(row for row, verdict in judged[:n] if verdict is None),
            *(row for row, verdict in judged[n:] if verdict is not False),
        ),
        totals=totals,
        # For groups, `stated` counts rows with a key, and selecting groups does not change it.
        stated=rows.stated if rows.shows_possible else stated and stated._replace(value=len(found)),
    ).noting(*notes)


def _of_size(
    rows: Rows, bounds: Sequence[tuple[int, int]], operator: str, n: int | float
) -> tuple[list[comparisons.Verdict], tuple[str, ...], None]:
    """Compare the sizes of groups with a number; None for a group if the result depends on undecided rows."""
    n_without = rows.stated.not_stated if rows.stated else 0
    verdicts = [_meets(operator, ends, n) for ends in bounds]
    # A row that does not state its key may belong to any group.
    may_change = sum(
        is_met is not None and is_met != _meets(operator, (low, high + n_without), n)
        for is_met, (low, high) in zip(verdicts, bounds, strict=True)
    )
    told = f"which of {may_change:,} groups there are: {n_without:,} rows are in no group"
    pairs = zip(rows.every, verdicts, strict=True)
    decided = [None if row.value is None else is_met for row, is_met in pairs]
    return decided, (f"{MAY_CHANGE} {told}",) * bool(may_change), None


def _meets(operator: str, ends: tuple[int, int], n: int | float) -> comparisons.Verdict:
    """Whether a size between two bounds meets a condition; None if that depends on the size."""
    if operator in comparisons.ORDERED:
        return placed(operator, ends, (n, n))
    if operator not in ("is", "is not"):
        raise ValueError(f"the size of a group is a number, which '{operator}' does not compare")
    is_same = ends == (n, n) if ends[0] == ends[1] or not ends[0] <= n <= ends[1] else None
    return is_same if operator == "is" else comparisons.negated(is_same)


def _totals(
    rows: Rows, name: str, operator: str, x: Value
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The totals that a condition names, such as `item is Total`, and all totals that may meet it."""
    if not rows.totals:
        return (), ()
    every = replace(rows, rows=(*rows, *rows.totals), doubtful=(), totals=())
    verdicts, *_ = judge(every, name, operator, x)
    n = len(rows)
    kept = [
        (row, cell)
        for row, cell, verdict in zip(
            rows.totals, read_column(every, name).values[n:], verdicts[n:], strict=True
        )
        if verdict is not False
    ]
    # "contains" with a part of a name may mean other rows, so totals count only if no row matches.
    is_named = operator in ("is", "in") or (operator == "contains" and not any(verdicts[:n]))
    meant = tuple(row for row, cell in kept if is_named and cell and names_total(cell))
    return meant, tuple(row for row, _ in kept)


@PLUGINS.action(
    "LIMIT", (Parameter.named("ROWS"), Parameter("N", reads="number")),
    "Return the first N of ROWS; a FILTER before it reads no more rows than that takes",
    returns=ValueType.LIST, traits=["selects", "first"],
)  # fmt: skip
def limit(rows: Rows, n: int | float) -> Value:
    """Take the first rows; a row is doubtful if an undecided row may come before it."""
    size = whole_number(n, "N", least=1)
    bounds = sizes(rows, rows.sorted_by) if rows.sorted_by else None
    if rows.sorted_by and rows.rows and bounds is None:
        first = read_column(rows, rows.sorted_by).values[0]
        # Rows without a value are the last ones.
        if first is not None and comparisons.is_no_key(first):
            return rows.where((), rows.rows).noting(f"no row has a value of {rows.sorted_by}")
    if size >= len(rows.every):
        return rows
    judged = [(row, i < len(rows)) for i, row in enumerate(rows.every)]
    if bounds is not None:
        rest, first_ends = bounds[size:], bounds[:size]
        least, most = min(low for low, _ in first_ends), max(high for _, high in first_ends)
        # No undecided row can change which groups come first.
        is_settled = len(rows) >= size and (
            all(least >= high for _, high in rest) or all(most <= low for low, _ in rest)
        )
        sure, doubtful = (rows.rows[:size], ()) if is_settled else ((), rows.every)
    elif rows.is_in_order:
        judged.sort(key=lambda one: (one[0].spans[0], one[1]))
        sure, doubtful = first_of(judged, 0, size)
    elif rows.is_in_order is None:
        sure, doubtful = (), rows.every
    else:  # an undecided row may stand before any other
        sure, doubtful = first_of(judged[: len(rows)], len(rows.doubtful), size)
        doubtful = (*doubtful, *rows.doubtful)
    result = replace(rows, rows=sure, doubtful=doubtful, totals=())
    if not rows.n_unread:
        result = result.noting(f"the first {size:,} of {len(rows.every):,} rows")
    if n_equal := _n_equal_after(rows, size):
        result = result.noting(
            f"rows with the same {rows.sorted_by} as the last one, which are left out: {n_equal:,}"
        )
    return result


def _n_equal_after(rows: Rows, size: int) -> int:
    """How many rows after the first `size` have the same sort value as the last of these."""
    if not rows.sorted_by or len(rows) <= size:
        return 0
    if (bounds := sizes(rows, rows.sorted_by)) is not None:
        return sum(ends == bounds[size - 1] for ends in bounds[size : len(rows)])
    values = read_column(rows, rows.sorted_by).values[: len(rows)]
    keys, _ = comparisons.sort_keys(values, rows.sorted_by)
    return sum(keys[value] == keys[values[size - 1]] for value in values[size:])


ORDERS = ("ascending", "descending")


@PLUGINS.action(
    "SORT", (Parameter.named("ROWS"), Parameter("FIELD"), Parameter("ORDER", choices=ORDERS)),
    f'Return ROWS by their FIELD ("text" for a list, "count" for groups), {" or ".join(ORDERS)}',
    returns=ValueType.LIST, traits=["selects"],
)  # fmt: skip
def sort(rows: Rows, name: str, order: str) -> Value:
    """Sort by numbers, dates or texts; rows without a value are last, rows that cannot be compared are doubtful."""
    if order not in ORDERS:
        raise ValueError(f"unknown order '{order}'; orders are {', '.join(ORDERS)}")
    column = read_column(rows, name)
    if (bounds := sizes(rows, name)) is not None:
        column = replace(column, values=[str(low) for low, _ in bounds])
    keys, notes = comparisons.sort_keys(column.values, column.name)
    keyed = [(row, keys[value], i < len(rows))
             for i, (row, value) in enumerate(zip(rows.every, column.values, strict=True))]  # fmt: skip
    placed = [one for one in keyed if one[1] not in (None, comparisons.BLANK)]
    placed.sort(key=lambda one: one[1], reverse=order == "descending")
    placed += [one for one in keyed if one[1] == comparisons.BLANK]
    sure = tuple(row for row, _, is_sure in placed if is_sure)
    doubtful = (
        *(row for row, _, is_sure in placed if not is_sure),
        *(row for row, key, _ in keyed if key is None),
    )
    n_blank = sum(key == comparisons.BLANK for _, key, _ in keyed)
    if n_blank:
        notes.append(f"rows without {column.name}, which are last: {n_blank:,}")
    result = replace(rows, rows=sure, doubtful=doubtful).reordered(by=column.name)
    return result.noting(*column.notes, *notes)


@PLUGINS.action(
    "SHOW", (Parameter("A", ValueType.LIST, "rows"), Parameter("B", ValueType.LIST, "rows")),
    "Return a table of the rows, the values of each argument in a column of its own",
    is_variadic=True, returns=ValueType.LIST,
)  # fmt: skip
def show(*columns: Rows) -> Value:
    """Join columns by row of the document; missing cells are blank. If files differ, the first column names them."""
    cells: dict[str, dict[object, str | None]] = {}
    first_rows: dict[object, Row] = {}
    sure: set[object] = set()
    files = {row.key: row.fields.get(DOCUMENT, "") for rows in columns for row in rows.every}
    has_files = all(files.values()) and len(set(files.values())) > 1
    if has_files and not any(rows.column == DOCUMENT for rows in columns):
        cells[DOCUMENT] = files
    is_one_each = len(set(files.values())) == len(files)
    for rows in columns:
        is_text = rows.column == TEXT_COLUMN and all(row.value == row.text for row in rows)
        if DOCUMENT in cells and is_one_each and is_text:  # the file is already a column
            sure |= {row.key for row in rows}
            first_rows |= {row.key: row for row in rows if row.key not in first_rows}
            continue
        if rows.are_figures:  # show each figure beside the name of its group
            cells.setdefault(rows.columns[0], {}).update({row.key: row.text for row in rows})
        keyed = [(row.key, row) for row in rows]
        name, own = rows.column, {key: row.value for key, row in keyed}
        if cells.get(name) != own:
            name = unused_name(name, cells)
            cells[name] = own
        if rows.shows_possible:
            sizes = {key: str(len(row.members)) for key, row in keyed if row.members}
            cells[unused_name("count", cells)] = dict(sizes)
        sure |= cells[name].keys()
        for row in rows.doubtful:
            cells[name].setdefault(row.key, None)
            keyed.append((row.key, row))
        for key, row in keyed:
            first_rows.setdefault(key, row)
    table: list[Row] = []
    unsure: list[Row] = []
    for key, row in first_rows.items():
        fields = {name: column.get(key, "") for name, column in cells.items()}
        (table if key in sure else unsure).append(row.with_fields(fields))
    shown = Rows(tuple(table), columns[0].column, tuple(unsure), columns=tuple(cells))
    return shown.noting(*(note for rows in columns for note in rows.notes))


@PLUGINS.action(
    "RELATION", (Parameter("A", reads="figure"), Parameter("B", reads="figure")),
    "Compare the numbers A and B and return more, less or same, as A is more or less than B",
    labels=("more", "less", "same"),
)  # fmt: skip
def relation(a: Value, b: Value) -> Value:
    """Compare two numbers; the result is decided if no undecided row can change it."""
    texts = (as_text(each.value if isinstance(each, Scalar) else each) for each in (a, b))
    one, other = numbers_of(list(texts))
    word = _word(one - other)
    rows = behind([a, b])
    if rows is None:
        return word
    n_unread = rows.n_unread
    if not (rows.undecided or n_unread):
        return Scalar(word, rows)
    (low_a, high_a), (low_b, high_b) = _ends(a, one), _ends(b, other)
    is_decided = _word(low_a - high_b) == word == _word(high_a - low_b)
    if n_unread and not is_decided:
        raise UnclearNumberError(f"{n_unread:,} rows were not read, which may change '{word}'")
    if is_decided and rows.undecided:
        n = len(rows.undecided)
        decided = tuple(row for row in rows if row.value is not None)
        rows = replace(rows, rows=decided, doubtful=(), shows_possible=False)
        rows = rows.noting(f"{n:,} undecided rows cannot change it")
    return Scalar(word, rows)


def _word(difference: Decimal) -> str:
    return "more" if difference > 0 else "less" if difference < 0 else "same"


def _ends(value: Value, number: Decimal) -> tuple[Decimal, Decimal]:
    """The minimum and maximum of a number over all possible values of undecided rows."""
    if not (isinstance(value, Scalar) and (value.rows.undecided or value.rows.n_unread)):
        return number, number
    # Compared as texts, because the numbers are parsed from texts: a share as a float differs in its last digits.
    low = Decimal("-inf") if value.low is None else Decimal(as_text(value.low))
    high = Decimal("inf") if value.high is None else Decimal(as_text(value.high))
    return low, high
