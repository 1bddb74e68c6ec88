"""Settings that no search can have are refused, with what they may be."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("k1", -0.1, "0 or more"),
        ("k1", math.inf, "0 or more"),
        ("b", 1.01, "0 to 1"),
        ("b", math.nan, "0 to 1"),
        ("delta", -1, "0 or more"),
        ("free_words", -1, "0 or more"),
        ("dense_weight", 2, "0 to 1"),
        ("synonym_weight", -1, "0 to 1"),
        ("idf", "lucen", "did you mean 'lucene'"),
        ("stem", "german", "english, porter, none"),
        ("fusion", "sum", "weighted, rank"),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"{name}.*\n.*{message}"):
        SearchSettings(**{name: value})


def test_the_ends_of_the_ranges_are_allowed() -> None:
    SearchSettings(k1=0, b=0, delta=0, free_words=0, dense_weight=1, synonym_weight=1)
    SearchSettings(b=1, stem="none", idf="robertson", fusion="rank")
