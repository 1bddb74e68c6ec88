"""Header of a GGUF file → the model's training context in tokens.

llama.cpp reads the rest in a child process; unreadable files are detected here, before it starts.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from pearl.errors import DataError

__all__ = ["trained_context"]

MAGIC = b"GGUF"

VERSIONS = (2, 3)
"""Supported versions; llama.cpp dropped version 1, which has 32-bit counts."""

MAX_KEY_LENGTH = 65_535
MAX_DEPTH = 4
"""Maximum nesting of arrays: the format allows any depth, files have none."""

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # fmt: skip
"""Type of a value → how `struct` reads it."""

_STRING, _ARRAY = 8, 9

HELP = "name a whole language model in the GGUF format, the first file where it is in several"


def trained_context(path: Path) -> int:
    """The training context of a model file in tokens.

    Raises:
        DataError: The file cannot be read, is no GGUF, or holds no language model.
    """
    try:
        with path.open("rb") as file:
            return _HeaderReader(file, path).trained_context()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path, help=HELP) from None


class _HeaderReader:
    """Reads metadata from the start of a file; all numbers are little-endian."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._size = path.stat().st_size

    def trained_context(self) -> int:
        if self._size == 0:
            raise self._wrong("is empty")
        if self._file.read(4) != MAGIC:
            raise self._wrong("is no GGUF file")
        version = self._number("I")
        if version not in VERSIONS:
            raise self._wrong(
                f"is of version {version} of GGUF, not {VERSIONS[0]} or {VERSIONS[1]}"
            )
        self._number("Q")  # number of tensors
        architecture = None
        contexts: dict[str, int] = {}
        for _ in range(self._number("Q")):
            key = self._string()
            value = self._value(self._number("I"))
            if key == "general.architecture":
                architecture = value
            elif key.endswith(".context_length") and isinstance(value, int):
                contexts[key.removesuffix(".context_length")] = value
            if architecture in contexts:
                return contexts[str(architecture)]
        raise self._wrong(f"holds no language model (its architecture is '{architecture}')")

    def _value(self, kind: int, depth: int = 0) -> int | str | None:
        """Read a value; irrelevant ones are skipped and give None."""
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY and depth < MAX_DEPTH:
            of, n = self._number("I"), self._number("Q")
            if of in _NUMBERS:
                self._skip(n * struct.calcsize(_NUMBERS[of]))
            elif of == _STRING:
                for _ in range(n):
                    self._skip(self._number("Q"))
            else:
                for _ in range(n):
                    self._value(of, depth + 1)
            return None
        if kind not in _NUMBERS:
            raise self._wrong("is damaged: its metadata hold a value of an unknown type")
        return self._number(_NUMBERS[kind])

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(f"<{form}", self._bytes(struct.calcsize(form)))
        return number  # type: ignore[no-any-return]

    def _string(self) -> str:
        """Read a text, truncated if it is longer than any key."""
        length = self._number("Q")
        text = self._bytes(min(length, MAX_KEY_LENGTH)).decode(errors="replace")
        self._skip(max(0, length - MAX_KEY_LENGTH))
        return text

    def _bytes(self, n: int) -> bytes:
        data = self._file.read(n)
        if len(data) < n:
            raise self._wrong("is cut off")
        return data

    def _skip(self, n: int) -> None:
        if n > self._size - self._file.tell():
            raise self._wrong("is cut off")
        self._file.seek(n, 1)

    def _wrong(self, what: str) -> DataError:
        return DataError(what, path=self._path, help=HELP)
