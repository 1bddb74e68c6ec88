"""The complement of a set of names, against the set itself."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.dsl.decoding.grammar import names_except

WORDS = ["".join(letters) for n in range(1, 4) for letters in itertools.product("ab_", repeat=n)]


def spelled(taken: set[str], most: int) -> set[str]:
    pattern = names_except(taken, first="ab", rest="ab_", most=most)
    return {word for word in WORDS if re.fullmatch(pattern, word)} if pattern else set()


@given(st.sets(st.sampled_from(WORDS)), st.integers(1, 3))
def test_every_name_but_those_taken(taken: set[str], most: int) -> None:
    names = {word for word in WORDS if word[0] != "_" and len(word) <= most}
    assert spelled(taken, most) == names - taken


def test_nothing_is_left_where_every_name_is_taken() -> None:
    assert names_except(["a", "b"], first="ab", rest="ab", most=1) == ""


@pytest.mark.parametrize(
    ("taken", "free", "not_free"),
    [
        (["FIND", "FIND_EVENT", "FINDER"], ["FIN", "FIND_", "FINDERS", "X"], ["FIND", "FINDER"]),
        (["検索", "clé"], ["A", "cl", "cle"], ["検索", "clé"]),
        (["A" * 80], ["A" * 40, "A" * 39], ["A" * 41, "A" * 80]),
        (["A" * 40], ["A" * 39], ["A" * 40, "A" * 41]),
        (["CTX", "None", "_"], ["CTX1", "none", "__", "c"], ["CTX", "None", "_", "1", ""]),
        ([], ["a", "Z_9"], ["9", "a b", "a-b"]),
    ],
)
def test_names_of_libraries(taken: list[str], free: list[str], not_free: list[str]) -> None:
    pattern = re.compile(names_except(taken))
    assert all(pattern.fullmatch(name) for name in free)
    assert not any(pattern.fullmatch(name) for name in not_free)
