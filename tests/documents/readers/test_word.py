"""Word files, made with python-docx."""

from __future__ import annotations

import random
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import docx
import pptx
import pytest
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn
from openpyxl import Workbook

from pearl.documents.document import from_bytes, load, read_as
from pearl.errors import DataError

MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


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
        (
            "<w:r {}><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>-</w:t></w:r>"
            "<w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>6</w:t></w:r>",
            "Text: 10⁻⁶",
        ),
        (
            "<w:r {}><w:t>H</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='subscript'/></w:rPr><w:t>2</w:t></w:r>",
            "Text: H₂",
        ),
        (
            "<w:r {}><w:t>5</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>th</w:t></w:r>",
            "Text: 5th",
        ),
        (
            "<w:r {}><w:t>5</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='baseline'/></w:rPr><w:t>1</w:t></w:r>",
            "Text: 51",
        ),
        (
            f"<m:oMath {{}} {MATH}><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>5</m:t></m:r></m:sup></m:sSup>"
            "<m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>",
            "Text: 10⁵1/2",
        ),
        (
            "<w:r {}><w:rPr><w:strike w:val='0'/><w:vanish w:val='false'/></w:rPr><w:t>kept</w:t></w:r>",
            "Text: kept",
        ),
        ("<w:fldSimple {} w:instr=' PAGE '><w:r><w:t>7</w:t></w:r></w:fldSimple>", "Text:"),
        ("<w:r {}><!-- comment --><w:instrText>PAGE</w:instrText></w:r>", "Text:"),
    ],
)
def test_text_in_any_wrapper_is_read(xml: str, text: str) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Text: ")
    for each in parse_xml(f"<w:p {nsdecls('w')}>{xml.format('')}</w:p>"):
        paragraph._p.append(each)
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


def test_the_limit_applies_to_the_unpacked_size(
    monkeypatch: pytest.MonkeyPatch, document: Document
) -> None:
    document.add_paragraph("a" * 1_000_000)
    data = save(document)
    assert len(data) < 100_000
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "0.5")
    with pytest.raises(DataError, match=r"unpacks to more than the limit of 0\.5 MB"):
        read_as("word", data, "a.docx")


PARTS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def with_parts(document: Document, **parts: str) -> Document:
    """The document with other parts, by the kinds of their relationships."""
    for kind, xml in parts.items():
        name = PackURI(f"/word/{kind}.xml")
        document.part.relate_to(
            Part(name, "application/xml", xml.encode(), document.part.package), f"{PARTS}/{kind}"
        )
    return document


def body(xml: str, **parts: str) -> Document:
    """A document of some paragraphs and tables in XML."""
    document = with_parts(docx.Document(), **parts)
    for each in reversed(list(parse_xml(f"<w:body {nsdecls('w', 'r')}>{xml}</w:body>"))):
        document.element.body.insert(0, each)
    return document


def notes_of(kind: str) -> str:
    notes = "".join(
        f"<w:{kind} w:id='{n}' w:author='Ada'><w:p><w:r><w:{kind}Ref/><w:t>{text}</w:t></w:r></w:p></w:{kind}>"
        for n, text in enumerate(("zero", "Estimated.", "Without June."))
    )
    return f"<w:{kind}s {nsdecls('w')}>{notes}</w:{kind}s>"


def told(kind: str) -> str:
    said = f"<w:p><w:r><w:t>{{}}</w:t></w:r><w:r><w:{kind} w:id='{{}}'/></w:r></w:p>"
    return said.format("310", 1) + said.format("12", 2)


def numbered(*levels: int, number: int = 1) -> str:
    return "".join(
        f"<w:p><w:pPr><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{number}'/></w:numPr></w:pPr><w:r><w:t>x</w:t></w:r></w:p>"
        for level in levels
    )


FORMS = ("decimal", "%1."), ("lowerLetter", "%1.%2)"), ("upperRoman", "(%3)"), ("bullet", "-"), ("chineseCounting", "%5")  # fmt: skip
NUMBERING = (
    f"<w:numbering {nsdecls('w')}><w:abstractNum w:abstractNumId='0'>"
    + "".join(
        f"<w:lvl w:ilvl='{i}'><w:start w:val='{1 + 2 * (i == 2)}'/><w:numFmt w:val='{form}'/><w:lvlText w:val='{shape}'/></w:lvl>"
        for i, (form, shape) in enumerate(FORMS)
    )
    + "</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='2'><w:abstractNumId w:val='0'/>"
    "<w:lvlOverride w:ilvl='0'><w:startOverride w:val='7'/></w:lvlOverride></w:num></w:numbering>"
)
RAISED_TABLE = (
    "<w:tbl>{}</w:tbl>".format("".join(
        "<w:tr>" + "".join(f"<w:tc><w:tcPr>{merge}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>" for merge, text in row) + "</w:tr>"
        for row in (
            [("", "Ward"), ("<w:gridSpan w:val='2'/>", "Year")],
            [("<w:vMerge w:val='restart'/>", "A"), ("", "1"), ("", "2")],
            [("<w:vMerge/>", ""), ("<w:gridSpan w:val='2'/>", "3")],
            [("<w:vMerge/>", ""), ("<w:vMerge w:val='restart'/>", "4"), ("", "5")],
            [("<w:vMerge w:val='restart'/>", "B"), ("<w:vMerge/>", ""), ("", "6")],
            [("", ""), ("", "7"), ("", "8")],
        )
    ))
)  # fmt: skip
STRUCK = "<w:p><w:r><w:t>a</w:t></w:r><w:r><w:rPr><w:{}/></w:rPr><w:t>b</w:t></w:r><w:del><w:r><w:delText>c</w:delText></w:r></w:del></w:p>"
CHART = (
    "<c:chartSpace xmlns:c='c' xmlns:a='a'><c:chart><c:title><a:t>Sales</a:t></c:title><c:ser><c:tx><c:v>2024</c:v></c:tx>"
    "<c:cat><c:pt idx='0'><c:v>North</c:v></c:pt><c:pt idx='1'><c:v>South</c:v></c:pt></c:cat>"
    "<c:val><c:pt idx='1'><c:v>5</c:v></c:pt></c:val></c:ser></c:chart></c:chartSpace>"
)
DRAWN = (
    "<w:p><w:r><w:t>See</w:t><w:drawing><c:chart xmlns:c='c' r:id='{}'/></w:drawing></w:r></w:p>"
)


@pytest.mark.parametrize(
    ("document", "text", "notes"),
    [
        (body(told("footnoteReference"), footnotes=notes_of("footnote")),
         "310¹\n\n¹ Estimated.\n\n12²\n\n² Without June.", ()),
        (body(told("endnoteReference"), endnotes=notes_of("endnote")),
         "310^(i)\n\n^(i) Estimated.\n\n12^(ii)\n\n^(ii) Without June.", ()),
        (body(told("commentReference"), comments=notes_of("comment")),
         "310\n\nComment (Ada): Estimated.\n\n12\n\nComment (Ada): Without June.", ()),
        (body(told("footnoteReference")), "310¹\n\n12²", ("not read: 2 footnotes",)),
        (body(RAISED_TABLE), "Ward\tYear\tYear\nA\t1\t2\nA\t3\t\nA\t4\t5\nB\t4\t6\n\t7\t8", ()),
        (body(STRUCK.format("strike")), "a", ("not read: 1 struck text, 1 deleted text",)),
        (body(STRUCK.format("vanish")), "a", ("not read: 1 hidden text, 1 deleted text (--hidden reads what is hidden)",)),
        (with_parts(body("<w:p><w:r><w:t>a</w:t></w:r></w:p>"), package="x"), "a", ("not read: 1 embedded file",)),
        (body(DRAWN.format("rId99")), "See", ("not read: 1 chart",)),
    ],
)  # fmt: skip
def test_what_stands_beside_the_text(document: Document, text: str, notes: tuple[str, ...]) -> None:
    found = from_bytes(save(document), "a.docx")
    assert (found.text, found.notes) == (text, notes)


def test_styles_raise_and_strike_as_fonts_do() -> None:
    document = docx.Document()
    for name in ("superscript", "strike"):
        style = document.styles.add_style(name, WD_STYLE_TYPE.CHARACTER)
        setattr(style.font, name, True)
    paragraph = document.add_paragraph("310")
    paragraph.add_run("2", "superscript")
    paragraph.add_run(" old", "strike")
    paragraph.add_run(" kept", "strike").font.strike = False
    found = from_bytes(save(document), "a.docx")
    assert (found.text, found.notes) == ("310² kept", ("not read: 1 struck text",))


@pytest.mark.parametrize(
    ("entries", "numbers"),
    [
        (numbered(0, 1, 1, 0, 1), "1. 1.a) 1.b) 2. 2.a)"),
        (numbered(0, 2, 2), "1. (III) (IV)"),
        (numbered(0, 0) + numbered(0, 0, number=2) + numbered(0), "1. 2. 7. 8. 9."),
        (numbered(3, 3, number=1) + numbered(0, number=9), ""),
    ],
)
def test_lists_have_their_numbers(entries: str, numbers: str) -> None:
    document = body(entries)
    (numbering,) = (
        r.target_part for r in document.part.rels.values() if r.reltype.endswith("/numbering")
    )
    numbering._element = parse_xml(NUMBERING)
    found = from_bytes(save(document), "a.docx")
    assert " ".join(found.text.replace("x", "").split()) == numbers


def test_an_unknown_style_of_numbers_is_named() -> None:
    document = body(numbered(4))
    (numbering,) = (
        r.target_part for r in document.part.rels.values() if r.reltype.endswith("/numbering")
    )
    numbering._element = parse_xml(NUMBERING)
    assert from_bytes(save(document), "a.docx").notes == ("not read: 1 list number",)


def test_charts_headers_and_footers_are_read_once() -> None:
    document = body(DRAWN.format("CHART"))
    chart = Part(
        PackURI("/word/charts/chart1.xml"), "application/xml", CHART.encode(), document.part.package
    )
    key = document.part.relate_to(chart, f"{PARTS}/chart")
    document.element.xpath("//*[local-name()='chart']")[0].set(qn("r:id"), key)
    document.add_section()
    first, second = document.sections
    for section in (first, second):
        section.header.is_linked_to_previous = False
        section.header.paragraphs[0].text = "Contract 2024-17"
        section.first_page_header.paragraphs[0].text = "not shown"
    first.footer.paragraphs[0].text = "Valid until May"
    found = from_bytes(save(document), "a.docx")
    table = "| category | 2024 |\n| --- | --- |\n| North |  |\n| South | 5 |"
    assert (
        found.text
        == f"Header: Contract 2024-17\n\nSee\n\nSales\n\n{table}\n\nFooter: Valid until May"
    )
    assert not found.notes


def altered(data: bytes, changes: dict[bytes, bytes], **added: bytes) -> bytes:
    """An archive with replaced bytes in its XML, and with other files, uncompressed."""
    made = BytesIO()
    with ZipFile(BytesIO(data)) as old, ZipFile(made, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            for before, after in changes.items() if name.endswith((".xml", ".rels")) else ():
                part = part.replace(before, after)
            new.writestr(name, part)
        for name, part in added.items():
            new.writestr(f"embeddings/{name}", part)
    return made.getvalue()


def workbook(*rows: list[object]) -> bytes:
    book = Workbook()
    for row in rows:
        book.active.append(row)
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def slides(title: str = "Results") -> bytes:
    made = pptx.Presentation()
    made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = title
    file = BytesIO()
    made.save(file)
    return file.getvalue()


STRICT = {
    b"http://schemas.openxmlformats.org/%s/2006/" % kind: b"http://purl.oclc.org/ooxml/%s/" % kind
    for kind in (
        b"officeDocument",
        b"wordprocessingml",
        b"spreadsheetml",
        b"presentationml",
        b"drawingml",
    )
}
MACROS = {
    b"wordprocessingml.document.main+xml": b"ms-word.document.macroEnabled.main+xml",
    b"application/vnd.openxmlformats-officedocument.ms-word": b"application/vnd.ms-word",
}
OFFICE = {
    "docx": (save(body("<w:p><w:r><w:t>Results</w:t></w:r></w:p>")), "Results"),
    "xlsx": (workbook(["a", "b"], [1, 2.5]), "| 1 | 2.5 |"),
    "pptx": (slides(), "# Results"),
}


@pytest.mark.parametrize("kind", OFFICE)
@pytest.mark.parametrize("inner", OFFICE)
@pytest.mark.parametrize("suffix", ["", ".bin"])
def test_a_file_is_what_its_directory_says(kind: str, inner: str, suffix: str) -> None:
    data, text = OFFICE[kind]
    data = altered(data, STRICT if suffix else {}, inner=OFFICE[inner][0])
    assert text in from_bytes(data, f"a{suffix}").text


def test_a_word_file_with_macros_is_read() -> None:
    data = altered(OFFICE["docx"][0], MACROS)
    assert from_bytes(data, "a.docm").text == "Results"


def test_a_truncated_file_is_not_the_file_within_it() -> None:
    data = altered(OFFICE["docx"][0], {}, inner=OFFICE["xlsx"][0])
    at = data.rindex(b"PK\x05\x06", 0, -30) + 22  # behind the embedded workbook
    with pytest.raises(DataError, match="truncated"):
        from_bytes(data[:at], "a.docx")


@pytest.mark.parametrize(
    ("streams", "why"),
    [
        (("EncryptedPackage", "EncryptionInfo"), "the file is encrypted"),
        (("WordDocument",), r"the format of Office before 2007\n.*save it as \.docx"),
        (("Workbook",), r"the format of Office before 2007\n.*save it as \.xlsx"),
        (("PowerPoint Document",), r"the format of Office before 2007\n.*save it as \.pptx"),
        (("Other",), "damaged or not what"),
    ],
)
@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx"])
def test_compound_files_are_refused_with_their_kind(
    streams: tuple[str, ...], why: str, name: str
) -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "\0".join(streams).encode("utf-16-le")
    with pytest.raises(DataError, match=why) as caught:
        from_bytes(data, name)
    assert "BytesIO" not in str(caught.value)
