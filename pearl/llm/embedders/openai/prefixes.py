"""Name of a model → what its queries and passages begin with (`prefixes.toml`)."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pearl.data.journal import Frozen
from pearl.retrieval import TextKind


class _Model(Frozen):
    words: tuple[str, ...]
    query: str = ""
    passage: str = ""


class _Table(Frozen):
    model: tuple[_Model, ...]


def prefix_of(model: str, kind: TextKind) -> str:
    """What texts of a kind begin with; "" for most models.

    Example:
        >>> prefix_of("intfloat/multilingual-e5-large", "passage")
        'passage: '
        >>> prefix_of("text-embedding-3-small", "query")
        ''
    """
    name = model.lower()
    for entry in _table().model:
        if all(word in name for word in entry.words):
            return entry.query if kind == "query" else entry.passage
    return ""


@cache
def _table() -> _Table:
    text = Path(__file__).with_name("prefixes.toml").read_text(encoding="utf-8")
    return _Table.model_validate(tomllib.loads(text))
