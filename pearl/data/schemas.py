"""Read schemas (JSON Schema, pydantic, the short form) as fields, and records as values of schemas."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import isroutine
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from pearl.data import schema_tree
from pearl.data.compiling import HAS_DEFAULT, tree_of_schema
from pearl.data.composing import MISSING, Composer, Flaws, flaws_of_schema, told_place
from pearl.data.json_schema import check, read_schema
from pearl.documents.record import Reading, Record
from pearl.dsl.fields import TYPES, Field, parse_fields, print_fields
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import json_bytes

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

_ENTRIES, _VALUE = "entries", "value"
"""The name of the only field of a schema that is a list or a map, or a single value."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a record, and how to compose the value that the schema describes from them."""

    fields: tuple[Field, ...]  # Those of nested objects have dots in their names
    model: Any  # The pydantic model, or another type that pydantic knows; None without one
    text: str = field(repr=False)
    """A JSON Schema or the short form; `load_schema` makes the same schema of it, but without the model."""
    notes: tuple[str, ...] = ()  # On parts of the schema that are not used
    _root: schema_tree.Node = field(kw_only=True, repr=False)
    _whole: str = field(default="", kw_only=True, repr=False)  # the only field, or ""

    def read(self, record: Record) -> Reading:
        """Read a record in the form of the schema."""
        is_model, is_json = self.model is not None, self.text.startswith("{")
        name = getattr(self.model, "__name__", "the record") if is_model else "the record"
        composer = Composer(self._root, name, fills_in=is_model)
        composer.compose(self._whole, record.fields)
        if is_json and not is_model:
            composer.drop(flaws_of_schema(self.text, composer.data, is_lenient=True))
        made: list[Any] = []
        value = composer.value(lambda data: self._flaws(data, made))
        if is_json and is_model:  # also check what the value leaves out
            flaws = flaws_of_schema(self.text, composer.data, is_lenient=True, has_formats=False)
            composer.drop(flaws)
        plain = None if value is MISSING else value
        value = made[-1] if is_model and value is not MISSING else plain
        undecided = tuple(told_place(at) or "$" for at in composer.lost)
        return Reading(value, composer.data, undecided, tuple(composer.reasons), plain)

    def _flaws(self, data: Any, made: list[Any]) -> Flaws:
        """The errors of data by the schema; without an error, the instance of the model is added to `made`."""
        if self.model is None:
            is_json = self.text.startswith("{")
            return flaws_of_schema(self.text, data, is_lenient=False) if is_json else ()
        from pydantic import ValidationError  # late: the short form needs no models

        try:
            made.append(_adapter(self.model).validate_json(json_bytes(data)))
        except ValidationError as error:
            flaws = error.errors(include_url=False, include_context=False, include_input=False)
            return [(flaw["loc"], flaw["msg"], flaw["type"] == "too_short") for flaw in flaws]
        except Exception as error:  # noqa: BLE001 - validators are code of the user
            return [((), f"{type(error).__name__}: {error}", False)]
        return ()


@lru_cache(maxsize=32)
def _adapter(model: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return model if isinstance(model, TypeAdapter) else TypeAdapter(model)


def load_schema(
    what: str | Path | type[BaseModel] | Mapping[str, Any] | Sequence[Field] | Schema,
) -> Schema:
    """Load a schema: a JSON Schema (path or mapping), `package.module:Model`, a model, or the short form."""
    if isinstance(what, Schema):
        return what
    if isinstance(what, str):
        module, _, path = what.partition(":")
        is_named = all(each.isidentifier() for each in [*module.split("."), *path.split(".")])
        if is_named and path not in TYPES:  # `package.module:Model`, no field `age:int`
            return _of_model(_imported(what), what)
        stem, _, suffix = what.rpartition(".")
        # `visit.json` is a file; a field has a type: `address.city: str`.
        is_file = suffix != what and suffix.isalpha() and not set(stem) & set(":,|?(){}[]'")
        if is_file or os.path.exists(what):  # noqa: PTH110 - a long text is no path, and no error
            what = Path(what)
        elif what.lstrip().startswith("{"):
            return stored_schema(what)
    if isinstance(what, Path):
        try:
            data = json.loads(what.read_bytes())
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            why = "no such file" if is_missing else f"cannot be read: {error.strerror}"
        except (ValueError, RecursionError) as error:
            why = f"not JSON: {error}"
        else:
            return _of_json(data, str(what), what.parent)
        advice = 'name a file of JSON Schema, MODULE:MODEL, or fields: "name: str, age: int?"'
        raise DataError(why, path=what, help=advice)
    if isinstance(what, Mapping):
        return _of_json(what, "schema")
    if not isinstance(what, str | Sequence):
        return _of_model(what, getattr(what, "__name__", None) or str(what))
    # Fields of a caller may be invalid.
    fields = parse_fields(what if isinstance(what, str) else print_fields(what))
    return Schema(fields, None, print_fields(fields), _root=schema_tree.tree_of_fields(fields))


@lru_cache(maxsize=32)
def stored_schema(text: str) -> Schema:
    """The schema in a text of `Schema.text`, which may be untrusted: no code is imported and no file is read."""
    if not text.lstrip().startswith("{"):
        return load_schema(parse_fields(text))
    try:
        return _of_json(json.loads(text), "schema")
    except (ValueError, RecursionError) as error:
        raise DataError(f"schema: not JSON: {error}") from None


def _imported(name: str) -> Any:
    """The object that `package.module:Model` names, imported from the working folder as by `python -m`."""
    sys.path.insert(0, folder := os.getcwd())  # noqa: PTH109
    try:
        return resolve_name(name)
    except (Exception, SystemExit) as error:  # code of the user
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        advice = 'MODULE:MODEL names a pydantic model; a field and its type read "name: str"'
        raise UsageError(f"schema '{name}' cannot be imported: {why}", help=advice) from error
    finally:
        sys.path.remove(folder)  # so that no file of this folder replaces a package later


def _of_model(model: Any, name: str) -> Schema:
    from pydantic import PydanticUserError
    from pydantic.errors import PydanticSchemaGenerationError

    try:
        if isroutine(model):
            raise TypeError
        schema = _adapter(model).json_schema(schema_generator=_generator())
    except (PydanticSchemaGenerationError, TypeError):
        raise UsageError(
            f"schema '{name}' is not a pydantic model", help="subclass pydantic.BaseModel"
        ) from None
    except PydanticUserError as error:
        raise DataError(f"{name}: no JSON Schema: {str(error).splitlines()[0]}") from None
    return _of_json(schema, name, model=model)


@lru_cache(maxsize=1)
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Describes a `Decimal` as a text, which keeps its digits, and marks every default."""

        def default_schema(self, schema: Any) -> Any:
            return {**super().default_schema(schema), HAS_DEFAULT: True}

        def decimal_schema(self, schema: Any) -> Any:
            ways = super().decimal_schema(schema).get("anyOf", [{}])
            return {**ways[0], "type": "string", "format": "decimal"}

    return Generator


def _of_json(data: Any, name: str, folder: Path | None = None, *, model: Any = None) -> Schema:
    schema = read_schema(data, name, folder)
    root, notes = tree_of_schema(schema, name)
    check(schema, name, is_whole=True)
    is_object = isinstance(root, schema_tree.Object | schema_tree.Choice)
    whole = "" if is_object else _VALUE if isinstance(root, schema_tree.Scalar) else _ENTRIES
    named = replace(root, about="") if is_object else root  # it describes no single field
    fields = tuple(schema_tree.fields_of(named, whole))
    text = json.dumps(schema, ensure_ascii=False)
    return Schema(fields, model, text, notes, _root=root, _whole=whole)
