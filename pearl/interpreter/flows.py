"""What of documents enters the prompt of each step of a plan, and how earlier values cross into later prompts.

A number, a yes or no, a label of a list in the plan, and a record of these and of dates carry no
instruction: `as_input` is the only form in which they cross. Other results may have text that a model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pearl.actions.by_row import ByRow, by_row, query_of
from pearl.actions.groups import NONE
from pearl.actions.native import is_joining
from pearl.actions.values import Scalar, Value, as_text
from pearl.documents.english import SCALES
from pearl.documents.numbers import CURRENCIES, find_quantity
from pearl.documents.record import FieldResult
from pearl.documents.rows import EMPTY, Rows
from pearl.dsl.fields import Field, parse_fields
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Reference, Step, String, items_of
from pearl.dsl.signatures import NOTHING, Action, ValueType
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.results import StepResult

Kind = Literal["number", "bool", "label", "record", "plan", "document", "text"]
"""`plan`: text by a model that saw no document; `document`: rows as they are; `text`: by a model that saw them."""

UNDECIDED, NOT_STATED = "undecided", "not stated"


@dataclass(frozen=True, slots=True)
class Content:
    """What the result of a step consists of.

    Attributes:
        kind: Its type.
        labels: The labels that the result, or the value of each of its rows, is one of; none if unknown.
        columns: The same of the columns of its rows.
        fields: The fields of a record.
        is_list: Whether it has several entries.
    """

    kind: Kind
    labels: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    is_list: bool = False

    @property
    def is_typed(self) -> bool:
        """Whether it crosses in a fixed form, without text."""
        return self.kind in ("number", "bool", "label", "record")

    @property
    def type(self) -> str:
        """The name of its type."""
        if self.kind == "record":
            return ", ".join(dict.fromkeys(_FIELD_TYPES[each.type] for each in self.fields))
        if self.kind == "text":
            return "List of text" if self.is_list else "Text"
        return self.kind.capitalize()


_FIELD_TYPES = {
    "int": "Number", "number": "Number", "bool": "Bool", "label": "Label", "date": "Date",
}  # fmt: skip
_COUNTS = frozenset({"COUNT_OF", "SHARE_OF"})
_KEEP_VALUES = frozenset({"WHERE", "SAMPLE", "HAVING", "RANKED"})
_PICK = frozenset({"MOST", "LEAST", "NTH", "FIRST", "LAST"})
_BY_COLUMN = frozenset({"GROUP", "COUNT_BY", "FIELD"})
_DIGIT = lazy_pattern(r"\d")
_DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BOUNDS = lazy_pattern(
    r"(?:an estimate|95 % interval)(?: for all)?[0-9,:]*(?: (?:[0-9,]+|of|to|rows:?))+"
)
_ABOUT = lazy_pattern(r"(?:about|around|approx|circa|ca\.|roughly)", re.I)
_SCALE_WORDS = {0: "", **{power: f" {word}" for word, power in SCALES.items()}}


def contents(graph: PlanGraph) -> dict[str, Content]:
    """The content of every output."""
    known: dict[str, Content] = {}
    for step in graph.steps:
        known[step.output] = _content(graph, step, known)
    return known


def _content(graph: PlanGraph, step: Step, known: Mapping[str, Content]) -> Content:
    action = graph.checked.action(step)
    kind = _kind(step, action, known)
    is_list = graph.gives[step.output] is ValueType.LIST
    if action.searches:
        return Content(kind, is_list=True)
    if action.is_native:
        return _computed(step, action, kind, known)
    if action.reads_rows and (how := by_row(action)).KIND != "line":
        return _judged(step, how, kind, known)
    if action.extracts and not (action.extracts_all or action.reads_rows):
        (literal,) = (a for a in step.arguments if isinstance(a, String))
        fields = tuple(parse_fields(literal.value))
        if all(not each.is_list and each.type in _FIELD_TYPES for each in fields):
            return Content("record", fields=fields)
    elif not (action.reads_rows or action.asks_table or action.composes or action.extracts):
        match graph.gives[step.output]:
            case ValueType.NUMBER:
                return Content("number")
            case ValueType.BOOL:
                return Content("bool")
    return Content("plan" if kind == "plan" else "text", is_list=is_list)


def _computed(step: Step, action: Action, kind: Kind, known: Mapping[str, Content]) -> Content:
    """The content of what is computed without a model."""
    if action.returns is ValueType.NUMBER or action.name in _COUNTS:
        return Content("number")
    if action.returns is ValueType.BOOL:
        return Content("bool")
    if action.name == "RELATION":
        return Content("label", ("more", "less", "same"))
    result = Content(kind, is_list=action.returns is ValueType.LIST)
    rows = _first(step, known)
    if rows is None:
        return result
    if action.name in _PICK and rows.labels:
        return Content("label", rows.labels)
    if action.name in _KEEP_VALUES:
        return replace(result, labels=rows.labels, columns=rows.columns)
    if action.name in _BY_COLUMN and isinstance(name := step.arguments[1], String):
        labels = rows.columns.get(name.value, ())
        columns = rows.columns if action.name == "FIELD" else {name.value: labels}
        return replace(result, labels=labels, columns=columns)
    return result


def _judged(step: Step, how: ByRow, kind: Kind, known: Mapping[str, Content]) -> Content:
    """The content of rows that a model judged one by one, in fixed words."""
    rows = _first(step, known) or Content(kind)
    result = Content(kind, rows.labels, rows.columns, is_list=True)
    if how.KIND == "rating" and not query_of(how):
        return replace(result, labels=())
    if how.KIND != "label":
        return result
    items = items_of(step.arguments[1])
    written = [str(item.value) for item in items if not isinstance(item, Reference)]
    # Rows with numbers as labels are ranked by them, and named by their text.
    is_closed = len(written) == len(items) and not any(map(_DIGIT.search, written))
    labels = tuple(written) if is_closed else ()
    return replace(result, labels=labels, columns={**rows.columns, step.output: labels})


def _first(step: Step, known: Mapping[str, Content]) -> Content | None:
    first = step.arguments[0]
    return known.get(first.name) if isinstance(first, Reference) else None


def _kind(step: Step, action: Action, known: Mapping[str, Content]) -> Kind:
    """Whose text the arguments of a step have."""
    kinds: set[Kind] = set()
    for i, argument in enumerate(step.arguments):
        # Actions on numbers and values compare with them; others may copy the reply that has one.
        copies = action.is_native and action.parameter(i).reads not in ("number", "value")
        for item in items_of(argument):
            if isinstance(item, Reference):
                content = Content("document") if item.is_context else known[item.name]
                has_reply = copies and (content.is_typed or is_joining(action))
                kinds.add("text" if has_reply and not item.is_context else content.kind)
    return "text" if "text" in kinds else "document" if "document" in kinds else "plan"


# ---------------------------------------------------------------------------------------------
# At run time


def as_input(content: Content, result: StepResult, *, is_reply: bool) -> Value:
    """A result as the input of later prompts; without text, digits, units and words of the plan alone."""
    if content.kind in ("plan", "text"):
        return result.as_input if is_reply else result.value
    value: Any = result.value
    if result.is_void:
        return UNDECIDED
    if result.state == "nothing" and not isinstance(value, Rows | Scalar):
        return NOTHING
    if content.kind == "document":
        return value  # type: ignore[no-any-return]
    if isinstance(value, Scalar):
        notes = tuple(note for note in value.rows.notes if _BOUNDS.fullmatch(note))
        shown = _in_type(content, value.value)
        return replace(value, value=shown, rows=replace(value.rows, notes=notes))
    if content.kind != "record":
        return _in_type(content, value)
    record = {} if result.record is None else result.record.fields
    return "\n".join(
        f"{each.name}: {_of_field(each, record.get(each.name))}" for each in content.fields
    )


def _in_type(content: Content, value: Any) -> str | int | float | bool:
    if content.kind == "number" and isinstance(value, int | float | str):
        return _number(value) if isinstance(value, str) else value
    if content.kind == "bool" and isinstance(value, bool):
        return value
    known = {*content.labels, NONE, EMPTY}
    if isinstance(value, str) and (value in known or known.issuperset(value.split("; "))):
        return value
    return UNDECIDED


def _number(text: str) -> str:
    """A number in digits, with its unit and scale."""
    quantity = find_quantity(text)
    if quantity is None:
        return UNDECIDED
    about = "about " if _ABOUT.match(text) else ""
    sign = "-" if quantity.value < 0 else ""
    before, after = (
        (quantity.unit, "") if quantity.unit in CURRENCIES else ("", f" {quantity.unit}")
    )
    digits = format(abs(quantity.value), "f")
    return f"{about}{sign}{before}{digits}{_SCALE_WORDS[quantity.scale]}{after}".rstrip()


def _of_field(wanted: Field, result: FieldResult | None) -> str:
    value = None if result is None else result.value
    if result is not None and result.state == "not_stated":
        return NOT_STATED
    match wanted.type:
        case "date" if isinstance(value, str) and _DATE.fullmatch(value):
            return value
        case "label" if value in wanted.labels:
            return str(value)
        case "int" | "number" | "bool" if isinstance(value, int | float):
            return as_text(value)
    return UNDECIDED


# ---------------------------------------------------------------------------------------------
# For people


@dataclass(frozen=True, slots=True)
class Crossing:
    """An earlier result in the prompt of a step."""

    number: int
    output: str
    type: str
    is_typed: bool


@dataclass(frozen=True, slots=True)
class StepFlow:
    """What the prompt of a step has, besides the plan."""

    number: int
    step: Step
    asks: bool
    """Whether a model is asked; other steps have no prompt."""
    reads_document: bool
    crossings: tuple[Crossing, ...]

    @property
    def told(self) -> str:
        """What its prompt has, in words."""
        if not self.asks:
            return "no prompt"
        has = ["text of the document"] if self.reads_document else []
        has += [f"{each.type} from step {each.number}" for each in self.crossings]
        return "; ".join(has) or "nothing but the plan"

    def to_dict(self) -> dict[str, Any]:
        """The flow as JSON data."""
        return {
            "step": self.number,
            "output": self.step.output,
            "action": self.step.action,
            "prompt": self.asks,
            "document": self.reads_document,
            "crossings": [
                {"step": each.number, "output": each.output, "type": each.type, "typed": each.is_typed}
                for each in self.crossings
            ],
        }  # fmt: skip


def flows(graph: PlanGraph) -> list[StepFlow]:
    """The flow into every step."""
    known = contents(graph)
    numbers = {step.output: i for i, step in enumerate(graph.steps, start=1)}

    def flow(step: Step) -> StepFlow:
        action = graph.checked.action(step)
        asks = not (action.is_native or action.searches)
        crossings: dict[str, Crossing] = {}
        reads = action.composes  # their quotes
        for each in step.references() if asks else ():
            content = Content("document") if each.is_context else known[each.name]
            if action.composes:
                content = Content("text")
            reads |= content.kind == "document"
            if content.is_typed or content.kind == "text":
                crossings[each.name] = Crossing(
                    numbers[each.name], each.name, content.type, content.is_typed
                )
        return StepFlow(numbers[step.output], step, asks, reads, tuple(crossings.values()))

    return [flow(step) for step in graph.steps]


def is_typed_only(steps: list[StepFlow]) -> bool:
    """Whether every value that crosses into a later prompt is typed."""
    return all(each.is_typed for step in steps for each in step.crossings)


def verdict(steps: list[StepFlow]) -> str:
    """What crosses between the prompts of a plan, in one line."""
    if not is_typed_only(steps):
        return f"text crosses: {', '.join(_text_crossings(steps))}"
    reading = [str(each.number) for each in steps if each.reads_document]
    types = dict.fromkeys(c.type for step in steps for c in step.crossings)
    enters = f"text of the document enters {_steps(reading)}" if reading else "no text enters"
    crosses = f"only {', '.join(types)} crosses" if types else "no result crosses"
    return f"typed crossings only: {enters}; {crosses} into a later prompt"


def _text_crossings(steps: list[StepFlow]) -> Iterator[str]:
    for step in steps:
        for each in step.crossings:
            if not each.is_typed:
                yield f"step {each.number} -> step {step.number} ({each.type})"


def _steps(numbers: list[str]) -> str:
    *before, last = numbers
    return f"steps {', '.join(before)} and {last}" if before else f"step {last}"
