"""Named computations of finance. Every other module of this folder is one, named by its file name.

A calculator module has

- `OPERANDS: tuple[Operand, ...]`, in the order in which a call gives them;
- `PROGRAM: str`, in the language of `pearl.actions.arithmetic`, with the operands by their names;
- `IS_PERCENTAGE: bool`, whether the result is written as a percentage;
- `METRICS: tuple[str, ...]`, what questions call the result, where it is computed because reports
  seldom state it; none where they have to (earnings per share: IAS 33, cash flow: IAS 7), and for
  relations of any two numbers.

`_` in a file name is a blank in the calculator's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Protocol

from pearl import plugins
from pearl.actions.arithmetic.program import Program, parse

__all__ = [
    "CALCULATORS",
    "CONTRACT",
    "Calculator",
    "Operand",
    "calculator_of",
    "load_calculator",
    "program_of",
]


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
    """What a module of this folder looks like to its users."""

    OPERANDS: tuple[Operand, ...]
    PROGRAM: str
    IS_PERCENTAGE: bool
    METRICS: tuple[str, ...]


CONTRACT = Calculator

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
