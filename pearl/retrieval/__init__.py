"""Query + passages → the best passages (`corpus`, `index`, `search`). Nothing here uses a network, except embedders passed by callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from msgspec import Struct

from pearl.documents.passages import Stem
from pearl.errors import Span, UsageError, suggest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_METHOD = "bm25"

TextKind = Literal["query", "passage"]


class Passage(NamedTuple):
    """A passage of a corpus."""

    number: int
    document: str
    span: Span
    text: str
    fields: Mapping[str, str] = {}


class Hit(Struct, frozen=True):
    """A passage that matches a query."""

    passage: Passage
    rank: int
    score: float


class SearchSettings(Struct, frozen=True):
    """How passages are ranked."""

    method: str = DEFAULT_METHOD
    stem: Stem = "english"

    def __post_init__(self) -> None:
        names = get_args(Stem)
        if self.stem not in names:
            raise UsageError(f"unknown stem '{self.stem}'", help=suggest(self.stem, names, "stem"))


class Embedder(Protocol):
    """Texts → vectors. Implemented by the plug-ins of `pearl.llm.embedders`."""

    @property
    def name(self) -> str:
        """Identifies provider, model and weights; vectors of different names are not compared."""
        ...

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """Vectors of unit length, shape (len(texts), dimension), in order."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
