"""What msgspec finds wrong with data, and where."""

from __future__ import annotations

from typing import TypeVar

import msgspec

Kind = TypeVar("Kind")


def decoded(text: bytes | str, kind: type[Kind]) -> Kind:
    """Decode JSON as a type; raises a `DecodeError` if the text is not JSON of this type, or is nested too deeply."""
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None


# Beginnings of messages about a field: "Object contains unknown field `z`"
_FIELDS = {
    "Object missing required field `": "is missing",
    "Object contains unknown field `": "is unknown",
}


def _parts(error: ValueError | msgspec.MsgspecError) -> tuple[str, str]:
    """The place in the data, and what is wrong there; "Expected `int`, got `str` - at `$.choices[0].index`"."""
    said, _, at = str(error).rpartition(" - at ")
    path = at.removeprefix("`key` in ")
    if not path.startswith("`$"):
        said, path = str(error), ""
    path = path.strip("`").removeprefix("$")
    path = path.replace("[...]", ".*").replace("[", ".").replace("]", "").strip(".")
    for beginning, wrong in _FIELDS.items():
        if said.startswith(beginning):
            field = said.removeprefix(beginning).rstrip("`")
            return ".".join(filter(None, (path, field))), wrong
    return path, said.replace("`", "")


def place(error: ValueError | msgspec.MsgspecError) -> str:
    """The place in the data, `choices.0.message`, with * for a key of a dictionary; "" for the whole."""
    return _parts(error)[0]


def reason(error: ValueError | msgspec.MsgspecError, within: str = "") -> str:
    """The place, of which the caller may know the beginning, and what is wrong there, on one line."""
    path, said = _parts(error)
    where = ".".join(filter(None, (within, path)))
    return f"{where}: {said[:1].lower()}{said[1:]}" if where else said
