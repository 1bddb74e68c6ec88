"""RELATION(A, B): whether a number is more or less than another."""

from dataclasses import replace
from decimal import Decimal

from pearl.actions.values import Scalar, Value, as_text, behind
from pearl.documents.table.columns import numbers_of
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "RELATION",
    (Parameter("A", reads="figure"), Parameter("B", reads="figure")),
    "Compare the numbers A and B and return more, less or same, as A is more or less than B",
    is_native=True,
)


def run(a: Value, b: Value) -> Value:
    """Compare two numbers; decided where no undecided row can change it.

    Example:
        >>> run(3, "2"), run(2, 2.0)
        ('more', 'same')
    """
    one, other = numbers_of([_text(a), _text(b)])
    word = _word(one - other)
    rows = behind([a, b])
    if rows is None or not rows.undecided:
        return word if rows is None else Scalar(word, rows)
    if {_word(_low(a, one) - _high(b, other)), _word(_high(a, one) - _low(b, other))} == {word}:
        n = len(rows.undecided)
        decided = tuple(row for row in rows if row.value is not None)
        rows = replace(rows, rows=decided, doubtful=(), shows_possible=False)
        rows = rows.noting(f"{n:,} undecided cannot change it")
    return Scalar(word, rows)


def _text(value: Value) -> str:
    return as_text(value.value if isinstance(value, Scalar) else value)


def _word(difference: Decimal) -> str:
    return "more" if difference > 0 else "less" if difference < 0 else "same"


def _low(value: Value, number: Decimal) -> Decimal:
    return _end(value, number, -1)


def _high(value: Value, number: Decimal) -> Decimal:
    return _end(value, number, 1)


def _end(value: Value, number: Decimal, sign: int) -> Decimal:
    """The least or the most that a number is, whatever the undecided rows are."""
    if not (isinstance(value, Scalar) and value.rows.undecided):
        return number
    end = value.low if sign < 0 else value.high
    return sign * Decimal("inf") if end is None else Decimal(end)
