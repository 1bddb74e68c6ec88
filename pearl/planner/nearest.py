"""Question + actions → the few that a small model is shown; an example → its short form."""

from __future__ import annotations

from collections.abc import Iterable

from pearl.documents.kinds import DocumentKind
from pearl.documents.passages import terms
from pearl.dsl.decoding.weak import n_texts
from pearl.dsl.nodes import Argument, Plan, Reference, Step, String
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.embedded.planner import build_plan
from pearl.planner.examples import Example
from pearl.planner.spans import covering_span
from pearl.retrieval.term_ranker import TermRanker


def nearest_actions(
    question: str,
    library: ActionLibrary,
    examples: Iterable[Example],
    n: int,
    kind: DocumentKind = "document",
) -> ActionLibrary:
    """The `n` actions that read the document and are nearest to a question, with those computed in Python.

    First those of the examples that are shown and of the plan by rule, then those whose name and
    definition match the question best. A table is queried, and nothing else.
    """
    reading = [action for action in library.values() if n_texts(action) is not None]
    of_table = [action for action in reading if action.asks_table]
    if kind == "table" and of_table:
        return ActionLibrary(library.name, of_table)
    by_rule = {step.action for step in build_plan(question, library, kind).steps}
    # What takes no words of the question would be called for any.
    reading = [a for a in reading if not a.asks_table and (n_texts(a) or a.name in by_rule)]
    scores = TermRanker([_terms(action) for action in reading]).scores(terms(question))
    ranked = sorted(range(len(reading)), key=lambda i: (-scores[i], i))
    shown = [step.action for each in examples for step in each.plan.steps]
    order = [*sorted(by_rule), *shown, *(reading[i].name for i in ranked)]
    by_name = {action.name: action for action in reading}
    chosen = list(dict.fromkeys(name for name in order if name in by_name))[:n]
    kept = [a for a in library.values() if a.name in chosen or a.name in _COMBINING]
    return ActionLibrary(library.name, kept)


_COMBINING = frozenset({"CONCAT", "COUNT"})
"""What is added by rule (`pearl.planner.finishing`)."""


def _terms(action: Action) -> list[str]:
    return terms(f"{action.name.replace('_', ' ')} {action.definition}")


def short_form(example: Example, library: ActionLibrary, max_steps: int) -> Example | None:
    """An example as a weak planner is to write it: steps that read, with spans of the question."""
    steps: list[Step] = []
    for step in example.plan.steps:
        action = library.get(step.action)
        if action is None or (n_texts(action) is None and action.name not in _COMBINING):
            return None
        if n_texts(action) is None:
            continue
        spans: list[Argument] = []
        for argument in step.arguments[1:]:
            if not isinstance(argument, String):
                return None
            spans.append(String(covering_span(argument.value, example.question)))
        output = f"v{len(steps) + 1}"
        steps.append(Step(output, step.action, (Reference("CTX"), *spans), ""))
    calls = {(step.action, step.arguments) for step in steps}
    if not steps or len(steps) > max_steps or len(calls) < len(steps):
        return None
    return Example(example.question, Plan(tuple(steps)), example.path)
