"""The constraints for writing plans with an `ActionLibrary`: grammar and JSON form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pearl.dsl import nodes
from pearl.dsl.decoding.constraint import Constraint, JsonForm, closed_object, require
from pearl.dsl.decoding.grammar import (
    DAY,
    MAX_DIGITS,
    MAX_NEW_ACTIONS,
    MAX_NEW_NAME,
    MAX_WRITTEN_STEPS,
    NEW_PARAMETERS,
    Slot,
    by_shape,
    names_except,
    static_grammar,
)
from pearl.dsl.signatures import CTX, ROWS, Action, ActionLibrary, Parameter, ValueType

Schema = dict[str, Any]

_LARGEST = 10**14 - 1  # Larger numbers with a fraction have too many digits for the plan language

_DECIMALS = 15  # Digits after the point that the plan language takes


def _matching(pattern: str) -> Schema:
    """The schema of a text that matches a pattern, in which all groups capture: not every converter knows `(?:`."""
    return {"type": "string", "pattern": f"^({pattern.replace('(?:', '(')})$"}


def _whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


_MOST = 10**MAX_DIGITS - 1
_FORMED: Mapping[str, Sequence[Schema]] = {
    # two or more texts, none of them blank
    "labels": [
        {"type": "array", "items": {"type": "string", "pattern": "^[^ ].*$"}, "minItems": 2}
    ],
    "results": [],
    "number": [_whole(1, _MOST)],
    "rank": [_whole(1, _MOST), _whole(-_MOST, -1)],
    "date": [_matching(DAY)],
}
"""Schemas of arguments that the checker accepts in one form only."""

_NUMBER: Schema = {"type": "number", "minimum": -_LARGEST, "maximum": _LARGEST}

_SIGNATURES = tuple(
    ", ".join(names)
    for n in range(len(NEW_PARAMETERS) + 1)
    for names in (
        (CTX, *NEW_PARAMETERS[:n]),
        (ROWS, *NEW_PARAMETERS[:n]),
        *([NEW_PARAMETERS[:n], (*NEW_PARAMETERS[:n], "...")] if n else []),
    )
)
"""The parameter lists that a new action may have, as written between its parentheses."""

_ARGUMENTS_HINT = (
    "Arguments go by the names of the action's parameters: a string, a number, an array of those,"
    ' or {"output": NAME} for the document (CTX) and for the output of an earlier step.'
)

_DECLARED_HINT = (
    '"new_actions" holds what the library lacks, each {"name": ..., "parameters": "CTX, X",'
    ' "definition": ...}; it may be empty.'
)


def plan_form(
    library: ActionLibrary, *, max_steps: int = MAX_WRITTEN_STEPS, max_text: int | None = None
) -> JsonForm:
    """The JSON form of a whole plan, `{"new_actions": [...], "steps": [...]}`: a plan in this form parses, but may be invalid."""
    name = f"^[A-Za-z_][0-9A-Za-z_]{{0,{MAX_NEW_NAME - 1}}}$"
    defs = {
        "name": {"type": "string", "pattern": name},
        "new": _matching(names_except(library)),
    }
    schemas = _Schemas(max_text)
    text = schemas.argument(Slot(ValueType.TEXT))
    new = {"action": _ref("new"), "arguments": {"type": "array", "items": text}}
    step = _any(
        closed_object({"output": _ref("name"), **call, "purpose": schemas.text})
        for call in [*schemas.calls(library), new]
    )
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}
    declaration = closed_object(
        {"name": _ref("new"), "parameters": _names(_SIGNATURES), "definition": _text(max_text)}
    )
    declarations = {"type": "array", "items": declaration, "maxItems": MAX_NEW_ACTIONS}
    # This order is in the keys of stored replies.
    defs = {**defs, **schemas.actions, **schemas.arguments}
    schema = {**closed_object({"new_actions": declarations, "steps": steps}), "$defs": defs}

    def write(value: Any) -> str:
        require(value, schema)
        steps = tuple(_step(step, library, max_text) for step in value["steps"])
        actions = []
        for each in value["new_actions"]:
            names = each["parameters"].split(", ")
            is_variadic = names[-1] == "..."
            parameters = tuple(map(Parameter.named, names[:-1] if is_variadic else names))
            definition = _said(each["definition"], each["name"], max_text=max_text)
            actions.append(Action(each["name"], parameters, definition, is_variadic))
        return nodes.print_plan(nodes.Plan(steps, tuple(actions)))

    hint = (
        'Write the plan as a JSON object {"new_actions": [...], "steps": [{"output": NAME,'
        f' "action": ..., "arguments": {{...}}, "purpose": ...}}]}}. {_DECLARED_HINT}'
        f" {_ARGUMENTS_HINT} Arguments of a new action are an array, in their order."
    )
    return JsonForm(schema, write, hint)


# ---------------------------------------------------------------------------------------------
# Schemas


def _any(ways: Iterable[Schema]) -> Schema:
    """`anyOf`, or the schema itself if there is one alternative."""
    ways = list(ways)
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _names(names: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(names)}


def _text(max_text: int | None) -> Schema:
    return {"type": "string"} if max_text is None else {"type": "string", "maxLength": max_text}


_OUTPUT = closed_object({"output": _ref("name")})  # A reference to the document or an output


class _Schemas:
    """Calls as schemas, with one definition for each type of argument and for actions that are called alike."""

    def __init__(self, max_text: int | None) -> None:
        self.text = _text(max_text)
        items = _any([_OUTPUT, self.text, _NUMBER])
        self.actions: dict[str, Schema] = {}
        self.arguments: dict[str, Schema] = {"array": {"type": "array", "items": items}}

    def argument(self, slot: Slot) -> Schema:
        """The schema of an argument."""
        if slot.choices:
            return _names(slot.choices)
        if slot.name not in self.arguments:
            literals: Sequence[Schema] = ()
            if slot.reads:
                literals = _FORMED[slot.reads]
            elif slot.type is ValueType.TEXT:
                literals = [self.text, _NUMBER, _ref("array")]
            elif slot.type is ValueType.NUMBER:
                literals = [_NUMBER]
            elif slot.type is ValueType.LIST:
                literals = [_ref("array")]
            self.arguments[slot.name] = _any([_OUTPUT, *literals])
        return _ref(slot.name)

    def calls(self, library: ActionLibrary) -> Iterator[Schema]:
        """The properties of every call, one object for each signature and way to name its arguments."""
        for i, (shape, actions) in enumerate(by_shape(library.values()).items()):
            types = [self.argument(slot) for slot in shape.needed]
            if shape.more is not None:
                types.append({"type": "array", "items": self.argument(shape.more)})
            alike: dict[tuple[str, ...], list[str]] = {}
            for action in actions:
                alike.setdefault(_keys(action), []).append(action.name)
            for j, (keys, names) in enumerate(alike.items()):
                self.actions[f"a{i}_{j}"] = _names(names)
                arguments = closed_object(dict(zip(keys, types, strict=True)))
                yield {"action": _ref(f"a{i}_{j}"), "arguments": arguments}


def _keys(action: Action) -> tuple[str, ...]:
    """The property names of a call's arguments: the required ones, and an array for variadic ones."""
    keys: list[str] = []
    needed = [parameter.name for parameter in action.parameters[: action.min_arity]]
    for name in [*needed, "more"] if action.is_variadic else needed:
        while name in keys:
            name += "_"
        keys.append(name)
    return tuple(keys)


# ---------------------------------------------------------------------------------------------
# Values that conform


def _step(value: Mapping[str, Any], library: ActionLibrary, max_text: int | None) -> nodes.Step:
    name, given = value["action"], value["arguments"]
    known = library.get(name)
    if known is not None:
        keys = _keys(known)
        more = given[keys[-1]] if known.is_variadic else []
        given = [*(given[key] for key in keys[: known.min_arity]), *more]
    purpose = _said(value["purpose"], known.definition if known else "", name, max_text=max_text)
    arguments = (
        nodes.ListLiteral(tuple(map(_item, each))) if isinstance(each, list) else _item(each)
        for each in given
    )
    return nodes.Step(value["output"], name, tuple(arguments), purpose)


def _item(value: Any) -> nodes.Reference | nodes.String | nodes.Number:
    if isinstance(value, dict):
        return nodes.Reference(value["output"])
    if isinstance(value, str):
        return nodes.String(value)
    value = round(value, _DECIMALS)
    return nodes.Number(int(value) if value == int(value) else value)


def _said(*texts: str, max_text: int | None) -> str:
    """The first text that is not blank, cut to `max_text` characters; a plan requires explanations."""
    return next(line for line in map(nodes.one_line, texts) if line)[:max_text]


def plan_constraint(
    library: ActionLibrary,
    *,
    requires_new: bool = False,
    max_steps: int = MAX_WRITTEN_STEPS,
    max_text: int | None = None,
) -> Constraint:
    """The constraint of a whole plan, with new actions allowed or required: a plan under it parses, but may be invalid."""
    grammar = static_grammar(
        library, requires_new=requires_new, max_steps=max_steps, max_text=max_text
    )
    form = plan_form(library, max_steps=max_steps, max_text=max_text)
    return Constraint("sketch" if requires_new else "plan", grammar, form)
