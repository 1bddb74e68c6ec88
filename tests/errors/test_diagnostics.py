"""Findings as they are shown."""

from __future__ import annotations

import pytest

from pearl.errors import Diagnostic, Span


@pytest.mark.parametrize(("before", "after"), [(0, 300), (300, 300), (300, 0), (3, 3)])
def test_the_caret_is_below_its_words_in_a_line_of_any_length(before: int, after: int) -> None:
    text = f"first\n{'a' * before}wrong{'b' * after}\nlast"
    begin = text.index("wrong")
    shown, caret = Diagnostic("code", "no", Span(begin, begin + 5)).render(text).splitlines()[2:4]
    assert shown[caret.index("^") : caret.rindex("^") + 1] == "wrong"
    assert len(shown) < 200
