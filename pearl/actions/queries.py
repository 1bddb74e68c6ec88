"""Actions that a model carries out on questions: what is searched for, where a question is no query."""

from __future__ import annotations

from pearl.dsl.signatures import Action, Parameter, ValueType

SUBQUERIES = Action(
    "SUBQUERIES",
    (Parameter("QUESTION"),),
    "List two to six short search phrases, in words that a passage would use, one for each thing that "
    "has to be found to answer QUESTION",
    returns=ValueType.LIST,
)

REWRITE = Action(
    "REWRITE",
    (Parameter("QUESTION"), Parameter("HISTORY")),
    "Return QUESTION as one question that is clear without HISTORY, the questions and answers before "
    "it: say what its pronouns and left out words stand for, and change nothing else",
)


def known() -> dict[str, Action]:
    """These actions by name."""
    return {action.name: action for action in (SUBQUERIES, REWRITE)}
