"""What the name under the cursor is."""

from __future__ import annotations

from dataclasses import dataclass

from pearl.editor.known_actions import ActionSource, KnownActions, find_action
from pearl.editor.outline import Kind, Outline, outline, word_at
from pearl.errors import Span


@dataclass(frozen=True, slots=True)
class Hover:
    """A name, and what is to be said of it."""

    span: Span
    code: str
    text: str


def hover(text: str, offset: int, kind: Kind, known: KnownActions) -> Hover | None:
    """What is to be said of the name at an offset: the definition of an action, the step of a variable.

    Example:
        >>> from pearl.editor.known_actions import known_actions
        >>> hover("1. a = FIND_MORAL(CTX) : c", 9, "plan", known_actions("seed")).code
        'FIND_MORAL(CTX) -> Text'
    """
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
    if word.role == "output" or step is None:
        return _used(word.name, word.span, names)
    called = find_action(step.action, names, known)
    gives = f" It is a {called.action.returns}." if called else ""
    return Hover(
        word.span, text[step.span.start : step.span.end], f"Output of step {step.number}.{gives}"
    )


def about(source: ActionSource, known: KnownActions) -> str:
    """Where an action is from, and who carries it out."""
    if source.span is None:
        origin = "of every library"
    elif source.path is None:
        origin = "of this plan"
    else:
        origin = f"of library {known.library.name}"
    who = "computed in Python" if source.action.is_native else "carried out by a model"
    rows = ", for each row" if source.action.reads_rows else ""
    return f"An action {origin}, {who}{rows}."


def _used(name: str, span: Span, plan: Outline) -> Hover | None:
    """Which steps take an output."""
    step = next((step for step in plan.steps if step.output_span == span), None)
    if step is None:
        return None
    users = [str(other.number) for other in plan.steps if name in plan.references(other)]
    used = (
        f"Taken by step {', '.join(users)}."
        if users
        else "Taken by no step: it is part of the answer."
    )
    return Hover(span, plan.text[step.span.start : step.span.end], used)
