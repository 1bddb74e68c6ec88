"""Current ratio: how many times the current assets cover the current liabilities."""

from pearl.actions.calculators import Operand

OPERANDS = (
    Operand("current assets", also="total current assets"),
    Operand("current liabilities", also="total current liabilities"),
)
PROGRAM = "divide(current assets, current liabilities)"
IS_PERCENTAGE = False
METRICS = ("current ratio",)
