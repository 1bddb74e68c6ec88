"""Compute a program in exact decimal arithmetic: its result, with the unit and the formula.

A unit is kept as long as it is known: dollars divided by shares are `$`, by dollars a `RATIO`, which
may be written as a percentage. A number without a unit takes the unit of the number it is added to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from functools import reduce

from msgspec import Struct

from pearl.actions.arithmetic.program import (
    TABLE_OPERATIONS,
    DivisionByZeroError,
    MagnitudeError,
    MissingOperandError,
    Operand,
    Program,
    Step,
    UnfitUnitsError,
    UnknownRowError,
)
from pearl.documents.lexicon import CURRENCIES, SCALES
from pearl.documents.numbers import Quantity

PERCENT = "%"  # the unit of a share that is written as a percentage: 0.05 is 5%
POINTS = "points"  # the unit of a share multiplied by 100: the number 5 is 5%
RATIO = "ratio"  # the unit of a quotient: a share, or a multiple
PLACES = 5  # decimals to which results are rounded, as in FinQA
MAX_POWER = 100  # results other than 0 are between 10^-100 and 10^100
MAX_FORMULA = 300  # maximum characters of a formula; longer ones refer to steps as `#k`

_CONTEXT = Context(prec=50, Emax=10_000, Emin=-10_000, traps=[])
_READABLE = Context(prec=12)  # rounds the numbers in formulas
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "exp": "^", "greater": ">"}
_LOOSE = frozenset({"add", "subtract", "greater"})  # a number without a unit takes the other's
_PURE = frozenset({"", PERCENT, POINTS, RATIO})  # units of numbers that measure nothing


class Amount(Struct, frozen=True):
    """A number in a computation."""

    value: Decimal
    unit: str = ""
    scale: int | None = None
    is_constant: bool = False

    @classmethod
    def of(cls, quantity: Quantity) -> Amount:
        """The number in a cell; if it has no unit, its scale is unknown too."""
        if quantity.unit == PERCENT:
            return cls(quantity.amount, PERCENT)
        scale = quantity.scale if quantity.unit or quantity.scale else None
        return cls(quantity.value, quantity.unit, scale)


class Result(Struct, frozen=True):
    """The result of a program."""

    value: Decimal | bool
    unit: str
    scale: int | None
    formula: str

    @property
    def is_rounded(self) -> bool:
        """Whether `text` shows fewer digits than `value` has."""
        return not isinstance(self.value, bool) and round_to(self.value) != self.value

    @property
    def text(self) -> str:
        """The rounded number with its unit: `9.474%`, `$1,250 million`, `yes`."""
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        if self.unit in (PERCENT, POINTS):
            value = self.value.scaleb(2) if self.unit == PERCENT else self.value
            return f"{plain(round_to(value, PLACES - 2))}%"
        digits = plain(round_to(self.value))
        words = {power: word for word, power in SCALES.items()}
        scale = f" {words[self.scale]}" if self.scale in words else ""
        if self.unit and self.unit in CURRENCIES:
            sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
            return f"{sign}{self.unit}{digits}{scale}"
        unit = f" {self.unit}" if self.unit and self.unit != RATIO else ""
        return f"{digits}{scale}{unit}"


def round_to(value: Decimal, places: int = PLACES) -> Decimal:
    """Round to `places` decimals; below 0.1, to `places` digits from the first digit that is not 0."""
    if value and value.adjusted() < -1:
        places -= value.adjusted() + 1
    if value.adjusted() + places >= _CONTEXT.prec:
        return value
    return value.quantize(Decimal(1).scaleb(-places), context=_CONTEXT)


def plain(value: Decimal) -> str:
    """A number in digits, without an exponent or zeros at its end."""
    digits = format(value, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if digits in ("-0", "") else digits


Rows = Callable[[str], Sequence[Amount]]  # maps the name of a table's row to its numbers


def evaluate(
    program: Program, rows: Rows | None = None, names: Mapping[str, Amount] | None = None
) -> Result:
    """Compute a program. `names` gives the amounts of its names, and of numbers whose unit is known."""
    run = _Run(rows, names or {})
    if program.value is not None:
        amount, text = run.operand(program.value)
        return Result(amount.value, amount.unit, amount.scale, text)
    for step in program.steps:
        run.step(step)
    return run.result()


class _Run:
    """One computation: the results of its steps so far."""

    def __init__(self, rows: Rows | None, names: Mapping[str, Amount]) -> None:
        self._rows = rows
        self._names = names
        self._done: list[Amount | bool] = []
        self._shown: list[str] = []
        self._named: list[str] = []

    def result(self) -> Result:
        last = self._done[-1]
        formula = "; ".join([*self._named, self._shown[-1]])
        if isinstance(last, bool):
            return Result(last, "", None, formula)
        formula_text = f"{formula} = {plain(_READABLE.plus(last.value))}"
        return Result(last.value, last.unit, last.scale, formula_text)

    def operand(self, operand: Operand) -> tuple[Amount, str]:
        """The number of an operand, and its text in the formula."""
        match operand.kind:
            case "step":
                found = self._done[operand.index]
                if isinstance(found, bool):
                    raise MissingOperandError(f"{operand.text} is yes or no, not a number")
                return found, self._formula(operand.index)
            case "name" | "number" if operand.text in self._names:
                amount = self._names[operand.text]
                is_percent = amount.unit == PERCENT
                value = amount.value.scaleb(2) if is_percent else amount.value
                return amount, plain(value) + "%" * is_percent
            case "name":
                known = ", ".join(self._names) or "none"
                raise MissingOperandError(f"unknown operand '{operand.text}'; operands: {known}")
            case _:
                assert operand.value is not None
                is_constant = operand.kind == "constant"
                amount = Amount(operand.value, operand.unit, None, is_constant)
                return amount, plain(amount.value) if is_constant else operand.text

    def step(self, step: Step) -> None:
        index = len(self._done)
        if step.operation in TABLE_OPERATIONS:
            (operand,) = step.operands
            self._done.append(self._of_row(step.operation, operand.text))
            self._shown.append(f"{step.operation}({operand.text})")
            return
        (a, shown_a), (b, shown_b) = map(self.operand, step.operands)
        if step.operation == "greater":
            _same_unit("greater", a, b)
            self._done.append(a.value > b.value)
        else:
            self._done.append(_apply(step.operation, a, b, index))
        self._shown.append(f"{shown_a} {_SIGNS[step.operation]} {shown_b}")

    def _formula(self, index: int) -> str:
        """A step as an operand of another: in brackets, or as its number if the formula would be long."""
        text = self._shown[index]
        if len(text) <= MAX_FORMULA // 3:  # a formula has two operands, and a sign between them
            return f"({text})" if " " in text else text
        name = f"#{index}"
        if not any(each.startswith(f"{name} = ") for each in self._named):
            self._named.append(f"{name} = {text}")
        return name

    def _of_row(self, operation: str, name: str) -> Amount:
        if self._rows is None:
            raise UnknownRowError(f"there is no table to look up '{name}' in")
        cells = self._rows(name)
        if not cells:
            raise UnknownRowError(f"the row '{name}' has no number")
        total = cells[0]
        for cell in cells[1:]:
            _same_unit(operation, total, cell)
        values = [cell.value for cell in cells]
        if operation in ("table_max", "table_min"):
            value = max(values) if operation == "table_max" else min(values)
        else:
            value = reduce(_CONTEXT.add, values)
            if operation == "table_average":
                value = _CONTEXT.divide(value, Decimal(len(values)))
        unit, scale = total.unit, total.scale
        for cell in cells[1:]:
            unit, scale = unit or cell.unit, scale if scale is not None else cell.scale
        return Amount(_checked(value, operation), unit, scale)


def _apply(operation: str, a: Amount, b: Amount, index: int) -> Amount:
    if operation in _LOOSE:
        unit, scale = _same_unit(operation, a, b)
    elif operation == "multiply":
        unit, scale = _product(a, b)
    elif operation == "divide":
        unit, scale = _quotient(a, b)
    else:
        unit, scale = (a.unit if a.unit == RATIO else ""), None
    is_zero = not (b.value if operation == "divide" else a.value)
    if is_zero and (operation == "divide" or (operation == "exp" and b.value <= 0)):
        call = f"{operation}({plain(a.value)}, {plain(b.value)})"
        raise DivisionByZeroError(f"step #{index} divides by 0: {call}")
    compute = getattr(_CONTEXT, "power" if operation == "exp" else operation)
    value: Decimal = compute(a.value, b.value)
    if not value and a.value and b.value and operation in ("multiply", "divide", "exp"):
        value = Decimal(1).scaleb(-2 * MAX_POWER)  # a nonzero result that was rounded to 0
    return Amount(_checked(value, operation), unit, scale)


def _checked(value: Decimal, operation: str) -> Decimal:
    if not value.is_finite() or value.adjusted() > MAX_POWER:
        raise MagnitudeError(f"{operation} has no real result, or one beyond 10^{MAX_POWER}")
    if value.adjusted() < -MAX_POWER:
        raise MagnitudeError(f"{operation} gives a number closer to 0 than 10^-{MAX_POWER}")
    return value


def _same_unit(operation: str, a: Amount, b: Amount) -> tuple[str, int | None]:
    """The common unit of two operands that are added or compared."""
    if a.unit and b.unit and a.unit != b.unit and not {a.unit, b.unit} <= {PERCENT, RATIO}:
        raise UnfitUnitsError(f"{operation}: one is in {a.unit}, the other in {b.unit}")
    if None not in (a.scale, b.scale) and a.scale != b.scale:
        raise UnfitUnitsError(
            f"{operation}: one is written in 10^{a.scale}, the other in 10^{b.scale}"
        )
    scale = a.scale if a.scale is not None else b.scale
    if a.unit == b.unit or not (a.unit and b.unit):
        unit = a.unit or b.unit
        # 0.2 (a ratio) + 3 is a plain number; 0.2 - const_1 is still a ratio.
        is_plain = RATIO in (a.unit, b.unit) and not (a.is_constant or b.is_constant)
        return ("" if is_plain and a.unit != b.unit else unit), scale
    return PERCENT, scale  # 5% + 0.2 (a ratio)


def _product(a: Amount, b: Amount) -> tuple[str, int | None]:
    for one, other in ((a, b), (b, a)):
        if one.is_constant and one.value == 100 and other.unit in (PERCENT, RATIO):
            return POINTS, None  # 0.05 * const_100: the number 5 is 5%
    if a.unit in _PURE and b.unit in _PURE:
        is_share = {a.unit, b.unit} <= {PERCENT, RATIO} or (
            (a.is_constant or b.is_constant) and RATIO in (a.unit, b.unit)
        )
        return (RATIO if is_share else ""), _either(a, b)
    if a.unit in _PURE or b.unit in _PURE:
        return (a.unit if b.unit in _PURE else b.unit), _either(a, b)
    raise UnfitUnitsError(f"multiply: {a.unit} cannot be multiplied by {b.unit}")


def _quotient(a: Amount, b: Amount) -> tuple[str, int | None]:
    if b.is_constant and b.value != 100:
        return a.unit, a.scale  # divided by a constant: an average, or a change of scale
    if a.unit == POINTS and b.is_constant:
        return PERCENT, None  # points / const_100
    if a.unit in _PURE and b.unit in _PURE:
        return RATIO, None
    if b.unit in _PURE:
        return a.unit, a.scale
    if a.unit in (b.unit, ""):
        if None not in (a.scale, b.scale) and a.scale != b.scale:
            raise UnfitUnitsError(
                f"divide: one is written in 10^{a.scale}, the other in 10^{b.scale}"
            )
        return RATIO, None
    return f"{a.unit}/{b.unit}", a.scale


def _either(a: Amount, b: Amount) -> int | None:
    """The scale of a product: that of the factor that has one; an error if both have one."""
    if a.scale and b.scale:
        raise UnfitUnitsError(
            f"multiply: both operands have a scale, 10^{a.scale} and 10^{b.scale}"
        )
    return a.scale or b.scale
