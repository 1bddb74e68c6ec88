"""Rewrite a `PlanGraph` to one with the same answer at lower cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl.graph import PlanGraph, build_graph
from pearl.dsl.nodes import Item, Reference, Step, String, items_of


class Rewrite(NamedTuple):
    """One change: the name of its pass, and a description."""

    by: str
    what: str


class Rewritten(Struct, frozen=True):
    """A graph after one pass or all, unchanged if nothing applied; `stands_for` maps removed outputs to equal ones."""

    graph: PlanGraph
    rewrites: tuple[Rewrite, ...] = ()
    stands_for: Mapping[str, str] = {}


def rewrite_plan(graph: PlanGraph) -> Rewritten:
    """Apply every pass."""
    rewrites: list[Rewrite] = []
    stands_for: dict[str, str] = {}
    for rewrite in PASSES.values():
        done = rewrite(graph)
        graph = done.graph
        rewrites += done.rewrites
        stands_for |= done.stands_for  # only the first pass removes steps
    return Rewritten(graph, tuple(rewrites), stands_for)


def _rebuilt(graph: PlanGraph, steps: Iterable[Step], answers: Iterable[str]) -> PlanGraph:
    """The graph of the same plan with other steps, in topological order."""
    plan = replace(graph.checked.plan, steps=tuple(steps))
    return build_graph(replace(graph.checked, plan=plan, outputs=tuple(dict.fromkeys(answers))))


def common_steps(graph: PlanGraph) -> Rewritten:
    """Steps with identical calls run once."""
    first: dict[tuple[object, ...], str] = {}
    stands_for: dict[str, str] = {}
    kept: list[Step] = []

    def renamed(item: Item) -> Item:
        if isinstance(item, Reference) and item.name in stands_for:
            return replace(item, name=stands_for[item.name])
        return item

    for step in (each.with_items(renamed) for each in graph.steps):
        # 1 and 1.0 are equal numbers but different text, so the text is compared as well.
        # So is the type that replies are parsed into: one may be read as a number, the other as a text.
        call = (
            step.action, step.arguments, repr(step.arguments), step.explanation, graph.gives[step.output],
        )  # fmt: skip
        # Later steps name the column of a row step by its output, so equal row steps stay two.
        if call in first and not graph.checked.action(step).reads_rows:
            stands_for[step.output] = first[call]
        else:
            first.setdefault(call, step.output)
            kept.append(step)
    if not stands_for:
        return Rewritten(graph)
    rewrites = tuple(
        Rewrite("common_steps", f"{output} is {same}: the identical call is made once")
        for output, same in stands_for.items()
    )
    answers = (stands_for.get(name, name) for name in graph.checked.outputs)
    return Rewritten(_rebuilt(graph, kept, answers), rewrites, stands_for)


_LOCAL_OPERATORS = frozenset({"is", "is not", "in", "not in", "contains"})


def pushdown(graph: PlanGraph) -> Rewritten:
    """Compute a WHERE before a model step if that changes only the rows which the model reads."""
    rewrites: list[Rewrite] = []
    while (movable := _movable(graph)) is not None:
        model, where = movable
        first, *others = model.arguments
        taken = {step.output for step in graph.steps}
        names = (f"{model.output}_rows{'' if i == 1 else i}" for i in count(1))
        name = next(name for name in names if name not in taken)
        select = replace(where, output=name, arguments=(first, *where.arguments[1:]))
        narrowed = replace(model, arguments=(Reference(name), *others))
        steps: list[Step] = []
        for step in graph.steps:
            steps += [select, narrowed] if step is model else [step]
        graph = _rebuilt(graph, steps, graph.checked.outputs)
        what = f"{model.output} reads only the rows that {where.output} keeps"
        rewrites.append(Rewrite("pushdown", what))
    return Rewritten(graph, tuple(rewrites))


def _movable(graph: PlanGraph) -> tuple[Step, Step] | None:
    """A model step and the WHERE that can be computed before it; None if there is no such pair."""
    by_output = {step.output: step for step in graph.steps}
    read = [reference.name for step in graph.steps for reference in step.references()]
    by_row = [step for step in graph.steps if graph.checked.action(step).reads_rows]
    for where in graph.steps:
        if "condition" not in graph.checked.action(where).traits:
            continue
        rows = where.arguments[0]
        model = by_output.get(rows.name) if isinstance(rows, Reference) else None
        if model is None or model not in by_row:
            continue
        # With fewer rows, other rows would rank first.
        if "compares" in graph.checked.action(model).traits:
            continue
        rows = model.arguments[0]
        before = by_output.get(rows.name) if isinstance(rows, Reference) else None
        is_done = (
            before is not None
            and before.action == where.action
            and before.arguments[1:] == where.arguments[1:]
        )
        if read.count(model.output) == 1 and not is_done and _is_local(where, by_row):
            return model, where
    return None


def _is_local(where: Step, by_row: Iterable[Step]) -> bool:
    """Whether a WHERE judges each value alone, by its text, in a column that the document has."""
    _, name, operator, x = where.arguments
    if not (isinstance(operator, String) and operator.value in _LOCAL_OPERATORS):
        return False
    if not isinstance(name, String):
        return False
    column = name.value.casefold()
    if column in ("text", "count") or " by " in column:
        return False
    # Names of columns are looked up tolerantly, so any name like that of an output may mean it.
    if any(_letters(step.output)[:2] == _letters(column)[:2] for step in by_row):
        return False
    return all(
        isinstance(text, String)
        and (operator.value == "contains" or not any(c.isdigit() for c in text.value))
        for text in items_of(x)
    )


def _letters(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def critical_path(graph: PlanGraph) -> Rewritten:
    """Begin the steps with the longest chain of dependent calls first."""
    lengths = n_following(graph)
    # A step depends only on steps whose chains are at least as long, so the order stays valid.
    order = sorted(
        range(len(lengths)), key=lambda i: (graph.steps[i] is graph.composer, -lengths[i], i)
    )
    if order == list(range(len(order))):
        return Rewritten(graph)
    steps = [graph.steps[i] for i in order]
    what = f"steps are begun in the order {', '.join(step.output for step in steps)}"
    reordered = _rebuilt(graph, steps, graph.checked.outputs)
    return Rewritten(reordered, (Rewrite("critical_path", what),))


def n_following(graph: PlanGraph) -> list[int]:
    """For each step, the length of the longest chain of calls that starts with it."""
    lengths = [0] * len(graph.steps)
    for i in reversed(range(len(graph.steps))):
        lengths[i] += not graph.checked.action(graph.steps[i]).is_native
        for needed in graph.waits[i]:
            lengths[needed] = max(lengths[needed], lengths[i])
    return lengths


PASSES: Mapping[str, Callable[[PlanGraph], Rewritten]] = {
    "common_steps": common_steps,
    "pushdown": pushdown,  # after equal steps are merged: the merged step may be the only reader
    "critical_path": critical_path,  # last: other passes change chains
}
