"""Bundle a user's JSON Schema in one dialect; it may refer only to itself and to files below its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from pearl.dsl.literals import short
from pearl.errors import DataError

Place = tuple[str | int, ...]  # The place of a part of a schema

MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""Keywords whose value maps names to schemas."""
DATA = ("enum", "const", "default", "example", "examples")  # Keywords whose value is no schema
_NAMES = ("$id", "$anchor", "$dynamicAnchor", "$schema", "$recursiveAnchor", "$vocabulary")
_SHAPES = ("properties", "$ref", "type", "anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties",
           "patternProperties", "enum", "const")  # fmt: skip
"""A schema of a value has at least one of these keywords."""
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


def refuse(name: str, path: Place, message: str) -> NoReturn:
    """Raise a DataError with the place in the schema."""
    raise DataError(": ".join(filter(None, (name, ".".join(map(str, path)), message))))


def read_schema(root: Any, name: str, folder: Path | None = None) -> dict[str, Any]:
    """Rewrite an untrusted schema as one document of JSON Schema 2020-12; `DataError` if that is impossible."""
    try:
        while isinstance(root, Mapping) and not _is_like_one(root):  # e.g. {"schema": {...}}
            inner = [v for k, v in root.items() if k not in MAPS and _has_one(v)]
            if len(inner) != 1:
                break
            root = {**{k: v for k, v in root.items() if k in MAPS}, **inner[0]}
        if not isinstance(root, Mapping) or not _is_like_one(root):
            refuse(name, (), 'not a JSON Schema: {"type": "object", "properties": {...}}')
        schema: dict[str, Any] = _Bundle(root, name, folder).schema()
        check(schema, name, is_whole=False)
    except RecursionError:
        refuse(name, (), "nested too deep")
    return schema


def _is_like_one(data: Mapping[str, Any]) -> bool:
    kind = data.get("type", "object")
    return bool(data.keys() & set(_SHAPES)) and (not isinstance(kind, str) or kind in _TYPES)


def _has_one(data: Any) -> bool:
    return isinstance(data, Mapping) and (_is_like_one(data) or any(map(_has_one, data.values())))


def check(schema: dict[str, Any], name: str, *, is_whole: bool) -> None:
    """Refuse a malformed schema; a whole schema is refused for patterns that no engine reads, too."""
    import jsonschema_rs  # late: the short form needs none

    try:
        if is_whole:
            options = jsonschema_rs.FancyRegexOptions()
            jsonschema_rs.Draft202012Validator(
                schema, pattern_options=options, retriever=no_retriever
            )
        else:
            jsonschema_rs.meta.validate({**schema, "$schema": _DIALECT})
    except jsonschema_rs.ValidationError as error:
        refuse(name, tuple(error.instance_path), f"not a JSON Schema: {short(error.message)}")
    except ValueError as error:  # the library has a limit of its own, below that of Python 3.13
        is_deep = "ecursion" in str(error)
        refuse(
            name, (), "nested too deep" if is_deep else f"not a JSON Schema: {short(str(error))}"
        )


def no_retriever(uri: str) -> Any:
    """Refuse to fetch a document; validators call it for references that lead outside."""
    raise ValueError(f"{uri} is not read")


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Bundle:
    """A document with the files to which it refers."""

    def __init__(self, root: Mapping[str, Any], name: str, folder: Path | None) -> None:
        self.root = root
        self.name = name
        self.folder = folder and folder.resolve()
        self.places = {"": "#"}
        """Pointers into the bundled document, by `resource` or `resource#anchor`."""
        self.files: dict[str, Any] = {}

    def schema(self) -> dict[str, Any]:
        self.index(self.root, "", "#")
        whole: dict[str, Any] = self.copied(self.root, (), "", "")
        copied: dict[str, Any] = {}
        while left := self.files.keys() - copied.keys():  # files may name others
            copied |= {uri: self.copied(self.files[uri], (uri,), uri, uri) for uri in left}
        return {**whole, "$defs": {**whole.get("$defs", {}), **copied}} if copied else whole

    def index(self, raw: Any, base: str, pointer: str, is_map: bool = False) -> None:
        """Record the places of the resources and anchors of a document."""
        if not is_map and isinstance(raw, Mapping):
            if isinstance(own := raw.get("$id"), str):
                base = urljoin(base, own)
                self.places.setdefault(urldefrag(base)[0], pointer)
            for anchor in (raw.get("$anchor"), raw.get("$dynamicAnchor")):
                if isinstance(anchor, str):
                    self.places.setdefault(f"{urldefrag(base)[0]}#{anchor}", pointer)
        parts = raw.items() if isinstance(raw, Mapping) else enumerate(raw if isinstance(raw, list) else ())  # fmt: skip
        for key, value in parts:
            if isinstance(value, Mapping | list) and (is_map or key not in DATA):
                self.index(value, base, f"{pointer}/{_escaped(str(key))}", not is_map and key in MAPS)  # fmt: skip

    def copied(self, raw: Any, path: Place, base: str, file: str, is_map: bool = False) -> Any:
        """Copy a schema, or with `is_map` a mapping of names to schemas, into one dialect."""
        if isinstance(raw, list):
            return [self.copied(each, (*path, i), base, file) for i, each in enumerate(raw)]
        if not isinstance(raw, Mapping):
            return raw
        if is_map:
            return {str(k): self.copied(v, (*path, k), base, file) for k, v in raw.items()}
        if isinstance(own := raw.get("$id"), str):
            base = urljoin(base, own)
        out: dict[str, Any] = {}
        for key, value in raw.items():
            place = (*path, key)
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
                out["$ref"] = self.reference(value, place, base, file)
            elif key in DATA:
                out[key] = value
            elif key not in _NAMES:
                out[str(key)] = self.copied(value, place, base, file, key in MAPS)
        return _modern(out)

    def reference(self, ref: str, path: Place, base: str, file: str) -> str:
        resource, fragment = urldefrag(urljoin(base, ref))
        if resource not in self.places:
            resource = self.loaded(ref, path, file)
        if fragment and not fragment.startswith("/"):
            pointer = self.places.get(f"{resource}#{fragment}")
        else:
            pointer = self.places[resource] + unquote(fragment)
        if pointer is None:
            refuse(self.name, path, f"the schema has nothing at '{short(ref)}'")
        return quote(pointer, safe="#/$~:@!&()*+,;=")

    def loaded(self, ref: str, path: Place, file: str) -> str:
        """The name of the file that a reference means; the file is read on first use."""
        where = urldefrag(urljoin(file, ref))[0]
        parts = urlsplit(where)
        if self.folder is None or parts.scheme or parts.netloc or not parts.path:
            flaw = "references lead within the schema (#/$defs/NAME), or to files below its folder"
            refuse(self.name, path, flaw)
        if where in self.files:
            return where
        found = (self.folder / unquote(parts.path)).resolve()
        if not found.is_relative_to(self.folder):
            refuse(self.name, path, f"'{short(ref)}' is not below the folder of the schema")
        try:
            data = json.loads(found.read_bytes())
        except OSError as error:
            refuse(self.name, path, f"'{short(ref)}' cannot be read: {error.strerror}")
        except ValueError as error:
            refuse(self.name, path, f"'{short(ref)}' is not JSON: {error}")
        if not isinstance(data, Mapping | bool):
            refuse(self.name, path, f"'{short(ref)}' has no schema")
        self.files[where] = data
        self.places[where] = f"#/$defs/{_escaped(where)}"
        self.index(data, where, self.places[where])
        return where


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _modern(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace keywords of older drafts and OpenAPI by those of 2020-12."""
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    if schema.pop("nullable", False) is True:
        words: dict[str, Any] = {k: schema.pop(k) for k in ("title", "description") if k in schema}
        schema = {**words, "anyOf": [schema, {"type": "null"}]}
    return schema
