"""A reply with the values of fields → the claims about each field, with quotes; and the form of such replies.

The form is `{"name": "Ada", "age": 54, "age_quote": "aged 54", "drugs": [{"name": ..., "dose": ..., "quote": "..."}]}`: a
value that is copied stands alone, as its place can be looked up, the others have their quotes after them.
`{"age": {"value": 54, "quote": "aged 54"}}` is read, too. null means that the text does not state the
field; an array has the different values that the text states.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.evidence.value_checks import Stated, label_of
from pearl.documents.record import PLAIN
from pearl.dsl.decoding.constraint import Constraint, JsonForm, closed_object
from pearl.dsl.fields import ENTRY, Field, parse_fields
from pearl.replies.raw import OBJECT, says_not_stated, whole_part

UNMENTIONED = "the reply does not mention it"


QUOTE = "quote"
_BEHIND = "_quote"  # Suffix of the key that holds the quote for a value
_NEEDING = ("int", "bool", "label", "text")
"""Types whose values need a quote: a short number occurs in most texts with other meanings."""
_PASSAGE = "the shortest passage of the text that states the value, copied word for word"
MAX_KEYS = 3  # Maximum quote keys that the request names
_PAIR = '{"value": ..., "quote": ...}'


def form_of(fields: Sequence[Field], *, is_quoted: bool = False) -> str:
    """The request for the form of the reply, shown below the fields; `is_quoted` asks for a quote with every value."""
    is_quoted = is_quoted or _has_own_quotes(fields)
    if is_quoted:
        form = f"for each field {_PAIR}, where quote is {_PASSAGE}"
    else:
        form = "the value of each field alone"
        if names := [field.name for field in fields if _needs_quote(field)]:
            keys = ", ".join(f'"{name}{_BEHIND}"' for name in names[:MAX_KEYS])
            keys += " and so on" * (len(names) > MAX_KEYS)
            form += f", and behind {', '.join(names)} also {keys}: {_PASSAGE}"
        if any(not field.is_list and not _needs_quote(field) for field in fields):
            form += f". {_PAIR} for {'another' if names else 'a'} value that stands in the text several times"
    form = (
        f"Reply with one JSON object: {form}. Never guess: null for what the text does not state. "
        f"An array {'of such objects ' * is_quoted}where the text says different things of one field."
    )
    if any(field.is_list for field in fields):
        form += " A list is an array"
        form += (
            "; each value in its entries has that form, too."
            if is_quoted
            else f': an entry with fields has its values alone and last "{QUOTE}", the passage that states them; '
            f"another entry, and a value that stands elsewhere, is {_PAIR}."
        )
    if any(leaf.type == "date" for leaf in leaves(fields)):
        form += " Dates as YYYY-MM-DD."
    return form


def _needs_quote(field: Field) -> bool:
    return not field.is_list and field.type in _NEEDING


def _has_own_quotes(fields: Sequence[Field]) -> bool:
    """Whether a field has a name that the form itself uses."""
    return any(name_key(f"_{field.name}").endswith(QUOTE) for field in fields)


ROWS = "rows"  # Name of the list that `EXTRACT_ALL` requests


def wanted_fields(text: str, *, is_all: bool) -> tuple[Field, ...]:
    """The fields of a reply: those in the argument, or a list whose entries have them (`is_all`)."""
    fields = parse_fields(text)
    return (Field(ROWS, is_list=True, fields=fields),) if is_all else fields


def leaves(fields: Sequence[Field]) -> Iterator[Field]:
    """The fields that have values; for a list, those of its entries."""
    for field in fields:
        yield from leaves(field.fields) if field.fields else (field,)


class Claim(Struct, frozen=True):
    """A value in a reply, with its quotes; None for "not stated"."""

    value: Stated | None
    quotes: tuple[str, ...] = ()


class Claims(Struct, frozen=True):
    """The claims of a reply about a field: values, or list entries; `why` says why they are incomplete."""

    values: tuple[Claim, ...] = ()
    entries: tuple[Mapping[str, Claims], ...] = ()
    why: str = ""


class Extracted(Struct, frozen=True):
    """The claims of a reply by field; `why` says why a part cannot be read."""

    fields: Mapping[str, Claims]
    why: str = ""


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object; the values of a repeated key become a list."""
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        known = values.setdefault(key, [])
        if value not in known[-1:]:
            known.append(value)
    return {key: known[0] if len(known) == 1 else known for key, known in values.items()}


def _number(text: str) -> Stated:
    """A number; if it has too many digits to be written out, its text."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # The exponent has too many digits
        return text
    return number if len(text) <= MAX_NUMBER and abs(number.adjusted()) <= MAX_NUMBER else text


UNREAD = "."
"""Key of the placeholder for the unread rest of a list, with the reason; no field has this name."""
MAX_NUMBER = 40  # Maximum characters and digits of a number
MAX_BROKEN = 50  # Maximum texts that look like an object before the object of a reply
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_number, parse_float=_number, parse_constant=str,
    strict=False,
)  # fmt: skip
MAX_DEPTH = 8  # Maximum arrays around a value: a reply in a loop has hundreds
NO_OBJECT = "there is no JSON object with the fields in it"
BROKEN = "the reply breaks off"


@lru_cache(maxsize=16)  # A constrained reply is checked before it is read
def read_extracted(text: str, fields: tuple[Field, ...]) -> Extracted:
    """Read the claims of a reply."""
    known = {
        name_key(name) for field in fields for name in (field.name, field.name.partition(".")[0])
    }
    pairs: list[tuple[str, Any]] = []
    why, at, n_broken = "", 0, 0
    while not why and n_broken < MAX_BROKEN and (start := OBJECT.search(text, at)):
        is_whole = True
        try:
            said, at = _DECODER.raw_decode(text, start.start())
        except RecursionError:
            why = NO_OBJECT
            break
        except json.JSONDecodeError as error:
            said, at = _cut_off(text[start.start() : error.pos]), max(error.pos, start.end())
            n_broken += 1
            is_whole = False
        if not known.isdisjoint(map(name_key, said)):
            pairs += said.items()
            why = "" if is_whole else BROKEN
    if not pairs and text.strip() not in ("[]", "null", "{}"):
        why = why or NO_OBJECT
    missing = why or UNMENTIONED
    stated = _object(pairs)
    said_of = _Said(fields)
    return Extracted({f.name: said_of.claims(f, stated, missing) for f in fields}, why)


def _cut_off(text: str) -> dict[str, Any]:
    """The complete members of an object that breaks off; if a list breaks off, a placeholder stands for its rest."""
    try:
        said: dict[str, Any] = _DECODER.decode(whole_part(text) or "{}")
    except RecursionError:
        return {}
    last = next(reversed(said.values()), None)
    if isinstance(last, list):
        last.append({UNREAD: BROKEN})
    return said


def name_key(name: str) -> str:
    """A name without case, blanks and underscores: `Dose (mg)` equals `dose_mg`."""
    return "".join(filter(str.isalnum, name.casefold())) or name


_MISSING = object()


def _texts(given: Any) -> tuple[str, ...]:
    """The quotes in a reply, as texts."""
    quotes = given if isinstance(given, list) else [given]
    return tuple(quote for quote in quotes if isinstance(quote, str) and quote.strip())


def _with_quotes(claims: Claims, given: Any) -> Claims:
    """Add quotes to claims: one for each value, or all for every value, as in list entries."""
    quotes = _texts(given)
    if not quotes:
        return claims
    own = (
        [(q,) for q in quotes]
        if len(quotes) == len(claims.values)
        else [quotes] * len(claims.values)
    )
    values = [
        claim if claim.quotes or claim.value is None else replace(claim, quotes=quotes_of)
        for claim, quotes_of in zip(claims.values, own, strict=True)
    ]
    entries = tuple(
        {name: _with_quotes(inner, given) for name, inner in entry.items()}
        for entry in claims.entries
    )
    return replace(claims, values=tuple(values), entries=entries)


class _Said:
    """The objects of a reply; each may have some of the fields."""

    def __init__(self, fields: Sequence[Field]) -> None:
        parts = [field.name.split(".") for field in fields]
        self._names = {".".join(part[i:]) for part in parts for i in range(len(part))}
        self._by_key: dict[int, dict[str, list[Any]]] = {}
        """For each object, by its `id()`: the values of names that are not exactly those of fields, by `name_key`."""

    def claims(self, field: Field, said: Mapping[str, Any], missing: str) -> Claims:
        """The claims of an object about a field; `missing` is the reason if it has none."""
        value = self._named(field.name, said)
        if value is _MISSING:
            return Claims(why=missing)
        if field.is_list:
            return _list(field, value)
        values, why = _values(field, value)
        claims, behind = Claims(values, why=why), f"{field.name}{_BEHIND}"
        return claims if behind in self._names else _with_quotes(claims, self._named(behind, said))

    def _named(self, name: str, said: Mapping[str, Any]) -> Any:
        """The value of a name, which may contain dots or be nested in objects."""
        if name in said:
            return said[name]
        if (by_key := self._by_key.get(id(said))) is None:
            by_key = self._by_key[id(said)] = {}
            for key, value in said.items():
                if key not in self._names:
                    by_key.setdefault(name_key(key), []).append(value)
        if same := by_key.get("".join(map(name_key, name.split(".")))):
            return same[0] if len(same) == 1 else same
        head, dot, rest = name.partition(".")
        outer = self._named(head, said) if dot else _MISSING
        if outer is None:
            return None
        return self._named(rest, outer) if isinstance(outer, dict) else _MISSING


def is_null(said: Any) -> bool:
    """Whether a value means "not stated"."""
    return said is None or (
        isinstance(said, str)
        and (said.strip(" .-—").casefold() in ("", "null") or says_not_stated(said))
    )


def _values(
    field: Field, said: Any, quotes: tuple[str, ...] = (), depth: int = 0, *, is_entry: bool = False
) -> tuple[tuple[Claim, ...], str]:
    """The claims in a value, in an object with value and quote, or in an array of these."""
    if depth > MAX_DEPTH:
        return (), "the reply has arrays in arrays in place of its value"
    match said:
        case list():
            read = [_values(field, one, quotes, depth + 1, is_entry=is_entry) for one in said]
            claims = tuple(claim for values, _ in read for claim in values)
            stated = tuple(claim for claim in claims if claim.value is not None)
            why = next((why for _, why in read if why), "")
            return stated or claims or ((Claim(None),) if not why else ()), why
        case dict():
            by_key = {name_key(key): value for key, value in said.items()}
            if flaw := said.get(UNREAD) or by_key.get("undecided"):
                return (), str(flaw)
            if said and "value" not in by_key:
                return (), "the reply gives no value for it"
            own = _texts(by_key.get("quote", by_key.get("quotes")))
            value = by_key.get("value")
            if isinstance(value, dict):
                return (), "its value in the reply is an object"
            return _values(field, value, own or quotes, depth + 1, is_entry=is_entry)
    is_empty = not quotes and is_null(said)
    may_stand = is_entry and field.type == "str"  # In a list, `n/a` may be a value of the document
    if said is None or (is_empty and not (may_stand and any(map(str.isalnum, said)))):
        label = label_of(field, said) if said and field.type == "label" else None
        return (Claim(label),), ""
    return (Claim(said, quotes),), ""


def _list(field: Field, said: Any, *, is_row: bool = False) -> Claims:
    """The entries of a list in a reply."""
    inner = field.inner
    names = {each.name for each in inner} if field.fields else set()
    is_nested = bool(field.fields) and field.fields[0].name == ENTRY
    is_named = bool(field.fields) and not is_nested
    if isinstance(said, dict) and isinstance(value := said.get("value"), list):
        said = value if field.fields and not (is_named and "value" in names) else said
    if is_null(said):
        return Claims()
    entries: list[Mapping[str, Claims]] = []
    why = ""
    said_of = _Said(inner)
    for entry in said if isinstance(said, list) else [said]:
        is_object = isinstance(entry, dict)
        if is_object and (flaw := entry.get(UNREAD)):
            why = why or str(flaw)
            continue
        if is_object and entry.keys() == {"undecided"} and "undecided" not in names:
            why = why or str(entry["undecided"])
            continue
        if is_nested:
            entries.append({PLAIN: _list(inner[0], entry, is_row=True)})
        elif not is_named:
            values, flaw = _values(inner[0], entry, is_entry=True)
            entries += [{PLAIN: Claims((each,))} for each in values]
            why = why or flaw
        elif is_object:
            # A quote for the whole entry also counts for its values without quotes
            quote = None if QUOTE in names else entry.get(QUOTE)
            read = {each.name: said_of.claims(each, entry, UNMENTIONED) for each in inner}
            entries.append({name: _with_quotes(claims, quote) for name, claims in read.items()})
        elif entry is not None:
            why = why or "an entry of this list in the reply has no fields"
    said_in = (c for each in entries if PLAIN in each for c in each[PLAIN].values)
    if not (is_named or is_nested or is_row) and all(
        not c.quotes and is_null(c.value) for c in said_in
    ):
        return Claims(why=why)
    return Claims(entries=tuple(entries), why=why)


# ---------------------------------------------------------------------------------------------
# The constraint for decoders


@lru_cache(maxsize=32)
def extraction_constraint(
    fields: tuple[Field, ...], max_text: int | None = None, *, is_quoted: bool = False
) -> Constraint:
    """The constraint for replies in the form of `form_of`."""
    schema = _Schemas(max_text, is_quoted).of_reply(fields)

    def write(said: Any) -> str:  # A broken field must not invalidate the others
        if not isinstance(said, dict):
            raise ValueError("the reply is no object")
        return json.dumps(said, ensure_ascii=False)

    return Constraint("extraction", json_form=JsonForm(schema, write, "the object described above"))


def _some(*one: Mapping[str, Any]) -> dict[str, Any]:
    """A value in one of several forms, null, or an array of such values."""
    items = one[0] if len(one) == 1 else {"anyOf": list(one)}
    return {"anyOf": [{"type": "null"}, *one, {"type": "array", "items": items}]}


class _Schemas:
    def __init__(self, max_text: int | None, is_quoted: bool) -> None:
        self._is_quoted = is_quoted
        self._text: dict[str, Any] = {"type": "string"}
        if max_text is not None:
            self._text["maxLength"] = max_text

    def of_reply(self, fields: Sequence[Field]) -> dict[str, Any]:
        """The object with the fields, each followed by its quote if it needs one."""
        if self._is_quoted or _has_own_quotes(fields):
            return closed_object({field.name: self._quoted(field) for field in fields})
        members = {}
        for field in fields:
            members[field.name] = self._of(field)
            if _needs_quote(field):
                members[field.name] = _some(self._value(field))
                members[f"{field.name}{_BEHIND}"] = _some(self._text)
        return closed_object(members)

    def _of(self, field: Field) -> dict[str, Any]:
        """A list, or a value alone or with its quote."""
        return (
            self._quoted(field) if field.is_list else _some(self._value(field), self._pair(field))
        )

    def _quoted(self, field: Field) -> dict[str, Any]:
        """A list, or a value with its quote."""
        if not field.is_list:
            return _some(self._pair(field))
        if not field.fields:
            items = self._pair(field)
        elif field.fields[0].name == ENTRY:
            items = self._quoted(field.fields[0])
        elif self._is_quoted or _has_own_quotes(field.fields):
            items = closed_object({each.name: self._quoted(each) for each in field.fields})
        else:
            members = {each.name: self._of(each) for each in field.fields}
            items = closed_object({**members, QUOTE: self._text})
        return {"type": "array", "items": items}

    def _pair(self, field: Field) -> dict[str, Any]:
        return closed_object({"value": self._value(field), QUOTE: self._text})

    def _value(self, field: Field) -> dict[str, Any]:
        values: dict[str, dict[str, Any]] = {
            "int": {"type": "integer"}, "number": {"type": "number"}, "bool": {"type": "boolean"},
            "label": {"type": "string", "enum": list(field.labels)},
        }  # fmt: skip
        return values.get(field.type, self._text)
