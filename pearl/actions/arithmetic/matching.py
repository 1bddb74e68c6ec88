"""Decide whether two texts state the same number, and by which rule."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import Literal

from pearl.documents.numbers import Quantity, find_quantity, read_quantity
from pearl.documents.words import words

_ANY = Decimal("0.01")  # difference that `Rule.ONE_PERCENT` allows, relative to the reference
MAX_POWER = 100  # numbers beyond 10 to this power are equal only if they are written alike


class Rule(StrEnum):
    """The strictest rule by which an answer matches the reference."""

    EXACT = "exact"
    ROUNDED = "rounded"
    PERCENT = "percent"
    ONE_PERCENT = "one percent"


Form = Literal["share", "points", "number"]
"""Meaning of a number without a unit: a share (0.05 is 5%), percentage points (5 is 5%), or not a percentage."""


def match(answer: str, reference: str, *, form: Form | None = None) -> Rule | None:
    """The rule by which an answer equals the reference; None if it differs."""
    answered, right = _read(answer), _read(reference)
    if answered is None or right is None:
        return Rule.EXACT if words(answer) == words(reference) else None
    if max(abs(each.amount.adjusted()) for each in (answered, right)) > MAX_POWER:
        return Rule.EXACT if answered == right else None
    if (answered.unit == "%") == (right.unit == "%"):
        is_alike = not answered.unit or right.unit in ("", answered.unit)
        return _compared(answered, right) if is_alike else None
    if answered.unit not in ("", "%") or right.unit not in ("", "%"):
        return None
    if right.unit == "%":
        shares = [answered.amount.scaleb(2)] if form in ("share", None) else []
        # the answer omits the percent sign
        shares += [answered.amount] if form in ("points", None) else []
        rules = (_compared(Quantity(share, "%"), right) for share in shares)
    else:
        rules = (_compared(Quantity(value), right) for value in (answered.amount, answered.value))
    rule = next(filter(None, rules), None)
    return Rule.PERCENT if rule in (Rule.EXACT, Rule.ROUNDED) else rule


def _compared(said: Quantity, right: Quantity) -> Rule | None:
    """Compare two numbers in the scale of the second and to its number of decimals."""
    scale = 0 if right.unit == "%" else right.scale
    value = (said.value if said.unit == "%" else said.amount.scaleb(-scale)).normalize()
    expected = right.value
    if value == expected:
        return Rule.EXACT
    last = Decimal(1).scaleb(min(0, int(expected.as_tuple().exponent)))
    if abs(value - expected) < last:
        is_cut = abs(expected) >= 10 * last and expected == value.quantize(last, ROUND_DOWN)
        # People round 0.5 to 1; programs that round halves to even round it to 0.
        halves = (value.quantize(last, how) for how in (ROUND_HALF_UP, ROUND_HALF_EVEN))
        if is_cut or expected in halves:
            return Rule.ROUNDED
    return Rule.ONE_PERCENT if abs(value - expected) <= _ANY * abs(expected) else None


def _read(text: str) -> Quantity | None:
    """Read the number of an answer; None unless it has exactly one."""
    text = text.strip()
    return read_quantity(text, decimal=".") or find_quantity(text, decimal=".")
