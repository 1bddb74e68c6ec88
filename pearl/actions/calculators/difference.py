"""Difference: one number less another."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("first"), Operand("second"))
PROGRAM = "subtract(first, second)"
IS_PERCENTAGE = False
METRICS = ()
