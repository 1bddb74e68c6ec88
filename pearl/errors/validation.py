"""What msgspec finds wrong with data, and where."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from pearl.errors.patterns import lazy_pattern

Kind = TypeVar("Kind")

# "Expected `int`, got `str` - at `$.choices[0].index`"
_AT = lazy_pattern(r" - at (?:`key` in )?`\$(.*)`\Z")
# "Object contains unknown field `z`"
_FIELD = lazy_pattern(r"Object (missing|contains unknown)(?: required)? field `(.*?)`")


def decoded(text: bytes | str, kind: type[Kind]) -> Kind:
    """Decode JSON as a type; raises a `DecodeError` if the text is not JSON of this type, or is nested too deeply."""
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None


def place(error: ValueError | msgspec.MsgspecError) -> str:
    """The place in the data, `choices.0.message`, with * for a key of a dictionary; "" for the whole."""
    at, field = _AT.search(str(error)), _FIELD.match(str(error))
    path = at[1].replace("[...]", ".*").replace("[", ".").replace("]", "") if at else ""
    return ".".join(filter(None, (path.strip("."), field and field[2])))


def reason(error: ValueError | msgspec.MsgspecError, within: str = "") -> str:
    """The place, of which the caller may know the beginning, and what is wrong there, on one line."""
    where = ".".join(filter(None, (within, place(error))))
    field = _FIELD.match(str(error))
    said = _AT.sub("", str(error)).replace("`", "")
    if field:
        said = "is missing" if field[1] == "missing" else "is unknown"
    return f"{where}: {said[:1].lower()}{said[1:]}" if where else said
