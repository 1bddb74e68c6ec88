"""Current ratio: how many times the current assets cover the current liabilities."""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("current assets"), Operand("current liabilities"))
PROGRAM = "divide(current assets, current liabilities)"
IS_PERCENTAGE = False
