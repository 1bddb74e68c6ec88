"""NO_SOURCE(QUESTION): the result "nothing found", for a question that no source can answer."""

from __future__ import annotations

from pearl.actions.arithmetic.program import NotGivenError
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "NO_SOURCE", (Parameter("QUESTION"),), "Say that none of the sources can have the answer to QUESTION",
    is_native=True, traits=frozenset({"declines"}),
)  # fmt: skip


def run(question: str) -> str:
    """Find nothing."""
    raise NotGivenError(f"No source fits the question: {question}")
