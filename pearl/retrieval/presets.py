"""Settings of searches that others are known to use, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pearl.errors import UsageError, suggest
from pearl.retrieval import SearchSettings


class Preset(NamedTuple):
    """Settings with the number of passages that go with them."""

    settings: SearchSettings
    k: int
    description: str


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "corpus-qa": Preset(
            SearchSettings(method="bm25+", k1=1.2, b=0.5, delta=1.0, idf="lucene", free_words=15),
            60,
            "questions about a corpus of books: long paragraphs preferred, short ones free",
        ),
    }
)


def find_preset(name: str) -> Preset:
    """The preset of a name.

    Example:
        >>> find_preset("corpus-qa").k
        60
    """
    if name in PRESETS:
        return PRESETS[name]
    raise UsageError(f"unknown preset '{name}'", help=suggest(name, tuple(PRESETS), "presets"))


def ranking_settings(name: str) -> SearchSettings:
    """The settings of a preset, or the usual ones with a ranking method.

    Example:
        >>> ranking_settings("corpus-qa").free_words, ranking_settings("tfidf").free_words
        (15, 0)
    """
    return PRESETS[name].settings if name in PRESETS else SearchSettings(name)
