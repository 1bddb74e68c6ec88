"""The steps and action declarations of an unfinished plan, by the beginnings of its lines, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Literal

from pearl.actions.library import MAX_ACTIONS
from pearl.dsl.literals import canonical_name
from pearl.dsl.parser import coarse_grammar, parse_action
from pearl.dsl.signatures import CTX, Action
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

Kind = Literal["plan", "actions"]  # The content of a file: a plan, or the actions of a library

_NAME = re.findall(r"^NAME: /(.*)/$", coarse_grammar(), re.M)[0]
_STEP = lazy_pattern(
    rf"^[ \t]*(?:\d+[.)]?[ \t]*)?(?P<output>{_NAME})[ \t]*=(?!=)[ \t]*"
    rf"(?P<action>{_NAME})?(?P<opens>[ \t]*\()?",
    re.M,
)
_DECLARATION = {
    "plan": lazy_pattern(rf"^[ \t]*-[ \t]*(?P<name>{_NAME})\([^\n]*", re.M),
    "actions": lazy_pattern(rf"^[ \t]*(?P<name>{_NAME})\([^\n]*", re.M),
}
_ARGUMENT = lazy_pattern(
    rf'(?P<string>"(?:[^"\\\n]|\\.)*(?:"|\\?$))|(?P<name>{_NAME})|(?P<mark>[\[\](),])', re.M
)


@dataclass(frozen=True, slots=True)
class StepLine:
    """A line that assigns an output."""

    number: int
    span: Span
    output: str
    output_span: Span
    action: str
    action_span: Span
    opens: int | None


@dataclass(frozen=True, slots=True)
class Declaration:
    """A line that declares an action."""

    span: Span
    name: str
    name_span: Span
    action: Action | None


@dataclass(frozen=True)
class Outline:
    """The steps and declarations of a text, in order."""

    text: str
    steps: tuple[StepLine, ...]
    declarations: tuple[Declaration, ...]

    @cached_property
    def _steps_of(self) -> Mapping[str, list[StepLine]]:
        found: dict[str, list[StepLine]] = {}
        for step in self.steps:
            found.setdefault(step.output, []).append(step)
        return found

    def step_of(self, name: str, before: int) -> StepLine | None:
        """The step that assigns a name: the last one above an offset, else the first one below."""
        found = self._steps_of.get(canonical_name(name), [])
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
    return Outline(text, steps, tuple(_declarations(text, kind)))


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


def _declarations(text: str, kind: Kind) -> Iterator[Declaration]:
    for found in islice(_DECLARATION[kind].finditer(text), MAX_ACTIONS):
        begin = found.start("name")
        span = Span(begin, begin + len(text[begin : found.end()].rstrip()))
        action = parse_action(text, span)
        yield Declaration(
            span,
            canonical_name(found["name"]),
            Span(*found.span("name")),
            action if isinstance(action, Action) else None,
        )


@dataclass(frozen=True, slots=True)
class ArgumentPlace:
    """The place of an offset among the arguments of a step."""

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
    """The call whose arguments contain an offset, closed or not; None outside of a call.

    Example:
        >>> call = call_at('1. a = FIND(CTX, ["x", b', 24)
        >>> call.index, call.token, call.is_in_list
        (1, 'b', True)
    """
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


@dataclass(frozen=True, slots=True)
class NamedWord:
    """A name in a text, and its role."""

    role: Literal["output", "action", "reference", "document", "declaration"]
    name: str
    span: Span


def word_at(text: str, offset: int, kind: Kind = "plan") -> NamedWord | None:
    """The name at an offset or directly before it; None in strings and explanations.

    Example:
        >>> word_at('1. a = FIND(CTX, "b") : c', 8)
        NamedWord(role='action', name='FIND', span=Span(start=7, end=11))
    """
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
