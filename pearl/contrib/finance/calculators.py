"""Named computations of finance.

A calculator has

- `OPERANDS: tuple[Operand, ...]`, in the order of the arguments of a call;
- `PROGRAM: str`, in the language of `pearl.actions.arithmetic`, with operands by name;
- `IS_PERCENTAGE: bool`, whether the result is written as a percentage.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from msgspec import Struct

from pearl import plugins
from pearl.actions.arithmetic.program import Program, parse


class Operand(Struct, frozen=True):
    """An operand of a calculator's program; a count, such as a number of shares, has no unit."""

    name: str
    is_count: bool = False


class Calculator(Struct, frozen=True):
    """A calculator."""

    OPERANDS: tuple[Operand, ...]
    PROGRAM: str
    IS_PERCENTAGE: bool = False


CONTRACT = Calculator

_BOTH = (Operand("first"), Operand("second"))

# fmt: off
PLUGINS: dict[str, Any] = {
    # IAS 7: net income plus non-cash expenses (depreciation, amortisation), less the increase in working capital.
    "cash-flow-from-operations": Calculator(
        (Operand("net income"), Operand("non-cash expenses"), Operand("increase in working capital")),
        "add(net income, non-cash expenses), subtract(#0, increase in working capital)",
    ),
    "current-ratio": Calculator(
        (Operand("current assets"), Operand("current liabilities")),
        "divide(current assets, current liabilities)",
    ),
    "difference": Calculator(_BOTH, "subtract(first, second)"),
    # IAS 33: net income less preferred dividends, divided by the weighted average of the shares outstanding.
    "earnings-per-share": Calculator(
        (Operand("net income"), Operand("preferred dividends"), Operand("shares", is_count=True)),
        "subtract(net income, preferred dividends), divide(#0, shares)",
    ),
    "greater": Calculator(_BOTH, "greater(first, second)"),
    "operating-margin": Calculator(
        (Operand("operating income"), Operand("revenue")),
        "divide(operating income, revenue)", IS_PERCENTAGE=True,
    ),
    "percentage-change": Calculator(
        (Operand("new value"), Operand("old value")),
        "subtract(new value, old value), divide(#0, old value)", IS_PERCENTAGE=True,
    ),
    "product": Calculator(_BOTH, "multiply(first, second)"),
    "ratio": Calculator((Operand("numerator"), Operand("denominator")), "divide(numerator, denominator)"),
    "share": Calculator((Operand("part"), Operand("whole")), "divide(part, whole)", IS_PERCENTAGE=True),
    "sum": Calculator(_BOTH, "add(first, second)"),
}
# fmt: on

CALCULATORS = tuple(name.replace("-", " ") for name in plugins.names(__name__))
"""Names of all calculators."""


def load_calculator(name: str) -> Calculator:
    """The calculator of that name."""
    return cast("Calculator", plugins.load(__name__, name.replace(" ", "-"), "calculator"))


@cache
def program_of(name: str) -> Program:
    """The parsed program of a calculator."""
    return parse(load_calculator(name).PROGRAM)
