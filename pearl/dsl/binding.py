"""A plan and the values of its parameters → the plan of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pearl.dsl.checker import CheckedPlan
from pearl.dsl.literals import quote, short
from pearl.dsl.nodes import Item, Reference, String, one_line, with_items
from pearl.errors import UsageError, suggest

MAX_VALUE = 1_000
"""Maximum characters of a value."""


def bind(checked: CheckedPlan, values: Mapping[str, object]) -> CheckedPlan:
    """The plan with a value for each of its parameters.

    Raises:
        UsageError: A parameter is not set, a value is of no parameter, or it is no text, empty or too long.
    """
    known = {each.name: each.about for each in checked.plan.parameters}
    given = {name: parameter_value(name, value) for name, value in values.items()}
    if unknown := next((name for name in given if name not in known), None):
        help = suggest(unknown, known, "parameters") if known else "the plan has no 'Parameters:'"
        raise UsageError(f"the plan has no parameter '{short(unknown)}'", help=help)
    if unset := next((name for name in known if name not in given), None):
        raise UsageError(
            f"the plan's parameter '{unset}' is not set: {short(known[unset])}",
            help=f"--set {unset}=VALUE, or a column '{unset}' of --data",
        )
    return bound(checked, given)


def parameter_value(name: str, value: object) -> str:
    """The value of a parameter on one line; a field without a value is empty."""
    value = "" if value is None else value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"parameter '{short(name)}' must be a text, not {short(repr(value))}")
    line = one_line(str(value))
    if not any(each.isprintable() and not each.isspace() for each in line):
        raise UsageError(f"parameter '{short(name)}' is empty", help=f"--set {short(name)}=VALUE")
    if len(line) > MAX_VALUE:
        raise UsageError(
            f"parameter '{short(name)}' has {len(line):,} characters, {MAX_VALUE:,} are allowed",
            help="a longer text is a document: name it as one",
        )
    return line


def bound(checked: CheckedPlan, given: Mapping[str, str]) -> CheckedPlan:
    """The plan with values in place of the names of its parameters, as data: no value is read as a part of it."""
    if not given:
        return checked
    run, asked = replace(checked, given=given), checked.plan.question or ""

    def item(each: Item) -> Item:
        if isinstance(each, Reference) and each.name in given:
            return String(given[each.name], each.span, has_answer=True, written=each.name)
        if isinstance(each, String) and each.value == asked != run.question:
            return String(run.question, each.span, has_answer=True, written=quote(asked))
        return each

    steps = (
        replace(step, arguments=tuple(with_items(argument, item) for argument in step.arguments))
        for step in checked.plan.steps
    )
    return replace(run, plan=replace(checked.plan, steps=tuple(steps)))
