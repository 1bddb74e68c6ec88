"""Content → its digest: always SHA-256, so that `sha256sum` finds the same of a text or a file.

The lowest room that needs one is this, for what tells two documents apart; everything that keys a
cache, a row or a header by content takes it from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import file_digest, sha256
from pathlib import Path

__all__ = ["digest", "file_sha256", "text_sha256"]


def digest(parts: Iterable[str | bytes]) -> bytes:
    """SHA-256 over the parts, each with its length before it: no part is taken for the end of another.

    Returns:
        32 bytes.

    Example:
        >>> digest(["ab", "c"]) == digest(["a", "bc"])
        False
    """
    found = sha256()
    for part in parts:
        data = _encoded(part) if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.digest()


def text_sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal.

    Example:
        >>> text_sha256("")[:16]
        'e3b0c44298fc1c14'
    """
    return sha256(_encoded(text)).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a question may hold half a character
