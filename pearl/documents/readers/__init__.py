"""Bytes of a file → its text. Every other module of this folder reads one file type.

A reader module has

- `SUFFIXES: tuple[str, ...]`, lower case, with the dot; no two modules share one;
- `read(data: bytes, path: str) -> str`, returns the text, or raises a `DataError` that names
  `path`;
- optionally `recognises(data: bytes) -> bool`, for types that their bytes identify;
- optionally `IS_BOUNDED = True`, if time and memory are proportional to the size of any input. Such
  a reader runs in this process, all others in a child process with limits;
- optionally `IS_TABLE = True`, if its files are tables.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["CONTRACT", "DocumentReader"]


class DocumentReader(Protocol):
    """The interface of a reader module."""

    SUFFIXES: tuple[str, ...]

    def read(self, data: bytes, path: str) -> str:
        """The text of the bytes.

        Raises:
            DataError: The bytes are not a file of this type.
        """
        ...


CONTRACT = DocumentReader
