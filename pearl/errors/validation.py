"""What msgspec finds wrong with data, and where."""

from __future__ import annotations

import msgspec

from pearl.errors.patterns import lazy_pattern

# "Expected `int`, got `str` - at `$.choices[0].index`"
_AT = lazy_pattern(r" - at (?:`key` in )?`\$(.*)`\Z")
# "Object contains unknown field `z`"
_FIELD = lazy_pattern(r"Object (missing|contains unknown)(?: required)? field `(.*?)`")


def place(error: ValueError | msgspec.MsgspecError) -> str:
    """The place in the data, `choices.0.message`, with * for a key of a dictionary; "" for the whole."""
    at, field = _AT.search(str(error)), _FIELD.match(str(error))
    path = at[1].replace("[...]", ".*").replace("[", ".").replace("]", "") if at else ""
    return ".".join(filter(None, (path.strip("."), field and field[2])))


def reason(error: ValueError | msgspec.MsgspecError) -> str:
    """The place and what is wrong there, on one line."""
    where, field = place(error), _FIELD.match(str(error))
    said = _AT.sub("", str(error)).replace("`", "")
    if field:
        said = "is missing" if field[1] == "missing" else "is unknown"
    return f"{where}: {said[:1].lower()}{said[1:]}" if where else said
