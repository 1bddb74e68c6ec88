"""Data of any shape → where texts stand in it, and the same data with another text there."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from pearl.trace import Trace

Path = tuple[str | int, ...]


def places(value: Any) -> Iterator[Path]:
    """Where a text stands, one place of each kind: of the entries of a list the first that has it."""
    first: dict[str, Path] = {}
    for found, kind in _places(value, (), ""):
        first.setdefault(kind, found)
    yield from first.values()


def named(path: Path) -> str:
    """A place for people."""
    return ".".join(map(str, path))


def with_text(value: Any, path: Path, text: str) -> Any:
    """The data with this text there."""
    if not path:
        return text
    first, rest = path[0], path[1:]
    inner = with_text(_children(value)[first], rest, text)
    match value:
        case Trace():
            made = Trace(value.id)
            made._events = [inner if at == first else each for at, each in enumerate(value)]
            return made
        case Struct():
            return replace(value, **{str(first): inner})
        case Mapping():
            return {key: inner if key == first else each for key, each in value.items()}
        case tuple() | list():
            make = getattr(type(value), "_make", type(value))  # of a named tuple
            return make(inner if at == first else each for at, each in enumerate(value))
        case _:
            return dataclasses.replace(value, **{str(first): inner})


def with_texts(value: Any, text: str, paths: Iterable[Path]) -> Any:
    """The data with this text in all these places."""
    for path in paths:
        value = with_text(value, path, text)
    return value


def _places(value: Any, path: Path, kind: str) -> Iterator[tuple[Path, str]]:
    """Every place of a text, and what it is: the types and fields on the way to it."""
    if isinstance(value, str):
        yield path, kind
    for name, inner in _children(value).items():
        what = "" if isinstance(name, int) else name
        yield from _places(inner, (*path, name), f"{kind}.{type(value).__name__}.{what}")


def _children(value: Any) -> dict[str | int, Any]:
    match value:
        case Trace() | tuple() | list():
            return dict(enumerate(value))
        case Mapping():
            return dict(value)
        case Struct():
            return dict(asdict(value))
        case _ if dataclasses.is_dataclass(value):
            return {
                each.name: getattr(value, each.name)
                for each in dataclasses.fields(value)
                if each.init
            }
        case _:
            return {}
