"""Operating margin: the share of the revenue that operations leave."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("operating income"), Operand("revenue"))
PROGRAM = "divide(operating income, revenue)"
IS_PERCENTAGE = True
