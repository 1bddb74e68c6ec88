"""An index in a folder: one file of arrays, with its digest, replaced by a rename, so that readers need no lock; and files of vectors."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import struct
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pearl.documents.digest import digest
from pearl.plugins.files import make_private
from pearl.plugins.persistence import WriteLock, sync_folder
from pearl.retrieval.index.contents import Arrays, Contents, ContentsBuilder
from pearl.retrieval.postings import flat

FORMAT = 4  # Version of the file; an index of another version is rebuilt

LOCK_PATIENCE_S = 600.0  # Seconds to wait for another process that updates the index

_MARK = b"PEARLIX3"
_PREAMBLE = struct.Struct("<8s16sI")  # mark, digest of all that follows it, length of the header
_DIGESTED = 24  # where that begins
_ALIGNED = 64

Stamp = tuple[int, ...]
"""Size, time of the last change of the contents, and of the file's entry, in nanoseconds."""


class DamagedError(Exception):
    """An index cannot be used and has to be rebuilt; the message says why."""


def write_arrays(path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file and put it in its place, on the disk."""
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    described = [[name, array.dtype.str, array.shape] for name, array in plain.items()]
    header = json.dumps({"about": about, "arrays": described}).encode()
    parts: list[bytes | memoryview] = [header, bytes(-(_PREAMBLE.size + len(header)) % _ALIGNED)]
    for array in plain.values():
        parts += [array.reshape(-1).view(np.uint8).data, bytes(-array.nbytes % _ALIGNED)]
    sum_ = hashlib.blake2b(struct.pack("<I", len(header)), digest_size=16)
    for part in parts:
        sum_.update(part)
    # Only the user may read a temporary file, which suits the texts of documents.
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
    """Note that a file is whole, as long as it has these times, which no program can set, so that its digest need not be compared."""
    with suppress(OSError):  # where it cannot be written, the digest is compared each time
        seal = path.with_suffix(".seal")
        seal.touch(0o600)
        seal.write_bytes(_stamp(found))


def _is_sealed(path: Path, found: os.stat_result) -> bool:
    try:
        return path.with_suffix(".seal").read_bytes() == _stamp(found)
    except OSError:
        return False


def _stamp(found: os.stat_result) -> bytes:
    times = f"{found.st_mtime_ns} {found.st_ctime_ns}"
    return f"{found.st_ino} {found.st_size} {times}".encode()


def read_arrays(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Map a file into memory: its header and its arrays."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            data: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if os.name == "nt":  # Windows replaces no file that is mapped
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


@dataclass(frozen=True, slots=True)
class Record:
    """A file of the corpus as it was read."""

    label: str
    stamp: Stamp
    n_documents: int
    n_left_out: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """An index at one moment. The documents are in the order of the records of their files."""

    contents: Contents = field(default_factory=lambda: ContentsBuilder().finish("none"))
    records: tuple[Record, ...] = ()


class IndexFolder:
    """The folder of an index."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self.path = path
        self._key = {"format": FORMAT, **key}
        self._file = path / "index.bin"

    def lock(self) -> WriteLock:
        """The lock of writers; makes the folder."""
        make_private(self.path)
        return WriteLock(self.path / "lock", "name a local disk with --at", LOCK_PATIENCE_S)

    def read(self) -> State | None:
        """The stored state, if any."""
        try:
            about, arrays = read_arrays(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if about["key"] != self._key:
            raise DamagedError(
                "it was built by another version, with other settings or from other files"
            )
        records = tuple(
            Record(label, tuple(stamp), n_documents, n_left_out, tuple(problems))
            for label, stamp, n_documents, n_left_out, problems in json.loads(
                arrays.pop("records").tobytes()
            )
        )
        return State(Contents.of_arrays(arrays, about["field_names"]), records)

    def write(self, state: State) -> State:
        """Store a state; returns it mapped from the file. The caller holds the lock."""
        about = {"key": self._key, "field_names": state.contents.field_names}
        rows = json.dumps([astuple(record) for record in state.records]).encode()
        arrays = {"records": np.frombuffer(rows, np.uint8)}
        write_arrays(self._file, about, flat(state.contents) | arrays)
        self.remove_vectors(except_of=state.contents.id)
        for path in self.path.glob("*.new"):  # of writers that were killed
            path.unlink(missing_ok=True)
        written = self.read()
        assert written is not None
        return written

    def remove_vectors(self, except_of: str = "-") -> None:
        """Remove all vectors, except those of the contents with an id."""
        for path in self.path.glob("vectors-*.*"):
            if not path.stem.endswith(except_of):
                path.unlink(missing_ok=True)

    def spilled(self, contents: Contents) -> Contents:
        """Contents moved from memory into a mapped file that has no name any more."""
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
        """The stored vectors of an embedder; None if the file is missing, damaged or of others."""
        try:
            about, arrays = read_arrays(self._vectors(name, contents))
        except (FileNotFoundError, DamagedError):
            return None
        return arrays["vectors"] if about == _about(name, contents) else None

    def _vectors(self, name: str, contents: Contents) -> Path:
        return self.path / f"vectors-{digest([name]).hex()[:16]}-{contents.id}.bin"


def _about(name: str, contents: Contents) -> dict[str, Any]:
    return {"embedder": name, "contents": contents.id}
