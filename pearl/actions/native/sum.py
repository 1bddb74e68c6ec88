"""SUM(NUMBERS): a total."""

import math
from decimal import Decimal

from pearl.actions.values import Value
from pearl.documents.table.columns import numbers_of
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "SUM",
    (Parameter("NUMBERS", ValueType.LIST),),
    "Add up all NUMBERS and return the total",
    returns=ValueType.NUMBER,
    is_native=True,
    counts=True,
)


def run(items: list[str]) -> Value:
    """Add up, exactly; nothing adds up to 0.

    Raises:
        ValueError: An entry holds no number, or more than one, or the total is too large.

    Example:
        >>> run(["0.1", "0.2 kg", "1,000"])
        1000.3
    """
    values = numbers_of(items)
    if all(isinstance(value, int) for value in values):
        return sum(values)
    total = float(sum(Decimal(repr(value)) for value in values))  # 0.1 + 0.2 is 0.3
    if not math.isfinite(total):
        raise ValueError("the total is too large")
    return total
