"""What every unit of `pearl.documents.units` has to be, tomorrow's included."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pearl import plugins
from pearl.documents.document import Document, from_text, join
from pearl.documents.units import UNITS, Piece, left_out
from pearl.errors import DataError

BITS = st.sampled_from([
    "\n", "\n\n", " ", "\t", ",", ";", "|", " | ", "||", ": ", "A: ", "User: 7", "Ann: ", "[b] ", '"', '""',
    "\\|", "{", "}", "[", "]", '{"a": 1}', '{"a": [1.0, {"b": "é"}]}', "|-|-|\n", "|a|b|\n", "a,b\n", "1,2\n",
    "# ", "1.2 ", "SECTION 4. ", "TERMS", "---\n", "===\n", "- ", "1. ", "  ", "\f", "\u2028", "\x85", "e\u0301",
    "text", "count", "שלום", "Hello. ", "word ", "x" * 50, "12:30 ",
])  # fmt: skip

TEXTS = st.one_of(st.lists(BITS, max_size=40).map("".join), st.text(max_size=100))


def documents(texts: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[Document]:
    def is_text(text: str) -> bool:
        try:
            from_text(text)
        except DataError:
            return False
        return True

    one = texts.filter(is_text).map(from_text)
    return st.one_of(one, st.lists(one, min_size=1, max_size=3).map(join))


def cut(unit: str, document: Document) -> list[Piece] | None:
    """The pieces, or None if the unit says that there are none."""
    parts = document.pages if unit == "page" else document.parts
    try:
        pieces: list[Piece] = plugins.load("pearl.documents.units", unit).split(
            document.text, parts
        )
    except ValueError:
        return None
    return pieces


@pytest.mark.parametrize("unit", UNITS)
@given(document=documents())
@example(document=from_text('a,b\n"1,2\n3,4\n5,6'))
@example(document=from_text('{"a": "\\ud800"}'))
def test_pieces_are_in_order_and_match_the_text(unit: str, document: Document) -> None:
    pieces = cut(unit, document)
    if pieces is None:
        return
    assert pieces
    for piece in pieces:
        assert 0 <= piece.start < piece.end <= len(document.text)
        assert document.text[piece.start : piece.end].strip()
        for name, value in piece.fields.items():
            assert isinstance(name, str)
            assert isinstance(value, str)
            (name + value).encode()
    overlaps = getattr(plugins.load("pearl.documents.units", unit), "OVERLAPS", False)
    for one, other in pairwise(pieces):
        assert one.start < other.start if overlaps else one.end <= other.start
        assert one.end < other.end


@pytest.mark.parametrize("unit", UNITS)
@given(document=documents())
def test_text_left_out_is_reported(unit: str, document: Document) -> None:
    pieces = cut(unit, document)
    if pieces is None:
        return
    text, at, kept = document.text, 0, []
    for piece in pieces:
        kept.append(text[at : piece.start])
        at = piece.end
    told = left_out(text, pieces)
    rest = "".join([*kept, text[at:]])
    for span in told:
        rest = rest.replace(text[span.start : span.end], "", 1)
    names = {name for piece in pieces for name in piece.fields}
    words = "".join(character if character.isalnum() else " " for character in rest).split()
    assert all(any(word in name for name in names) for word in words)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("text", ["", " \n\n\t"])
def test_a_blank_text_has_none(unit: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"^no [a-z]+"):
        plugins.load("pearl.documents.units", unit).split(text)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("before", "repeated", "after"),
    [
        ('{"a":1}', " ", "x"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (('{"a":1}', " \n", "x"), ("", "# ", "x"), ('"a": [', " ", "x"))
        ),
    ],
)
def test_a_long_run_takes_linear_time(unit: str, before: str, repeated: str, after: str) -> None:
    """Quadratic time would be more than the test runner allows."""
    document = from_text(before + repeated * 200_000 + after)
    left_out(document.text, cut(unit, document) or [])
