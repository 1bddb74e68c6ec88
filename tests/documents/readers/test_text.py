"""Plain text in any encoding, web pages, books and mail."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Sequence
from email.message import EmailMessage
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.document import from_bytes
from pearl.documents.readers import reading
from pearl.documents.readers.html import read, recognises
from pearl.documents.readers.text import decode
from pearl.documents.units import record
from pearl.errors import DataError

SENTENCES = {
    "latin-1": "Le café est fermé, dit-elle à la fenêtre ; l'été fut très long.",
    "cp1252": "“Don’t go,” she said — and he didn’t. It cost €5.",
    "cp1251": "Привет, как дела? Это русский текст, он пошёл домой и лёг спать.",
    "koi8_r": "Привет, как дела? Это русский текст, он пошёл домой и лёг спать.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Byl krásný den a všichni šli domů.",
    "cp1253": "Καλημέρα σας, τι κάνετε σήμερα; Ο άνθρωπος πήγε στο σπίτι του και έφαγε.",
    "cp1256": "مرحبا كيف حالك اليوم",
    "shift_jis": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "euc_jp": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "gb18030": "我们今天去北京，天气很好。他说这不是问题。",
    "big5": "我們今天去北京，天氣很好。他說這不是問題。",
    "cp1254": "Bugün hava çok güzel, değil mi? Yarın İstanbul'a gideceğiz.",
    "euc_kr": "안녕하세요 오늘은 날씨가 좋습니다. 나는 학교에 갑니다.",
}


@pytest.mark.parametrize("encoding", SENTENCES)
def test_legacy_encodings_are_distinguished(encoding: str) -> None:
    text = SENTENCES[encoding]
    assert decode(text.encode(encoding), "a.txt") == text
    long = f"{text}\n" * 200
    assert decode(long.encode(encoding), "a.txt") == long


@pytest.mark.parametrize("text", ["café", "naïve", "a £5 note", "Temperature 38°C. " * 40])
def test_a_single_accent_is_western(text: str) -> None:
    assert decode(text.encode("latin-1"), "a.txt") == text


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32"]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.sampled_from(ENCODINGS))
def test_unicode_is_never_guessed(text: str, encoding: str) -> None:
    if not text.startswith("\ufeff"):
        assert decode(text.encode(encoding), "a.txt") == text


def test_big_endian_utf_16_and_a_few_controls_are_text() -> None:
    assert decode(b"\xfe\xff\0a\0b", "a.txt") == "ab"
    assert decode(b"a\0b and more", "a.txt") == "a\0b and more"


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ("日本語".encode("iso-2022-jp"), "iso-2022-jp", "日本語"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("“é”".encode("cp1252"), "iso-8859-1", "“é”"),
        ("“é”".encode(), "iso-8859-1", "“é”"),  # the bytes know better
        (SENTENCES["latin-1"].encode("latin-1"), "utf-8", SENTENCES["latin-1"]),
        (b"plain", "utf-16", "plain"),
        (b"plain", "no-such-encoding", "plain"),
        (b"plain", "hex", "plain"),  # a codec of Python's, and none of text
    ],
)
def test_a_declaration_is_a_hint(data: bytes, declared: str, text: str) -> None:
    assert decode(data, "a.html", declared=declared) == text


GUESSED = "the encoding is not stated and guessed to be {}"


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        *((SENTENCES["latin-1"].encode(each), SENTENCES["latin-1"], GUESSED.format(each))
          for each in ("cp1252", "cp437", "mac_roman")),
        (SENTENCES["koi8_r"].encode("koi8_r"), SENTENCES["koi8_r"], GUESSED.format("koi8_r")),
        (SENTENCES["koi8_r"].encode(), SENTENCES["koi8_r"], None),
        ("Zoë,Bern\n".encode() + "André,Genève\n".encode("cp1252"), "Zoë,Bern\nAndré,Genève\n",
         "not UTF-8 and read as cp1252 (a guess): lines 2"),
        ("é\n".encode("cp1252") * 7 + "ß".encode(), "é\n" * 7 + "ß",
         "not UTF-8 and read as cp1252 (a guess): lines 1, 2, 3, 4, 5, ..."),
    ],
)  # fmt: skip
def test_a_guess_is_noted(data: bytes, text: str, note: str | None) -> None:
    found = decode(data, "a.txt")
    assert (found, found.notes) == (text, (note,) if note else ())


PAGE = """<!DOCTYPE html>
<html><head><title>Title</title><style>p { color: red }</style></head><body>
<h1>The heading</h1><script>alert("no")</script>
<p>One &amp; <b>two</b>&nbsp;three,
   four.</p>
<table><tr><td>a</td><td>b</td></tr></table>
<ul><li>item</li></ul>
<p style="display: none">hidden</p><!-- comment -->
</body></html>"""


def test_a_page_is_its_text() -> None:
    text = read(PAGE.replace("<h1>", "<h1>\0").encode(), "a.html")  # the parser stops at a NUL
    assert "One & two three, four." in text.replace("\xa0", " ")
    for seen in ("The heading", "a\tb", "* item"):
        assert seen in text
    for unseen in ("alert", "color", "hidden", "comment", "<", "\ufffd"):
        assert unseen not in text


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="shift_jis">',
        "<meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'>",
        '<?xml version="1.0" encoding="shift_jis"?><html>',
    ],
)
def test_a_page_declares_its_encoding(head: str) -> None:
    assert read(f"{head}<p>日本".encode("shift_jis"), "a.html") == "日本"


def test_the_rows_of_a_table_are_records() -> None:
    rows = [("Ann", "red lamp"), ("Bob", ""), ("", "lamp"), ("Cleo", "")]
    cells = "".join(f"<tr><td>{user}</td><td>{item}</td></tr>" for user, item in rows)
    page = f"<h1>Orders</h1><table><tr><th>User</th><th>Item</th></tr>{cells}</table>"
    pieces = record.split(read(page.encode(), "a.html"))
    assert [tuple(piece.fields.values()) for piece in pieces] == rows
    assert "\nBob\t\n" in read(page.encode(), "a.html")  # not padded to the width of the column


def test_what_begins_as_a_page() -> None:
    assert recognises(b"\xef\xbb\xbf\n<?xml version='1.0'?>\n<HTML lang='en'>")
    assert recognises(b"\n" * 5_000 + b"<html>")
    assert not recognises(b"# About <html>")
    assert not recognises(b"<htmlx>")


def test_merged_cells_keep_columns_aligned() -> None:
    page = (
        "<table><tr><th rowspan=2>item</th><th colspan=2>2008</th><th>2007</th></tr>"
        "<tr><th>Q1</th><th>Q2</th><th>Q1</th></tr>"
        "<tr><td rowspan=2>north</td><td>1</td><td>2</td><td>3</td></tr>"
        "<tr><td colspan=2>4</td><td>5</td></tr></table>"
    )
    rows = [line.split("\t") for line in read(page.encode(), "a.html").splitlines()]
    assert [[cell.strip() for cell in row] for row in rows if any(row)] == [
        ["item", "2008", "2008", "2007"],
        ["item", "Q1", "Q2", "Q1"],
        ["north", "1", "2", "3"],
        ["north", "4", "", "5"],
    ]


@pytest.mark.parametrize("span", ["0", "-1", "x", "", "99999999999999999999", "2.5"])
def test_a_span_may_be_anything(span: str) -> None:
    page = f"<table><tr><td colspan='{span}' rowspan='{span}'>a</td><td>b</td></tr><tr><td>c</td></tr></table>"
    text = read(page.encode(), "a.html")
    assert [text.count(letter) for letter in "bc"] == [1, 1]
    assert text.count("a") <= 2


STRUCK = ("not read: 1 struck text",)
HIDDEN = ("not read: 2 hidden texts (--hidden reads what is hidden)",)
ODD_LIST = (
    "<ol start=4><li>a<li value=7>b</ol><ol reversed type=I><li>c<li>d</ol><ol start=x><li>e</ol>"
)


@pytest.mark.parametrize(
    ("page", "text", "notes"),
    [
        ("<p>310<sup>2</sup>", "310²", ()),
        ("<p>1,250<sup><a href=#n>12</a></sup> m", "1,250¹² m", ()),
        ("<p>10<sup>-6</sup> of CO<sub>2</sub>", "10⁻⁶ of CO₂", ()),
        ("<p>310<sup>1,2</sup>", "310^(1,2)", ()),
        ("<p>310<sup>a</sup> x<sub>i1</sub>", "310^(a) x_(i1)", ()),
        ("<p>the 5<sup>th</sup>, 310<sup>[2]</sup>, 310<sup>*</sup>", "the 5th, 310[2], 310*", ()),
        ("<p>310<span style='Vertical-Align: super; color: red'>2</span>", "310 ²", ()),
        ("<p>310<span style='vertical-align: top'>2</span>", "310 2", ()),
        ("<p><math><msup><mn>10</mn><mn>5</mn></msup><mo>+</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "10⁵+1/2", ()),
        ("<p>The fee is <s>100</s> 150 EUR.", "The fee is 150 EUR.", STRUCK),
        ("<p>Pets <del>are <s>not</s></del><ins>were</ins> here", "Pets were here", ("not read: 2 struck texts",)),
        ("<p><span style='text-decoration:line-through red'>9</span> 7", "7", STRUCK),
        ("<p><span style='text-decoration-line: line-through'>9</span> 7", "7", STRUCK),
        ("<p><span style='text-decoration:underline'>9</span><s></s> 7", "9 7", ()),
        ("<p hidden>9</p><p style='visibility:hidden'>8</p><template>7</template><ruby>漢<rt>かん</ruby>", "漢", HIDDEN),
        ("<p hidden></p><p style='color:red'>9</p>", "9", ()),
        ("<p>Name: <input value=Ada>in <input type=hidden value=x><select><option>A<option selected>B</select>", "Name: Ada in B", ()),
        ("<p><input type=checkbox checked>Yes <input type=radio>No", "[x] Yes [ ] No", ()),
        ("<p><select><option>A<option>B</select><select multiple><option>C</select>", "A", ()),
        ("<p><math><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></math>", "x₁²", ()),
        ("<table><tr><td rowspan=3>a<td>1<tr><td>2<tr><td>3</table>", "a 1 a 2 a 3", ()),
        (ODD_LIST, "4. a 7. b II. c I. d 1. e", ()),
        ("<ol><li data-number=7>a<ul><li data-number=8>b</ul><li>c</ol>", "1. a + b 2. c", ()),
    ],
)  # fmt: skip
def test_marks_struck_text_and_numbers_of_lists(
    page: str, text: str, notes: tuple[str, ...]
) -> None:
    found = read(f"<html><body>{page}".encode(), "a.html")
    assert (" ".join(found.split()), found.notes) == (text, notes)
    with reading({"hidden": True}):
        found = read(f"<html><body>{page}".encode(), "a.html")
    whole = "9 8 漢" if notes == HIDDEN else text
    assert (" ".join(found.split()), found.notes) == (whole, () if notes == HIDDEN else notes)


CONTAINER = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'


def make_book(chapters: dict[str, str | None], order: Sequence[int], **others: bytes) -> bytes:
    """A book; a chapter without a text is not in the file."""
    items = "".join(
        f'<item id="c{i}" href="{name}" media-type="{"image/svg" if name.endswith(".svg") else "application/xhtml"}+xml"/>'
        for i, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in order)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr("META-INF/container.xml", CONTAINER)
        package = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
        book.writestr("OEBPS/book.opf", package)
        for name, text in chapters.items():
            if text is not None:
                book.writestr(f"OEBPS/{name.replace('%20', ' ')}", text)
        for name, data in others.items():
            book.writestr(name, data)
    return file.getvalue()


CHAPTERS: dict[str, str | None] = {
    "part%20b.xhtml": "<html><body><h1>Two</h1><p>Second.</p></body></html>",
    "one.xhtml": "<?xml version='1.0'?><html><body><h1>One</h1><p>F&#252;rst.</p></body></html>",
    "unused.xhtml": "<p>not in the book",
}


def test_chapters_are_read_in_the_order_of_the_book() -> None:
    text = from_bytes(make_book(CHAPTERS, [1, 0]), "a.zip").text
    assert text.split() == ["One", "Fürst.", "Two", "Second."]


def test_what_chapters_leave_out_is_named() -> None:
    data = make_book({"a": "<p>x<sup>2</sup> <s>no</s>", "b.svg": "<svg/>", "c": "<p>y"}, [0, 1, 2])
    document = from_bytes(data, "a.epub")
    assert document.text == "x²\n\ny"
    assert document.notes == ("chapter 1: not read: 1 struck text", "not read: 1 chapter")


LOCK = b"<enc><CipherReference URI='OEBPS/one.xhtml'/></enc>"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (make_book(CHAPTERS, [0])[:400], "damaged or not what"),
        (make_book({"../../../etc/passwd": None}, [0]), "no item named '../../etc/passwd' in the archive"),
        pytest.param(make_book({"a": "<p>" + "x " * 500_000}, [0] * 100), "text is longer than the limit of 64 MB", marks=pytest.mark.slow),
        (make_book(CHAPTERS, [0], pad=bytes(65_000_000)), "unpacks to more than the limit of 64 MB"),
        (make_book(CHAPTERS, [1], **{"META-INF/encryption.xml": LOCK}), "the book is encrypted"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_bytes(data, "a.epub")


_END, _FREE, _IN_TABLE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def compound_file(streams: dict[str, bytes]) -> bytes:
    """A file in Microsoft's compound format; a stream may be in a storage: `storage/stream`."""
    storages = sorted({path.partition("/")[0] for path in streams if "/" in path})
    names = ["Root Entry", *storages, *streams]
    inside: dict[str, list[int]] = {}
    for i, name in enumerate(names[1:], 1):
        inside.setdefault(name.partition("/")[0] if "/" in name else "", []).append(i)
    after = {i: j for group in inside.values() for i, j in pairwise(group)}
    body, chain, folder = b"", [_IN_TABLE], b""
    for i, name in enumerate(names):
        data = streams.get(name, b"")
        kind = 5 if i == 0 else 2 if name in streams else 1
        first = inside.get("" if i == 0 else name, [_FREE])[0] if kind != 2 else _FREE
        n = -(-len(data) // 512)
        start = len(chain) if n else _END
        body += data.ljust(512 * n, b"\0")
        chain += [*range(len(chain) + 1, len(chain) + n), _END][:n]
        label = name.rpartition("/")[2].encode("utf-16-le")
        folder += label.ljust(64, b"\0") + struct.pack(
            "<HBBIII36xIQ", len(label) + 2, kind, 1, _FREE, after.get(i, _FREE), first, start, len(data)
        )  # fmt: skip
    folder = folder.ljust(-(-len(folder) // 512) * 512, b"\0")
    at, n = len(chain), len(folder) // 512
    chain += [*range(at + 1, at + n), _END]
    table = struct.pack(f"<{len(chain)}I", *chain).ljust(512, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xIIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, at, 0, 4096, _END, 0, _END, 0, 0)  # fmt: skip
    return header.ljust(512, b"\xff") + table + body + folder


def outlook(texts: dict[str, str]) -> bytes:
    """A message of Outlook, from texts by the numbers of their properties.

    Shorter streams than 4,096 bytes would be stored in another way.
    """
    streams: dict[str, bytes] = {}
    for path, text in texts.items():
        place, slash, number = path.rpartition("/")
        own = f"{place}{slash}__properties_version1.0"
        segment = struct.pack("<HHIQ", 0x1F, int(number, 16), 6, 0)
        streams[own] = streams.get(own, bytes(8 if place else 32)) + 256 * segment
        streams[f"{place}{slash}__substg1.0_{number}001F"] = text.ljust(2_048).encode("utf-16-le")
    return compound_file(streams)


def test_headers_attachments_and_the_plain_text_are_read() -> None:
    mail = EmailMessage()
    mail["From"] = "Ada <ada@example.org>"
    mail["To"] = "Ben <ben@example.org>, c@example.org"
    mail["Date"] = "Mon, 03 Jun 2024 10:00:00 +0200"
    mail["Subject"] = "Grüße: the dose"
    mail.set_content("The dose was 5 mg.\n\nÄsa")
    mail.add_alternative("<p>The dose was <b>6 mg</b>.", subtype="html")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="../../a.pdf")
    assert from_bytes(mail.as_bytes(), "a.eml").text == (
        "From: Ada <ada@example.org>\nTo: Ben <ben@example.org>, c@example.org\n"
        "Date: Mon, 03 Jun 2024 10:00:00 +0200\nSubject: Grüße: the dose\n"
        "Attachments: ../../a.pdf\n\nThe dose was 5 mg.\n\nÄsa"
    )


def test_a_message_of_outlook_is_read() -> None:
    data = outlook({
        "0037": "The dose", "1000": "It was 5 mg.\r\n", "__attach_version1.0_#00000000/3707": "a.pdf",
        "__attach_version1.0_#00000000/3701": "EncryptionInfo EncryptedPackage",
    })  # fmt: skip
    wanted = "Subject: The dose\nAttachments: a.pdf\n\nIt was 5 mg."
    assert from_bytes(data, "a.msg").text == wanted
    with pytest.raises(DataError, match="damaged"):
        from_bytes(data[:900], "a.msg")


TYPE = b"Subject: x\nContent-Type: text/plain; charset=klingon\n\n"
NESTED = [b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(3_000)]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (TYPE + "déjà vu, très bon café".encode("cp1252"), "Subject: x\n\ndéjà vu, très bon café"),
        pytest.param(b"".join(NESTED) + b"\nhi", "\n\nhi", marks=pytest.mark.slow),
        (b"Subject: a\n b\nX: y\n\nbody", "Subject: a b\n\nbody"),
        (b"Content-Type: text/html; charset=latin-1\n\n<p>F\xfcnf <b>mg</b>", "Fünf mg"),
    ],
)
def test_odd_messages_are_read(data: bytes, wanted: str) -> None:
    assert from_bytes(data, "a.eml").text.endswith(wanted)


def test_a_text_without_headers_is_no_message() -> None:
    with pytest.raises(DataError, match=r"a\.eml: the file is not an e-mail: it has no headers"):
        from_bytes(b"Dear Ada,\n\nhello", "a.eml")


def composed(plain: str, page: str = "", *more: EmailMessage | str) -> bytes:
    """A message with both kinds of text, then forwarded messages and other parts."""
    mail = EmailMessage()
    mail["Subject"] = "Fwd: fees"
    mail.set_content(plain)
    if page:
        mail.add_alternative(page, subtype="html")
    for each in more:
        if isinstance(each, str):
            mail.make_mixed() if mail.get_content_type() != "multipart/mixed" else None
            part = EmailMessage()
            part.set_content(each)
            mail.attach(part)
        else:
            mail.add_attachment(each)
    return mail.as_bytes()


def forwarded() -> EmailMessage:
    inner = EmailMessage()
    inner["Subject"] = "Fees"
    inner.set_content("The fee is 80,000 EUR.")
    inner.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="a.pdf")
    return inner


SHORTER = ("the HTML is read, its plain text is shorter",)
FORWARDED = "Forwarded message:\n\nSubject: Fees\nAttachments: a.pdf\n\nThe fee is 80,000 EUR."
NOT_READ = ("not read: 1 attachment",)


@pytest.mark.parametrize(
    ("data", "text", "notes"),
    [
        (composed("See HTML.", "<p>The fee for each year is 5 EUR, <s>9 EUR</s>"),
         "The fee for each year is 5 EUR,", ("not read: 1 struck text", *SHORTER)),
        (composed("The fee is 5 EUR.", "<p>The fee is <b>5</b> EUR. <p>Unsubscribe"), "The fee is 5 EUR.", ()),
        (composed("see below", "", forwarded()), f"see below\n\n{FORWARDED}", NOT_READ),
        (composed("a", "<p>one two three", forwarded()), f"one two three\n\n{FORWARDED}", (*SHORTER, *NOT_READ)),
        (composed("first", "", "second"), "first\n\nsecond", ()),
    ],
)  # fmt: skip
def test_all_texts_of_a_message_are_read_or_named(
    data: bytes, text: str, notes: tuple[str, ...]
) -> None:
    document = from_bytes(data, "a.eml")
    assert document.text == f"Subject: Fwd: fees\n\n{text}"
    assert document.notes == notes


@pytest.mark.parametrize(("page", "encoding"), [(950, "cp950"), (1251, "cp1251"), (936, "gbk")])
def test_pages_of_outlook_are_in_any_code_page(page: int, encoding: str) -> None:
    said = {"cp1251": "Плата 5"}.get(encoding, "費用")
    html = f"<p>{said}".encode(encoding).ljust(4_096)
    head = b"".join(
        256 * struct.pack("<HHIQ", kind, number, 6, value)
        for kind, number, value in ((3, 0x3FDE, page), (0x102, 0x1013, len(html)))
    )
    streams = {"__properties_version1.0": bytes(32) + head, "__substg1.0_10130102": html}
    assert from_bytes(compound_file(streams), "a.msg").text == said
