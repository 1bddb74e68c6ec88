"""Operating margin: the share of the revenue that operations leave."""

from pearl.actions.calculators import Operand

OPERANDS = (
    Operand("operating income", also="operating profit"),
    Operand("revenue", also="net sales"),
)
PROGRAM = "divide(operating income, revenue)"
IS_PERCENTAGE = True
METRICS = ("operating margin", "operating profit margin")
