"""Cash flow from operations, by the indirect method.

Source:
    IAS 7: the net income, plus what is no cash (depreciation, amortisation), less the increase in
    working capital.
"""

from pearl.actions.calculators import Operand

OPERANDS = (
    Operand("net income"),
    Operand("non-cash expenses"),
    Operand("increase in working capital"),
)
PROGRAM = "add(net income, non-cash expenses), subtract(#0, increase in working capital)"
IS_PERCENTAGE = False
METRICS = ()
