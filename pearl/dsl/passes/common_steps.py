"""Common subexpression elimination: steps with identical calls run once.

Two calls are identical if they have the same action, arguments and explanation (which is part of
the prompt); outputs of identical calls count as the same argument. A step that a model carries out
row by row is never another one: later steps call its column by its output. Rare in published plans (2 of
7,759 steps), but each one saves a call or a chain of calls.
"""

from __future__ import annotations

from dataclasses import replace

from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Argument, ListLiteral, Reference, Step
from pearl.dsl.passes import Rewrite, Rewritten, rebuilt

STAGE = 0


def rewrite(graph: PlanGraph) -> Rewritten:
    r"""Remove every step that repeats an earlier one.

    Example:
        >>> from pearl.actions.library import load_library
        >>> from pearl.dsl.checker import compile_plan
        >>> from pearl.dsl.graph import build_graph
        >>> before = build_graph(compile_plan('''
        ... 1. hero = FIND(CTX, "the hero") : Find them
        ... 2. again = FIND(CTX, "the hero") : Find them
        ... 3. both = CONCAT(hero, again) : Put them together'''.strip(), load_library("seed")))
        >>> after = rewrite(before)
        >>> print(str(after.graph.checked).partition("\n\n")[2])
        1. hero = FIND(CTX, "the hero") : Find them
        2. both = CONCAT(hero, hero) : Put them together
        >>> after.stands_for
        {'again': 'hero'}
        >>> rewrite(after.graph).graph is after.graph
        True
    """
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
    match argument:
        case Reference(name) if name in names:
            return replace(argument, name=names[name])
        case ListLiteral(items):
            return replace(
                argument,
                items=tuple(
                    replace(item, name=names[item.name])
                    if isinstance(item, Reference) and item.name in names
                    else item
                    for item in items
                ),
            )
    return argument
