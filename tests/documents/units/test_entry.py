"""Entries: records, else turns, else the items of a list, else lines, else paragraphs."""

from __future__ import annotations

import pytest

from pearl.documents.document import Document, from_text, join, load
from pearl.documents.units import entry
from pearl.documents.units._plain import (
    split_documents,
    split_lines,
    split_pages,
    split_paragraphs,
    split_sentences,
)  # fmt: skip
from tests.documents.readers.test_pdf import make_pdf


def texts(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in entry.split(text)]


WRAPPED = (
    "The ferry stopped running in the autumn of that year because the new\n"
    "bridge had been opened. Nobody was sorry for it, not even in the Upper\n"
    "Town, where they had always paid the fare.\n"
)
STANZA = "Ann Lee\n12 Mill Road\nOslo\n\nBob Ray\n3 High Street\nBergen\n\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # records, though what introduces them is longer than one
        ("These are two entries, each with what a user wrote:\n\nUser: 1 || Text: yes, I did\n"
         "User: 2 || Text: no, I did not\n", ["User: 1 || Text: yes, I did", "User: 2 || Text: no, I did not"]),
        ("id,text\n1,a\n2,b\n", ["1,a", "2,b"]),
        ("Date,User\n2023-01-02,Ann\n", ["2023-01-02,Ann"]),
        ("| a | b |\n|---|---|\n| some words | other words |\n", ["| some words | other words |"]),
        ("Smith,John\nDoe,Jane\n", ["Smith,John", "Doe,Jane"]),
        # turns
        ("Ann: Hi.\nHello?\nBob: Yo.\nAnn: So.\nBob: Yes.", ["Ann: Hi.\nHello?", "Bob: Yo.", "Ann: So.", "Bob: Yes."]),
        # items
        ("- one,\n  still one\n  - within\n- two\n\n  still two\n- three", [
            "- one,\n  still one\n  - within", "- two\n\n  still two", "- three"]),
        ("1) one\n2) two", ["1) one", "2) two"]),
        # lines
        ("bread\nmilk\nsalt", ["bread", "milk", "salt"]),
        ("It rained.\nShe left.\n\nIt was late.", ["It rained.", "She left.", "It was late."]),
        ("Three lines:\n\n" + "\n".join(f"line number {n} is here" for n in range(30)) + "\n\nThe end.",
         ["Three lines:", *(f"line number {n} is here" for n in range(30)), "The end."]),
        ("Come in, he said\nSit down, she said\nBe still, they said", ["Come in, he said", "Sit down, she said", "Be still, they said"]),
        ("one", ["one"]),
        # paragraphs
        (STANZA * 2, [part for part in (STANZA * 2).split("\n\n") if part]),
        (WRAPPED, [WRAPPED.strip()]),
        (f"{WRAPPED}\n{WRAPPED}", [WRAPPED.strip()] * 2),
        (f"{WRAPPED}\n- one\n- two\n\n{WRAPPED}", [WRAPPED.strip(), "- one\n- two", WRAPPED.strip()]),
    ],
)  # fmt: skip
def test_the_first_matching_form_gives_the_entries(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_lines_that_are_rows_below_a_header_have_its_names() -> None:
    text = "Ward\nThe patients of May, as they came.\nid\tage\n1\t63\n2\t40"
    assert [piece.fields for piece in entry.split(text)] == [
        {}, {}, {}, {"id": "1", "age": "63"}, {"id": "2", "age": "40"},
    ]  # fmt: skip


def test_a_line_with_two_colons_does_not_make_prose_records() -> None:
    text = f"{WRAPPED}\nTel: 12 | Fax: 34\n\n{WRAPPED}\n{WRAPPED}"
    assert len(texts(text)) == 4


def test_paragraphs_may_be_long_lines() -> None:
    text = ("It was late. " * 20).strip()
    assert len(split_paragraphs(f"{text}\n{text}\nShort.")) == 3
    assert len(split_paragraphs(WRAPPED)) == 1


def test_only_a_line_feed_ends_a_line() -> None:
    assert len(split_lines("a\u2028b\x85c\x1cd\n\n \ne")) == 2
    assert len(split_sentences("It rained. She left.")) == 2


def test_documents_are_the_files_that_were_joined() -> None:
    both = join([from_text("one\n\n# b\n\n", "a"), from_text(" two ", "b")])
    pieces = split_documents(both.text, both.parts)
    assert [(both.text[a:b], fields) for a, b, fields in pieces] == [
        ("one\n\n# b", {"Document": "a"}),
        ("two", {"Document": "b"}),
    ]
    assert [fields for _, _, fields in split_documents("one")] == [{}]


def pages(document: Document) -> list[tuple[str, str]]:
    pieces = split_pages(document.text, document.pages)
    return [(fields["Page"], document.text[a:b]) for a, b, fields in pieces]


def test_pages_of_a_pdf_keep_their_numbers(tmp_path: object) -> None:
    file = make_file(tmp_path, make_pdf([[], ["The first."], [], ["The", "second."], []]))
    document = load(file)
    assert pages(document) == [("2", "The first."), ("4", "The\nsecond.")]
    assert document.text == "\nThe first.\n\nThe\nsecond."
    assert pages(join([document, from_text("no pages", "b"), document]))[0] == ("2", "The first.")


def make_file(folder: object, data: bytes) -> str:
    path = f"{folder}/a.pdf"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(data)
    return path


def test_form_feeds_end_pages() -> None:
    document = from_text("one\r\n\ftwo\f\fthree\f")
    assert document.text == "one\n\ntwo\n\nthree\n"
    assert pages(document) == [("1", "one"), ("2", "two"), ("4", "three")]


def test_a_text_without_pages_is_refused() -> None:
    assert from_text("one").pages == ()
    with pytest.raises(ValueError, match=r"^no pages: .*PDF and form feeds"):
        split_pages("one")
