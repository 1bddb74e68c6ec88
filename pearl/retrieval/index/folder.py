"""An index in a folder: segments that are never changed, a catalogue, and a manifest that names them.

Replacing the manifest is the only change that counts, and it is atomic: whatever interrupts a writer,
the next one finds the old state or the new one. Files that no manifest names are removed by the next
writer; who has mapped them goes on reading them. All of it is untrusted input.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pearl.documents.digest import digest
from pearl.plugins.locks import WriteLock
from pearl.retrieval.corpus.sources import DIGEST, Begun
from pearl.retrieval.index.arrays_file import (
    DamagedError,
    Stamp,
    private,
    read_arrays,
    write_arrays,
)
from pearl.retrieval.index.contents import Contents
from pearl.retrieval.index.merging import live_passages, merge_segments
from pearl.retrieval.index.segment import Segment, TextsBuilder
from pearl.retrieval.index.segment_file import read_segment, read_texts, texts_arrays, write_segment

FORMAT = 1
"""Of the files; those of another one are made anew."""

MANIFEST = "manifest.json"

LOCK_PATIENCE_S = 600.0
"""Seconds to wait for another process that makes the index."""

_OWN = re.compile(
    r"(?:segment|catalogue|vectors)-[0-9a-f-]{16,64}\.bin(?:\.new)?|manifest\.json\.new"
)
_SEGMENT = re.compile(r"segment-([0-9a-f]{16})\.bin")
_CATALOGUE = re.compile(r"catalogue-[0-9a-f]{16}\.bin")
_MOST_MANIFEST = 1 << 24
_MOST_READ = 20
"""Times that a manifest is read anew while others replace it."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a file of the corpus."""

    label: str
    stamp: Stamp
    n_documents: int
    n_left_out: int = 0
    problems: tuple[str, ...] = ()
    begun: Begun | None = None


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment and its file."""

    id: str
    stamp: Stamp
    segment: Segment


@dataclass(frozen=True)
class State:
    """An index at one moment."""

    segments: tuple[StoredSegment, ...] = ()
    records: tuple[Record, ...] = ()
    slots: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @cached_property
    def contents(self) -> Contents:
        """What is in it."""
        return Contents([stored.segment for stored in self.segments], self.slots)


class IndexFolder:
    """The folder of an index."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self.path = path
        self._key = dict(key)

    def lock(self) -> WriteLock:
        """The lock of writers; makes the folder."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return WriteLock(self.path / "lock", "name a local disk with --at", LOCK_PATIENCE_S)

    def read(self) -> State | None:
        """The state that is there; None if there is none."""
        for _ in range(_MOST_READ):
            manifest = self._manifest()
            if manifest is None:
                return None
            try:
                return self._state(manifest)
            except FileNotFoundError as error:
                missing = Path(str(error.filename)).name
                if self._manifest() == manifest:
                    raise DamagedError(f"{missing} is missing") from None
        raise DamagedError("it is replaced again and again")

    def _manifest(self) -> dict[str, Any] | None:
        path = self.path / MANIFEST
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(file, "rb") as opened:  # noqa: PTH123 - of a descriptor
                data = opened.read(_MOST_MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise DamagedError(f"{MANIFEST} cannot be read: {error.strerror}") from None
        try:
            manifest = json.loads(data)
            told = manifest.pop("checksum")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DamagedError(f"{MANIFEST} is damaged") from None
        if manifest.get("format") != FORMAT:
            raise DamagedError("it is of another version")
        if told != _checksum(manifest):
            raise DamagedError(f"wrong checksum of {MANIFEST}")
        if manifest.get("key") != self._key:
            raise DamagedError("it was made by another version, in another way or of other files")
        return dict(manifest)

    def _state(self, manifest: Mapping[str, Any]) -> State:
        try:
            segments = []
            for name, stamp in manifest["segments"]:
                found = _SEGMENT.fullmatch(name)
                if found is None:
                    raise ValueError("a file has another name than files have")
                segment = read_segment(self.path / name, _stamp(stamp))
                segments.append(StoredSegment(found[1], _stamp(stamp), segment))
            name, stamp = manifest["catalogue"]
            if not _CATALOGUE.fullmatch(name):
                raise ValueError("a file has another name than files have")
            records, slots = _read_catalogue(self.path / name, _stamp(stamp))
            total = sum(stored.segment.n_documents for stored in segments)
            if len(slots) and (int(slots.min()) < 0 or int(slots.max()) >= total):
                raise ValueError("a document has no segment")
            if len(slots) and int(np.bincount(slots).max()) > 1:
                raise ValueError("a document is there twice")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedError(f"{MANIFEST} is damaged: {error}") from None
        return State(tuple(segments), records, slots)

    def add_segment(self, segment: Segment) -> StoredSegment:
        """Write a segment and map it into memory; it counts once a state with it is written."""
        id = secrets.token_hex(8)
        path = self.path / f"segment-{id}.bin"
        stamp = write_segment(path, segment)
        return StoredSegment(id, stamp, read_segment(path, stamp))

    def write(self, state: State) -> None:
        """Make a state the one that counts, and remove files that are of no use any more.

        Only the holder of the lock may do so.
        """
        catalogue = f"catalogue-{secrets.token_hex(8)}.bin"
        stamp = _write_catalogue(self.path / catalogue, state)
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "key": self._key,
            "segments": [[f"segment-{s.id}.bin", list(s.stamp)] for s in state.segments],
            "catalogue": [catalogue, list(stamp)],
        }
        manifest["checksum"] = _checksum(manifest)
        new = self.path / f"{MANIFEST}.new"
        new.unlink(missing_ok=True)  # a link that someone put there is not followed
        with open(new, "x", encoding="utf-8", opener=private) as file:
            json.dump(manifest, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / MANIFEST)
        _sync(self.path)
        self._remove_others({catalogue}, {stored.id for stored in state.segments})

    def _remove_others(self, used: set[str], ids: set[str]) -> None:
        for entry in os.scandir(self.path):
            of = re.match(r"(?:segment|vectors)-([0-9a-f]{16})", entry.name)
            is_used = entry.name in used or (of is not None and of[1] in ids)
            is_used = is_used and not entry.name.endswith(".new")
            if _OWN.fullmatch(entry.name) and not is_used:
                with suppress(OSError):  # in use where the system does not let go of such files
                    os.unlink(entry.path)  # noqa: PTH108 - of an entry

    def merge(
        self, stored: Sequence[StoredSegment], live: Sequence[NDArray[np.bool_]]
    ) -> StoredSegment:
        """One segment of the live documents of several, with the vectors that all of them have."""
        merged = self.add_segment(merge_segments([s.segment for s in stored], live))
        for name in self._embedders(stored[0].id):
            found = [self.read_vectors(name, each) for each in stored]
            vectors = [
                array[live_passages(each.segment, alive)]
                for each, alive, array in zip(stored, live, found, strict=True)
                if array is not None
            ]
            if len(vectors) == len(stored) and len({array.shape[1] for array in vectors}) == 1:
                self.write_vectors(name, merged.id, np.concatenate(vectors))
        return merged

    def _embedders(self, id: str) -> list[str]:
        """The embedders that have vectors for a segment."""
        names = []
        for path in sorted(self.path.glob(f"vectors-{id}-*.bin")):
            with suppress(FileNotFoundError, DamagedError):
                names.append(str(read_arrays(path, None).about.get("embedder")))
        return names

    def _vectors_path(self, name: str, id: str) -> Path:
        return self.path / f"vectors-{id}-{digest([name]).hex()[:16]}.bin"

    def write_vectors(self, name: str, id: str, vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of an embedder for a segment."""
        path = self._vectors_path(name, id)
        new = path.with_name(f"{path.stem}-{secrets.token_hex(4)}.bin.new")  # others may write, too
        write_arrays(new, {"embedder": name}, {"vectors": vectors})
        new.replace(path)

    def read_vectors(self, name: str, stored: StoredSegment) -> NDArray[np.float32] | None:
        """The vectors of an embedder for a segment; None if there are none that can be used."""
        try:
            file = read_arrays(self._vectors_path(name, stored.id), None)
        except (FileNotFoundError, DamagedError):
            return None
        vectors = file.arrays.get("vectors")
        if (
            vectors is None
            or file.about.get("embedder") != name
            or vectors.dtype != np.float32
            or vectors.ndim != 2
            or len(vectors) != stored.segment.n_passages
            or not bool(np.isfinite(vectors).all())
        ):
            return None
        return vectors


def _write_catalogue(path: Path, state: State) -> Stamp:
    labels, problems = TextsBuilder(), TextsBuilder()
    for record in state.records:
        labels.add(record.label)
        problems.add(json.dumps(record.problems) if record.problems else "")
    begins = [record.begun or Begun(0, bytes(DIGEST)) for record in state.records]
    counts = [
        [record.n_documents, record.n_left_out, begin.size]
        for record, begin in zip(state.records, begins, strict=True)
    ]
    begun = b"".join(begin.digest for begin in begins)
    return write_arrays(
        path,
        {},
        {
            **texts_arrays("labels", labels.finish()),
            **texts_arrays("problems", problems.finish()),
            "stamps": np.array([r.stamp for r in state.records], np.int64).reshape(-1, 3),
            "counts": np.array(counts, np.int64).reshape(-1, 3),
            "begun": np.frombuffer(begun, np.uint8).reshape(-1, DIGEST),
            "slots": state.slots,
        },
    )


def _read_catalogue(path: Path, written: Stamp) -> tuple[tuple[Record, ...], NDArray[np.int64]]:
    arrays = read_arrays(path, written).arrays
    labels, problems = read_texts("labels", arrays), read_texts("problems", arrays)
    stamps, counts, slots = arrays["stamps"], arrays["counts"], arrays["slots"]
    begun = arrays["begun"]
    n = len(labels)
    if not (
        stamps.shape == (n, 3)
        and counts.shape == (n, 3)
        and begun.shape == (n, DIGEST)
        and begun.dtype.str[1:] == "u1"
        and len(problems) == n
        and slots.ndim == 1
        and {a.dtype.str[1:] for a in (stamps, counts, slots)} == {"i8"}
        and not bool((counts < 0).any())
        and int(counts[:, 0].sum()) == len(slots)
    ):
        raise DamagedError(f"{path.name} is damaged: its parts do not fit together")
    records = []
    for number, (stamp, (documents, left, size)) in enumerate(
        zip(stamps.tolist(), counts.tolist(), strict=True)
    ):
        told = json.loads(problems[number] or "[]")
        reasons = tuple(map(str, told)) if isinstance(told, list) else ()
        if bool(left) != bool(reasons):
            raise DamagedError(f"{path.name} is damaged: nothing says why documents are left out")
        read = Begun(size, begun[number].tobytes()) if size else None
        records.append(Record(labels[number], _stamp(stamp), documents, left, reasons, read))
    return tuple(records), slots


def _stamp(value: Sequence[Any]) -> Stamp:
    size, changed, entered = value
    return int(size), int(changed), int(entered)


def _checksum(manifest: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in manifest.items() if name != "checksum"}
    return digest([json.dumps(plain, sort_keys=True)]).hex()


def _sync(folder: Path) -> None:
    """Make what was renamed in a folder last."""
    with suppress(OSError):  # not every system lets folders be synchronised
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
