"""RATE(ROWS, X): rows with a number from 0 to 10 for how much something is true of each."""

from pearl.actions.by_row import with_column
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "RATE",
    (Parameter.named("ROWS"), Parameter("X")),
    "Rate each of ROWS, on its own, from 0 to 10 by X, and return the rows with their numbers",
    returns=ValueType.LIST,
)
KIND = "rating"
READING = Action(
    "RATE_ONE",
    (Parameter.named("CTX"), Parameter("X")),
    "Rate CTX from 0 to 10 by X and return the number",
    returns=ValueType.NUMBER,
)
collect = with_column
