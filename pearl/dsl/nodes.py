"""The tree of a plan: frozen values whose positions take no part in equality.

Plan(new_actions, steps, question) ─ Step(output, action, arguments, explanation)
                                       └─ Reference | String | Number | ListLiteral
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pearl.dsl.signatures import CTX, Action
from pearl.errors import Span
from pearl.notebooks import ShownInNotebooks

NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Reference:
    """An earlier output by name, or the document (`CTX`)."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def is_context(self) -> bool:
        """Whether this is the document."""
        return self.name == CTX


@dataclass(frozen=True, slots=True)
class String:
    """A quoted string; `value` is what the quotes and escapes mean."""

    value: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: int | float
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """A list of references, strings and numbers; lists do not nest."""

    items: tuple[Reference | String | Number, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Argument = Reference | String | Number | ListLiteral


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a plan: `output = ACTION(arguments) : explanation`. One step, one call."""

    output: str
    action: str
    arguments: tuple[Argument, ...]
    explanation: str
    output_span: Span = field(default=NOWHERE, compare=False, repr=False)
    action_span: Span = field(default=NOWHERE, compare=False, repr=False)

    def references(self) -> Iterator[Reference]:
        """Every name the step reads, in order, inside lists too; `CTX` included."""
        for argument in self.arguments:
            if isinstance(argument, Reference):
                yield argument
            elif isinstance(argument, ListLiteral):
                yield from (item for item in argument.items if isinstance(item, Reference))


@dataclass(frozen=True, slots=True)
class Plan(ShownInNotebooks):
    """A whole plan. `question` is what a plan file says on top; it may be absent."""

    steps: tuple[Step, ...]
    new_actions: tuple[Action, ...] = ()
    question: str | None = None
