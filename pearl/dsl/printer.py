"""`Plan` → text. `parse(print_plan(plan)) == plan`, and printing is a fixed point."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from pearl.dsl.literals import UNTYPED, quote
from pearl.dsl.nodes import Argument, ListLiteral, Number, Plan, Reference, Step
from pearl.dsl.signatures import Action, ValueType


def one_line(text: str) -> str:
    """A text on one line: without control characters, lone surrogates or surrounding blanks."""
    return UNTYPED.sub(" ", text).strip(" \u00a0")


def print_argument(argument: Argument) -> str:
    """The text of an argument."""
    if isinstance(argument, Reference):
        return argument.name
    if isinstance(argument, ListLiteral):
        return f"[{', '.join(print_argument(item) for item in argument.items)}]"
    if isinstance(argument, Number):
        return format(Decimal(repr(argument.value)), "f")  # as short as it gets, no exponent
    return quote(argument.value)


def print_step(step: Step, number: int) -> str:
    """One numbered line."""
    arguments = ", ".join(print_argument(argument) for argument in step.arguments)
    return f"{number}. {step.output} = {step.action}({arguments}) : {one_line(step.explanation)}"


def print_action(action: Action) -> str:
    """One line of an action library: `NAME(CTX, X) : definition`, with `-> List` if declared."""
    is_said = not (action.returns is ValueType.TEXT or action.is_native or action.reads_rows)
    head = f"{action.signature} -> {action.returns}" if is_said else action.signature
    definition = one_line(action.definition)
    return f"{head} : {definition}" if definition else head


def print_header(new_actions: Iterable[Action]) -> str:
    """The block of new actions at the top of a plan."""
    return "\n".join(
        ["New actions:", *([f"- {print_action(a)}" for a in new_actions] or ["- None"])]
    )


def print_plan(plan: Plan) -> str:
    """The canonical text, without a line break at its end."""
    blocks: list[Iterable[str]] = []
    if plan.question:
        blocks.append([f"Question: {one_line(plan.question)}"])
    blocks.append([print_header(plan.new_actions)])
    blocks.append(print_step(step, i) for i, step in enumerate(plan.steps, start=1))
    return "\n\n".join("\n".join(block) for block in blocks)
