"""Removes runs and replies from a store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pearl.runs.store.run import lease_run
from pearl.runs.store.runs import RunInfo
from pearl.runs.store.writer import StoreWriter


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
