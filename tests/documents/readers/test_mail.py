"""E-mail, also Outlook's."""

from __future__ import annotations

import struct
from email.message import EmailMessage
from itertools import pairwise

import pytest

from pearl.documents.document import from_bytes
from pearl.errors import DataError

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


def message() -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Ada <ada@example.org>"
    mail["To"] = "Ben <ben@example.org>, c@example.org"
    mail["Date"] = "Mon, 03 Jun 2024 10:00:00 +0200"
    mail["Subject"] = "Grüße: the dose"
    return mail


def test_headers_attachments_and_the_plain_text_are_read() -> None:
    mail = message()
    mail.set_content("The dose was 5 mg.\n\nÄsa")
    mail.add_alternative("<p>The dose was <b>6 mg</b>.", subtype="html")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="../../a.pdf")
    assert from_bytes(mail.as_bytes(), "a.eml").text == (
        "From: Ada <ada@example.org>\nTo: Ben <ben@example.org>, c@example.org\n"
        "Date: Mon, 03 Jun 2024 10:00:00 +0200\nSubject: Grüße: the dose\n"
        "Attachments: ../../a.pdf\n\nThe dose was 5 mg.\n\nÄsa"
    )


def test_html_is_read_where_there_is_no_plain_text() -> None:
    mail = message()
    mail.set_content("<p>Fünf <b>mg</b>", subtype="html", charset="latin-1")
    assert from_bytes(mail.as_bytes(), "a.eml").text.endswith("\n\nFünf mg")


def test_a_message_of_outlook_is_read() -> None:
    data = outlook({
        "0037": "The dose", "1000": "It was 5 mg.\r\n", "__attach_version1.0_#00000000/3707": "a.pdf",
        "__attach_version1.0_#00000000/3701": "EncryptionInfo EncryptedPackage",
    })  # fmt: skip
    wanted = "Subject: The dose\nAttachments: a.pdf\n\nIt was 5 mg."
    assert from_bytes(data, "a.msg").text == wanted
    with pytest.raises(DataError, match="damaged"):
        from_bytes(data[:900], "a.msg")


def many_attachments() -> bytes:
    part = b"--b\nContent-Disposition: attachment; filename=f%d\n\nx\n"
    parts = b"".join(part % i for i in range(10_000))
    return b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nbody\n" + parts + b"--b--"  # fmt: skip


TYPE = b"Subject: x\nContent-Type: text/plain; charset=klingon\n\n"
NESTED = [b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(3_000)]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (TYPE + "déjà vu, très bon café".encode("cp1252"), "Subject: x\n\ndéjà vu, très bon café"),
        (many_attachments(), "and 9,900 more\n\nbody"),
        (b"".join(NESTED) + b"\nhi", "\n\nhi"),
        (b"Subject: a\n b\nX: y\n\nbody", "Subject: a b\n\nbody"),
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
