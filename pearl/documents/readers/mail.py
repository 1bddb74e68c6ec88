"""E-mail, also Outlook's `.msg`: headers, names of attachments, text (or longer HTML), forwarded messages."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pearl.documents.readers import ReaderText, html, not_read
from pearl.documents.readers.text import decode
from pearl.errors import DataError

if TYPE_CHECKING:
    from email.message import EmailMessage

SUFFIXES = (".eml", ".msg")

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_HTML = 0x1013  # the property PidTagHtml: bytes, which need not be in the encoding that it states

_ENCRYPTED = ("EncryptedPackage", "EncryptionInfo")
_BEFORE_2007 = {"WordDocument": "docx", "Workbook": "xlsx", "PowerPoint Document": "pptx"}

EXTRA = "office"

# Compound files: messages of Outlook, and Office files that are encrypted or old. Other messages are plain text.
BEGINS = (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",)


def read(data: bytes, path: str) -> ReaderText:
    """The text of a message."""
    if data.startswith(BEGINS):
        _check_kind(data, path)
        return _outlook(data, path)
    import email
    from email import policy
    from email.message import EmailMessage

    message = email.message_from_bytes(data, _class=EmailMessage, policy=policy.default)
    if not message.keys():
        raise DataError("the file is not an e-mail: it has no headers", path=path, help="save it as .eml or .txt")  # fmt: skip
    return _read(message, path)


def _check_kind(data: bytes, path: str) -> None:
    """Refuse encrypted Office files and formats before Office 2007; the error names them."""

    def has(name: str) -> bool:
        return name.encode("utf-16-le") in data

    if has("__substg1.0_"):  # a message, whose attachments may be files of Office
        return
    if all(map(has, _ENCRYPTED)):
        raise DataError("the file is encrypted", path=path, help="save it without its password")
    for name in filter(has, _BEFORE_2007):
        raise DataError("the file has the format of Office before 2007", path=path, help=f"save it as .{_BEFORE_2007[name]}")  # fmt: skip
    raise DataError(
        "the file is damaged, or belongs to a program whose files cannot be read", path=path,
        help="convert it to text in UTF-8, .html, .pdf or .docx",
    )  # fmt: skip


def _read(message: EmailMessage, path: str) -> ReaderText:
    """A message, and below it the messages that it forwards, with their own headers."""
    headers = {name: ", ".join(map(str, message.get_all(name, ()))) for name in _HEADERS}
    plain, page = message.get_body(("plain",)), message.get_body(("html",))
    body = _body(_decoded(plain, path), _page(_decoded(page, path), path))
    texts, notes, names = [str(body)], list(body.notes), list[str]()
    for part in message.iter_attachments():
        name = part.get_filename()
        if part.get_content_type() == "message/rfc822":
            inner = _read(part.get_content(), path)
            texts.append(f"Forwarded message:\n\n{inner}")
            notes += inner.notes
        elif part is plain or part is page:  # the body of a message may be one of several parts
            continue
        elif not name and not part.is_attachment() and part.get_content_maintype() == "text":
            more = _decoded(part, path)
            more = _page(more, path) if part.get_content_subtype() == "html" else more
            texts.append(more)
            notes += more.notes
        else:
            names.append(name or part.get_content_type())
    text = "\n\n".join(each.strip() for each in texts if each.strip())
    return _text(headers, names, ReaderText(text, notes=notes))


def _decoded(part: Any, path: str) -> ReaderText:
    data = None if part is None else part.get_payload(decode=True)
    if not data or not data.strip():
        return ReaderText("")
    return decode(data, path, declared=part.get_content_charset())


def _page(page: str, path: str) -> ReaderText:
    notes = getattr(page, "notes", ())
    if not page.strip():
        return ReaderText("", notes=notes)
    read = html.read(page.encode(), path)
    return ReaderText(read, notes=(*notes, *read.notes))


_MUCH_MORE = 2
"""The plain text is a stub if the HTML has this many times its words; less may be menus and footers."""


def _body(plain: ReaderText, page: ReaderText) -> ReaderText:
    """The plain text, or the HTML page if it has much more text."""
    n_plain, n_page = len(plain.split()), len(page.split())
    if not n_plain:
        return page
    if n_page <= _MUCH_MORE * n_plain:
        return plain
    return ReaderText(page, notes=(*page.notes, "the HTML is read, its plain text is shorter"))


def _outlook(data: bytes, path: str) -> ReaderText:
    from oxmsg import Message

    codecs.register(_windows)
    message = Message.load(data)
    to = (f"{one.name} <{one.email_address}>" for one in message.recipients)
    headers = {
        "From": message.sender or "",
        "To": ", ".join(to),
        "Date": str(message.sent_date or ""),
        "Subject": message.subject or "",
    }
    if encoded := message.properties.binary_prop_value(_HTML):
        page: str = decode(encoded, path, declared=message.properties.body_encoding)
    else:
        page = message.html_body or ""
    body = _body(ReaderText(message.body or ""), _page(page, path))
    if not body.strip():
        raise DataError("the message has no plain text and no HTML", path=path, help="save it as .eml")  # fmt: skip
    return _text(headers, [each.file_name or "unnamed" for each in message.attachments], body)


def _windows(name: str) -> codecs.CodecInfo | None:
    """The code page of a name such as windows-950, which Python knows as cp950."""
    _, is_windows, number = name.partition("windows")
    return codecs.lookup(f"cp{number[1:]}") if is_windows and number[1:].isdecimal() else None


def _text(headers: dict[str, str], names: Sequence[str], body: ReaderText) -> ReaderText:
    """Headers and attachments, one line each, and the text; a line break in a header cannot forge another one."""
    lines = {**headers, "Attachments": ", ".join(names)}.items()
    head = [f"{name}: {' '.join(value.split())}" for name, value in lines if value.strip()]
    notes = (*body.notes, *not_read({"attachment": len(names)}))
    return ReaderText("\n".join([*head, "", body.strip()]).strip(), notes=notes)
