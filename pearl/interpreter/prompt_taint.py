"""Which text of documents enters the prompt of each step, and how results are written in later prompts.

A number, a yes or no, a date, a label of a list in the plan, and a record of these carry no instruction:
in prompts they have a fixed form (`as_input`), whatever the reply was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.by_row import ByRow, by_row
from pearl.actions.groups import NONE
from pearl.actions.native import is_joining
from pearl.actions.values import Scalar, Value, as_text
from pearl.documents.dates import DATE_PARTS, date_part, readings
from pearl.documents.lexicon import CURRENCIES, SCALES
from pearl.documents.numbers import find_quantity
from pearl.documents.rows import EMPTY, Rows
from pearl.dsl.fields import Field, FieldType, parse_fields
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Reference, Step, String, is_data, items_of
from pearl.dsl.signatures import NOTHING, Action, ValueType
from pearl.interpreter.results import StepResult

Kind = Literal["number", "bool", "label", "date", "record", "plan", "document", "text"]
"""`plan`: text by a model that saw no document; `document`: rows unchanged; `text`: text by a model that saw documents."""


class Content(Struct, frozen=True):
    """The kind of a result; `labels` are all possible values of its rows, () if unknown."""

    kind: Kind
    labels: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    is_list: bool = False

    @property
    def is_typed(self) -> bool:
        """Whether prompts show it in a fixed form, which can carry no instruction."""
        return self.kind not in ("plan", "document", "text")

    @property
    def type(self) -> str:
        """The name of its type."""
        kinds = dict.fromkeys(_FIELDS[each.type] for each in self.fields) or (self.kind,)
        return "List of text" if self.is_list else ", ".join(kind.capitalize() for kind in kinds)


_FIELDS: Mapping[FieldType, Kind] = {
    "int": "number", "number": "number", "bool": "bool", "label": "label", "date": "date",
}  # fmt: skip
_TYPES: Mapping[ValueType, Kind] = {
    ValueType.NUMBER: "number", ValueType.BOOL: "bool", ValueType.DATE: "date",
}  # fmt: skip


def contents(graph: PlanGraph) -> dict[str, Content]:
    """The content of every output."""
    by_output: dict[str, Content] = {}
    for step in graph.steps:
        by_output[step.output] = _content(graph, step, by_output)
    return by_output


def _content(graph: PlanGraph, step: Step, by_output: Mapping[str, Content]) -> Content:
    action = graph.checked.action(step)
    kind = _kind(step, action, by_output)
    if action.searches:
        return Content(kind, is_list=True)
    if action.is_native or "by_field" in action.traits:
        return _computed(step, action, kind, by_output)
    how = by_row(action) if action.reads_rows else None
    if how is not None and how.KIND != "line":
        return Content(kind, _labels(step, how, by_output), is_list=True)
    if action.extracts and not (action.extracts_all or action.reads_rows):
        literal = step.arguments[-1]
        fields = parse_fields(literal.value) if isinstance(literal, String) else ()
        if all(not each.is_list and each.type in _FIELDS for each in fields):
            return Content("record", fields=fields)
    given = graph.gives[step.output]
    if given in _TYPES and not (how or action.asks_table or action.composes or action.extracts):
        return Content(_TYPES[given])
    return Content("plan" if kind == "plan" else "text", is_list=given is ValueType.LIST)


def _computed(step: Step, action: Action, kind: Kind, by_output: Mapping[str, Content]) -> Content:
    """The content of a step computed without a model."""
    if "tries" in action.traits:
        first, *others = (by_output[each.name] for each in step.references())
        return first if all(each == first for each in others) else Content(kind)
    traits = action.traits
    is_list = action.returns is ValueType.LIST
    if "figures" in traits:  # Figures of a list are a list, one for each row
        is_list |= any(by_output[r.name].is_list for r in step.references() if not r.is_context)
    is_number = not traits.isdisjoint(("counts", "figures"))
    if not is_list and (action.returns in _TYPES or is_number):
        return Content(_TYPES.get(action.returns, "number"))
    labels = action.labels
    rows = step.arguments[0]
    # Rows that are ranked by their own value keep their text as the value.
    by_own = isinstance(rows, Reference) and String(rows.name) in step.arguments
    if "selects" in traits or ("picks" in traits and not by_own):
        labels = _labels(step, None, by_output)
    if labels and action.returns is ValueType.TEXT:
        return Content("label", labels)
    if "by_field" in traits and isinstance(name := step.arguments[1], String):
        labels = by_output.get(name.value, Content(kind)).labels  # The name of a column is its step
    return Content(kind, labels, is_list=is_list)


def _labels(step: Step, how: ByRow | None, by_output: Mapping[str, Content]) -> tuple[str, ...]:
    """All possible values of rows: the labels of CLASSIFY, or those of the rows that a step selects from."""
    if how is not None and how.KIND == "label":
        items = items_of(step.arguments[1])
        written = [
            str(item.value) for item in items if not (isinstance(item, Reference) or is_data(item))
        ]
        # Rows with numeric labels are ranked by these, and named by their text.
        is_closed = len(written) == len(items) and not any(c.isdigit() for c in "".join(written))
        return tuple(written) if is_closed else ()
    rows = step.arguments[0]
    return (
        by_output[rows.name].labels
        if isinstance(rows, Reference) and rows.name in by_output
        else ()
    )


def _kind(step: Step, action: Action, by_output: Mapping[str, Content]) -> Kind:
    """The kind of text that the arguments of a step may contain."""
    kinds: set[Kind] = set()
    for i, argument in enumerate(step.arguments):
        # Actions on numbers and values only compare; others may copy the reply that contains them.
        copies = action.is_native and action.parameter(i).reads not in ("number", "value", "date")
        for item in items_of(argument):
            if isinstance(item, Reference) and not item.is_context:
                has_reply = copies and (by_output[item.name].is_typed or is_joining(action))
                kinds.add("text" if has_reply else by_output[item.name].kind)
            elif is_data(item):
                kinds.add("document" if isinstance(item, Reference) else "text")
    return "text" if "text" in kinds else "document" if "document" in kinds else "plan"


# ---------------------------------------------------------------------------------------------
# At run time

UNDECIDED = "undecided"
_ABOUT = ("about", "around", "approx", "circa", "ca.", "roughly")
"""How an approximate amount begins: "about 5 million"."""
_SCALES = {0: "", **{power: f" {word}" for word, power in SCALES.items()}}


def as_input(content: Content, result: StepResult, *, is_reply: bool) -> Value:
    """A result as later prompts show it: the value alone if it is typed, else the full reply, because its quotes may matter."""
    value: Any = result.value
    is_of_rows = isinstance(value, Rows | Scalar)
    if content.kind == "text" or (content.kind == "plan" and result.reply):
        return value if is_of_rows or not is_reply else result.reply or result.text
    if result.is_void:
        return UNDECIDED
    if result.state == "nothing" and not is_of_rows:
        return NOTHING
    if isinstance(value, Scalar) and content.is_typed:
        text = _in_type(content, value.value)
        return replace(value, value=text, rows=replace(value.rows, notes=()))
    return _in_type(content, value, result) if content.is_typed else value


def _in_type(content: Content, value: Any, result: StepResult | None = None) -> str | int | float:
    """Write a value in the fixed form of its type."""
    match content.kind, value:
        case "record", _ if result is not None and result.record is not None:
            lines = []
            for each in content.fields:
                field = result.record.fields[each.name]
                typed = _in_type(Content(_FIELDS[each.type], each.labels), field.value)
                text = "not stated" if field.state == "not_stated" else as_text(typed)
                lines.append(f"{each.name}: {text}")
            return "\n".join(lines)
        case ("bool", bool()) | ("number", int() | float()):
            return value  # type: ignore[no-any-return]
        case "number", str() if (quantity := find_quantity(value)) is not None:
            about = "about " if value.casefold().startswith(_ABOUT) else ""
            sign = "-" if quantity.value < 0 else ""
            currency = quantity.unit if quantity.unit in CURRENCIES else ""
            unit = f" {quantity.unit}" if quantity.unit and not currency else ""
            digits = format(abs(quantity.value), "f")
            return f"{about}{sign}{currency}{digits}{_SCALES[quantity.scale]}{unit}"
        case "date", str() if found := readings(value):
            keys = (date_part(found[0], part) for part in DATE_PARTS)
            return value if len(found) > 1 else next(filter(None, keys))
        case "label", str() if value in content.labels or set(value.split("; ")) <= {
            *content.labels,
            NONE,
            EMPTY,
        }:
            return value
    return UNDECIDED


# ---------------------------------------------------------------------------------------------
# For people


def flows(graph: PlanGraph) -> dict[str, Any]:
    """List what enters the prompt of each step besides the plan, as JSON data, with a one-line summary."""
    by_output = contents(graph)
    numbers = {step.output: i for i, step in enumerate(graph.steps, start=1)}
    steps: list[dict[str, Any]] = []
    reading: list[str] = []
    texts: list[str] = []
    types: dict[str, None] = {}
    for step, number in zip(graph.steps, numbers.values(), strict=True):
        action = graph.checked.action(step)
        has_prompt = action.cost in ("rows", "text")
        names = dict.fromkeys(each.name for each in step.references() if has_prompt)
        given = {name: by_output.get(name, Content("document")) for name in names}
        if action.composes:  # The composer gets their quotes, too
            given = dict.fromkeys(names, Content("text"))
        reads = action.composes or any(each.kind == "document" for each in given.values())
        reading += [str(number)] * reads
        crossings = []
        for name, content in given.items():
            if not (content.is_typed or content.kind == "text"):
                continue
            crossing = {"step": numbers[name], "output": name, "type": content.type}
            crossings.append({**crossing, "is_typed": content.is_typed})
            types[content.type] = None
            if not content.is_typed:
                texts.append(f"step {numbers[name]} -> step {number} ({content.type})")
        parts = ["text of the document"] * reads
        parts += [f"{each['type']} from step {each['step']}" for each in crossings]
        items = [item for argument in step.arguments for item in items_of(argument)]
        has_value = any(isinstance(item, String) and is_data(item) for item in items)
        parts += ["values of parameters"] * (has_prompt and has_value)
        summary = "; ".join(parts) or ("nothing but the plan" if has_prompt else "no prompt")
        steps.append({
            "step": number, "output": step.output, "action": step.action, "has_prompt": has_prompt,
            "reads_document": reads, "crossings": crossings, "told": summary,
        })  # fmt: skip
    where = f"step{'s' * (len(reading) > 1)} {', '.join(reading)}" if reading else "no step"
    how = "no result enters a later prompt"
    if types:
        how = f"results enter later prompts as {', '.join(types)}"
    verdict = f"typed crossings only: text of the document enters {where}; {how}"
    if texts:
        verdict = f"text crosses: {', '.join(texts)}"
    return {"verdict": verdict, "is_typed": not texts, "steps": steps}
