"""Questions of a table → one LOOKUP for each; what is counted or compared is the query's work, not the plan's."""

from __future__ import annotations

from pearl.dsl.nodes import String
from pearl.dsl.signatures import ActionLibrary
from pearl.llm.backends.extractive.adding import AddStep
from pearl.llm.backends.extractive.questions import parts

_MAX_QUESTION = 2_000
"""Characters of an argument."""


def plan_table(question: str, library: ActionLibrary, add: AddStep) -> bool:
    """Add the steps that answer a question of a table."""
    lookup = library.get("LOOKUP")
    if lookup is None or not lookup.asks_table:
        return False
    line = " ".join(question.split())
    found = parts(line)
    asked = [line] if len(found) == 1 else [part.asked for part in found]
    for each in asked:
        add("found", lookup, "Ask the table", String(each[:_MAX_QUESTION]))
    return True
