"""`ActionLibrary` → the constraints for writing plans: grammar, JSON form and line by line.

Plans are usually written in two phases: the new actions (`header_constraint`), then the steps
(`steps_constraint`), which admits valid steps only. A decoder that accepts a new grammar after
every line needs one phase (`line_constraint`).
"""

from __future__ import annotations

from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.grammar import (
    MAX_WRITTEN_STEPS,
    header_grammar,
    indexed_grammar,
    line_grammar,
    static_grammar,
)
from pearl.dsl.decoding.json_form import header_form, plan_form, steps_form
from pearl.dsl.signatures import ActionLibrary

MAX_JSON_STEPS = 8
"""Steps of a valid plan as JSON: the schema says every argument of every state in full, and servers
that make a grammar of it take as long as it is."""


def header_constraint(library: ActionLibrary, *, max_text: int | None = None) -> Constraint:
    """The block of new actions of a plan, possibly empty; duplicate declarations are harmless."""
    grammar = header_grammar(library, max_text=max_text)
    return Constraint("new-actions", grammar, header_form(library, max_text=max_text))


def steps_constraint(
    library: ActionLibrary,
    *,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> Constraint:
    """The steps of a valid plan, which calls actions of the library only."""
    grammar = indexed_grammar(library, max_steps=max_steps, max_text=max_text)
    form = steps_form(library, max_steps=min(max_steps, MAX_JSON_STEPS), max_text=max_text)
    return Constraint("steps", grammar, form)


def plan_constraint(
    library: ActionLibrary,
    *,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> Constraint:
    """A whole plan in one phase, new actions allowed: it parses, but may be invalid."""
    grammar = static_grammar(library, max_steps=max_steps, max_text=max_text)
    form = plan_form(library, max_steps=max_steps, max_text=max_text)
    return Constraint("plan", grammar, form)


def sketch_constraint(
    library: ActionLibrary,
    *,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> Constraint:
    """The reply to a mining prompt: new actions or none, then steps."""
    grammar = static_grammar(
        library, new_actions="required", max_steps=max_steps, max_text=max_text
    )
    form = plan_form(library, max_steps=max_steps, max_text=max_text)
    return Constraint("sketch", grammar, form)


def line_constraint(
    library: ActionLibrary,
    *,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> Constraint:
    """A whole plan, line by line; every result is valid."""

    def next_line(written: str) -> str:
        return line_grammar(written, library, max_steps=max_steps, max_text=max_text)

    grammar = static_grammar(library, max_steps=max_steps, max_text=max_text)
    return Constraint("lines", grammar, next_line=next_line)
