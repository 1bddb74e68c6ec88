"""Texts → one digest, in which no part can be taken for the end of another."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["digest"]


def digest(parts: Iterable[str]) -> bytes:
    """BLAKE2b over the parts, each with its length before it; lone surrogates are parts, too.

    Where processors have no instructions for SHA-256, BLAKE2b takes a third of the time.

    Returns:
        32 bytes.

    Example:
        >>> digest(["ab", "c"]) == digest(["a", "bc"])
        False
    """
    found = blake2b(digest_size=32)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.digest()
