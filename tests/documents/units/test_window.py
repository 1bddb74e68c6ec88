"""Windows: as long as asked, cut between words, each with something new, none of the text lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.units import window

BITS = st.sampled_from(["a", " ", "bb ", "\n\n", "é ", "x" * 15, "y" * 40, "   ", "\u2028"])


@given(st.lists(BITS, max_size=60).map("".join), st.integers(1, 30), st.data())
def test_windows_cover_all_words_and_overlap_by_at_most_the_given_length(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    if not text.strip():
        return
    last, covered = 0, set()
    for start, end, _ in window.split(text, (), size, overlap):
        assert 0 < end - start <= size
        assert end > last
        assert last - start <= overlap
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        last = end
        covered.update(range(start, end))
    assert all(text[i].isspace() or i in covered for i in range(len(text)))


def test_words_are_whole() -> None:
    words = [f"word{n}" for n in range(2_000)]
    text = " ".join(words)
    pieces = window.split(text)
    assert {w for a, b, _ in pieces for w in text[a:b].split()} == set(words)
    assert all(1_000 < b - a <= 1_100 for a, b, _ in pieces[:-1])
    shared = [one.end - other.start for one, other in pairwise(pieces)]
    assert all(280 < n <= 300 for n in shared)


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (5, 5), (5, 6), (5, -1)])
def test_invalid_window_sizes_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="cannot overlap by"):
        window.split("one two", (), size, overlap)
