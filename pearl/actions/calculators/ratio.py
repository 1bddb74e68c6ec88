"""Ratio: one number by another."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("numerator"), Operand("denominator"))
PROGRAM = "divide(numerator, denominator)"
IS_PERCENTAGE = False
METRICS = ()
