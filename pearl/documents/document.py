r"""Read a file, standard input or a string as a `Document`.

Content takes precedence over the suffix: a PDF called `notes.txt` is read as a PDF.

Invariant: a document's text is never blank, has no lone surrogates, and `"\n"` is its only line
break and, with the tab, its only control character. Nothing else is altered, because the spans of
an answer refer to exactly this text.
"""

from __future__ import annotations

import math
import os
import re
import stat
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from pearl import plugins
from pearl.documents.digest import digest, text_sha256
from pearl.documents.readers import reading
from pearl.errors import DataError, Span, UsageError
from pearl.errors.callers import ShownInNotebooks

if TYPE_CHECKING:
    from zipfile import ZipFile

DocumentKind = Literal["document", "corpus", "table"]
"""A text, several documents whose passages are searched, or rows with columns."""

KINDS: tuple[DocumentKind, ...] = get_args(DocumentKind)

ROW_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
"""Suffixes of files that are read row by row."""
_RECORDS = ROW_SUFFIXES[:-1]  # suffixes of texts that are mostly tables
_HEAD = 20_000  # characters searched for the first records


def suffix_of(name: str) -> str:
    """The suffix of a name in small letters, with the dot."""
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - of thousands of files, and a Path takes ten times as long


def kind_by_name(name: str) -> DocumentKind:
    """Guess the kind of a file from its name."""
    suffix = suffix_of(name)
    reader = _readers_by_suffix().get(suffix)
    is_table = suffix in ROW_SUFFIXES or (reader is not None and _has(reader, "IS_TABLE"))
    return "table" if is_table else "document"


def is_table(text: str, path: str) -> bool:
    """Whether a file is a table: its suffix suggests it, and its first lines are records."""
    suffix = suffix_of(path)
    if suffix not in _RECORDS:
        return False
    # imported on use: most documents are not tables
    from pearl.documents.units.record import json_lists, split

    if suffix == ".json" and json_lists(text):
        return True
    head = text[:_HEAD]
    if len(text) > _HEAD and "\n" in head:
        head = head[: head.rindex("\n")]
    try:
        return len(split(head)) > (suffix == ".json")  # a single object is not a table
    except ValueError:
        return False


READERS = "pearl.documents.readers"

DEFAULT_LIMIT_MB = 64
"""Maximum size of a document and of its text in megabytes (10^6 bytes); PEARL_MAX_DOCUMENT_MB
overrides."""

DEFAULT_READER_MB = 1000
"""Memory limit of a reader in megabytes; PEARL_MAX_READER_MB overrides. 30 MB of plain HTML take
300."""

DEFAULT_READER_SECONDS = 120
"""CPU time limit of a reader in seconds; PEARL_MAX_READER_SECONDS overrides. 30 MB of plain HTML
and a PDF of 3,000 pages take 8."""

LOW_OCR = 0.5  # Mean confidence of words below which a page that was read by OCR is hardly legible

AT_ONCE = 20_000
"""Bytes, or characters, up to which work on a text runs inline; a thread would cost more."""

_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n"))
_BLANKED = dict.fromkeys(_CONTROLS, " ")
_BLANKED_BYTES = bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS))
_PIECE = 1_000_000  # characters to clean at once


@dataclass(frozen=True, repr=False)
class Document(ShownInNotebooks):
    """One document: its text and its origin.

    Attributes:
        text: The text that models read and users see; never empty, no lone surrogates.
        name: Its name in messages and results: the path as given, `<stdin>`, a row id.
    """

    text: str
    name: str = "document"
    parts: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """For joined files: the name and the start offset of each in `text`."""
    pages: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """For files with pages: the number and the start offset of each in `text`."""
    metadata: tuple[Mapping[str, str], ...] = field(default=(), repr=False, compare=False)
    """For a corpus: the metadata of its documents, in the order of `parts`."""
    kind: DocumentKind = field(default="document", repr=False, compare=False)
    """What the document is to the planner."""
    ocr: tuple[tuple[int, int, float], ...] = field(default=(), repr=False, compare=False)
    """For pages read by OCR: the start and the end of each in `text`, and the mean confidence of its words."""
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Notices about reading it, one line each."""
    sources: tuple[Source, ...] = field(default=(), repr=False, compare=False)
    """The documents that it joins under names of their own, in their order; none for any other."""

    def __repr__(self) -> str:
        """Short, because notebooks display the result of `load`."""
        return f"Document({self.name!r}, {len(self.text):,} characters)"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return text_sha256(self.text)

    def locate(self, start: int) -> tuple[str, int]:
        """Map an offset of the text to a file and an offset within that file."""
        name, begin = self.name, 0
        for part, at in self.parts:
            if at > start:
                break
            name, begin = part, at
        return name, start - begin

    def page_at(self, start: int) -> int | None:
        """The number of the page, within its file, that an offset of the text is on."""
        begin = start - self.locate(start)[1]
        at = bisect_right(self.pages, start, key=itemgetter(1)) - 1
        return int(self.pages[at][0]) if at >= 0 and self.pages[at][1] >= begin else None

    def ocr_at(self, span: Span) -> float | None:
        """The lowest OCR confidence of the pages at a span; None for text that OCR did not read."""
        return min((c for start, end, c in self.ocr if start < span.end and span.start < end), default=None)  # fmt: skip


class Source(NamedTuple):
    """A named document that plans use like `CTX`, and its start in the joined text."""

    name: str
    document: Document
    about: str = ""  # What it is, for the planner, which sees none of its text
    start: int = 0


def load(path: str | Path, *, name: str | None = None, **options: Any) -> Document:
    """Read one file as a document.

    Args:
        path: The file; `-` reads standard input.
        name: Name of the document; the path as given (`<stdin>`) if None.
        options: Fields of `pearl.documents.readers.ReaderOptions`, such as `ocr="force"`.

    Raises:
        DataError: The file is missing, unreadable, too large, binary, damaged or blank.
        UsageError: A limit in the environment is not a number above 0.
    """
    source = str(path)
    data = read_bytes(source, _label(source))
    with reading(options):
        return from_bytes(data, source, name=name)


def from_bytes(data: bytes, path: str | Path, *, name: str | None = None) -> Document:
    """Make a document of the bytes of a file, as `load` does."""
    source, label = str(path), _label(str(path))
    reader = _reader_of(data, source)
    return _document(read_as(reader, data, label), name or label, source, reader)


def _label(source: str) -> str:
    return "<stdin>" if source == "-" else source


def load_at_once(path: str | Path, *, name: str | None = None, **_: Any) -> Document | None:
    """Like `load` for a small plain-text file; None for other files, which may take longer."""
    source = str(path)
    try:
        found = os.stat(source)  # noqa: PTH116 - of thousands of files, and a Path takes ten times as long
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > AT_ONCE:
        return None
    data = read_bytes(source, source)
    reader = _reader_of(data, source)
    if not _has(reader, "IS_BOUNDED"):
        return None
    return _document(read_as(reader, data, source), name or source, source, reader)


def read_as(reader: str, data: bytes, path: str, function: str = "read", **arguments: Any) -> str:
    """Extract the text of bytes with a reader plug-in, or call another function of it, within limits of time, memory and text."""
    if _has(reader, "IS_BOUNDED"):
        try:
            text: str = _readers()[reader].read(data, path)
        except (DataError, MemoryError):
            raise
        except Exception as error:
            from pearl.documents.readers import damaged

            raise damaged(error, path) from error
        return text
    from pearl.documents import confinement  # imported on use: most commands start no child process

    limits = confinement.ReaderLimits(
        seconds=math.ceil(_from_environment("PEARL_MAX_READER_SECONDS", DEFAULT_READER_SECONDS)),
        memory_bytes=int(_from_environment("PEARL_MAX_READER_MB", DEFAULT_READER_MB) * 1_000_000),
        text_bytes=limit_bytes(),
    )
    return confinement.read(READERS, reader, data, path, limits, function, arguments)


def from_text(text: str, name: str = "document") -> Document:
    """Make a document of a string; form feeds in it end pages."""
    return _document(text, name, name)


def _document(text: str, name: str, path: str, reader: str | None = None) -> Document:
    """Make a document of a reader's text; messages name the file by `path`."""
    confidences: Mapping[int, float] = getattr(text, "ocr", {})
    notes: tuple[str, ...] = getattr(text, "notes", ())
    if "\r" in text:  # twice: some files have "\r\r\n"
        text = text.replace("\r\n", "\n").replace("\r\n", "\n")
    feeds = [match.end() for match in re.finditer("\f", text)] if "\f" in text else []
    has_pages = feeds or (reader is not None and _has(reader, "HAS_PAGES"))
    pages = tuple((str(n), start) for n, start in enumerate([0, *feeds], 1)) if has_pages else ()
    text = _clean(text, _label(path))
    reads_tables = reader is not None and _has(reader, "IS_TABLE")
    is_tabular = "\n| ---" in text if reads_tables else is_table(text, path)
    kind: DocumentKind = "table" if is_tabular else "document"
    if low := [page for page, mean in confidences.items() if mean < LOW_OCR]:
        notes = (*notes, f"{page_ranges(low)}: hardly legible to OCR (confidence below {LOW_OCR})")
    borders = [0, *feeds, len(text)]
    ocr = tuple((borders[n - 1], borders[n], mean) for n, mean in confidences.items())
    return Document(text, name, pages=pages, kind=kind, ocr=ocr, notes=notes)


def page_ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers of pages as text: `pages 3, 7-9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    shown = ", ".join("-".join(map(str, run)) for run in runs)
    return f"page{'s' * (len(runs) != 1 or len(runs[0]) > 1)} {shown}"


def join(
    documents: Iterable[Document], name: str = "documents", *, is_flat: bool = False
) -> Document:
    """Concatenate documents, each under a heading with its name. If `is_flat`, joined files keep their headings. Tables make a table."""
    pieces: list[str] = []
    parts: list[tuple[str, int]] = []
    pages: list[tuple[str, int]] = []
    ocr: list[tuple[int, int, float]] = []
    notes: dict[str, None] = {}
    kinds: set[DocumentKind] = set()
    at = 0
    for document in documents:
        kinds.add(document.kind)
        own = [] if is_flat and document.parts else [document.name]
        title = heading(*own) if own else "\n\n"
        title = title if pieces else title.lstrip("\n")
        at += len(title)
        parts += [(part, at) for part in own]
        parts += [(part, at + start) for part, start in document.parts]
        pages += [(page, at + start) for page, start in document.pages]
        ocr += [(at + start, at + end, mean) for start, end, mean in document.ocr]
        notes |= dict.fromkeys(f"{document.name}: {note}" for note in document.notes)
        at += len(document.text)
        pieces += [title, document.text]
    if not pieces:
        raise DataError("no document to join", path=name, help="name at least one file")
    kind: DocumentKind = "table" if kinds == {"table"} else "document"
    shown, left_out = list(notes)[:_MAX_NOTES], len(notes) - _MAX_NOTES
    more = f"{left_out:,} more notes about files: ask about one file to see its own"
    return Document(
        "".join(pieces), name, tuple(parts), tuple(pages),
        kind=kind, ocr=tuple(ocr), notes=(*shown, *([more] if left_out > 0 else [])),
    )  # fmt: skip


_MAX_NOTES = 20  # an answer over thousands of files would consist of notes


def heading(name: str) -> str:
    """The heading of a joined document, on one line, with the blank lines around it."""
    return f"\n\n# {' '.join(name.split())}\n\n"


def part_spans(text: str, parts: Sequence[tuple[str, int]]) -> list[tuple[str, Span]]:
    """The span of each joined file, without the heading of the next one."""
    spans: list[tuple[str, Span]] = []
    for (name, start), (following, end) in pairwise([*parts, ("", len(text))]):
        title = heading(following) if following else ""
        begin = end - len(title)
        if title and begin >= start and text.startswith(title, begin):
            end = begin
        spans.append((name, Span(start, end)))
    return spans


def limit_bytes() -> int:
    """Maximum size of a document in bytes."""
    return int(_from_environment("PEARL_MAX_DOCUMENT_MB", DEFAULT_LIMIT_MB) * 1_000_000)


def check_size(n_bytes: int, what: str, path: str, advice: str, limit: int | None = None) -> None:
    """Refuse a text or an archive that is larger than the limit of documents, which the caller may know."""
    limit = limit_bytes() if limit is None else limit
    if n_bytes > limit:
        raise DataError(
            f"the {what} than the limit of {limit / 1_000_000:g} MB",
            path=path,
            help=f"{advice}, or set PEARL_MAX_DOCUMENT_MB to a larger number",
        )


def check_archive(archive: ZipFile, path: str) -> None:
    """Refuse a truncated archive, or one whose unpacked files exceed the limit of documents, before it is unpacked."""
    starts = [part.header_offset for part in archive.infolist()]
    assert archive.fp is not None
    n_bytes = archive.fp.seek(0, os.SEEK_END)
    archive.fp.seek(max(0, n_bytes - _MAX_LAST_RECORD))
    tail = archive.fp.read()
    at = tail.rfind(b"PK\x05\x06") + 16
    # Where the directory begins, as the last record says; not so in archives of more than 4 GB.
    if all(starts) and archive.start_dir != int.from_bytes(tail[at : at + 4], "little"):
        raise DataError("the file is truncated", path=path, help="copy or download it again")
    n_bytes = sum(part.file_size for part in archive.infolist())
    check_size(n_bytes, "file unpacks to more", path, "remove pictures")


_MAX_LAST_RECORD = 22 + 65_535  # bytes, with a comment


def _from_environment(name: str, default: int) -> float:
    """A limit in megabytes or seconds from an environment variable."""
    given = os.environ.get(name, "").strip()
    try:
        value = float(given or default)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        unit = "seconds" if name.endswith("SECONDS") else "megabytes"
        raise UsageError(
            f"{name}={given}: not a number of {unit}",
            help=f"set a number above 0, or unset it for {default}",
        )
    return value


@cache
def _readers() -> dict[str, Any]:
    return {name: plugins.load(READERS, name) for name in plugins.names(READERS)}


@cache
def _readers_by_suffix() -> dict[str, str]:
    """Map each suffix to the first reader that has it."""
    named = reversed(_readers().items())
    return {suffix: name for name, reader in named for suffix in reader.SUFFIXES}


def document_suffixes() -> set[str]:
    """The suffixes of all readers."""
    return {*_readers_by_suffix()}


@cache
def readers_sha256() -> str:
    """A digest that is different for installations with different readers."""
    return digest(plugins.identity(READERS)).hex()


@cache
def _recognisers() -> dict[str, tuple[Any, Callable[[bytes], bool] | None]]:
    """The first bytes of the files of each reader, and the test of them."""
    found = {}
    for name, reader in _readers().items():
        recognises = getattr(reader, "recognises", None)
        found[name] = getattr(reader, "BEGINS", b"" if recognises else ()), recognises
    return found


def _has(reader: str, name: str) -> bool:
    return getattr(_readers()[reader], name, False)


def _reader_of(data: bytes, source: str) -> str:
    """A reader that recognises the bytes, if possible the one for the suffix; else that one, else that for plain text."""
    if not data:
        raise DataError(
            "the file is empty", path=_label(source), help="give a document with text in it"
        )
    begin, by_name = data.lstrip(), _readers_by_suffix().get(suffix_of(source), "text")
    # Several kinds of files may begin alike: then the name decides.
    for name in (by_name, *_recognisers()):
        begins, recognises = _recognisers()[name]
        if begin.startswith(begins) and (recognises is None or recognises(data)):
            return name
    return by_name


def read_bytes(source: str, label: str) -> bytes:
    """All bytes of a file, or of standard input for `-`."""
    if "\0" in source:
        raise DataError("no such file", path=repr(source), help="check the path")
    limit = limit_bytes()
    try:
        if source == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with open(source, "rb") as file:  # noqa: PTH123 - as above: of thousands of files
                size = os.fstat(file.fileno()).st_size
                check_size(size, "file is larger", label, "split it", limit)
                # The size of a pipe or a device is not known in advance.
                data = file.read(limit + 1)
    except OSError as error:
        message, help = _FAILURES.get(
            type(error), (f"the file cannot be read: {error.strerror}", "check the path")
        )
        raise DataError(message, path=label, help=help) from error
    check_size(len(data), "file is larger", label, "split it", limit)
    return data


_FAILURES: Mapping[type[OSError], tuple[str, str]] = {
    FileNotFoundError: ("no such file", "check the path"),
    IsADirectoryError: ("is a folder, not a file", "name the files in it"),
    PermissionError: ("the file may not be read", "check its permissions"),
}


def _clean(text: str, path: str) -> str:
    """Replace control characters by blanks or line breaks; raise a `DataError` for a text that is blank or not valid Unicode."""
    has_controls = False
    try:
        for start in range(0, len(text), _PIECE):  # not all at once: a copy takes as much memory
            data = text[start : start + _PIECE].encode()
            # Twenty times as fast as a search, and twice as fast as leaving them out.
            has_controls |= data.translate(_BLANKED_BYTES) != data
    except UnicodeEncodeError as error:
        at = start + error.start
        raise DataError(
            f"character {at} is a lone surrogate (U+{ord(text[at]):04X}), not text",
            path=path,
            help="remove it, or decode the source again: it was truncated or decoded wrongly",
        ) from None
    if has_controls:
        text = text.replace("\r", "\n").replace("\f", "\n")
        text = text.translate(_BLANKED)
    if not text or text.isspace():
        raise DataError("the document has no text", path=path, help="give one with text in it")
    return text


def file_source(path: str | Path) -> str:
    """A file's identity without reading it: path, size and modification time."""
    try:
        found = os.stat(path)  # noqa: PTH116 - of thousands of files, and a Path takes ten times as long
        place = os.path.realpath(path)
    except (OSError, ValueError):  # ValueError: NUL in the path
        return ""
    return f"{place} {found.st_size} {found.st_mtime_ns}"
