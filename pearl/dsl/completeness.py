"""Plan → notes: steps that count what a search gave, which are the best and not all, and outputs that no step reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pearl.dsl.nodes import Plan
from pearl.dsl.signatures import Action, ValueType
from pearl.errors import Diagnostic

COUNTS_BEST = "counts-best"
"""The code of the note."""


def counts_of_best(plan: Plan, actions: Mapping[str, Action]) -> Iterator[Diagnostic]:
    """Notes on steps whose number would say how many passages were wanted, not how many there are."""
    best: set[str] = set()
    for step in plan.steps:
        action = actions.get(step.action)
        if action is None:
            continue
        is_of_best = any(reference.name in best for reference in step.references())
        if action.counts and is_of_best:
            yield Diagnostic(
                COUNTS_BEST,
                f"'{step.action}' is computed from what a search gave: the passages that match best, not all",
                step.action_span,
                "note",
                help='to count, begin with SPLIT(CTX, "document") or "paragraph", then WHERE or FILTER',
            )
        if action.searches or (is_of_best and _gives_rows(action)):
            best.add(step.output)


def unread_outputs(plan: Plan) -> Iterator[Diagnostic]:
    """Notes on outputs before the last one that are part of the answer, because no step reads them."""
    read = {reference.name for step in plan.steps for reference in step.references()}
    for step in plan.steps[:-1]:
        if step.output not in read:
            yield Diagnostic(
                "joins-answer",
                f"no step reads '{step.output}': it is a part of the answer",
                step.output_span,
                "note",
                help="pass it to a later step, or leave the step out, if the answer is not to have it",
            )


def _gives_rows(action: Action) -> bool:
    """Whether what is left out of its rows is left out of what it gives."""
    return action.reads_rows or (action.is_native and action.returns is ValueType.LIST)
