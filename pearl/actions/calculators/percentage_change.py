"""Percentage change: by how much of the old value the new one differs from it."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("new value"), Operand("old value"))
PROGRAM = "subtract(new value, old value), divide(#0, old value)"
IS_PERCENTAGE = True
METRICS = ()
