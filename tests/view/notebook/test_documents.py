"""What notebooks show of documents."""

from __future__ import annotations

from hypothesis import given

from pearl.documents.document import Document, from_text, join
from tests.notebooks import parsed, texts


def shown(document: Document) -> str:
    return "".join(parsed(document._repr_html_()).itertext())


def test_a_short_document_is_shown_whole() -> None:
    assert shown(Document("One <b>\ntwo.", "a.txt")) == "a.txt 12 characters, 2 linesOne <b>\ntwo."


def test_a_long_one_is_shown_by_its_beginning_and_its_end() -> None:
    told = shown(Document("first " + "x" * 9_990 + " last"))
    assert "first xxx" in told
    assert told.endswith("x last")
    assert "… 8,401 characters …" in told
    told = shown(Document("\n".join(f"line {n}" for n in range(1, 31))))
    assert "line 12… 105 characters …line 26" in told


def test_the_parts_of_joined_ones_are_listed_with_their_sizes() -> None:
    both = join([from_text("one", "a"), from_text("four", "<b>")], "both")
    told = shown(both)
    assert "2 partsa, 3 characters<b>, 4 characters" in told
    many = Document("x" * 99, "many", parts=tuple((str(n), n) for n in range(99)))
    assert "19, 1 characters… and 79 more" in shown(many)


def test_a_huge_document_is_small() -> None:
    html = Document(
        "&\n" * 50_000_000, "&" * 10_000, parts=(("&" * 10_000, 0),) * 999
    )._repr_html_()
    assert len(html) < 100_000
    assert "100,000,000 characters, 50,000,001 lines" in html


@given(texts, texts)
def test_no_text_of_a_document_is_markup(text: str, name: str) -> None:
    parsed(Document(text, name, parts=((name, 0),), pages=((name, 0),))._repr_html_())
