"""What WHERE asks of a column: which rows meet it, which do not, and which are undecided."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pearl.actions.columns import read_column
from pearl.actions.values import Scalar, Value, as_text, coerce
from pearl.documents.comparisons import ORDERED, Kind, Verdict, Wanted, comparison
from pearl.documents.dates import read_period
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import ValueType


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict for each row and each doubtful row."""

    rows: tuple[tuple[Row, Verdict], ...]
    doubtful: tuple[tuple[Row, Verdict], ...]
    notes: tuple[str, ...]


def wanted_by(x: Value, *, is_list: bool) -> Wanted:
    """The texts that an argument stands for."""
    if isinstance(x, Rows):
        possible = tuple(row.value for row in x.doubtful if row.value is not None)
        is_any = any(row.value is None for row in (*x.rows, *x.doubtful))
        return Wanted(tuple(x.values), possible, is_any)
    if isinstance(x, Scalar):
        if x.rows.undecided:
            return Wanted((), (as_text(x.value),), may_be_any=True)
        x = x.value
    if isinstance(x, list):
        return Wanted(tuple(x))
    if not is_list:
        return Wanted((as_text(x).strip(),))
    found = coerce(x, ValueType.LIST)
    return Wanted(tuple(found) if isinstance(found, list) else ())


def judge(rows: Rows, name: str, operator: str, x: Value) -> Judged:
    """Compare a column of rows with a value.

    An empty value is never before, after, at least or at most anything. What is to be read as a
    date or a number and cannot be is undecided, as are numbers in another unit.
    """
    wanted = wanted_by(x, is_list=operator in ("in", "not in"))
    kind: Kind | None = None
    if operator in ORDERED:
        if len(wanted.sure) + len(wanted.possible) != 1:
            raise ValueError(f"'{operator}' compares with one value, not with several")
        (text,) = (*wanted.sure, *wanted.possible)
        kind = "date" if read_period(text)[0] else "number"
    column = read_column(rows, name, kind)
    counts = Counter((*column.values, *column.doubtful))
    different = [value for value in counts if value is not None]
    meets, notes = comparison(operator, wanted, different, column.name)
    verdicts: dict[str | None, Verdict] = {value: meets(value) for value in different}
    verdicts[None] = None
    if kind:
        n_open = sum(counts[value] for value in different if verdicts[value] is None)
        n_empty = sum(counts[value] for value in different if not value.strip())
        notes += [f"{n_open:,} in {column.name} cannot be compared"] if n_open else []
        notes += [f"{n_empty:,} have no {column.name}"] if n_empty else []
    return Judged(
        tuple((row, verdicts[v]) for row, v in zip(rows.rows, column.values, strict=True)),
        tuple((row, verdicts[v]) for row, v in zip(rows.doubtful, column.doubtful, strict=True)),
        tuple(dict.fromkeys(note for note in (*column.notes, *notes) if note)),
    )
