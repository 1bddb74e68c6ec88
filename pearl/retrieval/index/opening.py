"""A corpus → its index: found where it is kept, brought up to date, or made."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pearl.documents.digest import digest
from pearl.documents.passages import Stem
from pearl.errors import StoreError
from pearl.plugins.files import cache_file
from pearl.plugins.version import __version__
from pearl.retrieval.corpus import Cutting
from pearl.retrieval.corpus.sources import CorpusFiles, find_files
from pearl.retrieval.index.arrays_file import DamagedError
from pearl.retrieval.index.folder import IndexFolder, State
from pearl.retrieval.index.updating import Changes, IndexProgress, changed_files, update
from pearl.retrieval.queries import analyzer

_PROBE = (
    "The children's cafés kept 1,200 keys; geese ran easily, naïve co-ops don't. 東京都 U.S.A. "
    "re\u0301sume\u0301 co\u00adop"
)


@dataclass(frozen=True, slots=True)
class Opened:
    """An index that was opened."""

    state: State
    folder: IndexFolder
    changes: Changes
    n_other: int
    seconds: float
    told: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know, a sentence each."""
        n = self.n_left_out
        if not n:
            return self.told
        first = self.problems[0]
        left = f"1 document is left out: {first}"
        if n > 1:
            left = f"{n:,} documents are left out; the first: {first}"
        return (*self.told, left)

    @property
    def n_left_out(self) -> int:
        """Documents that cannot be read."""
        return sum(record.n_left_out for record in self.state.records)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why some of them cannot."""
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
) -> Opened:
    """The index of a corpus; arguments and errors as of `pearl.retrieval.index.Index.open`."""
    began = time.monotonic()
    found = find_files(named)
    notes: list[str] = []
    if n := found.n_outside:
        links = "a link leads" if n == 1 else f"{n:,} links lead"
        notes.append(f"left out: {links} out of the folder; name the files to have them read")
    folder = _place(named, cutting, stem, at)
    state = None if is_fresh or folder is None else _read(folder, notes)
    n_changed = 0 if state is None else changed_files(state, found)
    if folder is None or state is None or (n_changed and with_update):
        state, folder, changes = _updated(folder, found, cutting, stem, is_fresh, notes, progress)
    else:
        changes = Changes()
        if n_changed:
            notes.append(f"{n_changed:,} file{'s' * (n_changed > 1)} may have changed since")
    seconds = time.monotonic() - began
    return Opened(state, folder, changes, found.n_other, seconds, tuple(dict.fromkeys(notes)))


def _updated(
    folder: IndexFolder | None,
    found: CorpusFiles,
    cutting: Cutting,
    stem: Stem,
    is_fresh: bool,
    notes: list[str],
    progress: IndexProgress | None,
) -> tuple[State, IndexFolder, Changes]:
    """Update the index, or make one that is not kept if its folder cannot be written to."""
    lock = None
    if folder is not None:
        try:
            lock = folder.lock()
        except OSError:
            notes.append(f"{folder.path} cannot be written to: the index is made anew each time")
    else:
        notes.append("there is no folder for the index: it is made anew each time")
    if folder is None or lock is None:
        with TemporaryDirectory(prefix="pearl-index-") as name:  # what is mapped stays until read
            folder = IndexFolder(Path(name), {})
            state, changes = update(folder, State(), found, cutting, stem, progress)
        return state, folder, changes
    try:
        with lock.held():
            state = (None if is_fresh else _read(folder, notes)) or State()
            after, changes = update(folder, state, found, cutting, stem, progress)
        return after, folder, changes
    except OSError as error:
        raise StoreError(
            f"the index cannot be written: {error.strerror}",
            path=folder.path,
            help="make room, or name another folder with --at",
        ) from None
    finally:
        lock.close()


def _read(folder: IndexFolder, notes: list[str]) -> State | None:
    try:
        return folder.read()
    except DamagedError as error:
        notes.append(f"{folder.path}: the index is made anew: {error}")
        return None


def _place(
    named: Sequence[str | Path], cutting: Cutting, stem: Stem, at: str | Path | None
) -> IndexFolder | None:
    """Where the index is kept; None if nowhere."""
    corpus = [os.path.realpath(each) for each in named]
    way = {"unit": cutting.unit, "size": cutting.size, "overlap": cutting.overlap, "stem": stem}
    key = {
        "pearl": __version__,
        "terms": digest(analyzer(stem)(_PROBE)).hex()[:16],
        **way,
        "corpus": corpus,
        "named": [str(each) for each in named if len(named) > 1],
    }
    if at is not None:
        return IndexFolder(Path(at) / f"{cutting.name}-{stem}", key)
    # Not beside the corpus: an index in the folder of a stranger could say what no document does.
    told = digest([*corpus, *map(str, way.values())]).hex()[:16]
    cached = cache_file(f"index/{Path(corpus[0]).name}-{told}")
    return None if cached is None else IndexFolder(cached, key)
