"""MAP(ROWS, X): rows with one line about each."""

from pearl.actions.by_row import with_column
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "MAP",
    (Parameter.named("ROWS"), Parameter("X")),
    "Return X of each of ROWS, on its own, as one short line",
    returns=ValueType.LIST,
)
KIND = "line"
READING = Action(
    "READ", (Parameter.named("CTX"), Parameter("X")), "Return X of CTX as one short line"
)
collect = with_column
