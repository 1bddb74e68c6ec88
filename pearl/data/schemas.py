"""Schemas of users → fields, and records → instances.

What PEARL does not support is refused before any call, with the path of the keyword. Bounds and patterns
(`minimum`, `maxLength`, `pattern`, ...) are checked by the pydantic model, and not at all without one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pearl.documents.record import FieldResult, Record
from pearl.dsl.fields import (
    MAX_DEPTH,
    MAX_FIELDS,
    TYPES,
    Field,
    FieldType,
    labels_flaw,
    name_flaw,
    parse_fields,
    print_fields,
)
from pearl.dsl.literals import short
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import json_bytes
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from pydantic import BaseModel

_MODEL = lazy_pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:([^\W\d]\w*(?:\.[^\W\d]\w*)*)")

_FILE = lazy_pattern(r"[^:,|?(){}\[\]']*\.[A-Za-z]+")
"""A name with a suffix; a field has a type: `address.city: str`."""

_SCALARS: dict[Any, FieldType] = {
    "string": "str", "integer": "int", "number": "number", "boolean": "bool",
}  # fmt: skip
_FORMATS: dict[Any, FieldType] = {"date": "date", "text": "text"}
_NO_FORMATS = ("date-time", "time", "duration")

_KEYWORDS = frozenset({
    "$ref", "$defs", "definitions", "type", "properties", "required", "items", "enum", "const", "anyOf",
    "oneOf", "format", "nullable", "title", "description", "additionalProperties",
    # Remarks:
    "$schema", "$id", "$comment", "default", "example", "examples", "deprecated", "readOnly", "writeOnly",
    # Checked by the model:
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "pattern", "minItems", "maxItems", "uniqueItems",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of a schema with its name in the object around it; an object, or a list of objects, has members."""

    about: Field
    members: Mapping[str, _Node] = field(default_factory=dict)
    values: Mapping[Any, Any] = field(default_factory=dict)  # of an enumeration, by their labels
    is_nullable: bool = True

    @property
    def is_object(self) -> bool:
        return bool(self.members) and not self.about.is_list


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a record, and how their values become an instance.

    Attributes:
        fields: The fields; those of nested objects have dots in their names.
        model: The pydantic model, if the schema is one.
    """

    fields: tuple[Field, ...]
    model: type[BaseModel] | None
    _members: Mapping[str, _Node] = field(repr=False)

    def build(self, record: Record) -> tuple[Any, tuple[str, ...]]:
        """An instance of the model, or a dict without a model; and why it, or a part of it, has no value.

        There is no instance if a required field has no value: it is undecided, not stated, or the model refuses
        it. An optional field or object without a value is None, an entry of a list without one is left out; a
        list that is not stated is empty, or None if it may be.
        """
        value, _, reasons = self.read(record)
        return value, reasons

    def read(self, record: Record) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
        """The instance as of `build`, the values of the record that it has, and why others are missing."""
        reader = _Values()
        data, is_complete = reader.object(self._members, record.fields, "")
        if self.model is None or not is_complete:
            return (data if is_complete else None), data, tuple(reader.reasons)
        from pydantic import ValidationError  # late: the short form needs no models

        while True:
            try:
                value = self.model.model_validate_json(json_bytes(data))
            except ValidationError as error:
                flaws = error.errors(include_url=False, include_context=False, include_input=False)
                found = [(flaw["loc"], flaw["msg"]) for flaw in flaws]
                if reader.without(self._members, data, found):
                    continue
                value = None
            except Exception as error:  # noqa: BLE001 - validators are code of the user
                value = None
                reader.reasons.append(f"{self.model.__name__}: {type(error).__name__}: {error}")
            return value, data, tuple(reader.reasons)


_ABSENT = FieldResult("undecided", why="not in the record")


class _Values:
    """Reads the values of a record; `reasons` says why some are missing."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self._numbers: dict[int, list[int]] = {}
        """The entries of the record that a list of values has, by the identity of the list."""

    def object(
        self, members: Mapping[str, _Node], results: Mapping[str, FieldResult], path: str
    ) -> tuple[dict[str, Any], bool]:
        """The values of an object, and whether it has all that are required."""
        data: dict[str, Any] = {}
        is_complete = True
        for name, node in members.items():
            place, result = f"{path}{name}", results.get(name, _ABSENT)
            if node.is_object:
                start = f"{name}."
                inner = {
                    k.removeprefix(start): r for k, r in results.items() if k.startswith(start)
                }
                data[name], has_all = None, True
                if not node.about.is_optional or any(
                    r.state != "not_stated" for r in inner.values()
                ):
                    data[name], has_all = self.object(node.members, inner, f"{place}.")
                if not has_all and node.about.is_optional:
                    data[name], has_all = None, True
            else:
                data[name], has_all = self._field(node, result, place)
            is_complete &= has_all
        return data, is_complete

    def _field(self, node: _Node, result: FieldResult, place: str) -> tuple[Any, bool]:
        """The value of a field, and whether that suffices."""
        about = node.about
        if result.state == "undecided":
            self.reasons.append(f"{place}: undecided{f': {result.why}' if result.why else ''}")
            if not (about.is_list and result.entries):  # what is there of a list stays
                return None, about.is_optional and node.is_nullable
        elif result.state == "not_stated" and (node.is_nullable or not about.is_list):
            if not (about.is_optional or about.is_list):
                self.reasons.append(f"{place}: not stated")
            return None, about.is_optional or about.is_list
        if not about.is_list:
            return node.values.get(result.value, result.value), True
        within = node.members or {"value": replace(node, about=Field("value"))}
        entries, numbers = [], []
        for i, fields in enumerate(result.entries):
            entry, is_complete = self.object(within, fields, f"{place}[{i}].")
            if is_complete:
                entries.append(entry if node.members else entry["value"])
                numbers.append(i)
        self._numbers[id(entries)] = numbers
        return entries, True

    def without(
        self, members: Mapping[str, _Node], data: dict[str, Any], flaws: Sequence[tuple[_Where, str]]
    ) -> bool:  # fmt: skip
        """Take out of the data what a model refuses; False if something required is refused."""
        dropped: dict[int, tuple[list[Any], set[int]]] = {}
        emptied: list[tuple[dict[str, Any], str]] = []
        can_do = True
        for where, message in flaws:
            place, at, inner = "", data, members
            drop: tuple[Any, Any] | None = None
            for key in where:
                if isinstance(at, dict) and key in inner and at.get(str(key)) is not None:
                    node = inner[str(key)]
                    place += f".{key}"
                    if node.about.is_optional and node.is_nullable:
                        drop = at, key
                    at, inner = at[str(key)], node.members
                elif isinstance(at, list) and isinstance(key, int):
                    place += f"[{self._numbers[id(at)][key]}]"
                    drop, at = (at, key), at[key]
                else:
                    place += f"[{key}]" if isinstance(key, int) else f".{key}"
                    break
            self.reasons.append(f"{place.removeprefix('.') or 'the record'}: {message}")
            if drop is None:
                can_do = False
            elif isinstance(drop[0], list):
                dropped.setdefault(id(drop[0]), (drop[0], set()))[1].add(drop[1])
            else:
                emptied.append(drop)
        for values, key in emptied:
            values[key] = None
        for entries, numbers in dropped.values():
            for i in sorted(numbers, reverse=True):
                del entries[i]
                del self._numbers[id(entries)][i]
        return can_do


_Where = Iterable[str | int]
"""The place of an error of a model."""


def load_schema(
    what: str | Path | type[BaseModel] | Mapping[str, Any] | Sequence[Field] | Schema,
) -> Schema:
    """The schema of a JSON Schema (a path or a mapping), `package.module:Model`, a model, or the short form.

    Example:
        >>> [leaf.name for leaf in load_schema("patient, address: {city: str}").fields]
        ['patient', 'address.city']
    """
    if isinstance(what, Schema):
        return what
    if isinstance(what, str):
        match = _MODEL.fullmatch(what)
        if match and match[1] not in TYPES:
            return _of_model(_imported(what), what)
        if _FILE.fullmatch(what) or os.path.exists(what):  # noqa: PTH110 - a long text is no path, and no error
            what = Path(what)
    if isinstance(what, Path):
        return _Reading(_read(what), str(what)).schema()
    if isinstance(what, Mapping):
        return _Reading(what, "schema").schema()
    if isinstance(what, type):
        return _of_model(what, what.__name__)
    # Fields of a caller may be invalid.
    fields = parse_fields(what if isinstance(what, str) else print_fields(what))
    return Schema(fields, None, _members_of(fields))


def _members_of(fields: Iterable[Field]) -> Mapping[str, _Node]:
    """Fields as objects, by the dots in their names."""
    root: dict[str, Any] = {}
    for leaf in fields:
        *around, name = leaf.name.split(".")
        members = root
        for part in around:
            members = members.setdefault(part, _Node(Field(part))).members
        members[name] = _Node(leaf, _members_of(leaf.fields), is_nullable=not leaf.is_list)
    return root


def _read(path: Path) -> Any:
    """The data of a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        why = "no such file" if is_missing else f"cannot be read: {error.strerror}"
    except (ValueError, RecursionError) as error:
        why = f"not JSON: {error}"
    advice = 'name a file of JSON Schema, MODULE:MODEL, or fields: "name: str, age: int?"'
    raise DataError(why, path=path, help=advice)


def _imported(name: str) -> Any:
    """The object that `package.module:Model` names, imported from the working folder as by `python -m`."""
    module, _, path = name.partition(":")
    sys.path.insert(0, folder := os.getcwd())  # noqa: PTH109
    try:
        value: Any = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except (Exception, SystemExit) as error:  # code of the user
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        advice = 'MODULE:MODEL names a pydantic model; a field and its type read "name: str"'
        raise UsageError(f"schema '{name}' cannot be imported: {why}", help=advice) from error
    finally:
        sys.path.remove(folder)  # so that no file of this folder replaces a package later
    return value


def _of_model(model: Any, name: str) -> Schema:
    from pydantic import BaseModel, PydanticUserError

    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise UsageError(
            f"schema '{name}' is not a pydantic model", help="subclass pydantic.BaseModel"
        )
    try:
        schema = model.model_json_schema()
    except PydanticUserError as error:
        raise DataError(f"{name}: no JSON Schema: {str(error).splitlines()[0]}") from None
    return _Reading(schema, name, model).schema()


class _Reading:
    """A JSON Schema, and what has been read of it."""

    def __init__(self, root: Any, name: str, model: type[BaseModel] | None = None) -> None:
        self.root = root
        self.name = name
        self.model = model
        self.n_leaves = 0

    def schema(self) -> Schema:
        if not isinstance(self.root, Mapping) or not {"properties", "$ref"} & self.root.keys():
            self.refuse(
                (), 'not a JSON Schema of an object: {"type": "object", "properties": {...}}'
            )
        root = self.node(self.root, (), Field(""), frozenset("#"))
        if not root.is_object:
            self.refuse(("type",), 'not supported; the type of the whole is "object"')
        return Schema(tuple(_fields(root.members)), self.model, root.members)

    def node(
        self, raw: Any, path: _Path, about: Field, refs: frozenset[str], depth: int = 0, in_list: bool = False
    ) -> _Node:  # fmt: skip
        """What a schema describes; `about` has its name, and `refs` are the references around it."""
        schema, path, refs, is_nullable = self.resolved(raw, path, refs)
        kind = schema.get("type", "object" if "properties" in schema else None)
        if self.model and about.is_optional and not is_nullable and kind != "array":
            self.refuse(path, f"a default would be a guess; write {about.name}: TYPE | None = None")
        words = _description(schema, about.name)
        about = replace(about, is_optional=about.is_optional or is_nullable, description=words)
        key = next((key for key in ("enum", "const") if key in schema), "")
        if key or kind not in ("object", "array"):
            self.n_leaves += 1
            if self.n_leaves > MAX_FIELDS:
                self.refuse(path, f"more than {MAX_FIELDS} fields; split them into several schemas")
            if not key:
                return _Node(replace(about, type=self.type(schema, path)))
            values = self.values(schema[key] if key == "enum" else [schema[key]], (*path, key))
            return _Node(replace(about, type="label", labels=tuple(values)), values=values)
        if kind == "object":
            return _Node(about, self.members(schema, path, refs, depth, in_list))
        if in_list:
            self.refuse(path, "a list in a list is not supported")
        path = (*path, "items")
        if not isinstance(schema.get("items"), Mapping):
            self.refuse(path, 'a list needs the schema of its entries: {"type": ...}')
        item = self.node(schema["items"], path, Field(about.name), refs, depth, in_list=True)
        words = words or item.about.description
        about = replace(item.about, is_list=True, is_optional=about.is_optional, description=words)
        return replace(item, about=about, is_nullable=is_nullable)

    def members(
        self, schema: dict[str, Any], path: _Path, refs: frozenset[str], depth: int, in_list: bool
    ) -> dict[str, _Node]:
        properties, required = schema.get("properties"), schema.get("required", [])
        if not isinstance(properties, Mapping) or not properties:
            self.refuse(path, "an object without named properties is not supported")
        if depth > MAX_DEPTH:
            self.refuse(path, f"objects nested more than {MAX_DEPTH} deep are not supported")
        members = {}
        for name, raw in properties.items():
            place = (*path, "properties", name)
            if flaw := name_flaw(name):
                self.refuse(place, flaw)
            about = Field(name, is_optional=name not in required)
            members[name] = self.node(raw, place, about, refs, depth + 1, in_list)
        return members

    def values(self, given: Any, path: _Path) -> dict[str, Any]:
        """The values of an enumeration by their labels."""
        values = [value for value in _listed(given) if value is not None]
        labels = [value if isinstance(value, str) else json.dumps(value) for value in values]
        if not values or not all(isinstance(value, str | int | float) for value in values):
            self.refuse(path, "not supported; strings, numbers, true and false are")
        if flaw := labels_flaw(labels):
            self.refuse(path, flaw)
        return dict(zip(labels, values, strict=True))

    def type(self, schema: dict[str, Any], path: _Path) -> FieldType:
        """The type of a field without labels."""
        kind, form = schema.get("type"), schema.get("format")
        if not isinstance(kind, str) or kind not in _SCALARS:
            flaw = "a type is missing" if kind is None else f"'{short(str(kind))}' is not supported"
            self.refuse((*path, "type"), f"{flaw}; types: {', '.join(_SCALARS)}, object, array")
        if kind != "string" or not isinstance(form, str):
            return _SCALARS[kind]
        if form in _NO_FORMATS:
            self.refuse((*path, "format"), f"'{form}' is not supported; use a date or a string")
        return _FORMATS.get(form, "str")

    def resolved(
        self, raw: Any, path: _Path, refs: frozenset[str]
    ) -> tuple[dict[str, Any], _Path, frozenset[str], bool]:
        """A schema without references and null, its path, the references around it, and if it may be null."""
        schema: dict[str, Any] = {}
        start, is_nullable, key = path, False, "$ref"
        while key:
            if not isinstance(raw, Mapping):
                self.refuse(path, "not a JSON Schema: an object is expected")
            for name, value in raw.items():
                type = {"additionalProperties": bool, "required": list}.get(name, object)
                is_known = name in _KEYWORDS or str(name).startswith("x-")
                if not (is_known and isinstance(value, type)):
                    flaw = "not supported; name the properties, or leave it out"
                    self.refuse((*path, name), flaw)
            is_nullable |= raw.get("nullable") is True or None in _listed(raw.get("enum"))
            types = [{"type": kind} for kind in _listed(raw.get("type"))]
            key = next(
                (key for key in ("$ref", "anyOf", "oneOf") if key in raw), "type" * bool(types)
            )
            # The title of a type in another place names only the type.
            left_out = key if path == start else f"{key} title"
            schema = {k: v for k, v in raw.items() if k not in left_out.split()} | schema
            if key == "$ref":
                ref = raw[key]
                raw, path = self.target(ref, (*path, key), refs)
                refs |= {ref}
            elif key:
                ways = types if key == "type" else _listed(raw[key])
                others = [way for way in ways if way != {"type": "null"}]
                is_nullable |= len(others) < len(ways)
                kinds = [way.get("type") for way in others if isinstance(way, Mapping)]
                if self.model and kinds == ["number", "string"]:
                    del others[1]  # a Decimal of pydantic
                if len(others) != 1:
                    self.refuse((*path, key), "not supported; one type may stand here, and null")
                raw = others[0]
                path = path if key == "type" else (*path, key, str(ways.index(raw)))
        return schema, path, refs, is_nullable

    def target(self, ref: Any, path: _Path, refs: frozenset[str]) -> tuple[Any, _Path]:
        """What a reference names, and its path."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            self.refuse(path, "only references within the schema are supported: #/$defs/NAME")
        if ref in refs:
            self.refuse(path, "recursive types are not supported")
        node = self.root
        parts = [part.replace("~1", "/").replace("~0", "~") for part in ref[2:].split("/")]
        for part in parts:
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is None:
            self.refuse(path, f"nothing stands at '{short(ref)}'")
        return node, tuple(parts)

    def refuse(self, path: _Path, message: str) -> NoReturn:
        raise DataError(": ".join(filter(None, (self.name, ".".join(map(str, path)), message))))


_Path = tuple[str, ...]


def _fields(members: Mapping[str, _Node], is_optional: bool = False) -> Iterator[Field]:
    """The fields of an object; those of objects in it have dots in their names."""
    for name, node in members.items():
        about = replace(node.about, is_optional=is_optional or node.about.is_optional)
        if node.is_object:
            for inner in _fields(node.members, about.is_optional):
                words = inner.description or about.description
                yield replace(inner, name=f"{name}.{inner.name}", description=words)
        else:
            yield replace(about, fields=tuple(_fields(node.members)))


def _description(schema: Mapping[str, Any], name: str) -> str:
    """The description of a schema, or its title if that is not the name in other letters."""
    for words in (schema.get("description"), schema.get("title")):
        if isinstance(words, str) and words.casefold().split() != name.casefold().split("_"):
            return " ".join(words.split())
    return ""


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
