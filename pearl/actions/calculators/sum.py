"""Sum: one number and another."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("first"), Operand("second"))
PROGRAM = "add(first, second)"
IS_PERCENTAGE = False
METRICS = ()
