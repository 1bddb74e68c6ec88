"""Import of results and replies of other stores."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from pearl.documents.digest import digest, unsealed
from pearl.errors import StoreError
from pearl.errors.escaping import json_bytes
from pearl.plugins.persistence import Lease
from pearl.runs.store import Store, lease_run
from pearl.runs.store.database import is_done, unpacked, unpacked_reply
from pearl.runs.store.runs import (
    COLUMNS,
    RunInfo,
    Status,
    info_of,
    insert_run,
    is_id,
    is_shard,
)

_PAGE = 200
"""Replies per transaction."""

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


@dataclass(slots=True)
class Merged:
    """The result of a merge."""

    n_runs: int = 0
    n_results: int = 0
    n_replies: int = 0
    n_conflicts: int = 0
    n_bad: int = 0


def merge(store: Store, folders: Sequence[Path]) -> Merged:
    """Import other stores; repeating it changes nothing."""
    merged = Merged()
    for folder in folders:
        if folder.resolve() == store.folder.resolve():
            raise StoreError(
                "a store cannot be merged into itself", path=folder, help="name another store"
            )
        with Store.open(folder, read_only=True) as source:
            _merge(store, source, merged)
    return merged


def _merge(store: Store, source: Store, merged: Merged) -> None:
    """Import another store.

    A run is merged into the run with the same id, else into the latest one with the same spec, else
    added as a new run. Shards are merged into the run of the whole work, so the shards of one
    command become one run.
    """
    for page in _replies(source):
        store.writer.transact(partial(_keep, page=page, merged=merged))
    seen: set[bytes] = set()
    for info in source.runs():
        # Of several runs with one spec only the latest is joined: the others were started anew.
        _merge_run(store, source, info, merged, by_spec=info.spec_key not in seen)
        seen.add(info.spec_key)


def _merge_run(
    store: Store, source: Store, info: RunInfo, merged: Merged, *, by_spec: bool
) -> None:
    leases: list[Lease] = []
    whole = replace(info.whole, spec_key=info.whole.key) if info.shard else info

    def begin(connection: sqlite3.Connection) -> str:
        target = _target(connection, whole, by_spec=by_spec)
        id = target.id if target else _free_id(connection, whole)
        leases.append(lease_run(store.folder, id, target))
        _join(connection, id, whole, target, info.shard)
        return id

    try:
        id = store.writer.transact(begin)
        merged.n_runs += 1
        for page in source.results(info.id):
            store.writer.transact(partial(_add, id=id, page=page, merged=merged))
    finally:
        for lease in leases:
            lease.release()


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
    """The id of the run, or a derived one if another run of this store has it."""
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
    # No process of this store continues a running one.
    status: Status = "stopped" if info.status == "running" else info.status
    counts = dict(target.counts) if target else {}
    was_done = target is not None and target.status == "done"  # it has all rows, and stays done
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
    insert_run(connection, id, info, info.spec_key, status, info.created, counts)


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


def _add(
    connection: sqlite3.Connection, id: str, page: list[tuple[Any, ...]], merged: Merged
) -> None:
    for key, seq, task_id, status, row, trace in page:
        said = unsealed(key, row) if isinstance(key, bytes) and isinstance(seq, int) else None
        if said is None or unpacked(said) is None:
            merged.n_bad += 1
            continue
        # Also rows of the same task with another key: its document was different there.
        here = connection.execute(_HERE, (id, key, id, seq, task_id)).fetchall()
        whole = [before for each in here if unpacked(before := unsealed(*each)) and before]
        if said in whole:
            continue
        if whole:
            is_failed, was_failed = _is_failed(said), all(map(_is_failed, whole))
            merged.n_conflicts += is_failed == was_failed
            if is_failed or not was_failed:
                continue
        connection.executemany(_REMOVE, [(id, key_before) for key_before, _ in here])
        connection.execute(_ADD, (id, key, seq, task_id, status, row, trace))
        merged.n_results += 1


def _is_failed(row: bytes) -> bool:
    return not is_done(unpacked(row) or {})


def _replies(source: Store) -> Iterator[list[tuple[Any, ...]]]:
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


def _keep(connection: sqlite3.Connection, page: list[tuple[Any, ...]], merged: Merged) -> None:
    for key, body, created in page:
        if not isinstance(key, bytes) or unpacked_reply(key, body) is None:
            merged.n_bad += 1
            continue
        here = connection.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()
        if here is not None and unpacked_reply(key, here[0]) is not None:
            merged.n_conflicts += here[0] != body
            continue
        connection.execute(_KEEP, (key, body, created))
        merged.n_replies += 1
