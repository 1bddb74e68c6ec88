"""E-mail, also Outlook's `.msg` → a few headers as lines, the names of attachments, and the text."""

from __future__ import annotations

import email
from collections.abc import Iterable
from email import policy
from email.message import EmailMessage
from typing import Any

from pearl.documents.readers import html
from pearl.documents.readers.text import decode
from pearl.errors import DataError

SUFFIXES = (".eml", ".msg")

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_MAX_ATTACHMENTS = 100  # named ones

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # also of old Word and Excel files
_OUTLOOK = "__substg1.0_".encode("utf-16-le")

EXTRA = "office"


def recognises(data: bytes) -> bool:
    """Whether the bytes are a message of Outlook; other messages are plain text."""
    return data.startswith(_OLE) and _OUTLOOK in data


def read(data: bytes, path: str) -> str:
    """The text of a message."""
    return _outlook(data, path) if data.startswith(_OLE) else _internet(data, path)


def _internet(data: bytes, path: str) -> str:
    message = email.message_from_bytes(data, _class=EmailMessage, policy=policy.default)
    if not message.keys():
        raise DataError("the file is not an e-mail: it has no headers", path=path, help="save it as .eml or .txt")  # fmt: skip
    headers = {name: ", ".join(map(str, message.get_all(name, ()))) for name in _HEADERS}
    body = message.get_body(("plain",))
    text = "" if body is None else _decoded(body, path)
    if not text.strip() and (body := message.get_body(("html",))) is not None:
        text = html.read(_decoded(body, path).encode(), path)
    names = (part.get_filename() or part.get_content_type() for part in message.iter_attachments())
    return _text(headers, names, text)


def _decoded(part: Any, path: str) -> str:
    data = part.get_payload(decode=True) or b""
    return decode(data, path, declared=part.get_content_charset()) if data.strip() else ""


def _outlook(data: bytes, path: str) -> str:
    from oxmsg import Message

    message = Message.load(data)
    to = (f"{one.name} <{one.email_address}>" for one in message.recipients)
    headers = {
        "From": message.sender or "",
        "To": ", ".join(to),
        "Date": str(message.sent_date or ""),
        "Subject": message.subject or "",
    }
    text = message.body or ""
    if not text.strip() and message.html_body:
        text = html.read(message.html_body.encode(), path)
    if not text.strip():
        raise DataError("the message has no plain text and no HTML", path=path, help="save it as .eml")  # fmt: skip
    return _text(headers, (each.file_name or "unnamed" for each in message.attachments), text)


def _text(headers: dict[str, str], names: Iterable[str], text: str) -> str:
    """Headers and attachments, one line each, and the text; a line break in one cannot forge another."""
    named = [" ".join(name.split()) for name in names]
    more = len(named) - _MAX_ATTACHMENTS
    attachments = ", ".join(named[:_MAX_ATTACHMENTS]) + (f", and {more:,} more" if more > 0 else "")
    lines = {**headers, "Attachments": attachments}.items()
    head = [f"{name}: {' '.join(value.split())}" for name, value in lines if value.strip()]
    return "\n".join([*head, "", text.strip()]).strip()
