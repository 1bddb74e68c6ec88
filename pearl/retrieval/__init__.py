"""Query + passages → the passages that match best, with their place in the documents.

A query goes through `corpus` (the documents), `index` (their passages, terms and vectors) and
`search` (expansion, filters, one of `methods`, fusion, reranking) to hits. Nothing here uses a
network: callers pass embedders and rerankers, which implement the protocols below.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from pearl.documents.passages import Stem
from pearl.errors import Span, UsageError, suggest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "DEFAULT_METHOD",
    "Embedder",
    "Fusion",
    "Hit",
    "Idf",
    "Passage",
    "Reranker",
    "SearchSettings",
    "TextKind",
]

DEFAULT_METHOD = "bm25"

MOST = sys.float_info.max

TextKind = Literal["query", "passage"]

Idf = Literal["lucene", "plus", "robertson"]

Fusion = Literal["weighted", "rank"]


class Passage(NamedTuple):
    """A passage of a corpus."""

    number: int
    document: str
    span: Span
    text: str
    fields: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that matches a query."""

    passage: Passage
    rank: int
    score: float
    legs: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    is_free: bool = False


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How passages are ranked."""

    method: str = DEFAULT_METHOD
    k1: float = 1.2
    b: float = 0.75
    delta: float = 1.0
    idf: Idf = "lucene"
    stem: Stem = "english"
    free_words: int = 0
    lexical: str = DEFAULT_METHOD
    fusion: Fusion = "weighted"
    dense_weight: float = 0.5
    thesaurus: str = ""
    synonym_weight: float = 0.5
    year_boost: float = 1.0
    n_reranked: int = 50

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:  # NaN is in no range
                most = f" to {high:g}" if high <= 1 else " or more"
                raise UsageError(f"{name} cannot be {value:g}", help=f"allowed: {low:g}{most}")
        for name, kind in (("idf", Idf), ("stem", Stem), ("fusion", Fusion)):
            names = get_args(kind)
            if (value := getattr(self, name)) not in names:
                raise UsageError(f"unknown {name} '{value}'", help=suggest(value, names, name))


_RANGES = {
    "k1": (0.0, MOST), "b": (0.0, 1.0), "delta": (0.0, MOST),
    "free_words": (0, MOST), "dense_weight": (0.0, 1.0),
    "synonym_weight": (0.0, 1.0), "year_boost": (1.0, MOST), "n_reranked": (1, MOST),
}  # fmt: skip
"""The smallest and the largest values of settings."""


class Preset(NamedTuple):
    """Settings, and the number of passages to ask for with them."""

    settings: SearchSettings
    k: int
    description: str


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "corpus-qa": Preset(
            SearchSettings(method="bm25+", k1=1.2, b=0.5, delta=1.0, idf="lucene", free_words=15),
            60,
            "questions about a corpus of books: long paragraphs preferred, short ones given in addition",
        ),
    }
)


def find_preset(name: str) -> Preset:
    """The preset of a name."""
    if name in PRESETS:
        return PRESETS[name]
    raise UsageError(f"unknown preset '{name}'", help=suggest(name, tuple(PRESETS), "presets"))


def ranking_settings(name: str) -> SearchSettings:
    """The settings of a preset, or the default settings with a ranking method.

    Example:
        >>> ranking_settings("corpus-qa").free_words, ranking_settings("tfidf").free_words
        (15, 0)
    """
    return PRESETS[name].settings if name in PRESETS else SearchSettings(name)


class Embedder(Protocol):
    """Texts → vectors. Implemented by the plug-ins of `pearl.llm.embedders`."""

    @property
    def name(self) -> str:
        """Identifies provider, model and weights: vectors of different names are not compared."""
        ...

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """Vectors of unit length, shape (len(texts), dimension), in order."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


class Reranker(Protocol):
    """Query + texts → their order. Implemented by the plug-ins of `pearl.llm.rerankers`."""

    @property
    def name(self) -> str:
        """Identifies dialect, server and model."""
        ...

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, in the order of the texts; higher is better."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
