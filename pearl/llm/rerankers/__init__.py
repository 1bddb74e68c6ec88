"""The dialects of servers that rerank. Every other module of this folder is one.

Servers differ in a few names of JSON; `pearl.llm.reranking` does all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["CONTRACT", "Dialect"]


class Dialect(Protocol):
    """The interface of a module of this folder.

    Attributes:
        DESCRIPTION: One line.
        URL: Address of the vendor's own server; "" if there is none.
        KEYS: Hosts of vendors → the environment variables of their keys.
        MAX_TEXTS: Texts of one request at most.
        NEEDS_MODEL: Whether a request names a model.
    """

    DESCRIPTION: str
    URL: str
    KEYS: dict[str, str]
    MAX_TEXTS: int
    NEEDS_MODEL: bool

    def body(self, model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
        """The JSON data of a request for the scores of all texts."""
        ...


CONTRACT = Dialect
