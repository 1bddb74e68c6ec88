"""Content → SHA-256 digest; the digest of a text or a file equals that of `sha256sum`.

Every content-based key of a cache, a row or a header uses these functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import file_digest, sha256
from pathlib import Path

__all__ = ["digest", "file_sha256", "text_sha256"]


def digest(parts: Iterable[str | bytes]) -> bytes:
    """SHA-256 over length-prefixed parts, so that moving a boundary changes the digest.

    Returns:
        32 bytes.

    Example:
        >>> digest(["ab", "c"]) == digest(["a", "bc"])
        False
    """
    found = sha256()
    for part in parts:
        data = _encoded(part) if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big") + data)
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
    return text.encode("utf-8", "surrogatepass")  # a question may contain a lone surrogate
