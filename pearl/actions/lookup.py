"""LOOKUP(CTX, QUESTION): what a table says, by a query that a model writes and Python runs."""

from __future__ import annotations

from pearl.dsl.signatures import CTX, Action, Parameter, ValueType

LOOKUP = Action(
    "LOOKUP",
    (Parameter(CTX, ValueType.CONTEXT, "table"), Parameter("QUESTION")),
    "Answer QUESTION by a query of the table that CTX is: the rows that it asks for, or counts, sums, "
    "means and other figures of them",
)
"""It gives a text, which may be rows: what a query gives is not known before it is written."""


def known() -> dict[str, Action]:
    """The action by name."""
    return {LOOKUP.name: LOOKUP}
