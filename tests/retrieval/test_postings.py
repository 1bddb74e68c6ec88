"""Inverted indexes: postings, merging, storing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.passages import terms
from pearl.retrieval import postings
from pearl.retrieval.postings import Postings, flat, merge

WORDS = (
    "key",
    "Keys",
    "lamp's",
    "the",
    "well-known",
    "1,200",
    "café",
    "東京都へ",
    "...",
    "kept,",
    "x",
)

texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=12)


def rows(index: Postings, term: str) -> list[tuple[int, int]]:
    passages, counts = index.postings(term)
    return list(zip(passages.tolist(), counts.tolist(), strict=True))


def names(index: Postings) -> list[str]:
    return [name.decode() for name in index.names.every()]


def equal(one: Postings, two: Postings) -> bool:
    pairs = zip(flat(one).items(), flat(two).items(), strict=True)
    return all(a == b and x.dtype == y.dtype and np.array_equal(x, y) for (a, x), (b, y) in pairs)


@given(texts, st.sampled_from(("english", "porter", "none")), st.sampled_from((1, 3, 1 << 20)))
def test_postings_are_the_counts_of_the_terms(texts: list[str], stem: Any, batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "BATCH", batch)
        patch.setattr(postings, "MAX_TOKENS", batch)
        index = Postings.build(texts, stem)
    found = [Counter(terms(text, stem=stem)) for text in texts]
    assert index.lengths.tolist() == [sum(counts.values()) for counts in found]
    known = sorted({term for counts in found for term in counts}, key=str.encode)
    assert names(index) == known
    for term in known:
        expected = [(i, counts[term]) for i, counts in enumerate(found) if counts[term]]
        assert rows(index, term) == expected
    assert rows(index, "zebra") == rows(index, "") == rows(index, "\ud800") == []


def test_the_terms_of_an_unusual_text_are_those_of_the_whole_text() -> None:
    text = "Ada\u00a0Lovelace's  well-known\tnotes\u2028of 1,843.5—ﬁrst İstanbul ß's ﷺ 東京 tide-東京x ''''"
    index = Postings.build([text])
    assert Counter(terms(text)) == {name: rows(index, name)[0][1] for name in names(index)}


@pytest.mark.parametrize(("n", "kind"), [(255, "uint8"), (256, "uint16"), (65_536, "uint32")])
def test_counts_take_the_smallest_type_that_holds_them(n: int, kind: str) -> None:
    index = Postings.of_terms([["key"], ["key"] * n, ["lamp"]])
    assert index.counts.dtype == kind
    assert rows(index, "key") == [(0, 1), (1, n)]
    again = merge([index, Postings.of_terms([["oar"]])], [np.array([0, -1, 1]), np.array([2])])
    assert again.counts.dtype == "uint8"


@given(st.lists(texts, max_size=4), st.data())
def test_merged_parts_in_any_order_equal_a_fresh_index(
    parts: list[list[str]], data: st.DataObject
) -> None:
    every = [text for part in parts for text in part]
    order = data.draw(st.permutations(range(len(every))))
    order = order[: data.draw(st.integers(0, len(every)))]
    numbers = np.full(len(every), -1, np.int64)
    numbers[order] = np.arange(len(order))
    split = np.split(numbers, np.cumsum([len(part) for part in parts])[:-1])
    merged = merge([Postings.build(part) for part in parts], split[: len(parts)])
    fresh = Postings.build([every[i] for i in order])
    assert equal(merged, fresh)
    assert merged.mean_length == fresh.mean_length
