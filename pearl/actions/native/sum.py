"""SUM(NUMBERS): a total."""

from decimal import Decimal, localcontext

from pearl.actions.values import Value, written_out
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

    Example:
        >>> run(["0.1", "0.2 kg", "1,000"])
        1000.3
    """
    numbers = numbers_of(items)
    digits = [
        max(0, number.adjusted()) - min(0, int(number.as_tuple().exponent)) for number in numbers
    ]
    with localcontext(prec=max(digits, default=0) + len(str(len(numbers))) + 2):
        return written_out(sum(numbers, Decimal(0)))
