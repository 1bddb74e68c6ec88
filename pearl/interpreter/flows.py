"""What of documents enters the prompt of each step of a plan, and the form in which results enter later prompts.

A number, a yes or no, a date, a label of a list in the plan, and a record of these carry no instruction:
in prompts they have a fixed form (`as_input`), whatever the reply was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pearl.actions.by_row import ByRow, by_row, query_of
from pearl.actions.groups import NONE
from pearl.actions.native import is_joining
from pearl.actions.values import Scalar, Value, as_text
from pearl.documents.english import SCALES
from pearl.documents.numbers import CURRENCIES, find_quantity
from pearl.documents.rows import EMPTY, Rows
from pearl.dsl.fields import Field, FieldType, parse_fields
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Reference, Step, String, items_of
from pearl.dsl.signatures import NOTHING, Action, ValueType
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.results import StepResult

Kind = Literal["number", "bool", "label", "date", "record", "plan", "document", "text"]
"""`plan`: text by a model that saw no document; `document`: rows as they are; `text`: by a model that saw them."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a result consists of; `labels` and `columns`: the labels that the values of its rows are among."""

    kind: Kind
    labels: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    is_list: bool = False

    @property
    def is_typed(self) -> bool:
        """Whether it enters prompts in a fixed form."""
        return self.kind not in ("plan", "document", "text")

    @property
    def type(self) -> str:
        """The name of its type."""
        if self.kind == "record":
            kinds = dict.fromkeys(_FIELDS[each.type] for each in self.fields)
            return ", ".join(kind.capitalize() for kind in kinds)
        return "List of text" if self.is_list else self.kind.capitalize()


_FIELDS: Mapping[FieldType, Kind] = {
    "int": "number", "number": "number", "bool": "bool", "label": "label", "date": "date",
}  # fmt: skip
_COUNTS = frozenset({"COUNT_OF", "SHARE_OF"})
_SELECT = frozenset({"WHERE", "SAMPLE", "HAVING", "RANKED"})
_PICK = frozenset({"MOST", "LEAST", "NTH", "FIRST", "LAST"})
_BY_COLUMN = frozenset({"GROUP", "COUNT_BY", "FIELD"})


def contents(graph: PlanGraph) -> dict[str, Content]:
    """The content of every output."""
    known: dict[str, Content] = {}
    for step in graph.steps:
        known[step.output] = _content(graph, step, known)
    return known


def _content(graph: PlanGraph, step: Step, known: Mapping[str, Content]) -> Content:
    action = graph.checked.action(step)
    kind = _kind(step, action, known)
    first = step.arguments[0] if step.arguments else None
    rows = known.get(first.name) if isinstance(first, Reference) else None
    if action.searches:
        return Content(kind, is_list=True)
    if action.is_native:
        return _computed(step, action, kind, rows)
    if action.reads_rows and (how := by_row(action)).KIND != "line":
        return _judged(step, how, kind, rows or Content(kind))
    if action.extracts and not (action.extracts_all or action.reads_rows):
        literal = step.arguments[-1]
        fields = tuple(parse_fields(literal.value)) if isinstance(literal, String) else ()
        if all(not each.is_list and each.type in _FIELDS for each in fields):
            return Content("record", fields=fields)
    elif not (action.reads_rows or action.asks_table or action.composes or action.extracts):
        match graph.gives[step.output]:
            case ValueType.NUMBER:
                return Content("number")
            case ValueType.BOOL:
                return Content("bool")
    is_list = graph.gives[step.output] is ValueType.LIST
    return Content("plan" if kind == "plan" else "text", is_list=is_list)


def _computed(step: Step, action: Action, kind: Kind, rows: Content | None) -> Content:
    """The content of what is computed without a model."""
    if action.returns is ValueType.NUMBER or action.name in _COUNTS:
        return Content("number")
    if action.returns is ValueType.BOOL:
        return Content("bool")
    if action.name == "RELATION":
        return Content("label", ("more", "less", "same"))
    result = Content(kind, is_list=action.returns is ValueType.LIST)
    if rows is None:
        return result
    if action.name in _PICK and rows.labels:
        return Content("label", rows.labels)
    if action.name in _SELECT:
        return replace(result, labels=rows.labels, columns=rows.columns)
    if action.name in _BY_COLUMN and isinstance(name := step.arguments[1], String):
        labels = rows.columns.get(name.value, ())
        columns = rows.columns if action.name == "FIELD" else {name.value: labels}
        return replace(result, labels=labels, columns=columns)
    return result


def _judged(step: Step, how: ByRow, kind: Kind, rows: Content) -> Content:
    """The content of rows that a model judged one by one, in fixed words."""
    result = Content(kind, rows.labels, rows.columns, is_list=True)
    if how.KIND != "label":
        is_rated = how.KIND == "rating" and not query_of(how)
        return replace(result, labels=()) if is_rated else result
    items = items_of(step.arguments[1])
    written = [str(item.value) for item in items if not isinstance(item, Reference)]
    # Rows with numbers as labels are ranked by them, and named by their text.
    is_closed = len(written) == len(items) and not any(c.isdigit() for c in "".join(written))
    labels = tuple(written) if is_closed else ()
    return replace(result, labels=labels, columns={**rows.columns, step.output: labels})


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

UNDECIDED = "undecided"
_DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BOUNDS = lazy_pattern(
    r"(?:an estimate|95 % interval)(?: for all)?[0-9,:]*(?: (?:[0-9,]+|of|to|rows:?))+"
)
_ABOUT = lazy_pattern(r"about|around|approx|circa|ca\.|roughly", re.I)
_SCALES = {0: "", **{power: f" {word}" for word, power in SCALES.items()}}


def as_input(content: Content, result: StepResult, *, is_reply: bool) -> Value:
    """A result in later prompts: a model's full reply, because its quotes may matter; but no text if typed."""
    value: Any = result.value
    is_of_rows = isinstance(value, Rows | Scalar)
    if content.kind == "text" or (content.kind == "plan" and result.reply):
        return value if is_of_rows or not is_reply else result.reply or result.text
    if result.is_void:
        return UNDECIDED
    if result.state == "nothing" and not is_of_rows:
        return NOTHING
    if isinstance(value, Scalar) and content.is_typed:
        notes = tuple(note for note in value.rows.notes if _BOUNDS.fullmatch(note))
        shown = _in_type(content, value.value)
        return replace(value, value=shown, rows=replace(value.rows, notes=notes))
    return _in_type(content, value, result) if content.is_typed else value


def _in_type(content: Content, value: Any, result: StepResult | None = None) -> str | int | float:
    """A value in the fixed form of its type."""
    match content.kind, value:
        case "record", _ if result is not None and result.record is not None:
            lines = []
            for each in content.fields:
                one = result.record.fields[each.name]
                typed = _in_type(Content(_FIELDS[each.type], each.labels), one.value)
                shown = "not stated" if one.state == "not_stated" else as_text(typed)
                lines.append(f"{each.name}: {shown}")
            return "\n".join(lines)
        case ("bool", bool()) | ("number", int() | float()):
            return value  # type: ignore[no-any-return]
        case "number", str() if (quantity := find_quantity(value)) is not None:
            about = "about " if _ABOUT.match(value) else ""
            sign = "-" if quantity.value < 0 else ""
            currency = quantity.unit if quantity.unit in CURRENCIES else ""
            unit = f" {quantity.unit}" if quantity.unit and not currency else ""
            digits = format(abs(quantity.value), "f")
            return f"{about}{sign}{currency}{digits}{_SCALES[quantity.scale]}{unit}"
        case "date", str() if _DATE.fullmatch(value):
            return value
        case "label", str() if value in content.labels or set(value.split("; ")) <= {
            *content.labels,
            NONE,
            EMPTY,
        }:
            return value
    return UNDECIDED


# ---------------------------------------------------------------------------------------------
# For people


@dataclass(frozen=True, slots=True)
class Crossing:
    """An earlier result in the prompt of a step."""

    step: int
    output: str
    type: str
    is_typed: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """What the prompt of a step has, besides the plan; a computed step has no prompt."""

    step: int
    output: str
    action: str
    has_prompt: bool
    reads_document: bool
    crossings: tuple[Crossing, ...]

    @property
    def told(self) -> str:
        """The same in words."""
        if not self.has_prompt:
            return "no prompt"
        crossings = [f"{each.type} from step {each.step}" for each in self.crossings]
        document = ["text of the document"] if self.reads_document else []
        return "; ".join([*document, *crossings]) or "nothing but the plan"


def flows(graph: PlanGraph) -> list[Flow]:
    """The flow into every step."""
    known = contents(graph)
    numbers = {step.output: i for i, step in enumerate(graph.steps, start=1)}
    into: list[Flow] = []
    for step in graph.steps:
        action = graph.checked.action(step)
        has_prompt = not (action.is_native or action.searches)
        names = dict.fromkeys(each.name for each in step.references() if has_prompt)
        given = {name: known.get(name, Content("document")) for name in names}
        if action.composes:  # it gets their quotes, too
            given = dict.fromkeys(names, Content("text"))
        crossings = tuple(
            Crossing(numbers[name], name, content.type, content.is_typed)
            for name, content in given.items()
            if content.is_typed or content.kind == "text"
        )
        reads = action.composes or any(each.kind == "document" for each in given.values())
        number = numbers[step.output]
        into.append(Flow(number, step.output, step.action, has_prompt, reads, crossings))
    return into


def verdict(into: Sequence[Flow]) -> str:
    """How results enter the prompts of a plan, in one line."""
    pairs = [(crossing, each) for each in into for crossing in each.crossings]
    if texts := [
        f"step {crossing.step} -> step {each.step} ({crossing.type})"
        for crossing, each in pairs
        if not crossing.is_typed
    ]:
        return f"text crosses: {', '.join(texts)}"
    reading = ", ".join(str(each.step) for each in into if each.reads_document)
    where = f"step{'s' if ',' in reading else ''} {reading}" if reading else "no step"
    types = ", ".join(dict.fromkeys(crossing.type for crossing, _ in pairs))
    how = f"results enter later prompts as {types}" if types else "no result enters a later prompt"
    return f"typed crossings only: text of the document enters {where}; {how}"
