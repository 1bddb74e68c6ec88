"""The line or sentence around a value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.evidence.standing import MAX_AROUND, clause_around
from pearl.errors import Span


@pytest.mark.parametrize(("text", "shown"), [
    ("One. The sum is 5 euros! Two.", "The sum is 5 euros"),
    ("| Sum | 5 |\n| Tax | 1 |", "| Sum | 5 |"),
    ("合计5元。下一句。", "合计5元"),
    ("5", "5"),
    ("word " * 100 + "5" + " word" * 100, "word " * 23 + "5" + " word" * 23),
])  # fmt: skip
def test_a_value_is_shown_with_its_sentence(text: str, shown: str) -> None:
    at = text.index("5")
    span = clause_around(text, Span(at, at + 1))
    assert text[span.start : span.end] == shown


@given(st.text("a .\n5", min_size=1, max_size=400), st.data())
def test_the_value_is_in_it_and_it_is_short(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    span = Span(start, data.draw(st.integers(start + 1, len(text))))
    around = clause_around(text, span)
    assert 0 <= around.start <= span.start < span.end <= around.end <= len(text)
    assert around.end - around.start <= 2 * MAX_AROUND + span.end - span.start
