"""Compose the value that a schema describes from a record, and report what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, time
from functools import lru_cache
from typing import Any, Final

from pearl.data.json_schema import DATA, MAPS, no_retriever
from pearl.data.schema_tree import (
    Choice,
    Constant,
    Key,
    List,
    Map,
    Node,
    Object,
    Scalar,
    members_of,
    nested,
)
from pearl.documents.record import FieldResult
from pearl.dsl.literals import short

Where = tuple[Key, ...]  # The place of a value in the data of a schema

Flaws = Iterable[tuple[Sequence[Key], str, bool]]
"""Errors in data: the place, the reason, and whether undecided values may be the cause."""

MISSING: Final = object()  # No value
_ABSENT = FieldResult("undecided", why="not in the record")


def told_place(where: Where) -> str:
    """A place as text: `drugs[0].dose`; "" for the whole."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in where)
    return "".join(parts).removeprefix(".")


class Composer:
    """Composes the value of one record; `name` names the whole in messages. With `fills_in`, defaults fill gaps."""

    def __init__(self, root: Node, name: str, *, fills_in: bool) -> None:
        self.root = root
        self.name = name
        self.fills_in = fills_in
        self.reasons: list[str] = []
        self.lost: dict[Where, None] = {}
        """The places of undecided values."""
        self._refused: set[Where] = set()
        self._chosen: dict[Where, Object] = {}
        self._kept: dict[Where, list[int]] = {}
        """For each list of the data, the indices of the entries that the value keeps."""
        self._left_out: dict[Where, None] = {}
        self.data: Any = None

    def compose(self, name: str, fields: Mapping[str, FieldResult]) -> None:
        """Read the data from the field of this name, or from all fields for ""."""
        got = nested(fields)
        self.data = self._read(self.root, got.get(name) if name else got, (), True)

    # --- record -> data

    def _read(self, node: Node, got: Any, at: Where, is_needed: bool) -> Any:
        match node:
            case Constant():
                return node.value
            case Object() | Choice():
                return self._object(node, got if isinstance(got, Mapping) else {}, at, is_needed)
        result = got if isinstance(got, FieldResult) else _ABSENT
        is_many = isinstance(node, List | Map)
        if result.state == "undecided":
            self._lose(at, f"undecided: {result.why}" if result.why else "undecided")
            if not (is_many and result.entries):  # keep the entries that were found
                return None
        elif result.state == "not_stated":
            if isinstance(node, List) and node.is_empty and not node.is_nullable:
                return []
            if isinstance(node, Map) and not node.is_nullable:
                return {}
            if is_needed and not node.is_nullable:
                self._say(at, "not stated")
            return None
        match node:
            case List():
                return self._list(node, result, at)
            case Map():
                return self._map(node, result, at)
            case Scalar():
                value, flaw = converted(node, result.value)
                if flaw:
                    self._lose(at, f"undecided: {flaw}")
                return value
        raise TypeError(node)

    def _object(self, node: Object | Choice, got: Mapping[str, Any], at: Where, is_needed: bool) -> Any:  # fmt: skip
        is_stated = any(result.state != "not_stated" for result in _leaves(got))
        if not is_stated and (node.is_nullable or not is_needed):
            return None
        if isinstance(node, Choice):
            if not is_stated:
                self._say(at, "not stated")
                return None
            chosen = self._variant(node, got, at)
            if chosen is None:
                return None
            self._chosen[at] = node = chosen
        if node.shape == "bare":
            return self._read(node.members[0].node, got.get(node.members[0].name), at, is_needed)
        values = {
            m.key: self._read(m.node, got.get(m.name), (*at, m.key), m.is_required) for m in node.members
        }  # fmt: skip
        if node.shape == "tuple":
            return list(values.values())
        if node.rest is not None:
            more = self._read(node.rest.node, got.get(node.rest.name), at, False) or {}
            values |= {k: v for k, v in more.items() if k not in values}
        return values

    def _variant(self, node: Choice, got: Mapping[str, Any], at: Where) -> Object | None:
        """The variant whose members include every stated field; None, noted as undecided, if none does."""
        states = {
            name: {r.state for r in (_leaves(r) if isinstance(r, Mapping) else [r])} - {"not_stated"}
            for name, r in got.items()
        }  # fmt: skip
        stated = {name for name, found in states.items() if "found" in found}
        variants = list(node.variants)
        if node.tag is not None:
            told = got.get(node.tag.name)
            if isinstance(told, FieldResult) and told.state == "found":
                chosen = [v for v, tags in zip(variants, node.tags, strict=True) if told.value in tags]  # fmt: skip
                variants = chosen or variants
            elif isinstance(told, FieldResult) and told.state == "undecided":
                self._lose((*at, node.tag.key), f"undecided: {told.why}")
        names = [{m.name for m in members_of(v)} for v in variants]
        if node.tag is not None:
            stated.discard(node.tag.name)
        fitting = [v for v, own in zip(variants, names, strict=True) if stated <= own]
        if not fitting:
            self._lose(at, f"undecided: none of its alternatives has all of {short(', '.join(sorted(stated)))}")  # fmt: skip
            return None

        def rank(variant: Object) -> tuple[int, int]:
            required = [m.name for m in members_of(variant) if m.is_required and not isinstance(m.node, Constant)]  # fmt: skip
            n_absent = sum(not states.get(name) for name in required)
            return n_absent, -len(required)

        return min(fitting, key=rank)

    def _list(self, node: List, result: FieldResult, at: Where) -> Any:
        is_nested = isinstance(node.item, Object | Choice)
        values = []
        for i, entry in enumerate(result.entries):
            got = nested(entry) if is_nested else entry.get("value")
            values.append(self._read(node.item, got, (*at, i), True))
            # in a list of lists the position of an entry matters, and dropping a gap would shift the rest
            is_gap = isinstance(node.item, Scalar) and all(r.state == "not_stated" for r in entry.values())  # fmt: skip
            if is_gap and not node.item.is_nullable and isinstance(at[-1] if at else "", int):
                self.lost.setdefault((*at, i))
        if node.is_set and isinstance(node.item, Scalar):
            kept: list[Any] = []
            for value in values:
                if value is None or value not in kept:
                    kept.append(value)
            values = kept
        is_single = node.may_be_single and len(values) == 1 and result.state == "found"
        return values[0] if is_single else values

    def _map(self, node: Map, result: FieldResult, at: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for i, entry in enumerate(result.entries):
            got = nested(entry)
            key = self._read(node.key.node, got.pop(node.key.name, None), (*at, i), True)
            if key is None:
                continue
            place = (*at, str(key))
            value = self._read(node.value.node, got.get(node.value.name) if node.value.name else got, place, True)  # fmt: skip
            if key in found and found[key] != value:
                self._lose(place, "undecided: the document has two values for this key")
                value = None
            found[str(key)] = value
        return found

    def _lose(self, at: Where, why: str) -> None:
        self.lost.setdefault(at)
        self._say(at, why)

    def _say(self, at: Where, why: str) -> None:
        self.reasons.append(f"{told_place(at) or self.name}: {why}")

    # --- data -> value

    def value(self, flaws: Callable[[Any], Flaws]) -> Any:
        """The data without missing or flawed parts; `MISSING` if such a part is required."""
        while True:
            self._left_out.clear()
            value = self._pruned(self.root, self.data, ())
            if value is MISSING:
                return value
            refused = list(self._found(value, flaws(value)))
            if not refused:
                for at in self._left_out:
                    self._say(at, "default, not stated")
                return value
            is_new = any(at and at not in self._refused for at, _, _ in refused)
            for at, why, is_of_all in refused:
                if not (is_of_all and self._has_gap(at)):
                    self._say(at, why)
                self._refused.add(at)
                self.lost.setdefault(at)
                self._empty(at, is_whole=False)
            if not is_new:
                return MISSING

    def _has_gap(self, at: Where) -> bool:
        """Whether a value inside a place is undecided."""
        return any(len(lost) > len(at) and lost[: len(at)] == at for lost in self.lost)

    def _found(self, value: Any, flaws: Flaws) -> Iterable[tuple[Where, str, bool]]:
        """Map flaws of the value to places in the data, each once."""
        seen: set[Where] = set()
        for where, why, is_of_all in flaws:
            at: Where = ()
            inner = value
            for key in where:
                if isinstance(inner, dict) and str(key) in inner:  # a name may look like a number
                    at, inner = (*at, str(key)), inner[str(key)]
                elif isinstance(inner, list) and isinstance(key, int) and key < len(inner):
                    at, inner = (*at, self._kept.get(at, range(len(inner)))[key]), inner[key]
                elif at not in self._chosen:  # pydantic adds the name of a variant to the place
                    break
            if at not in seen:
                seen.add(at)
                yield at, why, is_of_all

    def drop(self, flaws: Flaws) -> None:
        """Remove values with flaws from the data."""
        self._kept.clear()
        for at, why, is_of_all in self._found(self.data, flaws):
            if not (is_of_all and self._has_gap(at)) and self._empty(at, is_whole=True):
                self._lose(at, why)

    def _empty(self, at: Where, *, is_whole: bool) -> bool:
        """Set a place to None; return False if nothing changed."""
        holder: Any = {"": self.data}  # so that the whole can be emptied, too
        *around, last = ("", *at)
        for key in around:
            holder = holder[key]
            if holder is None:
                return False
        value = holder[last]
        if value is None or (isinstance(value, dict | list) and not (is_whole and at)):
            return False
        holder[last] = None
        if not at:
            self.data = None
        return True

    def _pruned(self, node: Node, data: Any, at: Where) -> Any:
        value = MISSING if data is None or at in self._refused else self._part(node, data, at)
        return None if value is MISSING and node.is_nullable else value

    def _part(self, node: Node, data: Any, at: Where) -> Any:
        match node:
            case Choice():
                return self._part(self._chosen[at], data, at)
            case Object(shape="bare"):
                return self._pruned(node.members[0].node, data, at)
            case Object(shape="tuple"):
                found = [self._pruned(m.node, v, (*at, i)) for i, (m, v) in enumerate(zip(node.members, data, strict=True))]  # fmt: skip
                return MISSING if MISSING in found else found
            case Object():
                return self._members(node, data, at)
            case List() if isinstance(data, list):
                entries = [self._pruned(node.item, v, (*at, i)) for i, v in enumerate(data)]
                self._kept[at] = [i for i, entry in enumerate(entries) if entry is not MISSING]
                return [entry for entry in entries if entry is not MISSING]
            case Map():
                values = {k: self._pruned(node.value.node, v, (*at, k)) for k, v in data.items()}
                return {k: v for k, v in values.items() if v is not MISSING}
        return data

    def _members(self, node: Object, data: Mapping[str, Any], at: Where) -> Any:
        found: dict[str, Any] = {}
        keys = {m.key for m in node.members}
        for member in node.members:
            place, given = (*at, member.key), data[str(member.key)]
            value = self._pruned(member.node, given, place)
            is_filled = self.fills_in and member.has_default
            if value is not MISSING:
                found[str(member.key)] = value
            elif member.is_required or (is_filled and (given is not None or place in self.lost)):
                return MISSING
            elif is_filled:
                self._left_out[place] = None
        if node.rest is not None:
            others = {k: v for k, v in data.items() if k not in keys}
            more = self._part(node.rest.node, others, at)
            found |= more if isinstance(more, dict) else {}
        return found


def _leaves(got: Mapping[str, Any]) -> Iterable[FieldResult]:
    for inner in got.values():
        if isinstance(inner, FieldResult):
            yield inner
        else:
            yield from _leaves(inner)


def converted(node: Scalar, value: Any) -> tuple[Any, str]:
    """Convert the value of a field to the schema's type; return (value, "") or (None, the reason)."""
    if node.values:
        label = value if isinstance(value, str) else json.dumps(value)
        if label in node.values:
            return node.values[label], ""
        if not node.kinds:
            return (value, "") if node.type == "label" else (None, f"{short(label)} is none of its values")  # fmt: skip
    if node.form:  # An offset is never added if the document states none
        try:
            kind = datetime if node.form == "date-time" else time
            parsed = kind.fromisoformat(str(value).strip())
        except ValueError:
            return None, f'the value {short(json.dumps(value))} breaks "format": "{node.form}"'
        return parsed.isoformat().replace("+00:00", "Z"), ""
    if node.type == "decimal" and "string" in node.kinds:
        return str(value), ""
    if not isinstance(value, str) or node.kinds == ("string",):
        return value, ""
    if "boolean" in node.kinds and value.casefold() in _BOOLEANS:
        return _BOOLEANS[value.casefold()], ""
    if "number" in node.kinds or "integer" in node.kinds:
        try:
            number = json.loads(value)
        except ValueError:
            number = None
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if is_whole or ("number" in node.kinds and isinstance(number, float)):
            return number, ""
    if "string" in node.kinds or not node.kinds:
        return value, ""
    return None, f"{short(value)} is no {' or '.join(node.kinds)}"


_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


# --- checking


def flaws_of_schema(
    text: str, data: Any, *, is_lenient: bool, has_formats: bool = True
) -> list[tuple[Sequence[Key], str, bool]]:
    """Check data against a JSON Schema; `is_lenient` allows null everywhere and requires nothing."""
    found: list[tuple[Sequence[Key], str, bool]] = []
    for error in _validator(text, is_lenient, has_formats).iter_errors(data):
        value = short(json.dumps(error.instance, ensure_ascii=False, default=str))
        limit = short(json.dumps(error.kind.value, ensure_ascii=False, default=str))
        keyword = error.kind.name
        told = f'"{keyword}"' if keyword in _ALONE else f'"{keyword}": {limit}'
        is_of_all = keyword in _OF_WHOLES or keyword == "uniqueItems"
        found.append((error.instance_path, f"the value {value} breaks {told}", is_of_all))
    return found


_ALONE = frozenset({"anyOf", "oneOf", "not", "enum", "uniqueItems"})
"""Keywords whose value is left out of messages, because it is long or says nothing."""


@lru_cache(maxsize=32)
def _validator(text: str, is_lenient: bool, has_formats: bool) -> Any:
    import jsonschema_rs  # late: the short form needs none

    return jsonschema_rs.Draft202012Validator(
        _adapted(json.loads(text), is_lenient),
        validate_formats=has_formats,
        # Maximum backtracking steps of a pattern; a usual one takes some hundreds.
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000),
        retriever=no_retriever,
    )


_OF_WHOLES = (
    "required", "dependentRequired", "dependentSchemas", "minProperties", "minItems", "contains", "minContains",
    "maxContains", "if", "then", "else", "not", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
"""Keywords that incomplete data may break although each of its values is right."""


def _adapted(schema: Any, is_lenient: bool, is_map: bool = False) -> Any:
    """The schema to check data with; it requires no offset in times, since documents may state none."""
    if isinstance(schema, list):
        return [_adapted(each, is_lenient) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if is_map:
        return {name: _adapted(each, is_lenient) for name, each in schema.items()}
    own = {
        key: value if key in DATA else _adapted(value, is_lenient, key in MAPS)
        for key, value in schema.items()
        if not (is_lenient and key in _OF_WHOLES)
        and not (key == "format" and value in ("date-time", "time"))
    }
    if not is_lenient:
        return own
    if "type" in own:
        kinds = own["type"] if isinstance(own["type"], list) else [own["type"]]
        own["type"] = list(dict.fromkeys([*kinds, "null"]))
    if "const" in own:
        own["enum"] = [own.pop("const")]
    if "enum" in own:
        own["enum"] = [*own["enum"], *([None] * (None not in own["enum"]))]
    for key in ("anyOf", "oneOf"):
        if key in own:
            ways = [
                way for way in own.pop(key) if way not in ({"type": ["null"]}, {"enum": [None]})
            ]
            # An error in a single alternative names its keyword; in `anyOf` it names only `anyOf`.
            both = [*own.get("allOf", ()), ways[0] if len(ways) == 1 else {"anyOf": ways}]
            own["allOf"] = both if ways else own.get("allOf", [{}])
    return own
