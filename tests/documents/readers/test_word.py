"""Word files, made with python-docx."""

from __future__ import annotations

import random
from io import BytesIO
from pathlib import Path

import docx
import pytest
from docx.document import Document
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from pearl.documents.document import load, read_as
from pearl.errors import DataError


def save(document: Document) -> bytes:
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


@pytest.fixture
def document() -> Document:
    document = docx.Document()
    document.add_heading("The heading")
    document.add_paragraph("Before the table,\nsecond line.\tTab.")
    table = document.add_table(2, 2)
    for i, text in enumerate(("a", "b\nb", "", "d")):
        table.cell(i // 2, i % 2).text = text
    document.add_paragraph("")
    document.add_paragraph("After the table.")
    return document


def test_paragraphs_and_tables_in_order(document: Document) -> None:
    assert read_as("word", save(document), "a.docx") == (
        "The heading\n\nBefore the table,\nsecond line.\tTab.\n\na\tb b\n\td\n\nAfter the table."
    )


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<w:ins {}><w:r><w:t>new</w:t></w:r></w:ins>", "Text: new"),
        ("<w:del {}><w:r><w:delText>old</w:delText></w:r></w:del>", "Text:"),
        ("<w:moveFrom {}><w:r><w:t>old</w:t></w:r></w:moveFrom>", "Text:"),
        ("<w:hyperlink {}><w:r><w:t>link</w:t></w:r></w:hyperlink>", "Text: link"),
        (
            "<w:sdt {}><w:sdtContent><w:r><w:t>control</w:t></w:r></w:sdtContent></w:sdt>",
            "Text: control",
        ),
        ("<w:r {}><w:t>co</w:t><w:noBreakHyphen/><w:t>op</w:t></w:r>", "Text: co-op"),
        ("<w:r {}><!-- comment --><w:instrText>PAGE</w:instrText></w:r>", "Text:"),
    ],
)
def test_text_in_any_wrapper_is_read(xml: str, text: str) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Text: ")
    paragraph._p.append(parse_xml(xml.format(nsdecls("w"))))
    assert read_as("word", save(document), "a.docx") == text


@pytest.mark.parametrize("name", ["a.docx", "a.txt", "a.pdf", "a"])
def test_a_word_file_is_recognised_by_its_bytes(
    tmp_path: Path, name: str, document: Document
) -> None:
    path = tmp_path / name
    path.write_bytes(save(document))
    assert load(path).text.startswith("The heading")


def test_a_damaged_word_file_is_refused(document: Document) -> None:
    whole = save(document)
    chance = random.Random(7)
    messages = []
    for _ in range(150):
        data = bytearray(whole)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.choice([1, 50])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            read_as("word", bytes(data), "a.docx")
        except DataError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert all(message.startswith("a.docx: ") for message in messages)


def test_an_old_word_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(DataError, match="damaged or not what"):
        load(path)


def test_the_limit_applies_to_the_unpacked_size(
    monkeypatch: pytest.MonkeyPatch, document: Document
) -> None:
    document.add_paragraph("a" * 1_000_000)
    data = save(document)
    assert len(data) < 100_000
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "0.5")
    with pytest.raises(DataError, match=r"unpacks to more than the limit of 0\.5 MB"):
        read_as("word", data, "a.docx")
