"""Completion, hover, definitions, findings and fixes for a text, which may be unfinished, in an editor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from pearl.actions.library import (
    MAX_ACTIONS,
    library_names,
    load_library,
    read_actions,
)
from pearl.actions.operators import with_operators
from pearl.cli.commands.check import mended
from pearl.cli.commands.fmt import canonical
from pearl.cli.files import Kind as Kind
from pearl.dsl.checker import callable_actions, diagnose
from pearl.dsl.literals import COARSE_NAME, canonical_name, quote
from pearl.dsl.nodes import Declared, Plan, Step
from pearl.dsl.parser import parse_action, read
from pearl.dsl.signatures import CTX, EACH, Action, ActionLibrary
from pearl.dsl.tolerance import lines
from pearl.errors import Diagnostic, Fix, PearlError, Span
from pearl.errors.patterns import lazy_pattern
from pearl.plugins.files import find_data

_STEP = lazy_pattern(  # "2. findings = FIND(", perhaps unfinished
    rf"^[ \t]*(?:\d+[.)]?[ \t]*)?(?P<output>{COARSE_NAME})[ \t]*=(?!=)[ \t]*"
    rf"(?P<action>{COARSE_NAME})?(?P<opens>[ \t]*\()?",
    re.M,
)
_DECLARATION = {
    "plan": lazy_pattern(rf"^[ \t]*-[ \t]*(?P<name>{COARSE_NAME})\([^\n]*", re.M),
    "actions": lazy_pattern(rf"^[ \t]*(?P<name>{COARSE_NAME})\([^\n]*", re.M),
}
_ARGUMENT = lazy_pattern(  # "a text", maybe not closed, or a name, or a mark
    rf'(?P<string>"(?:[^"\\\n]|\\.)*(?:"|\\?$))|(?P<name>{COARSE_NAME})|(?P<mark>[\[\](),])', re.M
)


class StepLine(Struct, frozen=True):
    """A line that assigns an output."""

    number: int
    span: Span
    output: str
    output_span: Span
    action: str
    action_span: Span
    opens: int | None


class Declaration(Struct, frozen=True):
    """A line that declares an action."""

    span: Span
    name: str
    name_span: Span
    action: Action | None


class Outline(Struct, frozen=True):
    """The steps and declarations of a text, in order."""

    text: str
    steps: tuple[StepLine, ...]
    declarations: tuple[Declaration, ...]

    def step_of(self, name: str, before: int) -> StepLine | None:
        """The step that assigns a name: the last one above an offset, else the first one below."""
        found = [step for step in self.steps if step.output == canonical_name(name)]
        above = [step for step in found if step.span.end < before]
        return above[-1] if above else next(iter(found), None)

    def declaration_of(self, name: str) -> Declaration | None:
        """The first declaration of an action."""
        name = canonical_name(name)
        return next((each for each in self.declarations if each.name == name), None)


@lru_cache(maxsize=8)
def outline(text: str, kind: Kind = "plan") -> Outline:
    r"""The outline of a plan or an action file."""
    lines = _STEP.finditer(text) if kind == "plan" else ()
    steps = tuple(_step(found, text, number) for number, found in enumerate(lines, start=1))
    declarations = []
    for found in islice(_DECLARATION[kind].finditer(text), MAX_ACTIONS):
        begin = found.start("name")
        span = Span(begin, begin + len(text[begin : found.end()].rstrip()))
        action = parse_action(text, span)
        declared = action if isinstance(action, Action) else None
        name, name_span = canonical_name(found["name"]), Span(*found.span("name"))
        declarations.append(Declaration(span, name, name_span, declared))
    return Outline(text, steps, tuple(declarations))


def _step(found: re.Match[str], text: str, number: int) -> StepLine:
    end = text.find("\n", found.end())
    line = text[found.start() : len(text) if end < 0 else end]
    begin = found.start() + len(line) - len(line.lstrip())
    at = found.start("opens") if found["opens"] else found.end()
    return StepLine(
        number,
        Span(begin, begin + len(line.strip())),
        canonical_name(found["output"]),
        Span(*found.span("output")),
        canonical_name(found["action"] or ""),
        Span(*found.span("action")) if found["action"] else Span(at, at),
        found.end() if found["opens"] else None,
    )


class ArgumentPlace(Struct, frozen=True):
    """The argument of a step that an offset is in."""

    step: StepLine
    index: int
    token: str
    token_span: Span
    is_string: bool = False
    is_in_list: bool = False


def step_at(text: str, offset: int) -> StepLine | None:
    """The step on the line of an offset; its number is always 1."""
    found = _STEP.match(text, text.rfind("\n", 0, offset) + 1)
    return _step(found, text, 1) if found else None


def call_at(text: str, offset: int) -> ArgumentPlace | None:
    """The call whose arguments contain an offset, closed or not; None outside of a call."""
    step = step_at(text, offset)
    if step is None or step.opens is None or offset < step.opens:
        return None
    index, is_in_list = 0, False
    for found in _ARGUMENT.finditer(text, step.opens, max(step.span.end, offset)):
        if found["mark"]:
            if found.start() >= offset:
                break
            if found[0] == ")":
                return None
            is_in_list = is_in_list if found[0] == "," else found[0] == "["
            index += found[0] == "," and not is_in_list
            continue
        if found.start() > offset:
            break
        is_open = bool(found["string"]) and (len(found[0]) == 1 or found[0][-1] != '"')
        if offset < found.end() or (offset == found.end() and (found["name"] or is_open)):
            span = Span(found.start(), offset if is_open else found.end())
            is_string = bool(found["string"])
            return ArgumentPlace(
                step, index, text[span.start : offset], span, is_string, is_in_list
            )
    return ArgumentPlace(step, index, "", Span(offset, offset), is_in_list=is_in_list)


class NamedWord(Struct, frozen=True):
    """A name in a text, and its role."""

    role: Literal["output", "action", "reference", "document", "declaration"]
    name: str
    span: Span


def word_at(text: str, offset: int, kind: Kind = "plan") -> NamedWord | None:
    """The name at an offset or directly before it; None in strings and explanations."""
    start = text.rfind("\n", 0, offset) + 1
    if declared := _DECLARATION[kind].match(text, start):
        span = Span(*declared.span("name"))
        is_in = span.start <= offset <= span.end
        return NamedWord("declaration", canonical_name(declared["name"]), span) if is_in else None
    step = step_at(text, offset) if kind == "plan" else None
    if step is None:
        return None
    if step.output_span.start <= offset <= step.output_span.end:
        return NamedWord("output", step.output, step.output_span)
    if step.action and step.action_span.start <= offset <= step.action_span.end:
        return NamedWord("action", step.action, step.action_span)
    call = call_at(text, offset)
    if call is None or call.is_string or call.token_span.start == call.token_span.end:
        return None
    name = canonical_name(text[call.token_span.start : call.token_span.end])
    return NamedWord("document" if name == CTX else "reference", name, call.token_span)


class KnownActions(Struct, frozen=True):
    """A library with the operators that every plan has."""

    library: ActionLibrary
    path: Path | None = None
    own: frozenset[str] = frozenset()


class ActionSource(Struct, frozen=True):
    """An action, and where it is defined."""

    action: Action
    span: Span | None
    path: Path | None = None


def known_actions(name_or_path: str) -> KnownActions:
    """Load a library by name or by path, with operators."""
    own = load_library(name_or_path)
    is_named = name_or_path in library_names()
    path = find_data("actions", f"{name_or_path}.actions") if is_named else Path(name_or_path)
    return KnownActions(with_operators(own), path and path.resolve(), frozenset(own))


def find_action(name: str, plan: Outline, known: KnownActions) -> ActionSource | None:
    """The action that a plan calls by a name: its own first, then the library's; else None."""
    declared = [each.action for each in plan.declarations if each.action]
    step = Step("", name, (), "")
    action = callable_actions(Plan((step,), tuple(declared)), known.library).get(name)
    if action is None:
        return None
    base = name if name in known.library or plan.declaration_of(name) else name.removeprefix(EACH)
    if declaration := plan.declaration_of(base):
        return ActionSource(action, declaration.name_span)
    if base in known.own and known.path is not None:
        return ActionSource(action, known.library[base].span, known.path)
    return ActionSource(action, None)


def _declared(text: str) -> dict[str, Declared]:
    """The parameters and sources that a plan declares, even if the plan is unfinished."""
    found = {}
    for line in lines(text, with_comments=True):
        if line.role == "declared":
            name, _, told = text[line.body.start : line.body.end].partition(":")
            name = canonical_name(name.strip())
            found[name] = Declared(
                name, told.strip(), Span(line.body.start, line.body.start + len(name))
            )
    return found


class Hover(Struct, frozen=True):
    """A name, and the explanation to show."""

    span: Span
    code: str
    text: str


def hover(text: str, offset: int, kind: Kind, known: KnownActions) -> Hover | None:
    """The explanation of the name at an offset: the definition of an action, or the step of a variable."""
    word = word_at(text, offset, kind)
    if word is None:
        return None
    if word.role == "document":
        return Hover(word.span, word.name, "The document: whatever the plan is run over.")
    names = outline(text, kind)
    if word.role in ("action", "declaration"):
        source = find_action(word.name, names, known)
        if source is None:
            return None
        signature = f"{source.action.signature} -> {source.action.returns}"
        said = [source.action.definition, about(source, known) if kind == "plan" else ""]
        return Hover(word.span, signature, "\n\n".join(filter(None, said)))
    step = names.step_of(word.name, word.span.start)
    if word.role == "reference" and step is None and (named := _declared(text).get(word.name)):
        return Hover(word.span, word.name, named.about)
    if word.role == "output" or step is None:
        return None
    called = find_action(step.action, names, known)
    gives = f" It is a {called.action.returns}." if called else ""
    return Hover(
        word.span, text[step.span.start : step.span.end], f"Output of step {step.number}.{gives}"
    )


def about(source: ActionSource, known: KnownActions) -> str:
    """Say where an action is defined, and whether a model, a search or Python executes it."""
    if source.span is None:
        origin = "of every library"
    elif source.path is None:
        origin = "of this plan"
    else:
        origin = f"of library {known.library.name}"
    who = "computed in Python" if source.action.is_native else "carried out by a model"
    rows = ", for each row" if source.action.cost == "rows" else ""
    return f"An action {origin}, {who}{rows}."


class Suggestion(Struct, frozen=True):
    """A completion."""

    label: str
    kind: Literal["action", "variable", "document", "literal"]
    span: Span
    detail: str = ""
    definition: str = ""


def complete(text: str, offset: int, known: KnownActions) -> list[Suggestion]:
    r"""All completions at an offset of a plan, in the order to show them."""
    step = step_at(text, offset)
    if step is None or offset < step.output_span.end:
        return []
    plan = outline(text)
    if (call := call_at(text, offset)) is not None:
        return list(_arguments(call, plan, known))
    if step.opens is None or offset <= step.action_span.end:
        return list(_actions(text, offset, step, plan, known))
    return []


def _actions(
    text: str, offset: int, step: StepLine, plan: Outline, known: KnownActions
) -> Iterator[Suggestion]:
    """The actions whose names begin with the typed text, the plan's own first."""
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
                f"{action.signature} -> {action.returns}",
                "\n\n".join(
                    filter(None, (action.definition, about(source, known) if source else ""))
                ),
            )


def _arguments(call: ArgumentPlace, plan: Outline, known: KnownActions) -> Iterator[Suggestion]:
    source = find_action(call.step.action, plan, known)
    parameters = source.action.parameters if source else ()
    if source and parameters and not call.is_in_list:
        for choice in source.action.parameter(call.index).choices:
            literal = quote(choice)
            if literal.startswith(call.token):
                yield Suggestion(literal, "literal", call.token_span, detail="literal")
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
            yield Suggestion(name, "variable", call.token_span, detail=detail)
    for name, named in _declared(plan.text).items():
        if name.casefold().startswith(typed):
            yield Suggestion(name, "variable", call.token_span, detail=named.about)
    if CTX.casefold().startswith(typed):
        yield Suggestion(CTX, "document", call.token_span, detail="the document")


class NamePlace(Struct, frozen=True):
    """A name in a file."""

    span: Span
    path: Path | None = None


def definition(text: str, offset: int, kind: Kind, known: KnownActions) -> NamePlace | None:
    r"""The place where the name at an offset is defined: a step, a line of `New actions:`, or the library."""
    word = word_at(text, offset, kind)
    if word is None or word.role == "document":
        return None
    names = outline(text, kind)
    if word.role == "action":
        source = find_action(word.name, names, known)
        return NamePlace(source.span, source.path) if source and source.span else None
    if word.role == "reference":
        step = names.step_of(word.name, word.span.start)
        if place := step.output_span if step else _declared(text).get(word.name):
            return NamePlace(place if isinstance(place, Span) else place.span)
        return None
    return NamePlace(word.span)


_MAX_SHOWN = 40  # Maximum length of a replaced text in a title


def findings(text: str, kind: Kind, library: ActionLibrary | None) -> Sequence[Diagnostic]:
    r"""All errors of a text in order of position, as `pearl check` reports them."""
    if kind == "actions":
        return read_actions(text)[1]
    reading = read(text)
    return reading.errors if library is None else diagnose(reading, library)


def fixed(text: str, kind: Kind, library: ActionLibrary) -> str:
    """The text after every automatic fix, as `pearl check --fix` writes it."""
    return mended(text, library if kind == "plan" else None)[0]


def formatted(text: str, kind: Kind) -> str | None:
    """The text in canonical form, as `pearl fmt` writes it; None if a line cannot be read."""
    try:
        return canonical(text, kind, "")
    except PearlError:
        return None


def fix_title(text: str, found: Diagnostic, fix: Fix) -> str:
    """The title of a fix in the editor."""
    old, new = text[fix.span.start : fix.span.end], fix.replacement
    if max(len(old), len(new)) > _MAX_SHOWN:
        return f"Fix: {found.message}"
    if not new:
        return f"Remove {old!r}"
    return f"Replace {old!r} by {new!r}" if old else f"Insert {new!r}"
