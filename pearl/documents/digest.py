"""SHA-256 digests, the keys of caches, rows and headers; for a text or a file, the same as by `sha256sum`."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable
from hashlib import blake2b, file_digest, sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from _hashlib import HASH


def digest(parts: Iterable[str | bytes]) -> bytes:
    """SHA-256 over length-prefixed parts, so that moving a boundary changes the digest."""
    return _begun(parts).digest()


def keys_after(parts: Iterable[str]) -> Callable[[str | bytes], bytes]:
    """Return a function that computes `digest` of these parts and another one."""
    begun = _begun(parts)

    def of(part: str | bytes) -> bytes:
        found = begun.copy()
        _add(found, part)
        return found.digest()

    return of


def _begun(parts: Iterable[str | bytes]) -> HASH:
    found = sha256()
    for part in parts:
        _add(found, part)
    return found


def _add(found: HASH, part: str | bytes) -> None:
    data = _encoded(part) if isinstance(part, str) else part
    found.update(len(data).to_bytes(8, "big"))
    found.update(data)


_SEAL = 32  # hexadecimal digits of a digest before sealed data


def sealed(key: bytes, data: bytes) -> bytes:
    """Prefix data of a cache with a digest of its key and content."""
    return _begun((key, data)).hexdigest()[:_SEAL].encode() + data


def unsealed(key: bytes, data: object) -> bytes | None:
    """Return sealed data without its digest; None if it was changed or sealed with another key."""
    if not isinstance(data, bytes) or sealed(key, data[_SEAL:]) != data:
        return None
    return data[_SEAL:]


def text_sha256(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return sha256(_encoded(text)).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a question may contain a lone surrogate


class DigestTable:
    """A table of keys with numbers from 1, in about 20 bytes per key. Keys are stored as 8-byte digests with a secret, so that nobody can forge a collision."""

    def __init__(self) -> None:
        self._secret = os.urandom(16)
        self._n = 0
        self._keys = array("Q", bytes(8 << 10))
        self._values = array("I", bytes(4 << 10))

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, key: bytes) -> int:
        """The number of a key; 0 for none."""
        return self._values[self._slot(self._digest(key))]

    def add(self, key: bytes, step: int = 1) -> int:
        """Add to the number of a key, and return the sum."""
        digest = self._digest(key)
        slot = self._slot(digest)
        if not self._values[slot]:
            self._n += 1
            if 4 * self._n > 3 * len(self._keys):
                before, size = zip(self._keys, self._values, strict=True), len(self._keys) * 7 // 4
                self._keys, self._values = array("Q", bytes(8 * size)), array("I", bytes(4 * size))
                for other, value in before:
                    if value:
                        slot = self._slot(other)
                        self._keys[slot], self._values[slot] = other, value
                slot = self._slot(digest)
            self._keys[slot] = digest
        self._values[slot] += step
        return self._values[slot]

    def write(self, file: IO[bytes]) -> None:
        """Write the table to a file, for `read`."""
        file.write(self._secret + array("Q", (self._n, len(self._keys))).tobytes())
        for column in (self._keys, self._values):
            column.tofile(file)

    @classmethod
    def read(cls, file: IO[bytes]) -> Self:
        """Read a table that `write` wrote."""
        table, size = cls(), array("Q")
        table._secret = file.read(16)
        size.fromfile(file, 2)
        table._n, n_slots = size
        table._keys, table._values = array("Q"), array("I")
        table._keys.fromfile(file, n_slots)
        table._values.fromfile(file, n_slots)
        return table

    def _digest(self, key: bytes) -> int:
        return int.from_bytes(blake2b(key, digest_size=8, key=self._secret).digest(), "big")

    def _slot(self, digest: int) -> int:
        """Return the slot of a digest, or the free slot for it."""
        keys, values, size = self._keys, self._values, len(self._keys)
        slot = digest % size
        while values[slot] and keys[slot] != digest:
            slot = slot + 1 if slot + 1 < size else 0
        return slot
