"""The tree of a plan: frozen values; their positions in the text do not count for equality."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cached_property

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from pearl.dsl.literals import UNTYPED, quote
from pearl.dsl.signatures import CTX, Action, Compared, ValueType
from pearl.errors import Span
from pearl.errors.callers import ShownInNotebooks

NOWHERE = Span(0, 0)


class Reference(Compared, frozen=True, eq=False):
    """An earlier output by name, the document (`CTX`), or a source that the plan declares."""

    N_COMPARED = 1

    name: str
    span: Span = NOWHERE
    is_source: bool = False

    @property
    def is_context(self) -> bool:
        """Whether this is the document or a source."""
        return self.is_source or self.name == CTX


class String(Compared, frozen=True, eq=False):
    """A quoted string; `value` is without quotes and escapes."""

    N_COMPARED = 1

    value: str
    span: Span = NOWHERE
    has_parameter: bool = False
    """Whether it contains the value of a parameter."""
    written: str = ""
    """The text as the plan writes it, if a parameter was replaced by its value."""


class Number(Compared, frozen=True, eq=False):
    """A number."""

    N_COMPARED = 1

    value: int | float
    span: Span = NOWHERE


class ListLiteral(Compared, frozen=True, eq=False):
    """A list of references, strings and numbers; lists do not nest."""

    N_COMPARED = 1

    items: tuple[Item, ...]
    span: Span = NOWHERE


Item = Reference | String | Number
Argument = Item | ListLiteral


def items_of(argument: Argument) -> tuple[Item, ...]:
    """The items of a list; any other argument is its own single item."""
    return argument.items if isinstance(argument, ListLiteral) else (argument,)


def is_data(argument: Argument) -> bool:
    """Whether an argument may contain text of a document."""
    return any(
        isinstance(item, Reference) or (isinstance(item, String) and item.has_parameter)
        for item in items_of(argument)
    )


class Step(Compared, frozen=True, eq=False, dict=True):
    """One line of a plan: `output = ACTION(arguments) : explanation`. One step, one call."""

    N_COMPARED = 4

    output: str
    action: str
    arguments: tuple[Argument, ...]
    explanation: str
    output_span: Span = NOWHERE
    action_span: Span = NOWHERE

    def references(self) -> Iterator[Reference]:
        """Every name the step reads, in order, inside lists too; `CTX` included."""
        return iter(self._references)

    @cached_property
    def _references(self) -> tuple[Reference, ...]:
        items = (item for argument in self.arguments for item in items_of(argument))
        return tuple(item for item in items if isinstance(item, Reference))

    def with_items(self, change: Callable[[Item], Item]) -> Step:
        """Return the step with each argument, and each item of a list, changed."""
        arguments = (
            replace(each, items=tuple(map(change, each.items)))
            if isinstance(each, ListLiteral)
            else change(each)
            for each in self.arguments
        )
        return replace(self, arguments=tuple(arguments))


class Declared(Compared, frozen=True, eq=False):
    """A parameter or source that the head of a plan declares, with its description."""

    N_COMPARED = 2

    name: str
    about: str = ""
    span: Span = NOWHERE


class Plan(ShownInNotebooks, Struct, frozen=True):
    """A whole plan. `question` is the first line of a plan file; it may be absent."""

    steps: tuple[Step, ...]
    new_actions: tuple[Action, ...] = ()
    question: str | None = None
    sources: tuple[Declared, ...] = ()
    parameters: tuple[Declared, ...] = ()

    def __post_init__(self) -> None:
        """Mark the references to sources, which steps read like `CTX`."""
        names = {source.name for source in self.sources}

        def marked(item: Item) -> Item:
            if isinstance(item, Reference) and item.name in names:
                return replace(item, is_source=True)
            return item

        if names:
            steps = tuple(step.with_items(marked) for step in self.steps)
            force_setattr(self, "steps", steps)

    @property
    def read_names(self) -> frozenset[str]:
        """Every name that a step reads."""
        return frozenset(each.name for step in self.steps for each in step.references())

    def __str__(self) -> str:
        return print_plan(self)


def one_line(text: str) -> str:
    """A text on one line: without control characters, lone surrogates or surrounding blanks."""
    return UNTYPED.sub(" ", text).strip(" \u00a0")


def print_argument(argument: Argument) -> str:
    """The text of an argument."""
    if isinstance(argument, Reference):
        return argument.name
    if isinstance(argument, ListLiteral):
        return f"[{', '.join(print_argument(item) for item in argument.items)}]"
    if isinstance(argument, Number):
        return format(Decimal(repr(argument.value)), "f")  # as short as it gets, no exponent
    return argument.written or quote(argument.value)


def print_step(step: Step, number: int) -> str:
    """One numbered line."""
    arguments = ", ".join(print_argument(argument) for argument in step.arguments)
    return f"{number}. {step.output} = {step.action}({arguments}) : {one_line(step.explanation)}"


def print_action(action: Action) -> str:
    """One line of an action library: `NAME(CTX, X) : definition`, with `-> List` if declared."""
    is_said = not (action.returns is ValueType.TEXT or action.is_native or action.reads_rows)
    head = f"{action.signature} -> {action.returns}" if is_said else action.signature
    definition = one_line(action.definition)
    return f"{head} : {definition}" if definition else head


def print_header(new_actions: Iterable[Action]) -> str:
    """The block of new actions at the top of a plan."""
    return "\n".join(
        ["New actions:", *([f"- {print_action(a)}" for a in new_actions] or ["- None"])]
    )


def print_plan(plan: Plan) -> str:
    """The canonical text, without a line break at its end."""
    blocks: list[Iterable[str]] = []
    if plan.question:
        blocks.append([f"Question: {one_line(plan.question)}"])
    for heading, names in (("Parameters:", plan.parameters), ("Sources:", plan.sources)):
        told = [f"- {each.name} : {one_line(each.about)}".removesuffix(" : ") for each in names]
        blocks += [[heading, *told]] if told else []
    blocks.append([print_header(plan.new_actions)])
    blocks.append(print_step(step, i) for i, step in enumerate(plan.steps, start=1))
    return "\n\n".join("\n".join(block) for block in blocks)
