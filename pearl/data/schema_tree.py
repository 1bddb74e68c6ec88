"""The tree of the values that can be extracted, and the fields of a record made from it.

Tree and record have the same names: a leaf is a field, a list is a list, and the members of an object have names
with dots. Other values change their form: a map becomes a list of entries with a key, a tuple an object with the
fields 1, 2, ..., and a choice of objects has the fields of all of them. A constant has no field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl.fields import ENTRY, Field, FieldType

Key = str | int  # A name in an object, or a number in a tuple or list


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of a schema, and what it means in words."""

    is_nullable: bool = False
    about: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """A single value: `type` of the field, `kinds` in JSON, and `values` of an enumeration by their labels."""

    type: FieldType
    kinds: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    rules: str = ""
    form: str = ""  # a format to check when the value is composed


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A value that the schema fixes; no model is asked for it."""

    value: Any


class Member(Struct, frozen=True):
    """A part of an object, with its names in the schema and in the record."""

    key: Key
    name: str
    node: Node
    is_required: bool = True
    has_default: bool = False  # a model gives it a value if it is left out


@dataclass(frozen=True, slots=True)
class Object(Node):
    """Several named values; shape `tuple` gives a list of them, `bare` the value of the only one."""

    members: tuple[Member, ...]
    shape: Literal["object", "tuple", "bare"] = "object"
    rest: Member | None = None  # a map whose keys become further members of the object


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """One of several objects; equal names in the record share a field. The label of `tag` selects the object."""

    variants: tuple[Object, ...]
    tag: Member | None = None
    tags: tuple[tuple[str, ...], ...] = ()  # for each variant, the labels of `tag` that select it


@dataclass(frozen=True, slots=True)
class List(Node):
    """Values of one kind, in order."""

    item: Node
    is_empty: bool = True  # not stated means an empty list
    is_set: bool = False
    may_be_single: bool = False  # a value may stand in place of a list


@dataclass(frozen=True, slots=True)
class Map(Node):
    """Values by keys that the document gives."""

    key: Member
    value: Member


def fields_of(node: Node, name: str = "", is_optional: bool = False, about: str = "") -> Iterator[Field]:  # fmt: skip
    """The fields of a node. The first field of an object also gets the description of the object."""
    is_optional |= node.is_nullable
    about = joined((about, node.about))
    match node:
        case Scalar():
            yield Field(
                name, node.type, is_optional, tuple(node.values) if node.type == "label" else (), about,
                rules=node.rules,
            )  # fmt: skip
        case List():
            about = about or node.item.about
            item = dataclasses.replace(node.item, is_nullable=False, about="")
            inner = tuple(fields_of(item, ENTRY))
            if isinstance(item, List | Map):  # an entry has no description of its own
                about = about or inner[0].description
                inner = (replace(inner[0], description=""),)
            entry = inner[0] if isinstance(item, Scalar) else Field(name, fields=inner)
            yield replace(entry, name=name, is_list=True, is_optional=is_optional, description=about)  # fmt: skip
        case Map():
            inner = tuple(fields_of(Object((node.key, node.value))))
            yield Field(name, "str", is_optional, (), about, True, inner)
        case Object() | Choice():
            for member in members_of(node):
                start = f"{name}." if name and member.name else name
                # `words` go to the first field, later `about` to fields without a description of their own.
                words, about = about, (about if name and len(about) <= _SHORT else "")
                is_left_out = is_optional or not member.is_required
                for i, each in enumerate(fields_of(member.node, start + member.name, is_left_out)):
                    said = words if i == 0 or not each.description else ""
                    yield replace(each, description=joined((said, each.description)))
                    words = about


def members_of(node: Object | Choice) -> Iterable[Member]:
    """The members, each record name once; a member is required if every variant requires it."""
    if isinstance(node, Object):
        return (*node.members, *filter(None, [node.rest]))
    found: dict[str, Member] = {node.tag.name: node.tag} if node.tag else {}
    needed = [
        {m.name for m in v.members if m.is_required and not m.node.is_nullable}
        for v in node.variants
    ]
    for member in (m for v in node.variants for m in members_of(v)):
        is_shared = all(member.name in names for names in needed)
        if not isinstance(member.node, Constant):
            found.setdefault(member.name, replace(member, is_required=is_shared))
    return found.values()


_SHORT = 100
"""Maximum characters of an inner object's description that its fields repeat if they have none; else only the first has it."""
MAX_ABOUT = 1_000
"""Maximum characters of a description for the model; a page per field would fill its context window."""


def joined(words: Iterable[str]) -> str:
    """Join texts about a value, each once, up to about `MAX_ABOUT` characters."""
    text = "; ".join(dict.fromkeys(filter(None, words)))
    return text if len(text) <= MAX_ABOUT + 2 else f"{text[:MAX_ABOUT]} …"


def tree_of_fields(fields: Iterable[Field]) -> Object:
    """The tree of fields in the short form."""
    return _object_of(nested({each.name: each for each in fields}))


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nest values by the dots in their names: `a.b` becomes `{"a": {"b": ...}}`."""
    root: dict[str, Any] = {}
    for name, value in values.items():
        *around, last = name.split(".")
        inner = root
        for part in around:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return root


def _object_of(members: Mapping[str, Any]) -> Object:
    return Object(tuple(
        Member(name, name, _object_of(of)) if isinstance(of, dict)
        else Member(name, name, _node_of_field(of), not of.is_optional)
        for name, of in members.items()
    ))  # fmt: skip


def _node_of_field(about: Field) -> Node:
    item: Node = Scalar(
        about.type, (_KINDS.get(about.type, "string"),), {label: label for label in about.labels}, about.rules,
        is_nullable=about.is_optional, about=about.description,
    )  # fmt: skip
    if not about.is_list:
        return item
    if about.fields and about.fields[0].name == ENTRY:
        item = _node_of_field(about.fields[0])
    elif about.fields:
        item = tree_of_fields(about.fields)
    else:
        item = dataclasses.replace(item, is_nullable=False, about="")
    return List(item, is_nullable=about.is_optional, about=about.description)


_KINDS = {"int": "integer", "number": "number", "bool": "boolean"}
