"""A run being written: begin, resume, record."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from pearl.documents.digest import digest
from pearl.errors import StoreError
from pearl.errors.escaping import json_bytes
from pearl.plugins.persistence import Lease
from pearl.runs.store.database import (
    FILE,
    StoreWriter,
    is_done,
    packed_trace,
    unpacked,
    unpacked_reply,
)
from pearl.runs.store.reading import Reader
from pearl.runs.store.runs import (
    COLUMNS,
    LOCAL,
    Holder,
    RunInfo,
    RunSpec,
    Status,
    info_of,
    is_id,
    is_shard,
    new_id,
)

_RECORD = """
INSERT INTO results (run_id, key, seq, task_id, status, row, trace)
VALUES (?, ?, ?, ?, ?, CAST(? AS TEXT), ?)
ON CONFLICT (run_id, key) DO UPDATE SET
    seq = excluded.seq, task_id = excluded.task_id, status = excluded.status,
    row = excluded.row, trace = excluded.trace
"""

_SUPERSEDE = "DELETE FROM results WHERE run_id = ? AND seq = ? AND task_id = ? AND key <> ?"


class Run:
    """A run that this process writes."""

    def __init__(self, id: str, reader: Reader, writer: StoreWriter, lease: Lease) -> None:
        self.id = id
        self._reader = reader
        self._writer = writer
        self._lease = lease
        self._is_finished = False

    def has(self, key: bytes) -> bool:
        """Whether a row without a failure is recorded under this key."""
        return self._reader.is_done(self.id, key)

    def outcome(self, key: bytes) -> dict[str, Any] | None:
        """The row recorded under this key, failures included, if any."""
        return self._reader.outcome(self.id, key)

    async def record(
        self, key: bytes, seq: int, task_id: str, row: Mapping[str, Any], trace: str | None
    ) -> None:
        """Keep the outcome of a task; returns when it is on the disk.

        It takes the place of an earlier one with the same key, and of one of the same task at the
        same place whose key was another: what the task works on has changed.
        """
        data = json_bytes(row)
        id = task_id.encode("utf-8", "backslashreplace").decode()
        events = None if trace is None else packed_trace(trace)
        values = (self.id, key, seq, id, str(row.get("status")), data, events)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SUPERSEDE, (self.id, seq, id, key))
            connection.execute(_RECORD, values)

        await self._writer.write(work)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row once, in the order of the tasks, read lazily."""
        return self._reader.rows(self.id)

    def finish(self, status: Status, counts: Mapping[str, Any] | None = None) -> None:
        """Record how the run ended and release it; idempotent."""
        if self._is_finished:
            return
        self._is_finished = True
        said = None if counts is None else json_bytes(dict(counts))

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE runs SET status = ?1, updated = ?2,"
                # Patched: what merging has written of shards is not known here.
                " counts = CASE WHEN ?3 IS NULL THEN counts"
                " WHEN json_valid(counts) THEN json_patch(counts, CAST(?3 AS TEXT))"
                " ELSE CAST(?3 AS TEXT) END,"
                " lease_pid = NULL, lease_host = NULL, lease_started = NULL, lease_at = NULL"
                " WHERE id = ?4",
                (status, time.time(), said, self.id),
            )

        try:
            self._writer.transact(work)
        finally:
            self._lease.release()


def begin_run(
    folder: Path, writer: StoreWriter, spec: RunSpec, *, is_fresh: bool, id: str | None
) -> tuple[str, Lease]:
    """The id and the lease of a run of this spec: the latest one, or a new one."""
    leases: list[Lease] = []

    def work(connection: sqlite3.Connection) -> str:
        info = None if is_fresh else _found(connection, folder, spec, id)
        run_id = _unused(connection) if info is None else info.id
        leases.append(lease_run(folder, run_id, info))
        _write(connection, run_id, spec, is_new=info is None)
        return run_id

    try:
        return writer.transact(work), leases[0]
    except BaseException:
        for lease in leases:
            lease.release()
        raise


def lease_run(folder: Path, id: str, info: RunInfo | None) -> Lease:
    """The lease of a run."""
    if not is_id(id):
        raise StoreError(
            f"not the id of a run: '{id[:40]}'", path=folder / FILE, help="move it away"
        )
    lease = Lease.take(folder / f"run-{id}.lock", LOCAL)
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


def _found(
    connection: sqlite3.Connection, folder: Path, spec: RunSpec, id: str | None
) -> RunInfo | None:
    if id is None:
        row = connection.execute(
            f"SELECT {COLUMNS} FROM runs WHERE spec_key = ? ORDER BY created DESC, rowid DESC LIMIT 1",
            (spec.key,),
        ).fetchone()
        return None if row is None else info_of(row)
    row = connection.execute(f"SELECT {COLUMNS} FROM runs WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise StoreError(f"no run '{id}'", path=folder / FILE, help="'pearl runs list' shows all")
    info = info_of(row)
    if info.spec_key != spec.key:
        raise StoreError(
            f"run {id} was started with other settings or inputs",
            path=folder / FILE,
            help="repeat the command itself to start another run",
        )
    return info


def _unused(connection: sqlite3.Connection) -> str:
    n_digits = 4
    while True:
        id = new_id(n_digits)
        if connection.execute("SELECT 1 FROM runs WHERE id = ?", (id,)).fetchone() is None:
            return id
        n_digits += 1  # a crowded day


def _write(connection: sqlite3.Connection, id: str, spec: RunSpec, *, is_new: bool) -> None:
    now = time.time()
    if is_new:
        connection.execute(
            "INSERT INTO runs (id, spec_key, command, folder, settings, inputs, status, created,"
            " updated, counts) VALUES (?, ?, '{}', '', CAST(? AS TEXT), CAST(? AS TEXT),"
            " 'running', ?, ?, '{}')",
            (
                id,
                spec.key,
                json_bytes(dict(spec.settings)),
                json_bytes(dict(spec.inputs)),
                now,
                now,
            ),
        )
    holder = Holder.this()
    connection.execute(
        "UPDATE runs SET command = CAST(? AS TEXT), folder = CAST(? AS TEXT), status = 'running',"
        " updated = ?, lease_pid = ?, lease_host = ?, lease_started = ?, lease_at = ? WHERE id = ?",
        (
            json_bytes({"argv": list(spec.command), "work": dict(spec.work)}),
            spec.folder.encode("utf-8", "backslashreplace"),
            now, holder.pid, holder.host, holder.started, holder.since, id,
        ),
    )  # fmt: skip


_PAGE = 200
"""Replies in one transaction."""

_KEEP = "INSERT OR REPLACE INTO replies (key, body, created) VALUES (?, CAST(? AS TEXT), ?)"
_ADD = (
    "INSERT OR REPLACE INTO results (run_id, key, seq, task_id, status, row, trace)"
    " VALUES (?, ?, ?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT))"
)

_HERE = (
    "SELECT key, row FROM results WHERE run_id = ? AND key = ?"
    " UNION SELECT key, row FROM results WHERE run_id = ? AND seq = ? AND task_id = CAST(? AS TEXT)"
)
_REMOVE = "DELETE FROM results WHERE run_id = ? AND key = ?"


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge."""

    n_runs: int = 0
    n_results: int = 0
    n_replies: int = 0
    n_conflicts: int = 0
    n_bad: int = 0

    def __add__(self, other: Merged) -> Merged:
        return Merged(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def merge(source: Reader, folder: Path, writer: StoreWriter) -> Merged:
    """Import another store.

    A run goes into the run with its id, else into the latest with its spec, else becomes a run of
    its own. A shard goes into the run of all the work, so the shards of one command become one run.
    """
    merged = Merged()
    for page in _replies(source):
        merged += writer.transact(partial(_keep, page=page))
    seen: set[bytes] = set()
    for info in source.runs():
        # Of several runs of one spec only the latest joins another: a fresh one starts over.
        merged += _merge_run(source, folder, writer, info, by_spec=info.spec_key not in seen)
        seen.add(info.spec_key)
    return merged


def _merge_run(
    source: Reader, folder: Path, writer: StoreWriter, info: RunInfo, *, by_spec: bool
) -> Merged:
    leases: list[Lease] = []
    spec = RunSpec(info.command, info.settings, info.inputs, info.folder, info.work)
    whole = info
    if spec.shard:
        whole = replace(info, spec_key=spec.whole.key, settings=spec.whole.settings)

    def begin(connection: sqlite3.Connection) -> str:
        target = _target(connection, whole, by_spec=by_spec)
        id = target.id if target else _free_id(connection, whole)
        leases.append(lease_run(folder, id, target))
        _join(connection, id, whole, target, spec.shard)
        return id

    try:
        id = writer.transact(begin)
        merged = Merged(n_runs=1)
        for page in source.results(info.id):
            merged += writer.transact(partial(_add, id=id, page=page))
    finally:
        for lease in leases:
            lease.release()
    return merged


def _target(connection: sqlite3.Connection, info: RunInfo, *, by_spec: bool) -> RunInfo | None:
    """The run of this store that receives the rows."""
    same = f"SELECT {COLUMNS} FROM runs WHERE spec_key = ?"
    row = connection.execute(
        f"{same} AND id IN (?, ?)", (info.spec_key, info.id, _other_id(info))
    ).fetchone()
    if row is None and by_spec:
        row = connection.execute(
            f"{same} ORDER BY created DESC, rowid DESC LIMIT 1", (info.spec_key,)
        ).fetchone()
    return None if row is None else info_of(row)


def _free_id(connection: sqlite3.Connection, info: RunInfo) -> str:
    """Its own id, unless another run of this store has it."""
    is_taken = connection.execute("SELECT 1 FROM runs WHERE id = ?", (info.id,)).fetchone()
    return info.id if is_id(info.id) and is_taken is None else _other_id(info)


def _other_id(info: RunInfo) -> str:
    """A derived id, the same at every merge."""
    told = digest([info.spec_key, info.id, str(info.created)]).hex()
    return f"{datetime.fromtimestamp(info.created):%Y%m%d}-{told[:8]}"


def _join(
    connection: sqlite3.Connection, id: str, info: RunInfo, target: RunInfo | None, shard: str
) -> None:
    """Create the run, or update the existing one with the status of both."""
    status: Status = "stopped" if info.status == "running" else info.status  # nobody goes on here
    counts = dict(target.counts) if target else {}
    was_done = target is not None and target.status == "done"  # as it has all rows, it stays so
    if shard and ("shards" in counts or not was_done):
        parts = _parts(counts) - {shard} | ({shard} if status == "done" else set())
        status, counts["shards"] = "done" if _are_all(parts) else "stopped", sorted(parts)
    elif target is not None and target.status != status != "done":
        status = "stopped"
    if was_done:
        status = "done"
    if target is not None:
        connection.execute(
            "UPDATE runs SET status = ?, counts = CAST(? AS TEXT) WHERE id = ?",
            (status, json_bytes(counts), id),
        )
        return
    connection.execute(
        "INSERT INTO runs (id, spec_key, command, folder, settings, inputs, status, created, updated,"
        " counts) VALUES (?, ?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),"
        " ?, ?, ?, CAST(? AS TEXT))",
        (
            id, info.spec_key, json_bytes({"argv": list(info.command), "work": dict(info.work)}),
            info.folder.encode("utf-8", "backslashreplace"), json_bytes(dict(info.settings)),
            json_bytes(dict(info.inputs)), status, info.created, time.time(), json_bytes(counts),
        ),
    )  # fmt: skip


def _parts(counts: Mapping[str, Any]) -> set[str]:
    """The shards of a run that are done."""
    known = counts.get("shards")
    return (
        {part for part in map(str, known) if is_shard(part)} if isinstance(known, list) else set()
    )


def _are_all(parts: set[str]) -> bool:
    """Whether the parts are complete: all n shards of some n."""
    found = Counter(int(part.partition("/")[2]) for part in parts)
    return any(n_found == n for n, n_found in found.items())


def _add(connection: sqlite3.Connection, id: str, page: list[tuple[Any, ...]]) -> Merged:
    n_results = n_conflicts = n_bad = 0
    for key, seq, task_id, status, row, trace in page:
        if not _is_whole(key, seq, row):
            n_bad += 1
            continue
        # Also under another key: a task whose document was another when it was run there.
        here = connection.execute(_HERE, (id, key, id, seq, task_id)).fetchall()
        whole = [before for _, before in here if unpacked(before) is not None]
        if row in whole:
            continue
        if whole:
            is_failed, was_failed = _is_failed(row), all(map(_is_failed, whole))
            if is_failed == was_failed:
                n_conflicts += 1
            if is_failed or not was_failed:
                continue
        connection.executemany(_REMOVE, [(id, key_before) for key_before, _ in here])
        connection.execute(_ADD, (id, key, seq, task_id, status, row, trace))
        n_results += 1
    return Merged(n_results=n_results, n_conflicts=n_conflicts, n_bad=n_bad)


def _is_whole(key: object, seq: object, row: object) -> bool:
    return isinstance(key, bytes) and isinstance(seq, int) and unpacked(row) is not None


def _is_failed(row: bytes) -> bool:
    return not is_done(unpacked(row) or {})


def _replies(source: Reader) -> Iterator[list[tuple[Any, ...]]]:
    key = b""
    while True:
        page = source.all(
            "SELECT key, body, created FROM replies WHERE key > ? ORDER BY key LIMIT ?",
            (key, _PAGE),
        )
        if not page or not isinstance(page[-1][0], bytes) or page[-1][0] <= key:
            return
        key = page[-1][0]
        yield page


def _keep(connection: sqlite3.Connection, page: list[tuple[Any, ...]]) -> Merged:
    n_replies = n_conflicts = n_bad = 0
    for key, body, created in page:
        if not isinstance(key, bytes) or unpacked_reply(body) is None:
            n_bad += 1
            continue
        here = connection.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()
        if here is not None and unpacked_reply(here[0]) is not None:
            n_conflicts += here[0] != body
            continue
        connection.execute(_KEEP, (key, body, created))
        n_replies += 1
    return Merged(n_replies=n_replies, n_conflicts=n_conflicts, n_bad=n_bad)


@dataclass(frozen=True, slots=True)
class Pruned:
    """Counts of removed data."""

    n_runs: int
    n_results: int
    n_replies: int
    n_bytes: int


def chosen(
    runs: Sequence[RunInfo], *, older_than_s: float | None, keep: int | None
) -> list[RunInfo]:
    """The runs that nobody writes and that are beyond every limit that is given."""
    if older_than_s is None and keep is None:
        return []
    before = time.time() - (older_than_s or 0)
    return [run for run in runs[keep or 0 :] if run.holder is None and run.updated <= before]


def prune(
    folder: Path,
    writer: StoreWriter,
    runs: Sequence[RunInfo],
    *,
    replies: bool,
    older_than_s: float | None,
) -> Pruned:
    """Remove these runs, and replies if wanted: all, or those that are older."""
    n_results = 0
    for info in runs:
        n_results += _remove(folder, writer, info)

    def work(connection: sqlite3.Connection) -> tuple[int, int]:
        n_replies = 0
        if replies:
            before = time.time() - (older_than_s or 0)
            removed = connection.execute("DELETE FROM replies WHERE created <= ?", (before,))
            n_replies = removed.rowcount
        n_before = _n_pages(connection)
        (n_free,) = connection.execute("PRAGMA freelist_count").fetchone()
        for _ in range(n_free):  # sqlite3 takes only the first step of a pragma, which is one page
            connection.execute("PRAGMA incremental_vacuum(1)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        return n_replies, (n_before - _n_pages(connection)) * size

    n_replies, n_bytes = writer.transact(work)
    return Pruned(len(runs), n_results, n_replies, n_bytes)


def _remove(folder: Path, writer: StoreWriter, info: RunInfo) -> int:
    """Remove one run; how many results it had."""

    def work(connection: sqlite3.Connection) -> int:
        lease = lease_run(folder, info.id, info)
        try:
            removed = connection.execute("DELETE FROM results WHERE run_id = ?", (info.id,))
            connection.execute("DELETE FROM runs WHERE id = ?", (info.id,))
        finally:
            lease.release()
        return removed.rowcount

    return writer.transact(work)


def _n_pages(connection: sqlite3.Connection) -> int:
    (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
    return int(n_pages)
