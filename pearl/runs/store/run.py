"""A run being written: begin, resume, record."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pearl.errors import StoreError
from pearl.errors.escaping import json_bytes
from pearl.runs.store.database import FILE
from pearl.runs.store.locks import Holder, RunLease
from pearl.runs.store.reading import Reader, row_sum
from pearl.runs.store.rows import packed_trace
from pearl.runs.store.runs import COLUMNS, RunInfo, RunSpec, Status, info_of, is_id, new_id
from pearl.runs.store.writer import StoreWriter

_RECORD = """
INSERT INTO results (run_id, key, seq, task_id, status, checksum, row, trace)
VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT), ?)
ON CONFLICT (run_id, key) DO UPDATE SET
    seq = excluded.seq, task_id = excluded.task_id, status = excluded.status,
    checksum = excluded.checksum, row = excluded.row, trace = excluded.trace
"""

_SUPERSEDE = "DELETE FROM results WHERE run_id = ? AND seq = ? AND task_id = ? AND key <> ?"


class Run:
    """A run that this process writes."""

    def __init__(self, id: str, reader: Reader, writer: StoreWriter, lease: RunLease) -> None:
        self.id = id
        self._reader = reader
        self._writer = writer
        self._lease = lease
        self._is_finished = False

    def has(self, key: bytes) -> bool:
        """Whether a whole row is recorded under this key that is no failure: nothing is to do."""
        return self._reader.is_done(self.id, key)

    def outcome(self, key: bytes) -> dict[str, Any] | None:
        """The row that is recorded under this key, a failure too; None where there is none."""
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
        digest = row_sum(key, seq, data)
        values = (self.id, key, seq, id, str(row.get("status")), digest, data, events)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SUPERSEDE, (self.id, seq, id, key))
            connection.execute(_RECORD, values)

        await self._writer.write(work)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row once, in the order of the work, read as they are taken."""
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
) -> tuple[str, RunLease]:
    """The id and the lease of a run of this spec: a new one, or the latest that there is."""
    leases: list[RunLease] = []

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


def lease_run(folder: Path, id: str, info: RunInfo | None) -> RunLease:
    """The lease of a run."""
    if not is_id(id):
        raise StoreError(f"no id of a run: '{id[:40]}'", path=folder / FILE, help="move it away")
    lease = RunLease.take(folder / f"run-{id}.lock")
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
            f"run {id} was begun with other settings or inputs",
            path=folder / FILE,
            help="give the command itself again: that begins another run",
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
