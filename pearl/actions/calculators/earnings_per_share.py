"""Earnings per share (basic): what a common share has of the net income.

Source:
    IAS 33: less the dividends of preferred shares, by the weighted average of the shares outstanding.
"""

from pearl.actions.calculators import Operand

OPERANDS = (Operand("net income"), Operand("preferred dividends"), Operand("shares", is_count=True))
PROGRAM = "subtract(net income, preferred dividends), divide(#0, shares)"
IS_PERCENTAGE = False
METRICS = ()
