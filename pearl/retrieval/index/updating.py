"""Open the index of a corpus: read it from its folder and update it by file stamps and document digests, or build it."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import struct
import tempfile
import time
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pearl.documents.digest import digest
from pearl.documents.document import readers_sha256
from pearl.documents.passages import Stem, analyzer
from pearl.documents.readers import OPTIONS
from pearl.errors import DataError, StoreError
from pearl.errors.privacy import is_private
from pearl.plugins.files import content_cache, make_private
from pearl.plugins.persistence import WriteLock, sync_folder
from pearl.plugins.version import __version__
from pearl.retrieval.corpus import (
    DIGEST,
    CorpusFiles,
    Cutting,
    New,
    SourceFile,
    cut,
    find_files,
    read_source,
)
from pearl.retrieval.index.contents import Arrays, Contents, ContentsBuilder, arranged
from pearl.retrieval.postings import flat

FORMAT = 5  # Version of the file; an index of another version is rebuilt

LOCK_PATIENCE_S = 600.0  # Seconds to wait for another process that updates the index

_MARK = b"PEARLIX3"
_PREAMBLE = struct.Struct("<8s16sI")  # Magic number, digest of the rest, header length
_DIGESTED = 24  # Offset at which the digested part begins
_ALIGNED = 64  # Bytes to which arrays are aligned in the file: a cache line

Stamp = tuple[int, ...]
"""Size, modification time and metadata-change time of a file, in nanoseconds."""


class DamagedError(Exception):
    """The index cannot be used and must be rebuilt; the message says why."""


def write_arrays(path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file durably and move it to its final name."""
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    described = [[name, array.dtype.str, array.shape] for name, array in plain.items()]
    header = json.dumps({"about": about, "arrays": described}).encode()
    parts: list[bytes | memoryview] = [header, bytes(-(_PREAMBLE.size + len(header)) % _ALIGNED)]
    for values in plain.values():
        parts += [values.reshape(-1).view(np.uint8).data, bytes(-values.nbytes % _ALIGNED)]
    sum_ = hashlib.blake2b(struct.pack("<I", len(header)), digest_size=16)
    for part in parts:
        sum_.update(part)
    # Temporary files are readable by the user only, which suits the texts of documents.
    file, new = tempfile.mkstemp(suffix=".new", dir=path.parent)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(_PREAMBLE.pack(_MARK, sum_.digest(), len(header)))
            opened.writelines(parts)
            opened.flush()
            os.fsync(opened.fileno())
        Path(new).replace(path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
    _seal(path, path.stat())
    sync_folder(path.parent)


def _seal(path: Path, found: os.stat_result) -> None:
    """Record the times of a verified file, which no program can set, so that its digest is not checked next time."""
    with suppress(OSError):  # If it cannot be written, the digest is checked each time
        seal = path.with_suffix(".seal")
        seal.touch(0o600)
        seal.write_bytes(_times(found))


def _is_sealed(path: Path, found: os.stat_result) -> bool:
    try:
        return path.with_suffix(".seal").read_bytes() == _times(found)
    except OSError:
        return False


def _times(found: os.stat_result) -> bytes:
    times = f"{found.st_mtime_ns} {found.st_ctime_ns}"
    return f"{found.st_ino} {found.st_size} {times}".encode()


def read_arrays(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Map a file into memory; return its header and arrays."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            data: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if os.name == "nt":  # Windows cannot replace a mapped file
                data = data[:]
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise DamagedError(f"{path.name} cannot be read: {error}") from None
    if len(data) < _PREAMBLE.size or data[: len(_MARK)] != _MARK:
        raise DamagedError(f"{path.name} is damaged or of another version")
    _, told, length = _PREAMBLE.unpack_from(data)
    whole = np.frombuffer(data, np.uint8)
    body = whole[_PREAMBLE.size :]
    if not _is_sealed(path, found):
        if hashlib.blake2b(whole[_DIGESTED:].data, digest_size=16).digest() != told:
            raise DamagedError(f"{path.name} is damaged")
        _seal(path, found)
    header = json.loads(body[:length].tobytes())
    arrays: Arrays = {}
    offset = _PREAMBLE.size + length
    for name, kind, shape in header["arrays"]:
        offset += -offset % _ALIGNED
        end = offset + math.prod(shape) * np.dtype(kind).itemsize
        arrays[name] = whole[offset:end].view(kind).reshape(shape)
        offset = end
    return header["about"], arrays


class Record(Struct, frozen=True, array_like=True):
    """A file of the corpus at the time it was read."""

    label: str
    stamp: Stamp
    n_documents: int
    n_left_out: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """An index at one time. The documents are in the order of the records of their files."""

    contents: Contents = field(default_factory=lambda: ContentsBuilder("none").finish())
    records: tuple[Record, ...] = ()


class IndexFolder:
    """The folder of an index."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self.path = path
        self._key = {"format": FORMAT, **key}
        self._file = path / "index.bin"

    def lock(self) -> WriteLock:
        """The lock of writers; creates the folder."""
        make_private(self.path)
        return WriteLock(self.path / "lock", "name a local disk with --at", LOCK_PATIENCE_S)

    def read(self) -> State | None:
        """The stored state; None if there is none."""
        try:
            about, arrays = read_arrays(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if about["key"] != self._key:
            raise DamagedError(
                "it was built by another version, with other readers or settings, or from other files"
            )
        records = msgspec.json.decode(arrays.pop("records").tobytes(), type=tuple[Record, ...])
        return State(Contents.of_arrays(arrays, about["field_names"]), records)

    def write(self, state: State) -> State:
        """Store a state; return it mapped from the file. The caller holds the lock."""
        about = {"key": self._key, "field_names": state.contents.field_names}
        arrays = {"records": np.frombuffer(msgspec.json.encode(state.records), np.uint8)}
        write_arrays(self._file, about, flat(state.contents) | arrays)
        self.remove_vectors(except_of=state.contents.id)
        for path in self.path.glob("*.new"):  # Left by killed writers
            path.unlink(missing_ok=True)
        written = self.read()
        assert written is not None
        return written

    def remove_vectors(self, except_of: str = "-") -> None:
        """Remove all vectors, except those of the contents with this id."""
        for path in self.path.glob("vectors-*.*"):
            if not path.stem.endswith(except_of):
                path.unlink(missing_ok=True)

    def spilled(self, contents: Contents) -> Contents:
        """Move contents from memory into a mapped file without a name."""
        path = self.path / "part.new"
        write_arrays(path, {}, flat(contents))
        _, arrays = read_arrays(path)
        path.unlink()
        path.with_suffix(".seal").unlink(missing_ok=True)
        return Contents.of_arrays(arrays, contents.field_names)

    def write_vectors(self, name: str, contents: Contents, vectors: NDArray[np.float32]) -> None:
        """Store the vectors of an embedder."""
        write_arrays(self._vectors(name, contents), _about(name, contents), {"vectors": vectors})

    def read_vectors(self, name: str, contents: Contents) -> NDArray[np.float32] | None:
        """The stored vectors of an embedder; None if the file is missing, damaged or belongs to other contents."""
        try:
            about, arrays = read_arrays(self._vectors(name, contents))
        except (FileNotFoundError, DamagedError):
            return None
        return arrays["vectors"] if about == _about(name, contents) else None

    def _vectors(self, name: str, contents: Contents) -> Path:
        return self.path / f"vectors-{digest([name]).hex()[:16]}-{contents.id}.bin"


def _about(name: str, contents: Contents) -> dict[str, Any]:
    return {"embedder": name, "contents": contents.id}


MAX_BYTES = 64_000_000  # Bytes of new texts that are kept in memory while an index is built

SURE_NS = 2_000_000_000
"""Minimum age of a file at which every change gives it a new stamp: coarse clocks tick every two seconds."""

MAX_PROBLEMS = 5  # Reasons that are kept per file

_PROBE = (
    "The children's cafés kept 1,200 keys; geese ran easily, naïve co-ops don't. 東京都 U.S.A. "
    "re\u0301sume\u0301 co\u00adop"
)

_UNSURE: Stamp = (0, 0, 0)
"""The stamp of a file that might change without a new stamp; it is read again next time."""

_REPORTED_EVERY = 256  # Documents between two reports of progress

IndexProgress = Callable[[int, int, int], None]
"""Called with the number of files done, of all files, and of documents so far."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Counts of documents that an update added, changed or removed."""

    n_new: int = 0
    n_changed: int = 0
    n_removed: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """An index that was opened."""

    state: State
    folder: IndexFolder
    changes: Changes
    n_other: int
    seconds: float
    reports: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, one sentence each."""
        n = self.n_left_out
        if not n:
            return self.reports
        told = "1 document is left out" if n == 1 else f"{n:,} documents are left out; the first"
        return (*self.reports, f"{told}: {self.problems[0]}")

    @property
    def n_left_out(self) -> int:
        """Number of documents that cannot be read."""
        return sum(record.n_left_out for record in self.state.records)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why documents were left out: the first reasons of each file."""
        return tuple(reason for record in self.state.records for reason in record.problems)


def open_state(
    named: Sequence[str | Path],
    cutting: Cutting,
    stem: Stem,
    *,
    at: str | Path | None = None,
    is_fresh: bool = False,
    with_update: bool = True,
    progress: IndexProgress | None = None,
    without: Collection[Path] = frozenset(),
) -> Opened:
    """Open the index of a corpus; arguments and errors as for `pearl.retrieval.index.Index.open`."""
    began = time.monotonic()
    found = find_files(named, without)
    notes = list(found.notes)
    folder = _place(named, cutting, stem, at)
    state = None if is_fresh or folder is None else _read(folder, notes)
    n_changed = 0 if state is None else _n_changed_files(state, found)
    changes = Changes()

    def update(into: IndexFolder, before: State | None) -> tuple[State, Changes]:
        return _Update(into, before or State(), cutting, stem).run(found, progress)

    if folder is not None and state is not None and not (n_changed and with_update):
        if n_changed:
            notes.append(f"{n_changed:,} file{'s' * (n_changed > 1)} may have changed since")
    elif folder is not None and (lock := _locked(folder, notes)):
        with _writing(folder, lock):
            if is_fresh:
                folder.remove_vectors()
            state, changes = update(folder, None if is_fresh else _read(folder, notes))
    else:
        if folder is None:
            notes.append("the index has no folder: it is built again each time")
        # Mapped files remain usable after removal. In a private run, they are in memory if the
        # system allows it.
        place = "/dev/shm" if is_private() and os.access("/dev/shm", os.W_OK) else None
        with TemporaryDirectory(prefix="pearl-index-", dir=place) as name:
            folder = IndexFolder(Path(name), {})
            state, changes = update(folder, None)
    seconds = time.monotonic() - began
    return Opened(state, folder, changes, found.n_other, seconds, tuple(dict.fromkeys(notes)))


def _locked(folder: IndexFolder, notes: list[str]) -> WriteLock | None:
    """The lock of writers; None if the folder is read-only."""
    try:
        return folder.lock()
    except OSError:
        notes.append(f"{folder.path} cannot be written to: the index is built again each time")
        return None


@contextmanager
def _writing(folder: IndexFolder, lock: WriteLock) -> Iterator[None]:
    """Hold the lock; report errors of writing."""
    try:
        with lock.held():
            yield
    except OSError as error:
        raise StoreError(
            f"the index cannot be written: {error.strerror}",
            path=folder.path,
            help="free disk space, or name another folder with --at",
        ) from None
    finally:
        lock.close()


def _read(folder: IndexFolder, notes: list[str]) -> State | None:
    try:
        return folder.read()
    except DamagedError as error:
        notes.append(f"{folder.path}: the index is built again: {error}")
        return None


def _place(
    named: Sequence[str | Path], cutting: Cutting, stem: Stem, at: str | Path | None
) -> IndexFolder | None:
    """The folder of the index; None if the user has no cache folder."""
    corpus = [os.path.realpath(name) for name in named]
    has_ocr = which("tesseract") is not None and find_spec("pytesseract") is not None
    way = {
        "unit": cutting.unit, "size": cutting.size, "overlap": cutting.overlap, "stem": stem,
        "read": f"{OPTIONS.get()}, {has_ocr}, {find_spec('pdfplumber') is not None}",
    }  # fmt: skip
    key = {
        "pearl": __version__,
        "terms": digest(analyzer(stem)(_PROBE)).hex()[:16],
        **way,
        "readers": readers_sha256()[:16],
        "corpus": corpus,
        "named": [str(name) for name in named if len(named) > 1],
    }
    if at is not None:
        return IndexFolder(Path(at) / f"{cutting.name}-{stem}", key)
    # Not next to the corpus: another user's folder could contain an index of other texts.
    id = digest([*corpus, *map(str, way.values())]).hex()[:16]
    cached = content_cache(f"index/{Path(corpus[0]).name}-{id}")
    return None if cached is None else IndexFolder(cached, key)


def stamp_of(path: str | Path) -> Stamp:
    """The stamp of a file, which is different after a change."""
    found = os.stat(path)  # noqa: PTH116 - of thousands of files, and a Path takes ten times as long
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _stamp(file: SourceFile) -> Stamp:
    try:
        stamp = stamp_of(file.path)
    except OSError:
        return _UNSURE  # The error is reported when the file is read
    return stamp if time.time_ns() - max(stamp[1:]) > SURE_NS else _UNSURE


def _is_same(before: Stamp | None, now: Stamp) -> bool:
    return before == now != _UNSURE


def _n_changed_files(state: State, found: CorpusFiles) -> int:
    """The number of files that are new, removed or perhaps changed, judged by their stamps."""
    before = {record.label: record.stamp for record in state.records}
    now = {file.label: _stamp(file) for file in found.files}
    different = sum(not _is_same(before.get(label), stamp) for label, stamp in now.items())
    return different + len(before.keys() - now.keys())


class _Update:
    """An update of an index, file by file. The caller holds the folder's lock."""

    def __init__(self, folder: IndexFolder, state: State, cutting: Cutting, stem: Stem) -> None:
        self._folder, self._state, self._cutting, self._stem = folder, state, cutting, stem
        ends = accumulate(record.n_documents for record in state.records)
        self._before = {
            record.label: (record, range(end - record.n_documents, end))
            for record, end in zip(state.records, ends, strict=True)
        }
        digests = np.ascontiguousarray(state.contents.digests).view(f"V{DIGEST}").ravel().tolist()
        self._known = dict(zip(digests, range(len(digests)), strict=True))
        self._n = len(digests)
        self._parts: list[Contents] = [state.contents]
        self._builder = ContentsBuilder(self._stem)
        # Document numbers so far; they count through the old index, then the new documents.
        self.documents = array("q")
        self.records: list[Record] = []

    def run(self, found: CorpusFiles, progress: IndexProgress | None) -> tuple[State, Changes]:
        """Bring the index up to date."""
        for n_files, file in enumerate(found.files):

            def report(n_files: int = n_files) -> None:
                if progress is not None:
                    progress(n_files, len(found.files), len(self.documents))

            report()
            self._add_file(file, report)
        if self._builder.n_documents:
            self._parts.append(self._builder.finish())
        before, records = self._state, tuple(self.records)
        documents = np.array(self.documents, np.int64)
        if not len(documents) and (n := sum(record.n_left_out for record in records)):
            why = next(reason for record in records for reason in record.problems)
            what = "the document cannot" if n == 1 else f"none of the {n:,} documents can"
            help = "give documents with text in them"
            raise DataError(f"{what} be read; the first: {why}", help=help)
        if np.array_equal(documents, np.arange(before.contents.n_documents)):
            if records == before.records and records:
                return before, Changes()
            return self._folder.write(replace(before, records=records)), Changes()
        changes = _changes(self._parts, documents, records)
        # Vectors of unchanged passages come from the embedder's cache, by content.
        first, *new = self._parts
        is_first_part = not first.n_documents and len(new) == 1
        contents = new[0] if is_first_part else arranged(self._parts, documents)
        return self._folder.write(State(contents, records)), changes

    def _add_file(self, file: SourceFile, report: Callable[[], None]) -> None:
        """Take the documents of an unchanged file from the index; read any other file."""
        stamp = _stamp(file)
        before, documents = self._before.get(file.label, (None, range(0)))
        if before is not None and _is_same(before.stamp, stamp):
            self.records.append(before)
            self.documents.extend(documents)
            return
        n_before, n_left_out = len(self.documents), 0
        problems: list[str] = []
        try:
            for entry in read_source(file, self._known):
                if isinstance(entry, New):
                    self._add(entry)
                    if len(self.documents) % _REPORTED_EVERY == 0:
                        report()
                elif isinstance(entry, DataError):
                    n_left_out += 1
                    if len(problems) < MAX_PROBLEMS:
                        problems.append(entry.message)
                else:
                    self.documents.append(entry)
        except (DataError, OSError) as error:
            n_left_out += 1
            problems.append(
                error.message
                if isinstance(error, DataError)
                else f"{file.label}: cannot be read: {error.strerror}"
            )
        if _stamp(file) != stamp:  # The file was written to meanwhile
            stamp = _UNSURE
        n = len(self.documents) - n_before
        self.records.append(Record(file.label, stamp, n, n_left_out, tuple(problems)))

    def _add(self, new: New) -> None:
        self._builder.add(new.document, cut(new.document, self._cutting), new.digest)
        self.documents.append(self._n)
        self._n += 1
        if self._builder.n_bytes >= MAX_BYTES:
            self._parts.append(self._folder.spilled(self._builder.finish()))
            self._builder = ContentsBuilder(self._stem)


def _changes(
    parts: Sequence[Contents], documents: NDArray[np.int64], records: Sequence[Record]
) -> Changes:
    """Count the changes from the old index to the new documents, whose names must be unique."""
    every = [name for part in parts for name in part.names.every()]
    names = [every[number] for number in documents.tolist()]
    if len(set(names)) < len(names):
        raise _same_names(names, records)
    n_before = parts[0].n_documents
    new = {every[number] for number in documents[documents >= n_before].tolist()}
    gone = np.setdiff1d(np.arange(n_before), documents, assume_unique=True)
    n_both = len(new & {every[number] for number in gone.tolist()})
    return Changes(len(new) - n_both, n_both, len(gone) - n_both)


def _same_names(names: Sequence[bytes], records: Sequence[Record]) -> DataError:
    first: dict[bytes, int] = {}
    second = next(i for i, name in enumerate(names) if first.setdefault(name, i) != i)
    name = names[second]
    files = [record.label for record in records for _ in range(record.n_documents)]
    where = [
        f"{files[i]} (document {i - files.index(files[i]) + 1:,})" for i in (first[name], second)
    ]
    return DataError(
        f"two documents have the same id '{name.decode('utf-8', 'replace')}': {' and '.join(where)}",
        help="give each its own id, or remove the column: line numbers are used then",
    )
