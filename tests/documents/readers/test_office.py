"""Word files, workbooks and slides, made with their libraries; Parquet files."""

from __future__ import annotations

import re
from datetime import date, datetime
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

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
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from openpyxl.styles import Font
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part as SlidesPart
from pptx.opc.packuri import PackURI as SlidesPackURI
from pptx.oxml import parse_xml as parse_xml_of_slides
from pptx.oxml.ns import nsdecls as nsdecls_of_slides
from pptx.presentation import Presentation
from pptx.util import Inches

from pearl.documents.document import Document as ParquetDocument
from pearl.documents.document import from_bytes, load, read_as
from pearl.documents.readers import reading
from pearl.documents.table import table_rows
from pearl.errors import DataError
from tests.skips import NO_LARGE

MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def saved(made: Any) -> bytes:
    """A file of any of the libraries."""
    buffer = BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def test_paragraphs_and_tables_in_order() -> None:
    document = docx.Document()
    document.add_heading("The heading")
    document.add_paragraph("Before the table,\nsecond line.\tTab.")
    table = document.add_table(2, 2)
    for i, text in enumerate(("a", "b\nb", "", "d")):
        table.cell(i // 2, i % 2).text = text
    document.add_paragraph("")
    document.add_paragraph("After the table.")
    assert read_as("word", saved(document), "a.docx") == (
        "The heading\n\nBefore the table,\nsecond line.\tTab.\n\na\tb b\n\td\n\nAfter the table."
    )


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def moved(text: str, how: str) -> str:
    return run(text, f"<w:vertAlign w:val='{how}'/>")


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        (f"<w:ins>{run('new')}</w:ins>", "new"),
        ("<w:del><w:r><w:delText>old</w:delText></w:r></w:del>", ""),
        (f"<w:moveFrom>{run('old')}</w:moveFrom>", ""),
        (f"<w:hyperlink>{run('link')}</w:hyperlink>", "link"),
        (f"<w:sdt><w:sdtContent>{run('control')}</w:sdtContent></w:sdt>", "control"),
        ("<w:r><w:t>co</w:t><w:noBreakHyphen/><w:t>op</w:t></w:r>", "co-op"),
        (run("10") + moved("-", "superscript") + moved("6", "superscript"), "10⁻⁶"),
        (run("H") + moved("2", "subscript"), "H₂"),
        (run("5") + moved("th", "superscript"), "5th"),
        (run("5") + moved("1", "baseline"), "51"),
        (
            f"<m:oMath {MATH}><m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>5</m:t></m:r></m:sup></m:sSup>"
            "<m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>",
            "10⁵1/2",
        ),
        (run("kept", "<w:strike w:val='0'/><w:vanish w:val='false'/>"), "kept"),
        (f"<w:fldSimple w:instr=' PAGE '>{run('7')}</w:fldSimple>", ""),
        ("<w:r><!-- comment --><w:instrText>PAGE</w:instrText></w:r>", ""),
    ],
)
def test_text_in_any_wrapper_is_read(xml: str, text: str) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Text: ")
    for each in parse_xml(f"<w:p {nsdecls('w')}>{xml}</w:p>"):
        paragraph._p.append(each)
    assert read_as("word", saved(document), "a.docx") == f"Text: {text}".strip()


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
    found = from_bytes(saved(document), "a.docx")
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
    found = from_bytes(saved(document), "a.docx")
    assert (found.text, found.notes) == ("310² kept", ("not read: 1 struck text",))


@pytest.mark.parametrize(
    ("entries", "numbers", "notes"),
    [
        (numbered(0, 1, 1, 0, 1), "1. 1.a) 1.b) 2. 2.a)", ()),
        (numbered(0, 2, 2), "1. (III) (IV)", ()),
        (numbered(0, 0) + numbered(0, 0, number=2) + numbered(0), "1. 2. 7. 8. 9.", ()),
        (numbered(3, 3, number=1) + numbered(0, number=9), "", ()),
        (numbered(4), "", ("not read: 1 list number",)),
    ],
)
def test_lists_have_their_numbers(entries: str, numbers: str, notes: tuple[str, ...]) -> None:
    document = body(entries)
    (numbering,) = (
        r.target_part for r in document.part.rels.values() if r.reltype.endswith("/numbering")
    )
    numbering._element = parse_xml(NUMBERING)
    found = from_bytes(saved(document), "a.docx")
    assert (" ".join(found.text.replace("x", "").split()), found.notes) == (numbers, notes)


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
    found = from_bytes(saved(document), "a.docx")
    table = "| category | 2024 |\n| --- | --- |\n| North |  |\n| South | 5 |"
    assert (
        found.text
        == f"Header: Contract 2024-17\n\nSee\n\nSales\n\n{table}\n\nFooter: Valid until May"
    )
    assert not found.notes
    chart._blob = CHART.encode()[:-5]  # is not read in part
    with pytest.raises(DataError, match=r"^a\.docx: the file is damaged"):
        from_bytes(saved(document), "a.docx")


def test_a_chart_of_another_file_is_named() -> None:
    document = body(DRAWN.format("CHART"))
    key = document.part.relate_to("https://example.org/c", f"{PARTS}/chart", is_external=True)
    document.element.xpath("//*[local-name()='chart']")[0].set(qn("r:id"), key)
    assert from_bytes(saved(document), "a.docx").notes == ("not read: 1 chart",)


def book_of(*rows: list[Any], title: str = "Boats") -> Workbook:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = title
    for row in rows:
        sheet.append(row)
    return book


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


def slides(title: str = "Results") -> bytes:
    made = pptx.Presentation()
    made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = title
    return saved(made)


KINDS = b"officeDocument wordprocessingml spreadsheetml presentationml drawingml".split()
STRICT = {
    b"http://schemas.openxmlformats.org/%s/2006/" % kind: b"http://purl.oclc.org/ooxml/%s/" % kind
    for kind in KINDS
}
MACROS = {
    b"wordprocessingml.document.main+xml": b"ms-word.document.macroEnabled.main+xml",
    b"application/vnd.openxmlformats-officedocument.ms-word": b"application/vnd.ms-word",
}
OFFICE = {
    "docx": (saved(body("<w:p><w:r><w:t>Results</w:t></w:r></w:p>")), "Results"),
    "xlsx": (saved(book_of(["a", "b"], [1, 2.5])), "| 1 | 2.5 |"),
    "pptx": (slides(), "# Results"),
}


@pytest.mark.parametrize(("kind", "inner"), [*pairwise([*OFFICE, "docx"])])
@pytest.mark.parametrize("changes", [{}, STRICT, MACROS])
def test_a_file_is_what_its_directory_says(
    kind: str, inner: str, changes: dict[bytes, bytes]
) -> None:
    data, text = OFFICE[kind]
    data = altered(data, changes, inner=OFFICE[inner][0])
    assert text in from_bytes(data, "a.bin" if changes else "a").text


def test_a_truncated_file_is_not_the_file_within_it() -> None:
    data = altered(OFFICE["docx"][0], {}, inner=OFFICE["xlsx"][0])
    at = data.rindex(b"PK\x05\x06", 0, -30) + 22  # behind the embedded workbook
    with pytest.raises(DataError, match="truncated"):
        from_bytes(data[:at], "a.docx")


@pytest.mark.parametrize(
    ("name", "streams", "why"),
    [
        ("a.docx", ["EncryptedPackage", "EncryptionInfo"], "the file is encrypted"),
        ("a.xlsx", ["WordDocument"], r"the format of Office before 2007\n.*save it as \.docx"),
        ("a.pptx", ["Workbook"], r"the format of Office before 2007\n.*save it as \.xlsx"),
        ("a.pptx", ["PowerPoint Document"], r"the format of Office before 2007\n.*save it as \.pptx"),
        ("a.docx", ["Other"], r"program whose files cannot be read\n.*\.docx"),
    ],
)  # fmt: skip
def test_compound_files_are_refused_with_their_kind(
    name: str, streams: list[str], why: str
) -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "\0".join(streams).encode("utf-16-le")
    with pytest.raises(DataError, match=why) as caught:
        from_bytes(data, name)
    assert "BytesIO" not in str(caught.value)


MONEY = '"$"#,##0_);("$"#,##0)'


def text_of(book: Workbook) -> str:
    return read_as("excel", saved(book), "a.xlsx")


def test_a_sheet_is_a_heading_with_a_table() -> None:
    book = book_of(["In millions"], ["item", 2008, "when"], ["sales", 9000, date(2008, 3, 1)],
                   ["loss", -1315.5, datetime(2008, 3, 1, 12, 30)], ["rate", 0.125, True], [None, None, "a|b\nc"])  # fmt: skip
    sheet = book.active
    sheet["B3"].number_format = sheet["B4"].number_format = MONEY
    sheet["B5"].number_format = "0.0%"
    assert text_of(book) == (
        "# Boats\n\nIn millions\n\n| item | 2008 | when |\n| --- | --- | --- |\n"
        "| sales | $9000 | 2008-03-01 |\n| loss | -$1315.5 | 2008-03-01 12:30 |\n"
        "| rate | 12.5% | true |\n|  |  | a\\|b c |"
    )


def test_two_tables_of_a_page_are_two() -> None:
    below = book_of(["a", "b"], [1, 2], [], ["Second"], ["c", "d"], [3, 4])
    assert text_of(below).count("| --- | --- |") == 2
    beside = book_of(["a", "b", None, "c", "d"], [1, 2, None, 3, 4])
    assert "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |" in text_of(beside)
    spaced = book_of(["a", None, "b"], [1, None, 2])
    assert "| a |  | b |" in text_of(spaced)


def test_merged_cells_are_filled_in() -> None:
    book = book_of(["item", "2008", None], [None, "Q1", "Q2"], ["north", 1, 2], [None, 3, 4])
    sheet = book.active
    sheet.merge_cells("B1:C1")
    sheet.merge_cells("A3:A4")
    for outside in ("A9:B10", "E1:F1"):
        sheet.merge_cells(outside)
    assert "| item | 2008 Q1 | 2008 Q2 |\n| --- | --- | --- |\n| north | 1 | 2 |\n| north | 3 | 4 |" in text_of(book)  # fmt: skip


def test_a_table_without_a_header_has_no_row_for_one() -> None:
    book = book_of([1, "x"], [2, "y"], title="Sheet1")  # a default name, and no heading
    assert text_of(book) == "|  |  |\n| --- | --- |\n| 1 | x |\n| 2 | y |"


def test_a_formula_without_a_value_is_not_blank() -> None:
    data = saved(book_of(["a", "b"], [1, "=A2+1"]))
    sheet = "xl/worksheets/sheet1.xml"
    with ZipFile(BytesIO(data)) as archive:
        plain = archive.read(sheet)
    prefixed = re.sub(rb"<(/?)(?=[a-zA-Z])", rb"<\1x:", plain).replace(b"xmlns=", b"xmlns:x=")
    for each in (data, altered(data, {plain: prefixed})):
        assert "| 1 | (formula without a value) |" in read_as("excel", each, "a.xlsx")


def hiding(what: str) -> Workbook:
    """A workbook with two tables, of which something is hidden."""
    book = book_of(["town", "n", "m"], ["Bern", 10, 1], ["Basel", 20, 2], ["Chur", 30, 3])
    other = book.create_sheet("Archive")
    for row in (["town", "k"], ["Bonn", 1000]):
        other.append(row)
    book.create_sheet("Empty").sheet_state = "hidden"
    sheet = book.active
    match what:
        case "sheet" | "very":
            other.sheet_state = "hidden" if what == "sheet" else "veryHidden"
        case "row":
            sheet.row_dimensions[3].hidden = True
        case "column":
            sheet.column_dimensions.group("B", "C", hidden=True)
        case "rows":
            sheet.sheet_format.zeroHeight = True
            sheet.row_dimensions[1].height = sheet.row_dimensions[2].height = 15
        case "merged":
            sheet["A2"], sheet["A3"] = "Bern", None
            sheet.merge_cells("A2:A3")
            sheet.row_dimensions[2].hidden = True
    return book


@pytest.mark.parametrize(
    ("what", "hidden", "absent"),
    [
        ("nothing", "", ()),
        ("sheet", "1 hidden sheet", ("Archive", "Bonn")),
        ("very", "1 hidden sheet", ("Archive", "Bonn")),
        ("row", "1 hidden row", ("Basel",)),
        ("rows", "2 hidden rows", ("Basel", "Chur")),
        ("column", "2 hidden columns", ("| n", "| 20", "| 30")),
        ("merged", "1 hidden row", ("| 10 |",)),
    ],
)
def test_what_is_hidden_is_named_and_read_on_request(
    tmp_path: Path, what: str, hidden: str, absent: tuple[str, ...]
) -> None:
    path = tmp_path / "a.xlsx"
    hiding(what).save(path)
    document, whole = load(path), load(path, hidden=True)
    hint = " (--hidden reads what is hidden)"
    assert document.notes == ((f"not read: {hidden}{hint}",) if hidden else ())
    assert not whole.notes
    for text in absent:
        assert text in whole.text
        assert text not in document.text
    assert ("| Bern | 20 | 2 |" in document.text) == (what == "merged")


def test_a_workbook_of_hidden_sheets_is_refused() -> None:
    book = book_of(["a", "b"], [1, 2])
    book.create_sheet("Empty")
    book.active.row_dimensions[1].hidden = book.active.row_dimensions[2].hidden = True
    with pytest.raises(DataError, match=r"only hidden cells\n.*hidden=True"):
        text_of(book)


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (42, "0000000", "0000042"),
        (-42, "0000000", "-0000042"),
        (123456789, r"000\-00\-0000", "123-45-6789"),
        (12345678, "(000) 000-0000", "(001) 234-5678"),
        (1234.5, '#,##0.00 "EUR"', "1234.5 EUR"),
        (1234.5, "[$CHF-807] #,##0.00", "CHF 1234.5"),
        (-1234.5, "[$€-407]#,##0.00;[Red]-[$€-407]#,##0.00", "-€1234.5"),
        (1234.5, '_-* #,##0.00\\ "€"_-', "1234.5 €"),
        (3, 'General" pcs"', "3 pcs"),
        (5_250_000, '0.0,,"M"', "5.25M"),
        (5_250_000, "0.0,,", "5250000"),
        (0, '_-* "-"??_-', "0"),
        (12, '[>=10]0"x";0', "12"),
        (2.5, "00.00", "2.5"),
        (1234, "# ##0", "1234"),
        (0.125, "0.0%", "12.5%"),
    ],
)
def test_formats_keep_zeros_and_units(value: float, form: str, shown: str) -> None:
    book = book_of(["a", "b"], ["x", value])
    book.active["B2"].number_format = form
    assert f"| x | {shown} |" in text_of(book)


def test_marks_and_struck_text_of_cells() -> None:
    block = [
        TextBlock(InlineFont(vertAlign="superscript"), "2"),
        TextBlock(InlineFont(strike=True), " old"),
    ]
    book = book_of(["a", "b", "c", "d", "e"], ["x", CellRichText("310", *block), "1", "=1+1", 5])
    sheet = book.active
    sheet["C2"].font, sheet["D2"].font = Font(vertAlign="subscript"), Font(strike=True)
    sheet["E2"].font = Font(strike=True)
    document = from_bytes(saved(book), "a.xlsx")
    assert "| x | 310² | ₁ |  |  |" in document.text
    assert document.notes == ("not read: 1 struck text, 1 struck cell",)


def test_text_boxes_are_named() -> None:
    book = book_of(["a", "b"], [1, 2])
    book.active.add_chart(BarChart())
    box = b"<x:sp xmlns:x='x' xmlns:a='a'><x:txBody><a:p><a:r><a:t>Draft</a:t></a:r></a:p></x:txBody></x:sp>"
    data = altered(saved(book), {b"</wsDr>": box + b"</wsDr>"})
    document = from_bytes(data, "a.xlsx")
    assert document.notes == ("not read: 1 text box, 1 chart",)


def test_comments_are_read_and_charts_named() -> None:
    book = book_of(["a", "b"], [1, 2])
    book.active["B2"].comment = Comment("an\nestimate", "Ada")
    book.active.add_chart(BarChart())
    book.active["A9"].comment = Comment("secret", "Ada")
    book.active.row_dimensions[9].hidden = True
    document = from_bytes(saved(book), "a.xlsx")
    assert document.text.endswith("Comment on B2: an estimate")
    assert document.notes == ("not read: 1 chart",)


def test_far_apart_cells_are_refused() -> None:
    book = book_of(["a"])
    book.active["XFD1048576"] = "b"
    with pytest.raises(DataError, match="damaged or not"):
        text_of(book)


def test_without_openpyxl_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openpyxl.py").write_text("raise ModuleNotFoundError(name='openpyxl')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match="openpyxl, which is not installed") as caught:
        read_as("excel", b"PK", "a.xlsx")
    assert "[excel]" in str(caught.value.help)


def make_slides() -> bytes:
    slides = pptx.Presentation()
    first = slides.slides.add_slide(slides.slide_layouts[1])
    first.shapes.title.text = "Results"
    body = first.placeholders[1].text_frame
    body.text = "Revenue rose"
    more = body.add_paragraph()
    more.text, more.level = "by 5 %", 1
    first.notes_slide.notes_text_frame.text = "Say it slowly."
    second = slides.slides.add_slide(slides.slide_layouts[6])
    table = second.shapes.add_table(3, 3, Inches(1), Inches(1), Inches(5), Inches(2)).table
    for i, row in enumerate([["Drug", "Day", "Dose"], ["A", "1", "5 mg"], ["", "2", "6 mg"]]):
        for j, text in enumerate(row):
            table.cell(i, j).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    box = second.shapes.add_group_shape().shapes.add_textbox(0, 0, Inches(1), Inches(1))
    box.text_frame.text = "in a group"
    return saved(slides)


def test_a_slide_is_a_page() -> None:
    document = from_bytes(make_slides(), "a.pptx")
    first, second = (document.text.index(text) for text in ("# Results", "| Drug |"))
    assert document.pages == (("1", first), ("2", second))
    assert document.text[:second] == (
        "# Results\n\n- Revenue rose\n  - by 5 %\n\nNotes: Say it slowly.\n\n"
    )
    (table,) = table_rows(document)
    assert [list(row.fields.values()) for row in table.rows] == [["A", "1", "5 mg"], ["A", "2", "6 mg"]]  # fmt: skip
    assert document.text.endswith("in a group")


@pytest.mark.parametrize(
    ("changes", "part", "words"),
    [
        ({b"<p:cSld": b"<a"}, b"", "damaged"),
        ({}, b'<!DOCTYPE a [<!ENTITY b "c">]><a/>', "XML entities"),
        ({}, bytes(65_000_000), "unpacks to more than the limit of 64 MB"),
    ],
)
def test_what_cannot_be_read(changes: dict[bytes, bytes], part: bytes, words: str) -> None:
    file = BytesIO(altered(make_slides(), changes))
    with ZipFile(file, "a", ZIP_DEFLATED) as archive:
        archive.writestr("ppt/more.xml", part)
    with pytest.raises(DataError, match=words):
        from_bytes(file.getvalue(), "a.pptx")


def beside() -> Presentation:
    """Three slides, the second hidden; the first with a chart, SmartArt, raised and struck text."""
    made = pptx.Presentation()
    first, second, third = (made.slides.add_slide(made.slide_layouts[5]) for _ in range(3))
    for n, slide in enumerate((first, second, third), 1):
        slide.shapes.title.text = f"Slide {n}"
    second._element.set("show", "0")
    figures = CategoryChartData()
    figures.categories = ["North", "South"]
    figures.add_series("2024", (4, 5.5))
    place = 0, 0, Inches(3), Inches(3)
    first.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, figures).chart.chart_title.text_frame.text = "Sales"  # fmt: skip
    paragraph = third.shapes.add_textbox(*place).text_frame.paragraphs[0]
    for text, name, value in (("310", "lang", "en"), ("2", "baseline", "30000"), (" 9", "strike", "sngStrike"), (" CO", "lang", "en"), ("2", "baseline", "-25000")):  # fmt: skip
        run = paragraph.add_run()
        run.text = text
        run._r.get_or_add_rPr().set(name, value)
    return made


def test_what_stands_beside_the_texts_of_slides() -> None:
    made = beside()
    slide = made.slides[2]
    for kind, xml in {
        "diagramData": "<d:dataModel xmlns:d='d' xmlns:a='a'><d:pt><d:t><a:t>Plan</a:t></d:t></d:pt><d:pt><d:t><a:t>Do</a:t></d:t></d:pt></d:dataModel>",
        "comments": "<p:cmLst xmlns:p='p'><p:cm><p:text>Check this.</p:text></p:cm></p:cmLst>",
    }.items():
        part = SlidesPart(
            SlidesPackURI(f"/ppt/{kind}1.xml"), "application/xml", made.part.package, xml.encode()
        )
        key = slide.part.relate_to(part, f"http://x/{kind}")
        if kind == "diagramData":
            frame = parse_xml_of_slides(f"<p:graphicFrame {nsdecls_of_slides('p', 'a', 'r')} xmlns:d='d'><p:nvGraphicFramePr><p:cNvPr id='77' name='x'/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm/><a:graphic><a:graphicData uri='d'><d:relIds r:dm='{key}' r:lo='x'/></a:graphicData></a:graphic></p:graphicFrame>")  # fmt: skip
            slide.shapes._spTree.append(frame)
    chart = "Sales\n\n| category | 2024 |\n| --- | --- |\n| North | 4 |\n| South | 5.5 |"
    third = "# Slide 3\n\n310² CO₂\n\nPlan\nDo\n\nComment: Check this."
    found = from_bytes(saved(made), "a.pptx")
    assert found.text == f"# Slide 1\n\n{chart}\n\n\n\n{third}"
    assert found.notes == (
        "not read: 1 hidden slide, 1 struck text (--hidden reads what is hidden)",
    )
    assert [found.page_at(found.text.index(each)) for each in ("Slide 1", "Slide 3")] == [1, 3]
    with reading({"hidden": True}):
        found = from_bytes(saved(made), "a.pptx")
    assert "# Slide 2 (hidden)" in found.text
    assert found.notes == ("not read: 1 struck text",)
    for each in made.slides:
        each._element.set("show", "0")
    with pytest.raises(DataError, match=r"only hidden slides\n.*hidden=True"):
        from_bytes(saved(made), "a.pptx")


pyarrow = pytest.importorskip("pyarrow", reason=NO_LARGE)
parquet = pytest.importorskip("pyarrow.parquet", reason=NO_LARGE)


def save_parquet(columns: dict[str, list[Any]]) -> bytes:
    buffer = BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def test_rows_are_a_table() -> None:
    data = save_parquet({"city": ["Oslo", "a|b"], "n": [1, None], "x": [1.5, 2.0], "of": [["a"], []], "is": [True, None]})  # fmt: skip
    text = read_as("parquet", data, "a.parquet")
    assert text == (
        "| city | n | x | of | is |\n| --- | --- | --- | --- | --- |\n"
        '| Oslo | 1 | 1.5 | ["a"] | true |\n| a\\|b |  | 2 | [] |  |'
    )
    (table,) = table_rows(ParquetDocument(text, "a.parquet"))
    assert table.rows[1].fields["city"] == "a|b"


def test_a_long_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "0.1")
    with pytest.raises(DataError, match=r"longer than the limit of 0\.1 MB"):
        read_as("parquet", save_parquet({"a": ["x" * 100] * 10_000}), "a.parquet")
