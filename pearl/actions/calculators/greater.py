"""Greater: whether one number is greater than another."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("first"), Operand("second"))
PROGRAM = "greater(first, second)"
IS_PERCENTAGE = False
METRICS = ()
