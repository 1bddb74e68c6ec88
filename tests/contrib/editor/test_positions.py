"""Offsets and columns: every character has its place in every encoding, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position
from pygls.workspace import PositionCodec

from pearl.contrib.editor.server import LineIndex
from pearl.dsl.parser import read

ENCODINGS = ("utf-8", "utf-16", "utf-32")
SOURCES = st.text(st.sampled_from("ab \r\n\té🔑\u2028\x85\x0b\ufeff漢\ud800"), max_size=40)


@given(SOURCES, st.sampled_from(ENCODINGS))
def test_every_offset_has_a_position_and_comes_back(source: str, encoding: str) -> None:
    index = LineIndex(source, PositionCodec(encoding))
    assert index.text == read(source).original
    for offset in range(len(index.text) + 1):
        assert index.offset(index.position(offset)) == offset


@given(SOURCES)
def test_columns_are_what_an_editor_counts(source: str) -> None:
    index = LineIndex(source)
    shown = source.replace("\r\n", "\n").replace("\r", "\n")  # the mark is a character to editors
    lead = len(shown) - len(index.text)
    for offset in range(len(index.text) + 1):
        before = shown[: offset + lead].rpartition("\n")[2]
        column = len(before.encode("utf-16-le", "surrogatepass")) // 2
        assert index.position(offset) == Position(shown.count("\n", 0, offset + lead), column)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 7), ("utf-16", 4), ("utf-32", 3)])
def test_a_character_beyond_the_first_plane(encoding: str, column: int) -> None:
    index = LineIndex("x\né🔑a", PositionCodec(encoding))
    assert index.position(5) == Position(1, column)


def test_a_place_inside_of_a_character_is_before_it() -> None:
    assert LineIndex("a🔑b").offset(Position(0, 2)) == 1
    assert LineIndex("aéb", PositionCodec("utf-8")).offset(Position(0, 2)) == 1


@pytest.mark.parametrize("place", [(0, 99), (99, 0), (1, 10**9)])
def test_places_outside_of_the_text_are_its_ends(place: tuple[int, int]) -> None:
    index = LineIndex("ab\ncd")
    assert index.offset(Position(*place)) == {(0, 99): 2}.get(place, 5)
