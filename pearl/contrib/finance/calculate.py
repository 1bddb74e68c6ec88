"""CALCULATE(NAME, A1, A2, ...): a named computation of finance."""

import re
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from pearl.actions.arithmetic.evaluation import PERCENT, RATIO, Amount, Result, evaluate
from pearl.actions.arithmetic.program import (
    MissingOperandError,
    NotGivenError,
    UnclearOperandError,
    UnfitUnitsError,
)
from pearl.actions.values import Scalar, Value, as_text, behind
from pearl.contrib.finance.calculators import CALCULATORS, Operand, load_calculator, program_of
from pearl.documents.lexicon import CURRENCIES
from pearl.documents.numbers import Quantity, UnclearNumberError, quantity, read_quantity, scale_of
from pearl.documents.rows import Rows, shortened
from pearl.dsl.signatures import Action, Parameter
from pearl.errors.patterns import lazy_pattern

ACTION = Action(
    "CALCULATE",
    (
        Parameter("NAME", choices=CALCULATORS),
        Parameter("A1", reads="figure"),
        Parameter("A2", reads="figure"),
    ),
    "Return what NAME says, computed from its operands in their order: "
    + "; ".join(
        f"{name} ({', '.join(each.name for each in load_calculator(name).OPERANDS)})"
        for name in CALCULATORS
    ),
    is_variadic=True,
    is_native=True,
)
IS_SPECIALISED = True

_DENIES = lazy_pattern(
    r"\b(?:no|not|none|nothing|neither|never|without|cannot|unable|unclear|unknown|unavailable)\b|n['’]t\b",
    re.I,
)
"""Words of texts that state no value, even if they contain a number: `not given for 2008`."""
_YEAR = lazy_pattern(r"\b(?:19|20)[0-9]{2}\b")  # 2008: names a period, states no amount
_ADDITIVE = frozenset({"add", "subtract"})


def run(name: str, *values: Value) -> Value:
    """Compute by name; units are kept, and numbers in millions and thousands are converted to one scale."""
    called: Sequence[Value] = ()
    if name == "greater" and len(values) == 4:
        values, called = values[:2], values[2:]
    if name not in CALCULATORS:
        raise ValueError(f"unknown calculator '{name}'; calculators are {', '.join(CALCULATORS)}")
    calculator = load_calculator(name)
    operands = calculator.OPERANDS
    if len(values) != len(operands):
        names = ", ".join(operand.name for operand in operands)
        raise MissingOperandError(
            f"{name} takes {len(operands)} operands ({names}), not {len(values)}"
        )
    read = [_read(operand, value) for operand, value in zip(operands, values, strict=True)]
    operations = {step.operation for step in program_of(name).steps}
    amounts = _amounts(operations, operands, read, values)
    result = evaluate(program_of(name), names=amounts)
    if calculator.IS_PERCENTAGE:
        if result.unit not in (RATIO, PERCENT, ""):
            raise UnfitUnitsError(f"{name}: the operands are in different units: {result.unit}")
        result = replace(result, unit=PERCENT)
    value, unit = result.value, "" if result.unit == RATIO else result.unit
    if isinstance(value, bool):
        text = result.text
        if called:
            one, two = (each.value for each in amounts.values())
            text = "neither: they are equal" if one == two else as_text(called[one < two])
        return Scalar(text, _behind(name, operands, read, result, values))
    scales = {each.scale for each in read if each.value}
    if operations <= _ADDITIVE and len(scales) == 1 and result.unit not in (PERCENT, RATIO):
        # A sum is written in the scale that all of its operands have.
        (scale,) = scales
        value = value.scaleb(-scale)
        result = replace(result, value=value, scale=scale)
    if result.unit == PERCENT:
        exact = Quantity(value.scaleb(2), PERCENT)
    else:
        exact = Quantity(value, unit, result.scale or 0)
    return Scalar(result.text, _behind(name, operands, read, result, values), exact=exact)


def _read(operand: Operand, value: Value) -> Quantity:
    """Read the number of an operand; a row's number gets the scale in the header of its table."""
    scale = 0
    if isinstance(value, Rows):
        if len(value) != 1 or value.undecided:
            n = f"{len(value):,}, {len(value.undecided):,} undecided"
            raise UnclearOperandError(f"{operand.name}: one row is needed, not {n}")
        text = value[0].value or ""
        scale = scale_of(value.column) or scale_of(next(iter(value[0].fields), "")) or 0
    elif isinstance(value, Scalar) and value.rows.undecided:
        raise UnclearOperandError(f"{operand.name} is undecided: {as_text(value)}")
    elif isinstance(value, Scalar) and value.exact is not None:
        return value.exact
    else:
        single = value.value if isinstance(value, Scalar) else value
        if isinstance(single, list) and len(single) == 1:
            single = single[0]  # remove the bullet, which would be read as a minus
        text = as_text(single)
        if _DENIES.search(text):
            if re.search("[0-9]", _YEAR.sub("", text)):
                raise UnclearOperandError(f"{operand.name} may not be given: {text[:60]!r}")
            raise NotGivenError(f"{operand.name} is not given")
    is_computed = isinstance(value, int | float) or (
        isinstance(value, Scalar) and not value.is_marked
    )
    number = read_quantity(text, decimal="." if is_computed else "")
    if number is None:
        try:
            number = quantity(text)
        except UnclearNumberError as error:
            raise UnclearOperandError(f"{operand.name}: {error}") from error
    is_year = not number.unit and (year := _YEAR.search(text)) and number.value == int(year[0])
    if is_year and any(character.isalpha() for character in text):  # "figures for 2015"
        raise UnclearOperandError(
            f"{operand.name}: {shortened(text, 60)!r} names a year rather than a figure"
        )
    is_amount = number.unit == "" or number.unit in CURRENCIES
    return replace(number, scale=number.scale or scale) if is_amount else number


def _amounts(
    operations: Collection[str],
    operands: Sequence[Operand],
    read: Sequence[Quantity],
    values: Sequence[Value],
) -> dict[str, Amount]:
    """The exact numbers, with their scales applied."""
    given = list(zip(operands, read, values, strict=True))
    if not _ADDITIVE.isdisjoint(operations) and any(each.unit == PERCENT for each in read):
        for operand, each, _ in given:
            if not each.unit and abs(each.value) > 1:
                raise UnfitUnitsError(f"{operand.name} has no unit, another operand is in %")
    scale = next((each.scale for each in read if each.scale), 0)
    for operand, each, value in given:
        # Counts, and factors and divisors from the plan, have no scale.
        is_literal = {"multiply", "divide"}.issuperset(operations) and isinstance(
            value, int | float
        )
        is_bare = not (each.scale or each.unit or operand.is_count or is_literal)
        if scale and is_bare and each.value:
            raise UnfitUnitsError(
                f"{operand.name} is {each.value:,} without a scale, another operand is in 10^{scale}"
            )
    return {operand.name: Amount(each.amount, each.unit) for operand, each, _ in given}


def _behind(
    name: str,
    operands: Sequence[Operand],
    read: Sequence[Quantity],
    result: Result,
    values: Sequence[Value],
) -> Rows:
    """The rows that the operands come from, with notes on the computation."""
    rows = behind(values) or Rows(())
    notes = [f"{name}: {result.formula}"]
    notes += [
        f"{operand.name}: {value[0].text or value[0].value}, {value.column}"
        for operand, value in zip(operands, values, strict=True)
        if isinstance(value, Rows) and value.column
    ]
    if result.is_rounded:
        notes.append(f"rounded to {result.text}")
    if name == "percentage change" and read[1].value < 0:
        notes.append("the old value is negative: the sign of the change is reversed")
    return replace(rows, columns=()).noting(*notes)
