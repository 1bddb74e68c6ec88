"""CLASSIFY(ROWS, LABELS, X): rows with the one of several labels that fits them."""

from pearl.actions.by_row import with_column
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "CLASSIFY",
    (Parameter.named("ROWS"), Parameter("LABELS", ValueType.LIST, "labels"), Parameter("X")),
    "Say of each of ROWS, on its own, which one of LABELS is X, and return the rows with their labels",
    returns=ValueType.LIST,
)
KIND = "label"
READING = Action(
    "CHOOSE_LABEL",
    (Parameter.named("CTX"), Parameter("LABELS"), Parameter("X")),
    "Say which one of LABELS is X in CTX, and nothing but that label",
)
collect = with_column
