"""Predicate pushdown: the model does not read rows that a later WHERE drops."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Reference, Step, String, items_of
from pearl.dsl.passes import Rewrite, Rewritten, rebuilt

STAGE = 1
"""After equal steps are one, which then may be the only reader."""

_OPERATORS = frozenset({"is", "is not", "in", "not in", "contains"})
_NO_FIELDS = frozenset({"text", "count"})


def rewrite(graph: PlanGraph) -> Rewritten:
    """Move selections before model steps if that changes only the rows which the model reads."""
    rewrites: list[Rewrite] = []
    while (found := _found(graph)) is not None:
        model, where = found
        first, *others = model.arguments
        taken = {step.output for step in graph.steps}
        names = (f"{model.output}_rows{'' if i == 1 else i}" for i in count(1))
        name = next(each for each in names if each not in taken)
        select = replace(where, output=name, arguments=(first, *where.arguments[1:]))
        narrowed = replace(model, arguments=(Reference(name), *others))
        steps: list[Step] = []
        for step in graph.steps:
            steps += [select, narrowed] if step is model else [step]
        graph = rebuilt(graph, steps)
        what = f"{model.output} reads those rows only that {where.output} keeps"
        rewrites.append(Rewrite("pushdown", what))
    return Rewritten(graph, tuple(rewrites))


def _found(graph: PlanGraph) -> tuple[Step, Step] | None:
    """A model step and the WHERE that can be computed before it; None if none is left."""
    by_output = {step.output: step for step in graph.steps}
    for where in graph.steps:
        if where.action != "WHERE" or not graph.checked.action(where).is_native:
            continue
        rows = where.arguments[0]
        model = by_output.get(rows.name) if isinstance(rows, Reference) else None
        if (
            model is not None
            and graph.checked.action(model).reads_rows
            and model.action != "TOP"
            and _n_uses(graph, model.output) == 1
            and _is_local(where)
            and not _is_of_model(graph, where)
            and not _is_selected(by_output, model, where)
        ):
            return model, where
    return None


def _n_uses(graph: PlanGraph, output: str) -> int:
    return sum(reference.name == output for step in graph.steps for reference in step.references())


def _is_local(where: Step) -> bool:
    """Whether each value is judged on its own, by its text."""
    _, name, operator, x = where.arguments
    texts = items_of(x)
    if not (isinstance(operator, String) and operator.value in _OPERATORS):
        return False
    if not (isinstance(name, String) and _is_field(name.value)):
        return False
    return all(
        isinstance(text, String)
        and (operator.value == "contains" or not any(c.isdigit() for c in text.value))
        for text in texts
    )


def _is_field(name: str) -> bool:
    return name.casefold() not in _NO_FIELDS and " by " not in name.casefold()


def _is_of_model(graph: PlanGraph, where: Step) -> bool:
    """Whether its column may be one of a model; names are looked up tolerantly, so any like it may."""
    name = where.arguments[1]
    assert isinstance(name, String)
    outputs = [step.output for step in graph.steps if graph.checked.action(step).reads_rows]
    return any(_letters(output)[:2] == _letters(name.value)[:2] for output in outputs)


def _letters(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def _is_selected(by_output: dict[str, Step], model: Step, where: Step) -> bool:
    """Whether the rows of the model step are already selected so."""
    rows = model.arguments[0]
    before = by_output.get(rows.name) if isinstance(rows, Reference) else None
    return (
        before is not None
        and before.action == "WHERE"
        and before.arguments[1:] == where.arguments[1:]
    )
