"""A step's arguments + its action's parameters → diagnostics: their number, types and literals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pearl.dsl.nodes import Argument, ListLiteral, Number, Reference, Step, String
from pearl.dsl.printer import print_argument
from pearl.dsl.signatures import CTX, Action, Parameter, ValueType, outputs_for
from pearl.errors import Diagnostic, suggest


def argument_problems(
    step: Step, action: Action, assigned: Mapping[str, ValueType]
) -> Iterator[Diagnostic]:
    """What is wrong with the arguments of a step."""
    n = len(step.arguments)
    if not action.accepts(n):
        wanted = (
            f"at least {action.min_arity}" if action.is_variadic else str(len(action.parameters))
        )
        yield Diagnostic(
            "wrong-arity",
            f"'{action.name}' takes {wanted} argument{'' if wanted.endswith(' 1') or wanted == '1' else 's'}, {n} given",
            step.action_span,
            help=f"write {action.signature}",
        )
        return
    for index, argument in enumerate(step.arguments):
        parameter = action.parameter(index)
        yield from _literal(argument, parameter, action)
        given = _type(argument, assigned)
        if given is not None and not _fits(argument, given, parameter):
            yield Diagnostic(
                "wrong-type",
                f"'{action.name}' takes {_article(parameter.type)} as {parameter.name}, "
                f"not {_article(given)} ({_shortened(print_argument(argument))})",
                argument.span,
                help=_advice(given, parameter),
            )


def fitting_names(
    step: Step, action: Action | None, assigned: Mapping[str, ValueType]
) -> list[list[str]]:
    """For every argument of a step, the names that its parameter takes."""
    if action is None or not action.accepts(len(step.arguments)):
        return [[] for _ in step.arguments]
    parameters = [action.parameter(index) for index in range(len(step.arguments))]
    return [
        [
            name
            for name, type_ in ((CTX, ValueType.CONTEXT), *assigned.items())
            if not parameter.choices and _fits(Reference(name), type_, parameter)
        ]
        for parameter in parameters
    ]


def _advice(given: ValueType, parameter: Parameter) -> str:
    if parameter.type is ValueType.CONTEXT:
        return "pass CTX or an earlier output"
    if given is ValueType.CONTEXT and parameter.reads == "rows":
        return 'make rows of it first: rows = SPLIT(CTX, "entry")'
    return f"pass an output of type {parameter.type}"


def _literal(argument: Argument, parameter: Parameter, action: Action) -> Iterator[Diagnostic]:
    """What is wrong with a literal where only some may stand."""
    choices = parameter.choices
    if choices and isinstance(argument, String | Number) and str(argument.value) not in choices:
        yield Diagnostic(
            "unknown-unit" if parameter.name == "UNIT" else "unknown-operator",
            f"'{argument.value}' is no {parameter.name} of '{action.name}'",
            argument.span,
            help=suggest(str(argument.value), choices, "choices"),
        )
    if parameter.reads == "labels" and isinstance(argument, ListLiteral):
        labels = [str(item.value) for item in argument.items if isinstance(item, String | Number)]
        keys = [" ".join(label.split()).casefold() for label in labels]
        if not argument.items or not all(keys):
            message = "a label is empty" if argument.items else "there is no label to choose from"
            advice = 'write two or more different labels: ["praise", "complaint"]'
            yield Diagnostic("bad-labels", message, argument.span, help=advice)
        elif twice := next((label for i, label in enumerate(labels) if keys[i] in keys[:i]), None):
            message = f"label '{twice}' is repeated; it is taken once"
            yield Diagnostic("repeated-label", message, argument.span, "note")


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _article(value: ValueType) -> str:
    return {
        ValueType.CONTEXT: "the document",
        ValueType.TEXT: "a text",
        ValueType.NUMBER: "a number",
        ValueType.BOOL: "a truth value",
        ValueType.LIST: "a list",
        ValueType.TABLE: "a table",
        ValueType.PASSAGES: "passages",
    }[value]


def _type(argument: Argument, assigned: Mapping[str, ValueType]) -> ValueType | None:
    match argument:
        case Reference():
            return ValueType.CONTEXT if argument.is_context else assigned.get(argument.name)
        case String():
            return ValueType.TEXT
        case Number():
            return ValueType.NUMBER
        case ListLiteral():
            return ValueType.LIST


def _fits(argument: Argument, given: ValueType, parameter: Parameter) -> bool:
    """Whether a value may go where a parameter stands."""
    if isinstance(argument, Reference) and not argument.is_context:
        return given in outputs_for(parameter.type)
    return parameter.type in (given, ValueType.TEXT)
