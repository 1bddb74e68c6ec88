"""A file → the documents in it; folders, patterns and files → the files of a corpus. Every other module of this folder reads one kind of files.

Reading is lazy, and documents that an index has are not made again: a source gives a digest of the material of each
document, and if that is known, the source goes on without making the document.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pearl import plugins
from pearl.errors import DataError, UsageError
from pearl.plugins.files import is_inside
from pearl.retrieval.corpus import CorpusDocument

__all__ = ["CONTRACT", "DIGEST", "Begun", "CorpusSource", "Entry", "New", "Resumed", "SourceFile"]


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


_SOURCES = "pearl.retrieval.corpus.sources"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.I)


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    """The files of a corpus."""

    files: tuple[SourceFile, ...]
    n_other: int = 0
    n_outside: int = 0


def find_files(named: Sequence[str | Path]) -> CorpusFiles:
    """The files of a corpus; a file that is named twice is taken once.

    Of a folder those are taken that have the suffix of a document or of rows, those of folders in
    it as well; hidden ones are not, nor links to files outside of it, for what is read may be sent to a
    model. They are called by their paths in the folder, if it is the only
    one that is named; all others as they are named.
    """
    if not named:
        raise UsageError("no corpus is named", help="name a folder or files")
    kinds = _Kinds()
    is_one = len(named) == 1
    files: dict[str, SourceFile] = {}
    n_other = n_outside = 0
    for each in map(str, named):
        if _ADDRESS.match(each):
            raise UsageError(
                f"'{each}' is an address, and a corpus is files",
                help="fetch it first, as with curl -sLO ADDRESS",
            )
        path = Path(each)
        if os.path.isdir(each):  # noqa: PTH112 - False where a NUL is in the name
            inside, others, outside = _in_folder(each, kinds)
            n_other += others
            n_outside += outside
            if not inside:
                raise _nothing_in(each, others, outside, kinds)
            for file in inside:
                label = os.path.relpath(file, each) if is_one else file
                files.setdefault(file, kinds.source(file, label))
        elif glob.has_magic(each) and not _is_there(each):
            matching = sorted(f for f in glob.glob(each, recursive=True) if Path(f).is_file())  # noqa: PTH207 - also of absolute patterns
            if not matching:
                raise DataError("no file matches", path=each, help="check the pattern")
            for file in matching:
                files.setdefault(file, kinds.source(file, file))
        else:
            files.setdefault(each, kinds.source(each, path.name if is_one else each))
            if not _is_there(each):
                raise DataError("there is no such file or folder", path=each, help="check the path")
    only = next(iter(files.values()))
    if is_one and len(files) == 1 and not Path(str(named[0])).is_dir():
        files = {only.path: replace(only, is_alone=True)}
    return CorpusFiles(tuple(files.values()), n_other, n_outside)


class _Kinds:
    """Which source reads which file."""

    def __init__(self) -> None:
        sources = {name: plugins.load(_SOURCES, name) for name in plugins.names(_SOURCES)}
        self._by_suffix = {s: name for name, source in sources.items() for s in source.suffixes()}
        self.in_folders = frozenset(s for source in sources.values() for s in source.in_folders())

    def source(self, path: str, label: str) -> SourceFile:
        """A file with its source; other files than known ones may be text under another name."""
        # Names that are not UTF-8 have lone surrogates, and names stand in texts.
        shown = label.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return SourceFile(path, shown, self._by_suffix.get(_suffix(path), "document"))


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()  # noqa: PTH122 - of thousands of files


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _in_folder(folder: str, kinds: _Kinds) -> tuple[list[str], int, int]:
    """The files of a folder that are read, by their paths, the number of others and of links outside."""
    taken: list[str] = []
    others = outside = 0
    for entry in _walk(folder):
        if entry.is_symlink() and not is_inside(entry.path, folder):
            outside += 1
        elif entry.is_dir(follow_symlinks=False) or _suffix(entry.path) in kinds.in_folders:
            taken.append(entry.path)
        else:
            others += 1
    return taken, others, outside


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """All files that are not hidden, and folders in it that cannot be read: reading them says why.

    Links to folders are not followed: they may go in a circle.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(
            f"the folder cannot be read: {error.strerror}", path=folder, help="check its rights"
        ) from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            try:
                yield from _walk(entry.path)
            except DataError:
                yield entry
        elif entry.is_file():
            yield entry


def _nothing_in(folder: str, others: int, outside: int, kinds: _Kinds) -> DataError:
    counts = ((others, "of other kinds"), (outside, "outside of it that links lead to"))
    what = " and ".join(f"{n:,} file{'s' * (n > 1)} {which}" for n, which in counts if n)
    told = f"there is no document in the folder: {f'it has {what}' if what else 'it is empty'}"
    return DataError(
        told, path=folder, help=f"documents are called {', '.join(sorted(kinds.in_folders))}"
    )
