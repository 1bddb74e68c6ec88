"""Marks of a text: nothing is lost, nothing twice, whatever lies within what."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import Span
from pearl.view.answer_page import AROUND, Gap, Piece, blocks, highlighted


@st.composite
def marked_texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, Span]]]:
    text = draw(st.text("ab \n", min_size=1, max_size=60))
    at = st.integers(0, len(text))
    spans = draw(st.lists(st.tuples(at, at).filter(lambda pair: pair[0] != pair[1]), max_size=6))
    return text, [(n, Span(min(pair), max(pair))) for n, pair in enumerate(spans, start=1)]


@given(marked_texts())
def test_the_pieces_are_the_text_and_each_mark_is_its_span(
    given: tuple[str, list[tuple[int, Span]]],
) -> None:
    text, marks = given
    pieces = highlighted(text, marks)
    assert all(isinstance(piece, Piece) for piece in pieces)
    whole = [piece for piece in pieces if isinstance(piece, Piece)]
    assert "".join(piece.text for piece in whole) == text
    for number, span in marks:
        covered = [piece for piece in whole if number in piece.marks]
        assert "".join(piece.text for piece in covered) == text[span.start : span.end]
        assert [number in piece.begins for piece in covered] == [
            True,
            *[False] * (len(covered) - 1),
        ]


@given(marked_texts(), st.sampled_from([1, 100, 500]))
def test_of_a_long_text_what_is_around_the_marks_is_shown(
    given: tuple[str, list[tuple[int, Span]]], scale: int
) -> None:
    text = given[0] * 500
    marks = [(number, Span(span.start * scale, span.end * scale)) for number, span in given[1]]
    pieces = highlighted(text, marks, most=len(text) - 1)
    at, shown_at = 0, set()
    for piece in pieces:
        n = piece.n if isinstance(piece, Gap) else len(piece.text)
        if isinstance(piece, Piece):
            assert piece.text == text[at : at + n]
            shown_at.update(range(at, at + n))
        at += n
    assert at == len(text)
    around = [range(span.start - AROUND, span.end + AROUND) for _, span in marks]
    wanted = set().union(*around) if marks else set(range(AROUND))
    assert shown_at == wanted & set(range(len(text)))
    for number, span in marks:
        shown = [p.text for p in pieces if isinstance(p, Piece) and number in p.marks]
        assert "".join(shown) == text[span.start : span.end]


@given(marked_texts(), st.integers(1, 40))
def test_blocks_end_with_a_line_and_leave_no_piece_out(
    given: tuple[str, list[tuple[int, Span]]], size: int
) -> None:
    text, marks = given
    pieces = highlighted(text, marks)
    found = blocks(pieces, size=size)
    assert all(block for block in found)
    texts = ["".join(p.text for p in block if isinstance(p, Piece)) for block in found]
    assert "".join(texts) == text
    assert all(each.endswith("\n") and len(each) >= size for each in texts[:-1])
    marked = [
        piece for block in found for piece in block if isinstance(piece, Piece) and piece.marks
    ]
    assert marked == [piece for piece in pieces if isinstance(piece, Piece) and piece.marks]
    if not marks:  # as soon as it may
        assert all("\n" not in each[size:-1] for each in texts)
