"""The preset of a corpus tool on BM25+: its formula, and what it does with short and long paragraphs."""

from __future__ import annotations

import pytest

from pearl.errors import UsageError
from pearl.retrieval import find_preset
from tests.retrieval.searching import bm25, ranked

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
    scores = dict(zip(found.passages.tolist(), found.scores.tolist(), strict=True))
    assert scores == pytest.approx(expected, rel=1e-12)


def test_a_hundred_long_paragraphs_give_60_and_every_short_one_that_matches() -> None:
    settings, k, _ = find_preset("corpus-qa")
    longs = [["key", f"x{i}", *FILLER] for i in range(100)]
    shorts = [["key", *FILLER[:13]], ["key"], ["oar"], ["key", *FILLER[:14]]]
    found = ranked([*longs, *shorts], "key", k, settings).passages.tolist()
    assert {n for n in found if n >= 100} - {103} == {100, 101}  # 103 has 15 words and is counted
    assert len([n for n in found if n not in (100, 101)]) == 60


def test_an_unknown_preset_is_told() -> None:
    with pytest.raises(UsageError, match=r"unknown preset 'corpusqa'\n.*corpus-qa"):
        find_preset("corpusqa")
