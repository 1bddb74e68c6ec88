"""A reply with the values of fields → what it claims of each field, with its quotes; and the form asked for.

The form is `{"age": {"value": 54, "quote": "aged 54"}, "drugs": [{"name": {"value": ..., "quote": ...}}]}`,
null for a field that the text does not state, an array where the text says different things.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pearl.documents.evidence.agreeing import Stated, label_of
from pearl.documents.record import PLAIN
from pearl.dsl.decoding.constraint import (
    Constraint,
    JsonForm,
    closed_object,
    either_rule,
    list_rule,
    literal_rule,
    object_rule,
)
from pearl.dsl.fields import Field, parse_fields
from pearl.errors.patterns import lazy_pattern

UNMENTIONED = "the reply does not mention it"


def form_of(fields: Sequence[Field]) -> str:
    """The request for the form of the reply, shown below the fields."""
    form = (
        'Reply with one JSON object: for each field {"value": ..., "quote": ...}, where quote is the '
        "shortest passage of the text that states the value, copied word for word. Never guess: null "
        "for what the text does not state. An array of such objects where the text says different "
        "things of one field."
    )
    if any(field.is_list for field in fields):
        form += " A list is an array; each value in its entries has that form, too."
    if any(leaf.type == "date" for leaf in leaves(fields)):
        form += " Dates as YYYY-MM-DD."
    return form


ROWS = "rows"
"""The name of the list that `EXTRACT_ALL` asks for."""


@lru_cache(maxsize=128)
def wanted_fields(text: str, *, is_all: bool) -> tuple[Field, ...]:
    """The fields of a reply: those of the argument, or the list of entries that have them."""
    fields = parse_fields(text)
    return (Field(ROWS, is_list=True, fields=fields),) if is_all else fields


def leaves(fields: Sequence[Field]) -> Iterator[Field]:
    """The fields that have values: of a list of objects, those of its entries."""
    for field in fields:
        yield from field.fields or (field,)


@dataclass(frozen=True, slots=True)
class Claim:
    """A value that a reply gives, with its quotes; None for "not stated"."""

    value: Stated | None
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claims:
    """What a reply says of a field: values, or the entries of a list; with a reason, it is not all."""

    values: tuple[Claim, ...] = ()
    entries: tuple[Mapping[str, Claims], ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The claims of a reply by field; `why` says why some of it cannot be read."""

    fields: Mapping[str, Claims]
    why: str = ""


class _Several(list[Any]):
    """The values of a key that occurs several times in an object."""


class _Cut(list[Any]):
    """The complete entries of an array that breaks off."""


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, value in pairs:
        if key not in said:
            said[key] = value
        elif said[key] != value:
            before = said[key]
            said[key] = _Several([*(before if isinstance(before, _Several) else [before]), value])
    return said


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=Decimal, parse_float=Decimal, parse_constant=str,
    strict=False,
)  # fmt: skip
_START = lazy_pattern(r'\{(?=\s*["}])')
_COMMA = lazy_pattern(r",(\s*[\]}])")
"""A comma after the last member."""
_BLANKS = lazy_pattern(r"[\s,]*")


def read_extracted(text: str, fields: Sequence[Field]) -> Extracted:
    """Read the claims of a reply.

    Example:
        >>> reply = 'Here you are: {"age": {"value": 54, "quote": "aged 54"}, "name": null, "city": {"va'
        >>> read = read_extracted(reply, [Field("age", "int"), Field("name"), Field("city")])
        >>> read.fields["age"].values, read.fields["name"].values, read.fields["city"].why
        ((Claim(value=Decimal('54'), quotes=('aged 54',)),), (Claim(value=None, quotes=()),), 'the reply breaks off')
    """
    known = {_key(field.name) for field in fields}
    known |= {_key(field.name.partition(".")[0]) for field in fields}
    (only, *others) = fields
    inner = {_key(f.name) for f in only.inner} if only.is_list and not others else set()
    pairs: list[tuple[str, Any]] = []
    bare: list[dict[str, Any]] = []  # entries that stand alone
    why, at = "", 0
    while start := _START.search(text, at):
        members, at, is_whole = _members(text, start.end())
        is_wrapped = len(members) == 1 and _key(members[0][0]) not in known | inner
        if is_wrapped and isinstance(members[0][1], dict):  # {"result": {...}}
            members = list(members[0][1].items())
        names = {_key(name) for name, _ in members}
        if names & known:
            pairs += members
        elif names & inner and is_whole:
            bare.append(_object(members))
        elif not is_whole:
            at = start.end()
            why = why or ("" if pairs else "there is no JSON object with the fields in it")
            continue
        if not is_whole:
            why = "the reply breaks off"
            break
    if why and (mended := _COMMA.sub(r"\1", text)) != text:
        return read_extracted(mended, fields)
    if bare and not pairs:
        pairs = [(only.name, _Cut(bare) if why else bare)]
    if not pairs:
        why = why or "there is no JSON object with the fields in it"
        if text.strip() in ("[]", "null", "{}"):
            why = ""
    said = _object(pairs)
    missing = why or UNMENTIONED
    return Extracted({field.name: _claims(field, said, missing) for field in fields}, why)


def _members(text: str, at: int) -> tuple[list[tuple[str, Any]], int, bool]:
    """The members of the object that begins at an offset, up to where it breaks; the end; whether it is whole."""
    members: list[tuple[str, Any]] = []
    while True:
        at = _end(text, at)
        if text[at : at + 1] == "}":
            return members, at + 1, True
        try:
            key, end = _DECODER.raw_decode(text, at)
            colon = _end(text, end)
            if not isinstance(key, str) or text[colon : colon + 1] != ":":
                return members, at, False
            begin = _end(text, colon + 1)
            try:
                value, end = _DECODER.raw_decode(text, begin)
            except ValueError:
                if text[begin : begin + 1] == "[":
                    members.append((key, _Cut(_entries(text, begin + 1))))
                return members, at, False
        except (ValueError, RecursionError):
            return members, at, False
        if begin < end == len(text) and not isinstance(value, dict | list | str):
            return members, at, False  # the number may go on
        members.append((key, value))
        at = end


def _entries(text: str, at: int) -> Iterator[Any]:
    """The complete entries of an array that breaks off."""
    while True:
        try:
            value, at = _DECODER.raw_decode(text, _end(text, at))
        except (ValueError, RecursionError):
            return
        yield value


def _end(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _key(name: str) -> str:
    """A name without case, blanks and underscores: `Dose (mg)` is `dose_mg`."""
    return "".join(filter(str.isalnum, name.casefold())) or name


_MISSING = object()


def _claims(field: Field, said: Mapping[str, Any], missing: str) -> Claims:
    """The claims of an object for one of its fields."""
    value = _named(field.name, said)
    if value is _MISSING:
        return Claims(why=missing)
    if field.is_list:
        return _list(field, value)
    return Claims(*_values(field, value))


def _named(name: str, said: Mapping[str, Any]) -> Any:
    """The value of a name, which may have dots or stand in an object of its own."""
    if name in said:
        return said[name]
    same = [value for key, value in said.items() if _key(key) == _key(name)]
    if same:
        return same[0] if len(same) == 1 else _Several(same)
    head, dot, rest = name.partition(".")
    outer = _named(head, said) if dot else _MISSING
    if outer is None:
        return None
    return _named(rest, outer) if isinstance(outer, dict) else _MISSING


_NOT_STATED = frozenset({
    "", "null", "none", "none given", "n/a", "na", "not stated", "not mentioned", "not given",
    "not specified", "unspecified", "unknown", "not known", "not available", "not reported",
    "not provided", "not found", "not recorded", "missing", "-", "—",
})  # fmt: skip
"""Texts that mean null, without a quote."""


def _values(
    field: Field, said: Any, quotes: tuple[str, ...] = ()
) -> tuple[tuple[Claim, ...], tuple[()], str]:
    """The claims that a value, an object with value and quote, or an array of these makes."""
    match said:
        case list():
            read = [_values(field, one, quotes) for one in said]
            claims = tuple(claim for values, _, _ in read for claim in values)
            stated = tuple(claim for claim in claims if claim.value is not None)
            why = next((why for _, _, why in read if why), "")
            if isinstance(said, _Cut):
                why = why or "the reply breaks off"
            return stated or claims or ((Claim(None),) if not why else ()), (), why
        case dict():
            by_key = {_key(key): value for key, value in said.items()}
            if undecided := by_key.get("undecided"):
                return (), (), str(undecided)
            if said and "value" not in by_key:
                return (), (), "the reply gives no value for it"
            given = by_key.get("quote", by_key.get("quotes"))
            given = given if isinstance(given, list) else [given]
            own = tuple(quote for quote in given if isinstance(quote, str) and quote.strip())
            value = by_key.get("value")
            if isinstance(value, dict):
                return (), (), "its value in the reply is an object"
            return _values(field, value, own or quotes)
    is_text = isinstance(said, str)
    if said is None or (is_text and not quotes and said.strip(" .").casefold() in _NOT_STATED):
        label = label_of(field, said) if is_text and field.type == "label" else None
        return (Claim(None if label is None else label),), (), ""
    return (Claim(said, quotes),), (), ""


def _list(field: Field, said: Any) -> Claims:
    """The entries of a list."""
    if isinstance(said, _Several):
        return Claims(why="the reply gives this list several times")
    if isinstance(said, dict) and isinstance(value := said.get("value"), list) and field.fields:
        said = value
    if said is None or (isinstance(said, str) and said.strip(" .").casefold() in _NOT_STATED):
        return Claims()
    inner = field.inner
    entries: list[Mapping[str, Claims]] = []
    why = "the reply breaks off in this list" if isinstance(said, _Cut) else ""
    for entry in said if isinstance(said, list) else [said]:
        if isinstance(entry, dict) and entry.keys() == {"undecided"}:
            why = why or str(entry["undecided"])
        elif not field.fields:
            values, _, flaw = _values(inner[0], entry)
            entries += [{PLAIN: Claims((each,))} for each in values if each.value is not None]
            why = why or flaw
        elif isinstance(entry, dict):
            entries.append(_entry(inner, entry))
        elif entry is not None:
            why = why or "an entry of this list in the reply has no fields"
    return Claims(entries=tuple(entries), why=why)


def _entry(fields: Sequence[Field], said: Mapping[str, Any]) -> Mapping[str, Claims]:
    """The claims of an entry; a quote of the whole entry counts for its bare values."""
    quote = said.get("quote")
    shared = (quote,) if isinstance(quote, str) and all(f.name != "quote" for f in fields) else ()
    claims = {field.name: _claims(field, said, UNMENTIONED) for field in fields}
    if not shared:
        return claims
    return {
        name: replace(
            each, values=tuple(c if c.quotes else replace(c, quotes=shared) for c in each.values)
        )
        for name, each in claims.items()
    }


# ---------------------------------------------------------------------------------------------
# The constraint for decoders

_STRING = r'/"(?:[^"\\\u0000-\u001f]|\\["\\\/bfnrtu])*"/'


@lru_cache(maxsize=32)
def extraction_constraint(fields: tuple[Field, ...], max_text: int | None = None) -> Constraint:
    """The language of the replies that `read_extracted` reads in full."""
    rules: dict[str, str] = {}
    start = _object_rule(fields, rules, "f")
    rules = {
        "start": start, **rules,
        "NULL": literal_rule("null"), "BOOL": f"{literal_rule('true')} | {literal_rule('false')}",
        "NUMBER": r"/-?[0-9]{1,15}(?:\.[0-9]{1,6})?/",
        "STRING": _STRING if max_text is None else _STRING.replace(")*", f"){{0,{max_text}}}"),
    }  # fmt: skip
    grammar = "".join(f"{name}: {body}\n" for name, body in rules.items())
    schema = _schema(fields, max_text)

    def text_of(said: Any) -> str:
        if not isinstance(said, dict):
            raise ValueError("the reply is no object")
        return json.dumps(said, ensure_ascii=False)

    return Constraint(
        "extraction", grammar, JsonForm(schema, text_of, "the object described above")
    )


def _object_rule(fields: Sequence[Field], rules: dict[str, str], name: str) -> str:
    parts = [literal_rule("{")]
    for i, field in enumerate(fields):
        key = json.dumps(field.name, ensure_ascii=False)
        parts += [literal_rule(f"{', ' if i else ''}{key}: "), f"{name}_{i}"]
        if field.is_list:
            entry = f"{name}_{i}_entry"
            inner = field.inner
            rules[f"{name}_{i}"] = list_rule(entry)
            rules[entry] = (
                _object_rule(inner, rules, f"{name}_{i}") if field.fields
                else object_rule(value=_value_rule(field, rules, entry), quote="STRING")
            )  # fmt: skip
            continue
        one = f"{name}_{i}_one"
        rules[f"{name}_{i}"] = f"NULL | {one} | {list_rule(one, least=1)}"
        rules[one] = object_rule(value=_value_rule(field, rules, one), quote="STRING")
    return " ".join([*parts, literal_rule("}")])


def _value_rule(field: Field, rules: dict[str, str], name: str) -> str:
    if field.type == "label":
        rules[f"{name}_label"] = either_rule(field.labels)
        return f"{name}_label"
    return {"int": "NUMBER", "number": "NUMBER", "bool": "BOOL"}.get(field.type, "STRING")


def _schema(fields: Sequence[Field], max_text: int | None) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    if max_text is not None:
        text["maxLength"] = max_text

    def one(field: Field) -> dict[str, Any]:
        values: dict[str, dict[str, Any]] = {
            "int": {"type": "integer"}, "number": {"type": "number"}, "bool": {"type": "boolean"},
            "label": {"type": "string", "enum": list(field.labels)},
        }  # fmt: skip
        return closed_object({"value": values.get(field.type, text), "quote": text})

    def of(field: Field) -> dict[str, Any]:
        if field.is_list:
            entry = _schema(field.fields, max_text) if field.fields else one(field)
            return {"type": "array", "items": entry}
        scalar = one(field)
        return {"anyOf": [{"type": "null"}, scalar, {"type": "array", "items": scalar}]}

    return closed_object({field.name: of(field) for field in fields})
