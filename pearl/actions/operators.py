"""The actions on rows that every library has, unless it defines its own action of that name."""

from __future__ import annotations

from functools import cache

from pearl.actions import by_row, by_search, native
from pearl.dsl.signatures import CTX, Action, ActionLibrary, Parameter, ValueType

LOOKUP = Action(
    "LOOKUP",
    (Parameter(CTX, ValueType.CONTEXT, "table"), Parameter("QUESTION")),
    "Answer QUESTION by a query of the table that CTX is: the rows that it asks for, or figures of them",
)
"""It returns a text, which may hold rows: the query decides the form of the result."""


SUBQUERIES = Action(
    "SUBQUERIES",
    (Parameter("QUESTION"),),
    "List two to six short search phrases, in words that a passage would use, one for each thing that "
    "has to be found to answer QUESTION",
    returns=ValueType.LIST,
)

ANSWER = Action(
    "ANSWER",
    (Parameter("QUESTION"), *(Parameter(name, reads="results") for name in ("R1", "R2"))),
    "Answer QUESTION in a few sentences from the results R1, R2 and any further ones; the last step of a "
    "plan with several results",
    is_variadic=True,
)

DIRECT = Action(
    "ANSWER", (Parameter(CTX, ValueType.CONTEXT), Parameter("QUESTION")), "Answer QUESTION from CTX"
)
"""The only step of the direct method."""

EXTRACT = Action(
    "EXTRACT",
    (Parameter(CTX, ValueType.CONTEXT), Parameter("FIELDS", reads="fields")),
    "Return the values that CTX states for FIELDS, each with the passage that bears it out",
)

EXTRACT_ALL = Action(
    "EXTRACT_ALL",
    (Parameter(CTX, ValueType.CONTEXT), Parameter("FIELDS", reads="entry_fields")),
    "Return one row with the values of FIELDS for every item in CTX that has them, each value with the "
    "passage that bears it out",
    returns=ValueType.LIST,
)


@cache
def operators() -> ActionLibrary:
    """All operators: computed in Python, by a search, or by a model."""
    shipped = {**native.general(), **by_search.known(), **by_row.known()}
    own = [SUBQUERIES, LOOKUP, ANSWER, EXTRACT, EXTRACT_ALL]
    return ActionLibrary("operators", [*shipped.values(), *own])


def with_operators(library: ActionLibrary) -> ActionLibrary:
    """The library with the operators that it does not define itself."""
    own = [action for name, action in operators().items() if name not in library]
    return library.extended(own)


def without_search(library: ActionLibrary, own: ActionLibrary) -> ActionLibrary:
    """The actions in the planning prompt for a single document, which needs no search."""
    left_out = {*by_search.known(), SUBQUERIES.name} - set(own)
    kept = [action for name, action in library.items() if name not in left_out]
    return ActionLibrary(library.name, kept)


def for_planners(library: ActionLibrary, *, has_sources: bool) -> ActionLibrary:
    """The actions in planning prompts: without those made from a schema, and without NO_SOURCE unless there are sources."""
    kept = [
        action for action in library.values()
        if not action.extracts and (has_sources or "declines" not in action.traits)
    ]  # fmt: skip
    return ActionLibrary(library.name, kept)
