"""The settings of searches and their presets."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings, find_preset
from tests.retrieval.searching import bm25, ranked, scores


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


FILLER = [f"w{i}" for i in range(40)]


def test_corpus_qa_is_the_written_formula_with_its_values() -> None:
    settings, k, _ = find_preset("corpus-qa")
    assert (settings.method, settings.k1, settings.b, settings.delta, k) == (
        "bm25+",
        1.2,
        0.5,
        1.0,
        60,
    )
    rows = [["key", *FILLER], ["key", "key", "oar", *FILLER], [*FILLER], ["oar", *FILLER, *FILLER]]
    found = ranked(rows, "key oar", k, settings)
    expected = bm25(rows, {"key": 1.0, "oar": 1.0}, settings, 1.0)
    assert scores(found) == pytest.approx(expected, rel=1e-12)


def test_a_hundred_long_paragraphs_give_60_and_every_short_one_that_matches() -> None:
    settings, k, _ = find_preset("corpus-qa")
    longs = [["key", f"x{i}", *FILLER] for i in range(100)]
    shorts = [["key", *FILLER[:13]], ["key"], ["oar"], ["key", *FILLER[:14]]]
    found = ranked([*longs, *shorts], "key", k, settings).passages.tolist()
    assert {n for n in found if n >= 100} - {103} == {100, 101}  # 103 has 15 words and is counted
    assert len([n for n in found if n not in (100, 101)]) == 60
