"""Named computations of finance.

A calculator has

- `OPERANDS: tuple[Operand, ...]`, in the order in which a call gives them;
- `PROGRAM: str`, in the language of `pearl.actions.arithmetic`, with the operands by their names;
- `IS_PERCENTAGE: bool`, whether the result is written as a percentage;
- `METRICS: tuple[str, ...]`, what questions call the result, where it is computed because reports
  seldom state it; none where they have to (earnings per share: IAS 33, cash flow: IAS 7), and for
  relations of any two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from pearl import plugins
from pearl.actions.arithmetic.program import Program, parse


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a calculator.

    Attributes:
        name: As in its program.
        is_count: Whether it counts things, so that it has no unit: shares.
        also: What reports may call it instead; "" for nothing.
    """

    name: str
    is_count: bool = False
    also: str = ""


class Calculator(Protocol):
    """A calculator, as its users see it."""

    OPERANDS: tuple[Operand, ...]
    PROGRAM: str
    IS_PERCENTAGE: bool
    METRICS: tuple[str, ...]


CONTRACT = Calculator


@dataclass(frozen=True, slots=True)
class _Shipped:
    """A calculator of this file."""

    OPERANDS: tuple[Operand, ...]
    PROGRAM: str
    IS_PERCENTAGE: bool = False
    METRICS: tuple[str, ...] = ()


PLUGINS: dict[str, Any] = {
    # IAS 7: the net income, plus what is no cash (depreciation, amortisation), less the increase in working capital.
    "cash-flow-from-operations": _Shipped(
        (
            Operand("net income"),
            Operand("non-cash expenses"),
            Operand("increase in working capital"),
        ),
        "add(net income, non-cash expenses), subtract(#0, increase in working capital)",
    ),
    "current-ratio": _Shipped(
        (
            Operand("current assets", also="total current assets"),
            Operand("current liabilities", also="total current liabilities"),
        ),
        "divide(current assets, current liabilities)",
        METRICS=("current ratio",),
    ),
    "difference": _Shipped(
        (Operand("first"), Operand("second")),
        "subtract(first, second)",
    ),
    # IAS 33: less the dividends of preferred shares, by the weighted average of the shares outstanding.
    "earnings-per-share": _Shipped(
        (Operand("net income"), Operand("preferred dividends"), Operand("shares", is_count=True)),
        "subtract(net income, preferred dividends), divide(#0, shares)",
    ),
    "greater": _Shipped(
        (Operand("first"), Operand("second")),
        "greater(first, second)",
    ),
    "operating-margin": _Shipped(
        (
            Operand("operating income", also="operating profit"),
            Operand("revenue", also="net sales"),
        ),
        "divide(operating income, revenue)",
        IS_PERCENTAGE=True,
        METRICS=("operating margin", "operating profit margin"),
    ),
    "percentage-change": _Shipped(
        (Operand("new value"), Operand("old value")),
        "subtract(new value, old value), divide(#0, old value)",
        IS_PERCENTAGE=True,
    ),
    "product": _Shipped(
        (Operand("first"), Operand("second")),
        "multiply(first, second)",
    ),
    "ratio": _Shipped(
        (Operand("numerator"), Operand("denominator")),
        "divide(numerator, denominator)",
    ),
    "share": _Shipped(
        (Operand("part"), Operand("whole")),
        "divide(part, whole)",
        IS_PERCENTAGE=True,
    ),
    "sum": _Shipped(
        (Operand("first"), Operand("second")),
        "add(first, second)",
    ),
}

CALCULATORS = tuple(name.replace("-", " ") for name in plugins.names(__name__))
"""Names of all calculators."""


def load_calculator(name: str) -> Calculator:
    """The calculator of that name.

    Raises:
        UsageError: There is none.
    """
    calculator: Calculator = plugins.load(__name__, name.replace(" ", "-"), "calculator")
    return calculator


@cache
def program_of(name: str) -> Program:
    """The parsed program of a calculator."""
    return parse(load_calculator(name).PROGRAM)


@cache
def calculator_of(metric: str) -> str | None:
    """The name of the calculator that computes a metric, or None.

    Example:
        >>> calculator_of("Operating profit margins"), calculator_of("earnings per share")
        ('operating margin', None)
    """
    asked = " ".join(metric.split()).casefold()
    for name in CALCULATORS:
        if asked in {
            form for known in load_calculator(name).METRICS for form in (known, f"{known}s")
        }:
            return name
    return None
