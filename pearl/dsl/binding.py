"""Set the parameters of a plan to their values, which gives the plan of one run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from pearl.dsl.checker import CheckedPlan
from pearl.dsl.literals import quote, short, terminal
from pearl.dsl.nodes import Item, Reference, String, items_of, one_line
from pearl.dsl.signatures import CTX
from pearl.errors import Diagnostic, UsageError, suggest

MAX_VALUE = 1_000  # Maximum characters of a value


def bind(checked: CheckedPlan, values: Mapping[str, object]) -> CheckedPlan:
    """Set each parameter of a plan; `UsageError` if one is not set, unknown, or its value is no text."""
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
    """Check the value of a parameter and return it on one line."""
    value = "" if value is None else value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"parameter '{short(name)}' must be a text, not a {type(value).__name__}")
    line = one_line(str(value))
    if not any(each.isprintable() and not each.isspace() for each in line):
        raise UsageError(f"parameter '{short(name)}' is empty", help=f"--set {short(name)}=VALUE")
    if len(line) > MAX_VALUE:
        raise UsageError(
            f"parameter '{short(name)}' has {len(line):,} characters, {MAX_VALUE:,} are allowed",
            help="a longer text is a document: name it as one",
        )
    return line


def with_names(question: str, values: Mapping[str, str]) -> str:
    """Replace the values of parameters in a question by their names in braces."""
    for name in values:
        # Outputs of plans written under a grammar are called v1, n1 and so on.
        if not terminal("NAME").fullmatch(name) or name == CTX or re.fullmatch(r"[a-z]\d+", name):
            raise UsageError(
                f"'{short(name)}' cannot name a parameter", help="use a word, such as drug"
            )
    names = sorted(values, key=lambda name: -len(values[name]))
    any_value = _any_of(" ".join(values[name].split()) for name in names)
    said = any_value.sub(lambda found: f"{{{names[(found.lastindex or 1) - 1]}}}", question)
    for name in values:
        if f"{{{name}}}" not in said:
            raise UsageError(
                f"the question does not contain the value of the parameter '{name}'",
                help="write the value as the question does",
            )
    return said


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches any of several texts as whole words; each text is a group."""
    return re.compile(
        rf"(?<!\w)(?:{'|'.join(f'({re.escape(each)})' for each in texts)})(?!\w)", re.I
    )


def values_left(checked: CheckedPlan, values: Mapping[str, str]) -> Iterator[Diagnostic]:
    """The errors of a plan that contains the value of a parameter where it should contain the parameter's name."""
    if not values:
        return
    any_value = _any_of(values.values())
    for step in checked.plan.steps:
        items = [item for argument in step.arguments for item in items_of(argument)]
        texts = [(each.value, each.span) for each in items if isinstance(each, String)]
        for text, span in (*texts, (step.explanation, step.action_span)):
            if found := any_value.search(text):
                name = [*values][(found.lastindex or 1) - 1]
                message = f"the value of the parameter '{name}' stands here"
                advice = f'pass the parameter in its place, alone or beside a text: ["...", {name}]'
                yield Diagnostic("parameter-value", message, span, help=advice)
    # A plan that ignores a parameter would give the same answer for every value.
    yield from (
        replace(note, severity="error") for note in checked.notes if note.code == "unused-parameter"
    )


def bound(checked: CheckedPlan, given: Mapping[str, str]) -> CheckedPlan:
    """Put values in place of the parameters, as strings of the plan: no value is parsed as plan text."""
    if not given:
        return checked
    run, asked = replace(checked, given=given), checked.plan.question or ""

    def item(each: Item) -> Item:
        if isinstance(each, Reference) and each.name in given:
            return String(given[each.name], each.span, has_parameter=True, written=each.name)
        if isinstance(each, String) and each.value == asked != run.question:
            return String(run.question, each.span, has_parameter=True, written=quote(asked))
        return each

    steps = tuple(step.with_items(item) for step in checked.plan.steps)
    return replace(run, plan=replace(checked.plan, steps=steps))
