"""Where a name is defined and used, and what a file defines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pearl.editor.known_actions import KnownActions, find_action
from pearl.editor.outline import Kind, NamedWord, outline, word_at
from pearl.errors import Span


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A name in a file."""

    span: Span
    path: Path | None = None


def definition(text: str, offset: int, kind: Kind, known: KnownActions) -> NamePlace | None:
    r"""Where the name at an offset is defined: a step, a line of `New actions:`, of the library.

    Example:
        >>> from pearl.editor.known_actions import known_actions
        >>> definition("1. a = FIND(CTX) : b\n2. c = FIND(a) : d", 33, "plan", known_actions("seed"))
        NamePlace(span=Span(start=3, end=4), path=None)
    """
    word = word_at(text, offset, kind)
    if word is None or word.role == "document":
        return None
    names = outline(text, kind)
    if word.role == "action":
        source = find_action(word.name, names, known)
        return NamePlace(source.span, source.path) if source and source.span else None
    if word.role == "reference":
        step = names.step_of(word.name, word.span.start)
        return NamePlace(step.output_span) if step else None
    return NamePlace(word.span)


def occurrences(text: str, offset: int) -> list[tuple[Span, bool]]:
    """Every place of the variable or action at an offset of a plan, and whether it is defined there."""
    word = word_at(text, offset)
    return list(_occurrences(text, word)) if word and word.role != "document" else []


def _occurrences(text: str, word: NamedWord) -> Iterator[tuple[Span, bool]]:
    plan = outline(text)
    if word.role in ("action", "declaration"):
        for each in plan.declarations:
            if each.name == word.name:
                yield each.name_span, True
        for step in plan.steps:
            if step.action == word.name:
                yield step.action_span, False
        return
    for step in plan.steps:
        if step.output == word.name:
            yield step.output_span, True
        for span in plan.references(step).get(word.name, ()):
            yield span, False


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that a file defines."""

    name: str
    kind: Literal["action", "variable"]
    detail: str
    span: Span
    name_span: Span


def symbols(text: str, kind: Kind) -> list[Symbol]:
    """What a file defines, in order: its actions and its steps."""
    names = outline(text, kind)
    found = [
        Symbol(
            each.name,
            "action",
            each.action.definition if each.action else "",
            each.span,
            each.name_span,
        )
        for each in names.declarations
    ]
    found += [
        Symbol(
            step.output, "variable", f"{step.number}. {step.action}", step.span, step.output_span
        )
        for step in names.steps
    ]
    return found
