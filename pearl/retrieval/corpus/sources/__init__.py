"""A file → the documents in it. Every other module of this folder reads one kind of files.

Reading is lazy, and what an index has already is not made again: a source gives a digest of what each
document is made of, and where that is known, the source goes on without making the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pearl.errors import DataError
from pearl.retrieval.corpus import CorpusDocument

__all__ = [
    "CONTRACT",
    "DIGEST",
    "Begun",
    "CorpusSource",
    "Entry",
    "New",
    "Resumed",
    "SourceFile",
]

DIGEST = 16
"""Bytes of a digest."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What was read of a file, for it may only have grown when it is read again.

    Attributes:
        size: Bytes, up to the end of a line.
        digest: Of these: `DIGEST` bytes.
    """

    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Resumed:
    """The file begins with what was read before: its documents are those, and what follows."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a corpus.

    Attributes:
        path: Where it is.
        label: What it is called in the corpus, unique there.
        kind: The module of this folder that reads it.
        is_alone: Whether the corpus is this file, so that names of rows need no name of a file.
        begun: What was read of it before, if the source said so then.
    """

    path: str
    label: str
    kind: str
    is_alone: bool = False
    begun: Begun | None = None


@dataclass(frozen=True, slots=True)
class New:
    """A document that the index does not have.

    Attributes:
        digest: Of what it is made of, with the name of its file: `DIGEST` bytes.
        document: The document.
        line: Its line, of a row.
    """

    digest: bytes
    document: CorpusDocument
    line: int | None = None


Entry = Sequence[int] | New | DataError | Resumed | Begun
"""Documents that are known, by their places in the index; a document; or why one is left out.

`Resumed` may come first, and `Begun` last."""


class CorpusSource(Protocol):
    """What a module of this folder looks like to its users."""

    def suffixes(self) -> tuple[str, ...]:
        """Of the files that it reads, lower case, with the dot; no two modules share one."""
        ...

    def in_folders(self) -> tuple[str, ...]:
        """The suffixes of those that it reads where a folder is named, and not they themselves."""
        ...

    def read(self, file: SourceFile, known: Mapping[bytes, int]) -> Iterator[Entry]:
        """The documents of a file, in its order.

        Args:
            file: The file.
            known: Digest → place in the index.

        Raises:
            DataError: It cannot be read, or not to its end.
            OSError: Likewise.
        """
        ...


CONTRACT = CorpusSource
