"""Bytes of a file → the text to show. Every other module of this folder reads one kind of file.

A reader module has

- `SUFFIXES: tuple[str, ...]`, lower case, with the dot; no two modules share one;
- `read(data: bytes, path: str) -> str`, the text to show, or a `DataError` that names `path`;
- where the bytes tell what they are, `recognises(data: bytes) -> bool`;
- and `IS_BOUNDED = True` where it takes time and memory in proportion to the bytes, whatever they
  are. It then reads in this process; all others read in a child that has limits.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["CONTRACT", "Reader"]


class Reader(Protocol):
    """What a module of this folder looks like to its users."""

    SUFFIXES: tuple[str, ...]

    def read(self, data: bytes, path: str) -> str:
        """The text to show.

        Raises:
            DataError: The bytes are nothing that it reads.
        """
        ...


CONTRACT = Reader
