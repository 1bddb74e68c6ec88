"""What may be typed next in a plan: actions, names of steps above, literals, the next step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pearl.dsl.literals import quote
from pearl.dsl.signatures import CTX, EACH, Action
from pearl.editor.hover import about
from pearl.editor.known_actions import KnownActions, find_action
from pearl.editor.outline import ArgumentPlace, Outline, StepLine, call_at, outline, step_at
from pearl.errors import Span

_NUMBER_BEFORE = re.compile(r"[ \t]*\d*\.?[ \t]*\Z")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Something that may stand at a place."""

    label: str
    kind: Literal["action", "variable", "document", "literal", "line"]
    span: Span
    text: str
    snippet: str = ""
    detail: str = ""
    definition: str = ""


def complete(text: str, offset: int, known: KnownActions) -> list[Suggestion]:
    r"""Everything that may stand at an offset of a plan, in the order to be shown.

    Example:
        >>> from pearl.editor.known_actions import known_actions
        >>> [each.text for each in complete("1. a = SUMMAR", 13, known_actions("seed"))]
        ['SUMMARIZE', 'SUMMARIZE_X']
    """
    step = step_at(text, offset)
    plan = outline(text)
    if step is None:
        return list(_lines(text, offset, plan))
    if offset < step.output_span.end:
        return []
    if (call := call_at(text, offset)) is not None:
        return list(_arguments(call, plan, known))
    if step.opens is None or offset <= step.action_span.end:
        return list(_actions(text, offset, step, plan, known))
    return []


def _actions(
    text: str, offset: int, step: StepLine, plan: Outline, known: KnownActions
) -> Iterator[Suggestion]:
    """The actions whose names begin as what is typed does, the plan's own first."""
    if offset < step.action_span.start:
        return
    typed = text[step.action_span.start : offset]
    span = Span(step.action_span.start, max(offset, step.action_span.end))
    own = [each.action for each in plan.declarations if each.action]
    every = {action.name: action for action in (*own, *known.library.values())}
    if typed.startswith(EACH):
        names = [f"{EACH}{name}" for name in every]
        found = [(name, find_action(name, plan, known)) for name in names]
        every = {name: source.action for name, source in found if source}
    for action in every.values():
        if action.name.casefold().startswith(typed.casefold()):
            source = find_action(action.name, plan, known)
            yield Suggestion(
                action.name,
                "action",
                span,
                action.name,
                "" if step.opens is not None else _snippet(action),
                f"{action.signature} -> {action.returns}",
                "\n\n".join(
                    filter(None, (action.definition, about(source, known) if source else ""))
                ),
            )


def _snippet(action: Action) -> str:
    """A call with places to fill in; the document is there already."""
    given = [
        CTX if parameter.name == CTX else f"${{{i}:{parameter.name}}}"
        for i, parameter in enumerate(action.parameters, start=1)
    ]
    return f"{action.name}({', '.join(given)}) : $0"


def _arguments(call: ArgumentPlace, plan: Outline, known: KnownActions) -> Iterator[Suggestion]:
    source = find_action(call.step.action, plan, known)
    parameters = source.action.parameters if source else ()
    if source and parameters and not call.is_in_list:
        for choice in source.action.parameter(call.index).choices:
            literal = quote(choice)
            if literal.startswith(call.token):
                yield Suggestion(literal, "literal", call.token_span, literal, detail="literal")
    if call.is_string:
        return
    above = {each.output: each for each in plan.steps if each.span.end < call.step.span.start}
    typed = call.token.casefold()
    called = {name: find_action(name, plan, known) for name in {s.action for s in above.values()}}
    for name, step in reversed(above.items()):
        if name.casefold().startswith(typed):
            gave = called[step.action]
            gives = f" -> {gave.action.returns}" if gave else ""
            detail = f"step {step.number}, {step.action}{gives}"
            yield Suggestion(name, "variable", call.token_span, name, detail=detail)
    if CTX.casefold().startswith(typed):
        yield Suggestion(CTX, "document", call.token_span, CTX, detail="the document")


def _lines(text: str, offset: int, plan: Outline) -> Iterator[Suggestion]:
    """What a line may begin with."""
    start = text.rfind("\n", 0, offset) + 1
    typed = text[start:offset]
    span = Span(start, offset)
    above = [step for step in plan.steps if step.span.end < start]
    if _NUMBER_BEFORE.match(typed):
        number = f"{len(above) + 1}. "
        yield Suggestion(
            f"{number}name = ACTION(...)", "line", span, number, f"{number}${{1:name}} = $0", "the next step"
        )  # fmt: skip
    if above:
        return
    for line, about_it in (
        ("Question: ", "what the plan answers"),
        ("New actions:", "its own actions"),
    ):
        if line.startswith(typed) and line not in text[:start]:
            yield Suggestion(line.strip(), "line", span, line, detail=about_it)


@dataclass(frozen=True, slots=True)
class SignatureHelp:
    """The action of a call that is being typed."""

    signature: str
    parameters: tuple[Span, ...]
    active: int | None
    definition: str


def signature_help(text: str, offset: int, known: KnownActions) -> SignatureHelp | None:
    """The signature of the call that an offset is in; None outside of any.

    Example:
        >>> from pearl.editor.known_actions import known_actions
        >>> found = signature_help("1. a = FIND(CTX, ", 17, known_actions("seed"))
        >>> found.signature, found.active
        ('FIND(CTX, X)', 1)
    """
    call = call_at(text, offset)
    if call is None or (source := find_action(call.step.action, outline(text), known)) is None:
        return None
    signature = source.action.signature
    at, spans = len(source.action.name) + 1, []
    for name in (*(p.name for p in source.action.parameters), *["..."] * source.action.is_variadic):
        spans.append(Span(at, at + len(name)))
        at += len(name) + len(", ")
    active = min(call.index, len(spans) - 1) if source.action.is_variadic else call.index
    return SignatureHelp(
        signature,
        tuple(spans),
        active if active < len(spans) else None,
        source.action.definition,
    )
