"""Questions that nobody would ask are read, too."""

from __future__ import annotations

import pytest

from pearl.llm.backends.extractive.questions import parts


@pytest.mark.parametrize("junk", ["(", "- ", "why ", "if so, ", "and who ", ", and "])
def test_a_long_question_is_read_in_time_that_grows_as_it_does(junk: str) -> None:
    assert parts(f"{junk * (60_000 // len(junk))}who asked?")
