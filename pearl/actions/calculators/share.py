"""Share: what part of a whole something is, as a percentage."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("part"), Operand("whole"))
PROGRAM = "divide(part, whole)"
IS_PERCENTAGE = True
METRICS = ()
