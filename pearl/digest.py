"""Texts → one digest, in which no part can be taken for the end of another."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

__all__ = ["digest"]


def digest(parts: Iterable[str]) -> bytes:
    """SHA-256 over the parts, each with its length before it; lone surrogates are parts, too.

    Returns:
        32 bytes.

    Example:
        >>> digest(["ab", "c"]) == digest(["a", "bc"])
        False
    """
    found = sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.digest()
