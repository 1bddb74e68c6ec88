"""Compile a JSON Schema to the tree of the values that can be extracted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from pearl.data.json_schema import Place, check, refuse
from pearl.data.schema_tree import (
    MAX_ABOUT,
    Choice,
    Constant,
    Key,
    List,
    Map,
    Member,
    Node,
    Object,
    Scalar,
    fields_of,
    joined,
    members_of,
)
from pearl.dsl.fields import MAX_DEPTH, MAX_FIELDS, RULES, FieldType, labels_flaw, name_flaw
from pearl.dsl.literals import short

T = TypeVar("T")
_TYPES: dict[str, FieldType] = {"integer": "int", "number": "number", "boolean": "bool"}
_JUDGED = {
    "date-time": "date and time as 2024-05-06T14:30, with its offset if stated",
    "time": "a time as 14:30, with seconds if stated", "duration": "a duration in ISO 8601, as P3D or PT1H30M", "text": "",
}  # fmt: skip
"""Formats that documents seldom use: how the model is told to write them. It judges their values."""
_FORMATS = frozenset({
    "email", "idn-email", "uri", "uri-reference", "iri", "iri-reference", "uuid", "hostname", "ipv4", "ipv6",
    "duration", "json-pointer", "regex",
})  # fmt: skip
"""Formats that the validator knows."""

_SHAPE = {
    "properties": "object", "patternProperties": "object", "items": "array", "prefixItems": "array",
    "additionalProperties": "object", "pattern": "string", "format": "string", "minLength": "string",
    "maxLength": "string", "minimum": "number", "maximum": "number", "exclusiveMinimum": "number",
    "exclusiveMaximum": "number", "multipleOf": "number",
}  # fmt: skip
"""The type that a keyword implies in a schema without `type`."""
HAS_DEFAULT = "$default"  # Marks a default that a function of the model makes
_KNOWN = frozenset({
    *_SHAPE, HAS_DEFAULT, "type", "enum", "const", "required", "description", "title", "default", "example", "examples", "minItems",
    "maxItems", "uniqueItems", "minProperties", "maxProperties", "propertyNames", "$ref", "$defs", "definitions",
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "contains",
    "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems", "additionalItems", "discriminator",
    "$comment", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "$title", "evaluation_config",
})  # fmt: skip
_EXPANSION = 3  # How deep a recursive type is expanded
_WAYS = 1_000  # Maximum alternatives of one value; a list of countries has some hundreds
_VISITS = 8 * MAX_FIELDS
"""Maximum parts of a schema to read: many references to one definition multiply the parts."""


class _EndlessError(Exception):
    """A type requires a value of itself, so its values have no end."""


class _TooLargeError(Exception):
    """The schema has too many parts; the argument is the place."""


def tree_of_schema(root: Mapping[str, Any], name: str) -> tuple[Node, tuple[str, ...]]:
    """Compile a schema of `read_schema`; return its tree and notes on unused parts. A `DataError` names the place."""
    for depth in range(_EXPANSION, 0, -1):
        compiler = _Compiler(root, name, depth)
        try:
            node = compiler.node(root, (), ("#",))
        except _EndlessError:
            refuse(name, (), "a type needs itself: its values have no end")
        except RecursionError:
            refuse(name, (), "nested too deep")
        except _TooLargeError as error:
            if depth == 1 or not compiler.is_cut:
                refuse(name, error.args[0], f"more than {MAX_FIELDS:,} fields; split them into several schemas")  # fmt: skip
        else:
            break
    if not any(True for _ in fields_of(node, "value")):
        refuse(name, (), "there is nothing to extract")
    notes = []
    if compiler.ignored:
        notes.append(f"{name}: ignored keywords: {short(', '.join(sorted(compiler.ignored)))}")
    if compiler.is_cut:
        notes.append(f"{name}: types that contain themselves are read {depth} deep")
    if compiler.is_shortened:
        notes.append(f"{name}: of long descriptions, the first {MAX_ABOUT:,} characters are used")
    return node, tuple(notes)


class _Way(Struct, frozen=True):
    """One alternative of a schema: its keywords after references are resolved, and the references that led to it."""

    schema: dict[str, Any]
    refs: tuple[str, ...]

    @property
    def kind(self) -> str:
        if "const" in self.schema or "enum" in self.schema:
            return "enum"
        if isinstance(kind := self.schema.get("type"), str):
            return kind
        return next((_SHAPE[key] for key in self.schema if key in _SHAPE), "any")


class _Compiler:
    """Compiles one schema, and keeps the state of the work."""

    def __init__(self, root: Mapping[str, Any], name: str, depth: int) -> None:
        self.root = root
        self.name = name
        self.depth = depth
        self.is_cut = False
        self.is_shortened = False
        self.ignored: set[str] = set()
        self.checked = {"#"}
        self.n_visits = 0
        self.n_leaves = 0

    def node(self, raw: Any, path: Place, refs: tuple[str, ...], name: str = "", level: int = 0) -> Node:  # fmt: skip
        """The node for the value that a schema describes."""
        if level > 2 * MAX_DEPTH:
            refuse(self.name, path, f"nested more than {MAX_DEPTH} deep")
        ways = self.ways(raw, path, refs)
        others = [way for way in ways if way.schema.get("type") != "null" and way.schema.get("const", 0) is not None]  # fmt: skip
        is_nullable = len(others) < len(ways)
        if not others:
            return Constant(None, is_nullable=is_nullable)
        words = [self.words(way.schema, name) for way in others]
        # Different descriptions of objects stay with their fields: see `alternatives`.
        if len(others) > 1 and any(way.kind in ("object", "array") for way in others):
            words = words[:1] if all(each == words[0] for each in words) else []
        about = joined(text for each in words for text in each)
        node = self.attempt(not is_nullable, self.alternatives, others, path, name, level)
        if node is None:
            return Constant(None, is_nullable=True)
        if is_nullable and isinstance(node, Constant):
            node = _asked(node)
        return dataclasses.replace(node, is_nullable=is_nullable, about=about)

    def alternatives(self, ways: Sequence[_Way], path: Place, name: str, level: int) -> Node:
        """One node for the alternatives of a value."""
        scalars = [way for way in ways if way.kind not in ("object", "array")]
        nodes: list[Node] = [self.scalar(scalars, path)] if scalars else []
        for way in (way for way in ways if way.kind in ("object", "array")):
            build = self.object if way.kind == "object" else self.array
            node = self.attempt(False, build, way, path, level)
            if node is not None and node not in nodes:
                about = joined(self.words(way.schema, name)) if len(ways) > 1 else ""
                nodes.append(dataclasses.replace(node, about=about))
        if not nodes:
            raise _EndlessError
        lists = [node for node in nodes if isinstance(node, List)]
        if len(lists) > 1:  # one list, whose entries are of any of the kinds
            items = [w.schema.get("items", {}) for w in ways if w.kind == "array" and "prefixItems" not in w.schema]  # fmt: skip
            refs = max((way.refs for way in ways), key=len)
            raw = {"type": "array", "items": {"anyOf": items}}
            nodes = [n for n in nodes if n not in lists] + [self.array(_Way(raw, refs), path, level)]  # fmt: skip
        if len(nodes) == 1:
            return nodes[0]
        match nodes:
            case [Scalar() as one, List(item=Scalar() as item) as several] if one == item:
                return dataclasses.replace(several, may_be_single=True)
        return _choice(nodes)

    def attempt(self, is_needed: bool, build: Callable[..., T], *args: Any) -> T | None:
        """The result of `build`; None if the type has no end and the value is not required."""
        try:
            return build(*args)
        except _EndlessError:
            if is_needed:
                raise
            return None

    # --- alternatives

    def ways(self, raw: Any, path: Place, refs: tuple[str, ...]) -> list[_Way]:
        """The alternatives of a schema; null is one of them."""
        self.n_visits += 1
        if self.n_visits > _VISITS:
            raise _TooLargeError(path)
        if isinstance(raw, bool):
            return [_Way({}, refs)] if raw else []
        for key, value in raw.items():
            if key not in _KNOWN and not _is_hint(value):
                self.ignored.add(str(key))
        own = {k: v for k, v in raw.items() if k not in _COMBINING}
        kinds = raw.get("type")
        types = kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else []
        ways = [_Way(own | {"type": kind}, refs) for kind in types] or [_Way(own, refs)]
        if ref := raw.get("$ref"):
            chain = (*refs, ref)
            if chain.count(ref) > self.depth:
                self.is_cut = True
                raise _EndlessError
            target, place = self.target(ref, (*path, "$ref"))
            if ref not in self.checked and isinstance(target, dict):  # maybe outside `$defs`
                check(target, f"{self.name}: {'.'.join(map(str, place))}", is_whole=False)
                self.checked.add(ref)
            ways = self.product(ways, self.ways(target, place, chain), path)
        for i, part in enumerate(raw.get("allOf", ())):
            ways = self.product(ways, self.ways(part, (*path, "allOf", i), refs), path)
        for key in ("anyOf", "oneOf"):
            if not (parts := raw.get(key)):
                continue
            each = [self.attempt(False, self.ways, p, (*path, key, i), refs) for i, p in enumerate(parts)]  # fmt: skip
            if all(ways is None for ways in each):
                raise _EndlessError
            found = [way for ways in each for way in ways or ()]
            if any(way.kind != "any" for way in found):  # else they only require members
                ways = self.product(ways, found, path)
        # What only some values must fulfil is not required; but its properties may be in the document.
        extra = [raw.get("then"), raw.get("else"), *raw.get("dependentSchemas", {}).values()]
        for part in (each for each in extra if isinstance(each, Mapping)):
            more = {k: v for k, v in part.items() if k in ("properties", "$ref", "allOf")}
            found = [_Way({"properties": w.schema.get("properties", {})}, w.refs) for w in self.ways(more, path, refs)]  # fmt: skip
            ways = self.product(ways, found, path) if more else ways
        return [split for way in ways for split in _without_null(way)]

    def product(self, ways: Iterable[_Way], others: Iterable[_Way], path: Place) -> list[_Way]:
        found = []
        others = list(others)
        for way in ways:
            for other in others:
                both = _merged(way.schema, other.schema)
                if both is not None:
                    found.append(_Way(both, max(way.refs, other.refs, key=len)))
        if len(found) > _WAYS:
            refuse(self.name, path, f"more than {_WAYS} alternatives")
        return found

    def target(self, ref: str, path: Place) -> tuple[Any, Place]:
        """The schema that a reference names, and its place."""
        node: Any = self.root
        parts = [p.replace("~1", "/").replace("~0", "~") for p in unquote(ref).split("/")[1:]]
        for part in parts:
            if isinstance(node, list) and part.isdecimal() and int(part) < len(node):
                node = node[int(part)]
            else:
                node = node.get(part) if isinstance(node, Mapping) else None
        if not isinstance(node, Mapping | bool):
            refuse(self.name, path, f"no schema stands at '{short(ref)}'")
        return node, tuple(parts)

    # --- nodes

    def scalar(self, ways: Sequence[_Way], path: Place) -> Node:
        self.n_leaves += 1
        if self.n_leaves > MAX_FIELDS:
            raise _TooLargeError(path)
        values: dict[str, Any] = {}
        for way in ways:
            given = [way.schema["const"]] if "const" in way.schema else way.schema.get("enum", ())
            values |= {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False): v for v in given}  # fmt: skip
        rest = [way.schema for way in ways if way.kind != "enum"]
        if len(values) == 1 and len(ways) == 1:
            self.n_leaves -= 1
            return Constant(*values.values())
        if values and not rest:
            return Scalar("str" if labels_flaw(values) else "label", (), values)
        of_values = {_JSON_KINDS.get(type(value), "string") for value in values.values()}
        kinds = sorted({_kind(schema) for schema in rest} | of_values)
        if "any" in kinds:
            kinds = ["boolean", "number", "string"]
        if "number" in kinds and "integer" in kinds:
            kinds.remove("integer")
        forms = [str(s.get("format", "")) for s in rest]
        if _is_decimal(rest):
            return Scalar("decimal", tuple(kinds), rules=self.rules(rest[:1]))
        if len(kinds) == 1 and kinds[0] != "string":
            return Scalar(_TYPES[kinds[0]], tuple(kinds), values, self.rules(rest))
        if kinds != ["string"] or len({*forms}) > 1 or values:
            is_judged = any(form in _JUDGED for form in forms)
            return Scalar("text" if is_judged else "str", tuple(kinds), values)
        form = forms[0]
        if form == "date":
            return Scalar("date", ("string",))
        read_as: FieldType = "text" if form in _JUDGED else "str"
        checked = form if form in ("date-time", "time") else ""
        return Scalar(read_as, ("string",), rules=self.rules(rest), form=checked)

    def rules(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """The rules for a value as JSON text; "" without rules, or with several schemas."""
        if len(schemas) != 1:
            return ""
        rules = {k: v for k, v in schemas[0].items() if k in RULES}
        if rules.get("format") not in _FORMATS:
            rules.pop("format", None)
        if "pattern" in rules and not _matcher(rules["pattern"]):
            del rules["pattern"]  # checked later, by an engine that limits its steps
        return json.dumps(rules, ensure_ascii=False) if rules else ""

    def object(self, way: _Way, path: Place, level: int) -> Node:
        schema = way.schema
        given = schema.get("properties", {})
        # An object that declares nothing is a map; one with properties has others only if it says so.
        others = schema.get("additionalProperties", not given and "patternProperties" not in schema)
        patterns = schema.get("patternProperties", {})
        if level > MAX_DEPTH and len(set(way.refs)) < len(way.refs):
            self.is_cut = True
            raise _EndlessError  # of a recursive type, the levels above are used
        if level > MAX_DEPTH:
            refuse(self.name, path, f"objects nested more than {MAX_DEPTH} deep are not supported")
        members: list[Member] = []
        taken: set[str] = set()
        for key, raw in given.items():
            if raw is False:
                continue
            place = (*path, "properties", key)
            is_required = key in schema.get("required", ())
            name = _named(key, taken)
            node = self.attempt(is_required, self.node, raw, place, way.refs, str(key), level + 1)
            if node is None:
                continue
            has_default = isinstance(raw, Mapping) and bool(raw.keys() & {"default", HAS_DEFAULT})
            members.append(Member(key, name, node, is_required, has_default))
        values = [*patterns.values(), *([others] if isinstance(others, Mapping) or (others is True and not given) else [])]  # fmt: skip
        if not values:
            return Object(tuple(members)) if members else Constant({})
        if level == 0 and not members and not patterns and others is True:
            refuse(self.name, path, "an object without named properties: nothing says what to extract")  # fmt: skip
        rest = self.attempt(False, self.map, schema, values, path, way.refs, level)
        if rest is None:
            return Object(tuple(members)) if members else Constant({})
        if not members:
            return rest
        return Object(tuple(members), rest=Member("", _named("others", taken), rest, False))

    def map(
        self, schema: Mapping[str, Any], values: Sequence[Any], path: Place, refs: tuple[str, ...], level: int
    ) -> Node:  # fmt: skip
        patterns = [*schema.get("patternProperties", {})]
        names: Any = schema.get("propertyNames", True)
        if len(patterns) == 1 and len(values) == 1:
            names = {"allOf": [names, {"pattern": patterns[0]}]}
        key = self.node({"allOf": [{"type": "string"}, names]}, (*path, "propertyNames"), refs, level=level + 1)  # fmt: skip
        if not isinstance(key, Scalar):
            key = Scalar("label", (), {str(key.value): key.value}) if isinstance(key, Constant) else Scalar("str", ("string",))  # fmt: skip
        place = (*path, "additionalProperties")
        value = self.node(values[0] if len(values) == 1 else {"anyOf": values}, place, refs, level=level + 1)  # fmt: skip
        if isinstance(value, Constant):
            value = _asked(value)
        is_merged = isinstance(value, Object | Choice) and not value.is_nullable
        taken = {m.name for m in members_of(value)} if isinstance(value, Object | Choice) and is_merged else {"value"}  # fmt: skip
        return Map(Member("", _named("key", taken), key), Member("", "" if is_merged else "value", value))  # fmt: skip

    def array(self, way: _Way, path: Place, level: int) -> Node:
        schema, place = way.schema, (*path, "items")
        if first := schema.get("prefixItems"):
            at = (*path, "prefixItems")
            nodes = [self.node(raw, (*at, i), way.refs, level=level + 1) for i, raw in enumerate(first)]  # fmt: skip
            members = [Member(i, str(i + 1), node) for i, node in enumerate(nodes)]
            return Object(tuple(members), "tuple")
        if schema.get("maxItems") == 0:
            return Constant([])
        n_least = schema.get("minItems", 0)
        item = self.attempt(n_least > 0, self.node, schema.get("items", True), place, way.refs, "", level + 1)  # fmt: skip
        if isinstance(item, Constant):
            item = _asked(item)
        if item is None or not any(True for _ in fields_of(item)):
            return Constant([])
        return List(item, n_least == 0, schema.get("uniqueItems") is True)

    def words(self, schema: Mapping[str, Any], name: str) -> list[str]:
        """The texts for people in a schema: its description, examples, default and hints."""
        self.is_shortened |= len(str(schema.get("description", ""))) > MAX_ABOUT
        title = _text(schema.get("title"))
        if not name or title.casefold().split() == name.casefold().split("_"):
            title = ""  # It only repeats the name
        found = [_text(schema.get("description")) or title]
        found += [_text(v) for k, v in schema.items() if k not in _KNOWN and _is_hint(v)]
        given = schema.get("examples")
        examples = [*(given if isinstance(given, list) else ()), *([schema["example"]] if "example" in schema else [])]  # fmt: skip
        plain = [str(v) for v in examples if isinstance(v, str | int | float) and len(str(v)) <= 60]
        if plain:
            found.append(f"for example {', '.join(plain[:3])}")
        default = schema.get("default")
        if isinstance(default, str | int | float) and default != "" and "const" not in schema:
            found.append(f"the default {short(json.dumps(default, ensure_ascii=False))} is no value of the document")  # fmt: skip
        if "const" not in schema and "enum" not in schema:
            found.append(_JUDGED.get(str(schema.get("format")), ""))
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if schema.get("type") == "array" and "prefixItems" not in schema:
            found += [f"at least {low}"] * (low > 1) + ([] if high is None else [f"at most {high}"])
        if "const" in schema and (label := _text(schema.get("$title"))):
            found.append(f"{schema['const']}: {label}")
        return list(filter(None, found))


_COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf", "then", "else", "if", "not", "dependentSchemas", "$defs", "definitions", "type"})  # fmt: skip
"""Keywords that `ways` resolves, so that no alternative has them."""


def _choice(nodes: Sequence[Node]) -> Choice:
    """Combine several kinds of object; a name that means different things gets a number: `name_2`."""
    objects = [each for each in nodes if isinstance(each, Object) and each.shape == "object"]
    keys = [m.key for m in objects[0].members] if len(objects) > 1 else []
    key = next((key for key in keys if _tells(key, objects)), None)
    taken: dict[str, Node] = {}
    tag = None
    if key is not None:
        labels = {k: v for each in objects for k, v in _labels(_member(each, key)).items()}
        tag = Member(key, _named(str(key), set()), Scalar("label", (), labels))
        taken[tag.name] = tag.node

    def named(member: Member, words: str = "") -> Member:
        name, i = member.name, 2
        while name in taken and taken[name] != member.node:
            name, i = f"{member.name}_{i}", i + 1
        taken[name] = member.node
        is_shared = member.is_required and all(_member(each, member.key) == member.node for each in nodes)  # fmt: skip
        about = joined(("" if is_shared else words, member.node.about))
        return replace(member, name=name, node=dataclasses.replace(member.node, about=about))

    def kinds_of(member: Member) -> str:
        owners = [each for each in objects if _member(each, member.key) == member.node]
        told = [label for each in owners for label in _labels(_member(each, key))]
        return f"if {key} is {' or '.join(told)}" if told else ""

    variants, tags = [], []
    for node in nodes:
        told = _labels(_member(node, key)) if node in objects else {}
        tags.append(tuple(told))
        if isinstance(node, Object):
            members = [
                replace(m, name=tag.name) if tag and told and m.key == key else named(m, kinds_of(m) or node.about)
                for m in node.members
            ]  # fmt: skip
            rest = node.rest and named(node.rest)
            variants.append(dataclasses.replace(node, members=tuple(members), rest=rest, about=""))
        else:
            inner = _asked(node) if isinstance(node, Constant) and node.value not in ({}, []) else node  # fmt: skip
            bare = "text" if isinstance(node, Scalar) and node.kinds == ("string",) else "value"
            bare = {List: "list", Map: "entries"}.get(type(node), bare)
            variants.append(Object((named(Member("", bare, inner)),), "bare"))
    return Choice(tuple(variants), tag, tuple(tags))


def _asked(node: Constant) -> Scalar:
    """A label with the constant as its only value: the document decides whether, or how often, it occurs."""
    label = node.value if isinstance(node.value, str) else json.dumps(node.value)
    return Scalar("label", (), {label or "empty": node.value})


def _member(node: Node, key: Key | None) -> Node:
    """The member of an object with this key, else the constant None."""
    members = node.members if isinstance(node, Object) else ()
    return next((m.node for m in members if m.key == key), Constant(None))


def _labels(node: Node) -> Mapping[str, Any]:
    """The labels of an enumeration or a constant; {} for other nodes."""
    if isinstance(node, Constant) and isinstance(node.value, str | int):
        return _asked(node).values
    return node.values if isinstance(node, Scalar) and node.type == "label" else {}


def _tells(key: Key, objects: Sequence[Object]) -> bool:
    """Whether the labels of a member tell objects apart."""
    labels = [[*_labels(_member(each, key))] for each in objects]
    return all(labels) and not labels_flaw(label for each in labels for label in each)


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merge two schemas into one that requires both; None if no value fulfils both."""
    both = dict(one)
    for key, value in other.items():
        mine: Any = both.get(key)
        if key == "title":
            both.setdefault("$title", value)
        elif key not in both:
            both[key] = value
        elif key == "properties":
            both[key] = {**mine, **{k: {"allOf": [mine[k], v]} if k in mine else v for k, v in value.items()}}  # fmt: skip
        elif key == "required":
            both[key] = list(dict.fromkeys([*mine, *value]))
        elif key == "type" and mine != value:
            if {mine, value} != {"integer", "number"}:
                return None
            both[key] = "integer"
        elif key == "enum":
            both[key] = [v for v in mine if v in value]
            if not both[key]:
                return None
        elif key in ("items", "propertyNames"):
            both[key] = {"allOf": [mine, value]}
        elif key == "patternProperties":
            both[key] = {**mine, **value}
        elif key in _STRICTER:
            both[key] = _STRICTER[key](mine, value)
    return both  # Of other keywords, the first counts; the data is checked by the whole schema, too


_STRICTER: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), min),
}


def _without_null(way: _Way) -> list[_Way]:
    """Split an enumeration with null into two alternatives: the other values, and null."""
    values = way.schema.get("enum")
    if values is None or None not in values or way.schema.get("type") == "null":
        return [way]
    rest = [value for value in values if value is not None]
    null = [_Way({"type": "null"}, way.refs)] * ("type" not in way.schema)
    return [_Way(way.schema | {"enum": rest}, way.refs)] * bool(rest) + null


def _kind(schema: Mapping[str, Any]) -> str:
    return _Way(dict(schema), ()).kind


_JSON_KINDS = {bool: "boolean", int: "integer", float: "number"}


def _is_decimal(schemas: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the alternatives are those that pydantic writes for a `Decimal`, a number or a text of digits; its digits must be kept: `12.50`."""
    texts = [schema for schema in schemas if _kind(schema) == "string"]
    numbers = [schema for schema in schemas if _kind(schema) == "number"]
    if len(texts) != 1 or len(texts) + len(numbers) != len(schemas):
        return False
    if texts[0].get("format") == "decimal":
        return True
    check = _matcher(texts[0].get("pattern", ""), goes_back=True) if numbers else None
    return check is not None and check.is_valid("12.50") and not check.is_valid("a")


@cache
def _matcher(pattern: str, *, goes_back: bool = False) -> Any:
    """A validator of a pattern, or None if the engine cannot read it; `goes_back` allows more patterns."""
    import jsonschema_rs  # late: the short form needs none

    options: Any = jsonschema_rs.FancyRegexOptions() if goes_back else jsonschema_rs.RegexOptions()
    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return None


def _named(key: str, taken: set[str]) -> str:
    """The name in the record for a name in the schema; it differs from those `taken`."""
    plain = key.replace(".", "_")
    if name_flaw(plain):
        plain = "".join(c if c.isprintable() else "_" for c in plain).strip() or "field"
    name, i = plain, 2
    while name in taken:
        name, i = f"{plain}_{i}", i + 1
    taken.add(name)
    return name


def _text(words: Any) -> str:
    """A text on one line; "" for other values."""
    return " ".join(words[: 2 * MAX_ABOUT].split()) if isinstance(words, str) else ""


def _is_hint(value: Any) -> bool:
    """Whether the value of an unknown keyword is a description."""
    return isinstance(value, str) and " " in value.strip() and len(value) <= MAX_ABOUT
