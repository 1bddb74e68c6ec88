"""Product: one number times another."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("first"), Operand("second"))
PROGRAM = "multiply(first, second)"
IS_PERCENTAGE = False
METRICS = ()
