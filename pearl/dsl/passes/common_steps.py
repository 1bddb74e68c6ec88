"""Common subexpression elimination: steps with identical calls run once."""

from __future__ import annotations

from dataclasses import replace

from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Argument, Item, Reference, Step, with_items
from pearl.dsl.passes import Rewrite, Rewritten, rebuilt

STAGE = 0


def rewrite(graph: PlanGraph) -> Rewritten:
    """Remove every step that repeats an earlier one."""
    first: dict[tuple[object, ...], str] = {}
    stands_for: dict[str, str] = {}
    kept: list[Step] = []
    for step in graph.steps:
        arguments = tuple(_renamed(argument, stands_for) for argument in step.arguments)
        # 1 and 1.0 are equal numbers but different text, so the text is compared as well.
        call = (step.action, arguments, repr(arguments), step.explanation)
        if call in first and not graph.checked.action(step).reads_rows:
            stands_for[step.output] = first[call]
        else:
            first.setdefault(call, step.output)
            kept.append(replace(step, arguments=arguments))
    if not stands_for:
        return Rewritten(graph)
    rewrites = tuple(
        Rewrite("common_steps", f"{output} is {same}: the identical call is made once")
        for output, same in stands_for.items()
    )
    return Rewritten(rebuilt(graph, kept, stands_for), rewrites, stands_for)


def _renamed(argument: Argument, names: dict[str, str]) -> Argument:
    def renamed(item: Item) -> Item:
        if isinstance(item, Reference) and item.name in names:
            return replace(item, name=names[item.name])
        return item

    return with_items(argument, renamed)
