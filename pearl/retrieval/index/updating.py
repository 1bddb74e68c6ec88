"""A corpus and the index of an earlier state of it → the index of the corpus as it is.

Only what changed is read: files whose stamp is another one, and of these only documents whose digest
is not known.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from pearl import plugins
from pearl.documents.passages import Stem
from pearl.errors import DataError
from pearl.retrieval.corpus import Cutting, cut
from pearl.retrieval.corpus.sources import (
    DIGEST,
    Begun,
    CorpusFiles,
    Entry,
    New,
    Resumed,
    SourceFile,
)
from pearl.retrieval.index.arrays_file import Stamp, stamp_of
from pearl.retrieval.index.folder import IndexFolder, Record, State, StoredSegment
from pearl.retrieval.index.merging import live_passages
from pearl.retrieval.index.segment import SegmentBuilder

MAX_PASSAGES = 50_000
"""Passages of a segment, at about which it is full."""

MAX_BYTES = 64_000_000
"""Bytes of text at which a segment is full."""

MAX_SMALL = 8
"""Segments that are less than half full, at most."""

MAX_DEAD = 0.5
"""Share of a segment's documents that may be removed ones."""

SURE_NS = 2_000_000_000
"""Age from which a file that changes gets another stamp; coarse clocks tick once in two seconds."""

MAX_PROBLEMS = 5
"""Reasons that are kept for each file."""

IndexProgress = Callable[[int, int, int], None]
"""Told the files done, all files, and the documents so far."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What an update did."""

    n_new: int = 0
    n_changed: int = 0
    n_removed: int = 0


def changed_files(state: State, found: CorpusFiles) -> int:
    """How many files of a corpus are new, gone or may have changed since, by their stamps."""
    before = {record.label: record.stamp for record in state.records}
    now = {file.label: _stamp(file) for file in found.files}
    different = sum(not _is_same(before.get(label), stamp) for label, stamp in now.items())
    return different + len(before.keys() - now.keys())


def update(
    folder: IndexFolder,
    state: State,
    found: CorpusFiles,
    cutting: Cutting,
    stem: Stem,
    progress: IndexProgress | None = None,
) -> tuple[State, Changes]:
    """Make the index that of a corpus. The holder of the folder's lock may do so."""
    run = _Update(folder, state, cutting, stem)
    for number, file in enumerate(found.files):

        def told(n_documents: int, n_files: int = number) -> None:
            if progress is not None:
                progress(n_files, len(found.files), n_documents)

        told(run.n_documents)
        run.add(file, told)
    after = run.finish()
    if not len(after.slots) and any(record.n_left_out for record in after.records):
        raise _unreadable(after.records)
    is_same = after.segments == state.segments and np.array_equal(after.slots, state.slots)
    if not is_same:
        _refuse_same_names(after)
    changes = Changes() if is_same else _changes(state, after)
    if not (is_same and after.records == state.records and state.records):
        after = _compacted(folder, after)
        folder.write(after)
    return after, changes


class _Update:
    """The documents of the files so far."""

    def __init__(self, folder: IndexFolder, state: State, cutting: Cutting, stem: Stem) -> None:
        self._folder, self._cutting, self._stem = folder, cutting, stem
        self._segments = list(state.segments)
        self._known = _known(state)
        self._builder = SegmentBuilder()
        self._n_slots = sum(stored.segment.n_documents for stored in state.segments)
        self._slots: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        self._records: list[Record] = []
        ends = accumulate(record.n_documents for record in state.records)
        self._before = {
            record.label: (record, state.slots[end - record.n_documents : end])
            for record, end in zip(state.records, ends, strict=True)
        }
        self.n_documents = 0

    def add(self, file: SourceFile, progress: Callable[[int], None]) -> None:
        """Take in a file: as it was, or read again."""
        stamp = _stamp(file)
        before = self._before.get(file.label)
        if before is not None and _is_same(before[0].stamp, stamp):
            record, slots = before
        else:
            record, slots = self._read(file, stamp, progress)
        self._records.append(record)
        self._slots.append(slots)
        self.n_documents += len(slots)

    def _read(
        self, file: SourceFile, stamp: Stamp, progress: Callable[[int], None]
    ) -> tuple[Record, NDArray[np.int64]]:
        places = array("q")
        n_left_out = 0
        problems: list[str] = []
        begun: Begun | None = None
        before = self._before.get(file.label)
        if before is not None:
            file = replace(file, begun=before[0].begun)
        try:
            for entry in _entries(file, self._known):
                if isinstance(entry, New):
                    places.append(self._add(entry))
                    if len(places) % _TOLD_EVERY == 0:
                        progress(self.n_documents + len(places))
                elif isinstance(entry, DataError):
                    n_left_out += 1
                    if len(problems) < MAX_PROBLEMS:
                        problems.append(entry.message)
                elif isinstance(entry, Begun):
                    begun = entry
                elif isinstance(entry, Resumed):
                    assert before is not None  # or there was nothing to resume
                    places.extend(before[1].tolist())
                    n_left_out, problems = before[0].n_left_out, list(before[0].problems)
                else:
                    places.extend(entry)
        except DataError as error:
            n_left_out += 1
            problems.append(error.message)
        if _stamp(file) != stamp:  # it was written to meanwhile
            stamp = _UNSURE
        record = Record(file.label, stamp, len(places), n_left_out, tuple(problems), begun)
        return record, np.array(places, np.int64)

    def _add(self, new: New) -> int:
        builder = self._builder
        builder.add(new.document, cut(new.document, self._cutting), new.digest)
        self._n_slots += 1
        if builder.n_passages >= MAX_PASSAGES or builder.n_bytes >= MAX_BYTES:
            self._flush()
        return self._n_slots - 1

    def _flush(self) -> None:
        if self._builder.n_documents:
            segment = self._builder.finish(self._stem)
            self._segments.append(self._folder.add_segment(segment))
            self._builder = SegmentBuilder()

    def finish(self) -> State:
        """The state with all of them."""
        self._flush()
        return State(tuple(self._segments), tuple(self._records), np.concatenate(self._slots))


def _entries(file: SourceFile, known: Mapping[bytes, int]) -> Iterator[Entry]:
    """What a file has; what the system says of it is a fault of the file."""
    source = plugins.load("pearl.retrieval.corpus.sources", file.kind)
    try:
        yield from source.read(file, known)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=file.label) from None


_UNSURE: Stamp = (0, 0, 0)
"""The stamp of a file that may change without another one: it is read again next time."""

_TOLD_EVERY = 256
"""Documents between two reports of progress."""


def _stamp(file: SourceFile) -> Stamp:
    try:
        stamp = stamp_of(file.path)
    except OSError:
        return _UNSURE  # reading it says why
    return stamp if time.time_ns() - max(stamp[1:]) > SURE_NS else _UNSURE


def _is_same(before: Stamp | None, now: Stamp) -> bool:
    return before == now != _UNSURE


def _known(state: State) -> dict[bytes, int]:
    """Digest → slot, of all documents, the removed ones as well: they may come back."""
    every: list[bytes] = []
    for stored in state.segments:
        every += np.ascontiguousarray(stored.segment.digests).view(f"V{DIGEST}").ravel().tolist()
    return dict(zip(every, range(len(every)), strict=True))


def _names(segments: Sequence[StoredSegment], slots: NDArray[np.int64]) -> list[bytes]:
    every = [name for stored in segments for name in stored.segment.names.every()]
    return [every[slot] for slot in slots.tolist()]


def _refuse_same_names(state: State) -> None:
    """Make sure that no two documents have the same name."""
    names = _names(state.segments, state.slots)
    if len(set(names)) == len(names):
        return
    first: dict[bytes, int] = {}
    for second, name in enumerate(names):
        if name in first:
            break
        first[name] = second
    files = [record.label for record in state.records for _ in range(record.n_documents)]
    where = [
        f"{files[i]} (document {i - files.index(files[i]) + 1:,})" for i in (first[name], second)
    ]
    raise DataError(
        f"two documents have the same id '{name.decode('utf-8', 'replace')}': {' and '.join(where)}",
        help="give each an id of its own, or leave the column out: lines are counted then",
    )


def _unreadable(records: Sequence[Record]) -> DataError:
    """None of the documents of a corpus can be read."""
    n = sum(record.n_left_out for record in records)
    first = next(reason for record in records for reason in record.problems)
    what = "the document cannot" if n == 1 else f"none of the {n:,} documents can"
    return DataError(f"{what} be read; the first: {first}", help="give documents with text in them")


def _changes(before: State, after: State) -> Changes:
    new = np.setdiff1d(after.slots, before.slots, assume_unique=True)
    gone = np.setdiff1d(before.slots, after.slots, assume_unique=True)
    if not (len(new) and len(gone)):
        return Changes(len(new), 0, len(gone))
    both = set(_names(after.segments, new)) & set(_names(after.segments, gone))
    return Changes(len(new) - len(both), len(both), len(gone) - len(both))


def _compacted(folder: IndexFolder, state: State) -> State:
    """The same with fewer segments, where there are many small ones or much that was removed."""
    live = np.zeros(sum(stored.segment.n_documents for stored in state.segments), np.bool_)
    live[state.slots] = True
    starts = list(accumulate((s.segment.n_documents for s in state.segments), initial=0))
    masks = [live[a:b] for a, b in pairwise(starts)]
    sizes = [
        int(live_passages(stored.segment, mask).sum())
        for stored, mask in zip(state.segments, masks, strict=True)
    ]
    small = [i for i, n in enumerate(sizes) if n < MAX_PASSAGES / 2]
    chosen = {i for i, mask in enumerate(masks) if mask.mean() < 1 - MAX_DEAD}
    if len(small) > MAX_SMALL:
        chosen |= {i for i in small if state.segments[i].segment.texts.data.size < MAX_BYTES / 2}
    if not chosen:
        return state
    groups: list[list[int]] = []
    for i in range(len(masks)):
        if not sizes[i] and i in chosen:
            continue
        is_open = i in chosen and groups and groups[-1][0] in chosen
        if is_open and sum(sizes[j] for j in groups[-1]) + sizes[i] <= MAX_PASSAGES:
            groups[-1].append(i)
        else:
            groups.append([i])
    moved = np.full(len(live), -1, np.int64)
    segments: list[StoredSegment] = []
    base = 0
    for group in groups:
        if group[0] in chosen:
            stored = [state.segments[i] for i in group]
            alive = [masks[i] for i in group]
            segments.append(folder.merge(stored, alive))
        else:
            segments.append(state.segments[group[0]])
            alive = [np.ones_like(masks[group[0]])]
        for i, mask in zip(group, alive, strict=True):
            n = int(mask.sum())
            moved[starts[i] : starts[i + 1]][mask] = np.arange(base, base + n)
            base += n
    return State(tuple(segments), state.records, moved[state.slots])
