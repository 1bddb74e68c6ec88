"""The store: persistent cached replies and rows of runs.

One folder with one SQLite file. When a method returns, its data is on the disk. Every process that
works with the store has one thread that writes; processes take turns by a lock that the system releases when they end.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from pearl.documents.digest import sealed, unsealed
from pearl.errors import StoreError, did_you_mean
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, Usage
from pearl.llm.middleware.caching import Replies
from pearl.plugins import persistence
from pearl.plugins.files import make_private, why_unsafe
from pearl.runs.store import database
from pearl.runs.store.database import FILE as FILE
from pearl.runs.store.database import VERSION as VERSION
from pearl.runs.store.runs import COLUMNS, LOCAL, info_of, insert_run, is_id, lease_file, new_id
from pearl.runs.store.runs import RunInfo as RunInfo
from pearl.runs.store.runs import RunSpec as RunSpec
from pearl.runs.store.runs import Status as Status

_KEEP = """
INSERT INTO replies (key, body, created) VALUES (?, CAST(? AS TEXT), ?)
ON CONFLICT (key) DO UPDATE SET body = excluded.body, created = excluded.created
"""


_RECORD = """
INSERT INTO results (run_id, key, seq, task_id, status, row, trace)
VALUES (?, ?, ?, ?, ?, CAST(? AS TEXT), ?)
ON CONFLICT (run_id, key) DO UPDATE SET
    seq = excluded.seq, task_id = excluded.task_id, status = excluded.status,
    row = excluded.row, trace = excluded.trace
"""

_SAID = f"SELECT substr(row, {len(sealed(b'', b'')) + 1}) AS said FROM results WHERE run_id = ?"

_SUPERSEDE = "DELETE FROM results WHERE run_id = ? AND seq = ? AND task_id = ? AND key <> ?"

_PAGE = 200
"""Rows per read; limits the memory, and the time for which a reader blocks a checkpoint of the log."""

_MAX_KEYS = 500  # Replies that are looked up at once
_MAX_COUNT = 2**63  # Upper bound of a token count; larger values are damaged


def default_folder() -> Path:
    """`$PEARL_STORE`, else `pearl` in `$XDG_DATA_HOME` or `~/.local/share`."""
    if named := os.environ.get("PEARL_STORE"):
        return Path(named)
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    if data.is_absolute():  # The XDG specification says to ignore relative paths
        return data / "pearl"
    try:
        return Path.home() / ".local" / "share" / "pearl"
    except RuntimeError:
        raise StoreError("no home folder found", help="name a folder with --store") from None


def require_own_store(folder: Path) -> None:
    """Check that only the user can write to a store."""
    for path in (folder, *(folder / f"{FILE}{end}" for end in ("", "-wal", "-shm"))):
        why = why_unsafe(path) if path.exists() else ""
        if why:
            raise StoreError(
                f"a run of this store is not resumed: {why}",
                path=path,
                help="copy a store that you trust to a folder that only you can write to",
            )


class Run:
    """A run that this process is writing."""

    def __init__(self, id: str, store: Store, lease: persistence.Lease, *, is_new: bool) -> None:
        self.id = id
        self.is_new = is_new
        self.position = _positions(store.folder, id)[0]
        self._store = store
        self._lease = lease
        self._is_finished = False

    def has(self, key: bytes) -> bool:
        """Whether a row other than a failure is stored under this key."""
        return self._store.is_done(self.id, key)

    def outcome(self, key: bytes) -> dict[str, Any] | None:
        """The row stored under this key, even if it is a failure; None if there is none."""
        return self._store.outcome(self.id, key)

    async def record(
        self, key: bytes, seq: int, task_id: str, row: Mapping[str, Any], trace: str | None
    ) -> None:
        """Store the outcome of a task; return when it is on disk."""
        data = sealed(key, json_bytes(row))
        id = task_id.encode("utf-8", "backslashreplace").decode()
        events = None if trace is None else database.packed_trace(trace)
        values = (self.id, key, seq, id, str(row.get("status")), data, events)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SUPERSEDE, (self.id, seq, id, key))
            connection.execute(_RECORD, values)

        await self._store.writer.write(work)

    def finish(self, status: Status, counts: Mapping[str, Any] | None = None) -> None:
        """Record how the run ended, and release it; later calls do nothing."""
        if self._is_finished:
            return
        self._is_finished = True
        said = None if counts is None else json_bytes(dict(counts))

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE runs SET status = ?, updated = ?, counts = coalesce(CAST(? AS TEXT), counts),"
                " lease_pid = NULL, lease_host = NULL, lease_started = NULL, lease_at = NULL"
                " WHERE id = ?",
                (status, time.time(), said, self.id),
            )

        try:
            self._store.writer.transact(work)
            if status == "done":
                _forget_positions(self._store.folder, self.id)
        finally:
            self._lease.release()

    def release(self) -> None:
        """Release the run, as stopped if it is unfinished; its error was reported when a row could not be stored."""
        with suppress(StoreError):
            self.finish("stopped")


class Store(Replies):
    """An open store, created by `Store.open`; use it as a context manager, or close it."""

    def __init__(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        writer: database.StoreWriter | None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        self.warnings = warnings
        self.n_bad_replies = 0
        self.n_bad_rows = 0
        self._path = folder / FILE
        self._connection = connection
        self._writer = writer
        self._runs: list[Run] = []

    @classmethod
    def open(cls, folder: Path | None = None, *, read_only: bool = False) -> Store:
        """Open the store in a folder; create it if it is missing, unless `read_only`."""
        folder = default_folder() if folder is None else folder
        path = folder / FILE
        try:
            if read_only:
                connection = database.open_existing(path)
                warnings: tuple[str, ...] = ()
                if persistence.version_of(connection) != database.CURRENT:
                    connection.close()
                    with cls._opened(folder, path) as converted:
                        warnings = converted.warnings
                    connection = database.open_existing(path)
                return cls(folder, connection, None, warnings)
            make_private(folder)
            return cls._opened(folder, path)
        except persistence.FAILURES as error:
            raise persistence.to_store_error(error, path) from None

    @classmethod
    def _opened(cls, folder: Path, path: Path) -> Store:
        # In addition to SQLite's locks: before 3.51.3, two connections that write and reset the
        # log at the same time can damage the file, and a process waiting for SQLite's lock may
        # starve.
        lock = persistence.WriteLock(folder / "write.lock", LOCAL)
        try:
            with lock.held():
                connection, warnings = database.create_database(path)
        except BaseException:
            lock.close()
            raise
        writer = database.StoreWriter(path, connection, lock)
        try:
            return cls(folder, persistence.connect(path, "ro"), writer, warnings)
        except BaseException:
            writer.close()
            raise

    @property
    def writer(self) -> database.StoreWriter:
        """The thread that writes to the store."""
        if self._writer is None:
            raise StoreError("the store was opened read-only", path=self.folder)
        return self._writer

    def close(self) -> None:
        """Write pending rows, mark unfinished runs as stopped, and close the file."""
        try:
            for run in self._runs:
                run.release()
        finally:
            self._connection.close()  # First: only a connection that can write removes the log, and it must be the last one open
            if self._writer is not None:
                self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def all(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except persistence.FAILURES as error:
            raise persistence.to_store_error(error, self._path) from None

    async def among(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """The replies with these keys; those that are missing or damaged are left out."""
        found: dict[bytes, Completion] = {}
        for at in range(0, len(keys), _MAX_KEYS):
            some = tuple(keys[at : at + _MAX_KEYS])
            marks = ", ".join("?" * len(some))
            # A reply of another key, by a damaged index, has another seal
            for key, body in self.all(
                f"SELECT key, body FROM replies WHERE key IN ({marks})", some
            ):
                completion = database.unpacked_reply(key, body)
                if completion is None:
                    self.n_bad_replies += 1
                else:
                    found[key] = completion
        return found

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        """Store replies by key in one commit: all of them or none; return when they are on disk."""
        now = time.time()
        rows = [(key, body, now) for key, body in database.packed_replies(completions)]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_KEEP, rows)

        await self.writer.write(work)

    def review_path(self, run_id: str) -> Path:
        """The file with people's decisions about a run."""
        return self.folder / f"review-{run_id}.db"

    def fresh(self) -> FreshCache:
        """A cache that stores replies here, but does not use those stored before."""
        return FreshCache(self)

    def outcome(self, run_id: str, key: bytes) -> dict[str, Any] | None:
        """The row with this key; None if there is none."""
        data = self._recorded(run_id, key)
        return None if data is None else self._whole(key, data)

    def is_done(self, run_id: str, key: bytes) -> bool:
        """Whether the row with this key exists and is not a failure."""
        data = unsealed(key, self._recorded(run_id, key))
        if data is None:
            return False
        # Without parsing the row, which would double the time and is seldom needed.
        is_plain = b'"failed"' not in data and b'"unfinished"' not in data
        return is_plain or database.is_done(database.unpacked(data) or {"status": "failed"})

    def _recorded(self, run_id: str, key: bytes) -> object:
        # The row itself must have the key, as where all rows are read: the index may be damaged, or the row.
        found = self.all(
            "SELECT b.row FROM results AS a CROSS JOIN results AS b ON b.rowid = a.rowid"
            " WHERE a.run_id = ?1 AND a.key = ?2 AND +b.key = ?2",
            (run_id, key),
        )
        return found[0][0] if found else None

    def rows(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The rows of a run in order; damaged ones are counted and skipped."""
        for page in self._pages(run_id, "key, row"):
            for key, data in page:
                row = self._whole(key, data)
                if row is not None:
                    yield row

    def traces(self, run_id: str) -> Iterator[str]:
        """The traces of a run as JSON lines, in the order of its rows."""
        for page in self._pages(run_id, "trace"):
            yield from (database.unpacked_trace(trace) for (trace,) in page)

    def outcomes(self, run_id: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """Yield the rows of a run with their row ids, for `with_trace`; None for a damaged row."""
        for page in self._pages(run_id, "results.rowid, key, row"):
            yield from ((rowid, self._whole(key, data)) for rowid, key, data in page)

    def with_trace(self, rowid: int) -> tuple[dict[str, Any] | None, str]:
        """A row by its row id, with its trace as JSON lines; None if the row was removed."""
        found = self.all("SELECT key, row, trace FROM results WHERE rowid = ?", (rowid,))
        if not found:
            return None, ""
        ((key, data, trace),) = found
        return self._whole(key, data), database.unpacked_trace(trace)

    def tally(self, run_id: str) -> dict[str, int]:
        """The number of rows of a run by status."""
        found = self.all(
            "SELECT status, count(*) FROM results WHERE run_id = ? GROUP BY status", (run_id,)
        )
        return {database.decoded(status): n for status, n in found}

    def usage(self, run_id: str) -> Usage:
        """Tokens of all usable replies of a run."""
        names = (
            "input_tokens", "output_tokens", "cached_tokens", "implausible_calls", "written_tokens",
            "written_long_tokens",
        )  # fmt: skip
        sums = ", ".join(
            # Rows of evaluations, drafts and curations have the field names of `Usage`.
            "total(CASE WHEN json_valid(said) THEN coalesce("
            f"json_extract(said, '$.usage.{name}'), json_extract(said, '$.usage.n_{name}')) END)"
            for name in names
        )
        (found,) = self.all(f"SELECT {sums} FROM ({_SAID})", (run_id,))
        # Rows may come from other stores: impossible counts become 0 without an error.
        return Usage(*(int(n) if 0 <= n < _MAX_COUNT else 0 for n in found))

    def runs(self, spec_key: bytes | None = None) -> list[RunInfo]:
        """All runs, or those of the same work, latest first."""
        where, values = ("", ()) if spec_key is None else ("WHERE spec_key = ?", (spec_key,))
        found = self.all(
            f"SELECT {COLUMNS} FROM runs {where} ORDER BY created DESC, rowid DESC", values
        )
        return [info_of(self.folder, row) for row in found]

    def superseded(self, spec: RunSpec) -> RunInfo | None:
        """The latest run of the same work by another version that has rows, if this version has no run of it; else None."""
        if self.runs(spec.key):
            return None
        runs = (run for run in self.runs() if run.n_results > run.n_failed)
        return next((run for run in runs if spec.is_of_other_version(run)), None)

    def run(self, name: str) -> RunInfo:
        """The run whose id starts with a prefix; the prefix may omit the day."""
        ids = [
            database.decoded(id) for (id,) in self.all("SELECT id FROM runs ORDER BY created DESC")
        ]
        close = [id for id in ids if id.startswith(name) or id.partition("-")[2].startswith(name)]
        if name in ids:
            close = [name]
        if len(close) != 1:
            raise self._unknown(name, close, ids)
        found = self.all(f"SELECT {COLUMNS} FROM runs WHERE id = ?", (close[0],))
        if not found:
            raise self._unknown(name, [], ids)
        return info_of(self.folder, found[0])

    def _unknown(self, name: str, close: list[str], ids: list[str]) -> StoreError:
        if close:
            shown = ", ".join(close[:5]) + (", ..." if len(close) > 5 else "")
            return StoreError(
                f"{len(close)} runs begin with '{name}'", path=self._path, help=f"one of: {shown}"
            )
        meant = did_you_mean(name, ids)
        help = f"did you mean '{meant}'?" if meant else "'pearl runs list' shows all"
        return StoreError(f"no run '{name}'", path=self._path, help=help)

    def _pages(self, run_id: str, columns: str) -> Iterator[list[tuple[Any, ...]]]:
        seq, rowid = -(1 << 62), 0
        # Counted by the other index: where the order is damaged, rows would be missing in silence.
        ((n,),) = self.all(
            "SELECT count(*) FROM results WHERE run_id = ? AND key >= x''", (run_id,)
        )
        while True:
            found = self.all(
                f"SELECT seq, rowid, {columns} FROM results WHERE run_id = ? "
                "AND (seq, rowid) > (?, ?) ORDER BY seq, rowid LIMIT ?",
                (run_id, seq, rowid, _PAGE),
            )
            if not found:
                if n <= 0:  # more where rows were added meanwhile
                    return
                told = f"the file is damaged: {n} rows of run '{run_id}' are not found in their order"  # fmt: skip
                raise StoreError(
                    told, path=self._path, help="sqlite3 FILE REINDEX may mend a copy of it"
                )
            n -= len(found)
            last = found[-1]
            if not isinstance(last[0], int) or (last[0], last[1]) <= (seq, rowid):
                raise StoreError("the file is damaged", path=self._path, help="move it away")
            seq, rowid = last[0], last[1]
            yield [row[2:] for row in found]

    def _whole(self, key: object, data: object) -> dict[str, Any] | None:
        row = database.unpacked(unsealed(key, data)) if isinstance(key, bytes) else None
        if row is None:
            self.n_bad_rows += 1
        return row

    def begin(self, spec: RunSpec, *, fresh: bool = False, id: str | None = None) -> Run:
        """Start a run, or resume the latest with the same specification."""
        leases: list[persistence.Lease] = []

        def work(connection: sqlite3.Connection) -> tuple[str, bool]:
            info = None if fresh else self._resumable(connection, spec, id)
            n_digits = 4
            run_id = new_id(n_digits) if info is None else info.id
            while info is None and connection.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():  # fmt: skip
                n_digits += 1  # There are many runs on one day
                run_id = new_id(n_digits)
            leases.append(lease_run(self.folder, run_id, info))
            now = time.time()
            if info is None:
                insert_run(connection, run_id, spec, now)
            connection.execute(
                "UPDATE runs SET command = CAST(? AS TEXT), folder = CAST(? AS TEXT),"
                " status = 'running', updated = ?, lease_pid = ?, lease_host = ?, lease_at = ?"
                " WHERE id = ?",
                (*spec.asked, now, os.getpid(), socket.gethostname(), now, run_id),
            )
            return run_id, info is None

        try:
            run_id, is_new = self.writer.transact(work)
            run = Run(run_id, self, leases[0], is_new=is_new)
        except BaseException:
            for lease in leases:
                lease.release()
            raise
        self._runs.append(run)
        return run

    def _resumable(
        self, connection: sqlite3.Connection, spec: RunSpec, id: str | None
    ) -> RunInfo | None:
        """The run with an id, or the latest with a specification; None if there is none."""
        if id is None:
            row = connection.execute(
                f"SELECT {COLUMNS} FROM runs WHERE spec_key = ?"
                " ORDER BY created DESC, rowid DESC LIMIT 1",
                (spec.key,),
            ).fetchone()
            return None if row is None else info_of(self.folder, row)
        row = connection.execute(f"SELECT {COLUMNS} FROM runs WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise StoreError(f"no run '{id}'", path=self._path, help="'pearl runs list' shows all")
        info = info_of(self.folder, row)
        if info.spec_key != spec.key and spec.is_of_other_version(info):
            raise StoreError(
                f"run {id} was made by another version of PEARL, whose prompts differ",
                path=self._path,
                help="repeat its command: its calls are made and paid again; "
                f"pearl runs export {id} writes its rows",
            )
        if info.spec_key != spec.key:
            raise StoreError(
                f"run {id} was started with other settings or inputs",
                path=self._path,
                help="repeat the command itself to start another run",
            )
        return info

    def prune(
        self, ids: Sequence[str], *, replies: bool = False, older_than_s: float | None = None
    ) -> Pruned:
        """Remove runs with their results, and perhaps all replies or older ones; a run in use is an error."""
        n_results = sum(map(self._remove, map(self.run, ids)))

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            n_replies = 0
            if replies:
                before = time.time() - (older_than_s or 0)
                removed = connection.execute("DELETE FROM replies WHERE created <= ?", (before,))
                n_replies = removed.rowcount
            n_before = _pragma(connection, "page_count")
            # sqlite3 executes only the first step of a pragma, which frees one page.
            for _ in range(_pragma(connection, "freelist_count")):
                connection.execute("PRAGMA incremental_vacuum(1)")
            n_pages = n_before - _pragma(connection, "page_count")
            return n_replies, n_pages * _pragma(connection, "page_size")

        return Pruned(len(ids), n_results, *self.writer.transact(work))

    def _remove(self, info: RunInfo) -> int:
        """Remove a run; return the number of its results."""

        def work(connection: sqlite3.Connection) -> int:
            lease = lease_run(self.folder, info.id, info)
            try:
                removed = connection.execute("DELETE FROM results WHERE run_id = ?", (info.id,))
                connection.execute("DELETE FROM runs WHERE id = ?", (info.id,))
                _forget_positions(self.folder, info.id)
                self.review_path(info.id).unlink(missing_ok=True)
            finally:
                lease.release()
            return removed.rowcount

        return self.writer.transact(work)


class FreshCache(Replies):
    """A reply cache that only finds replies that it has stored itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[bytes] = set()

    async def among(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """The replies with these keys that were stored through this cache."""
        return await self._store.among([key for key in keys if key in self._known])

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        """Store replies, all of them or none."""
        await self._store.keep_all(completions)
        self._known.update(completions)


def _positions(folder: Path, run_id: str) -> tuple[Path, Path]:
    """The file with the position up to which the input of a run was read, and the file that will replace it."""
    path = folder / f"run-{run_id}.position"
    return path, path.with_suffix(".new")


def _forget_positions(folder: Path, run_id: str) -> None:
    for path in _positions(folder, run_id):
        path.unlink(missing_ok=True)


def lease_run(folder: Path, id: str, info: RunInfo | None) -> persistence.Lease:
    """The lease of a run, which prevents other processes from writing it."""
    if not is_id(id):
        raise StoreError(
            f"not the id of a run: '{id[:40]}'", path=folder / FILE, help="move it away"
        )
    lease = persistence.Lease.take(lease_file(folder, id), LOCAL)
    if lease is None:
        holder = info.holder if info else None
        who = f"process {holder.pid} on {holder.host}" if holder else "another process"
        since = f" since {datetime.fromtimestamp(holder.since):%Y-%m-%d %H:%M:%S}" if holder else ""
        raise StoreError(
            f"run {id} is in use by {who}{since}",
            path=folder / FILE,
            help="wait for it or end it, or start another run with --fresh",
        )
    return lease


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


class Pruned(Struct, frozen=True):
    """Counts of removed data."""

    n_runs: int
    n_results: int
    n_replies: int
    n_bytes: int


def chosen(
    runs: Sequence[RunInfo], *, older_than_s: float | None, keep: int | None
) -> list[RunInfo]:
    """The runs that no process is writing and that exceed every given limit."""
    if older_than_s is None and keep is None:
        return []
    before = time.time() - (older_than_s or 0)
    return [run for run in runs[keep or 0 :] if run.holder is None and run.updated <= before]
