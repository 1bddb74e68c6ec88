"""Read the text of a file's bytes. Every other module of this folder reads one file type.

All of them are imported with the first file of any type, so what takes long is imported in `read`.

A reader module has

- `SUFFIXES: tuple[str, ...]`, lower case, with the dot; no two modules share one;
- `read(data: bytes, path: str) -> str`, returns the text, or raises a `DataError` that names
  `path`; a `ReaderText` also says which pages were read by OCR, and, by `not_read`, what of the
  file is not in the text. Raised and lowered text is written by `pearl.documents.marks`. A reader of
  text passes on the `notes` of `text.decode`, which name an encoding that is guessed. Any other
  exception becomes a `DataError` "the file is damaged";
- optionally `BEGINS: tuple[bytes, ...]`, for types that the first bytes of their files identify;
- optionally `recognises(data: bytes) -> bool`, for types that other bytes identify; it is called
  only for files that begin as `BEGINS` says, if the reader has that. If several readers recognise a
  file, the one of its suffix reads it;
- optionally `IS_BOUNDED = True`, if time and memory are proportional to the size of any input. Such
  a reader runs in this process, all others in a child process with limits;
- optionally `IS_TABLE = True`, if its files are tables;
- optionally `EXTRA: str`, the extra that installs the packages it imports;
- optionally `HAS_PAGES = True`, if its files have pages, each of which a form feed ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from pearl.errors import DataError


class ReaderOptions(Struct, frozen=True):
    """How to read files; the settings have the same names."""

    ocr: Literal["auto", "off", "force"] = "auto"
    ocr_language: str = "eng"
    pdf_tables: Literal["auto", "off"] = "auto"
    hidden: bool = False


OPTIONS: ContextVar[ReaderOptions] = ContextVar("OPTIONS", default=ReaderOptions())  # noqa: B039 - frozen
"""The options in force, in this process and, while it reads a file, in the child process."""


@contextmanager
def reading(options: Mapping[str, Any]) -> Iterator[None]:
    """Apply the reader options among some settings within the `with` block."""
    names = [name for name in ReaderOptions.__struct_fields__ if name in options]
    token = OPTIONS.set(replace(OPTIONS.get(), **{name: options[name] for name in names}))
    try:
        yield
    finally:
        OPTIONS.reset(token)


def damaged(error: Exception, path: str) -> DataError:
    """The error for a file on which a reader fails, as libraries do in many ways on damaged files."""
    reason = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(": ")[:100]
    return DataError(
        f"the file is damaged or not what its name says ({reason})",
        path=path,
        help="save it again, or convert it to plain text",
    )


class ReaderText(str):
    """The text of a file, with pages read by OCR and notes of the reader."""

    __slots__ = ("notes", "ocr")

    ocr: Mapping[int, float]  # page (from 1) → mean confidence of its words, 0 to 1
    notes: tuple[str, ...]  # for the user, one line each

    def __new__(
        cls, text: str, ocr: Mapping[int, float] = MappingProxyType({}), notes: Sequence[str] = ()
    ) -> ReaderText:
        """Create the text, which is also a string."""
        made = super().__new__(cls, text)
        made.ocr, made.notes = dict(ocr), tuple(notes)
        return made


def not_read(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the note that names what a reader left out, from names in the singular with counts."""
    named = [
        f"{n:,} {what}{'' if n == 1 else 'es' if what.endswith('x') else 's'}"
        for what, n in counts.items()
        if n
    ]
    is_hidden = any(n and what.startswith("hidden") for what, n in counts.items())
    hint = " (--hidden reads what is hidden)" * is_hidden
    return (f"not read: {', '.join(named)}{hint}",) if named else ()


class DocumentReader(Protocol):
    """The interface of a reader module."""

    SUFFIXES: tuple[str, ...]

    def read(self, data: bytes, path: str) -> str:
        """The text of the bytes; `DataError` if they are no file of this type."""
        ...


CONTRACT = DocumentReader
