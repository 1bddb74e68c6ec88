"""The SQLite file of the store: open, create or check its tables, and translate errors."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pearl.errors import StoreError
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, Usage
from pearl.llm.flaws import is_blank
from pearl.plugins.persistence import (
    FAILURES,
    WriteLock,
    connect,
    create_private,
    to_store_error,
    version_of,
)

FILE = "store.db"

VERSION = 3
"""Version of the tables. Version 2, which had a checksum in each row, is converted when it is opened
for writing; files of other versions are refused."""

_SUMMED = ("replies", "results")
"""Tables that had a checksum in each row."""

_APPLICATION = 0x5045524C
"""SQLite application id of a store: `PERL`."""

_TABLES = """
CREATE TABLE replies (
    key BLOB PRIMARY KEY, body TEXT NOT NULL, created REAL NOT NULL
);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, spec_key BLOB NOT NULL,
    command TEXT NOT NULL, folder TEXT NOT NULL, settings TEXT NOT NULL, inputs TEXT NOT NULL,
    status TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, counts TEXT NOT NULL,
    lease_pid INTEGER, lease_host TEXT, lease_started TEXT, lease_at REAL
);
CREATE INDEX runs_by_spec ON runs (spec_key, created);
CREATE TABLE results (
    run_id TEXT NOT NULL, key BLOB NOT NULL, seq INTEGER NOT NULL, task_id TEXT NOT NULL,
    status TEXT NOT NULL, row TEXT NOT NULL, trace TEXT,
    PRIMARY KEY (run_id, key)
);
CREATE INDEX results_by_seq ON results (run_id, seq);
CREATE INDEX results_failed ON results (run_id) WHERE status = 'failed';
"""


def decoded(value: object) -> str:
    """A text of the file; damaged bytes are replaced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def create_database(path: Path, *, vfs: str | None = None) -> tuple[sqlite3.Connection, str | None]:
    """The connection that writes, and a warning; creates or converts the tables if needed."""
    create_private(path)
    connection = connect(path, "rw", vfs=vfs)
    try:
        version = _version(connection, path)
        if version is None:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        warning = _logged(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        if version is None:
            _commit(connection, f"{_TABLES}PRAGMA application_id = {_APPLICATION}")
        elif version < VERSION:
            _commit(
                connection, ";\n".join(f"ALTER TABLE {t} DROP COLUMN checksum" for t in _SUMMED)
            )
    except BaseException:
        connection.close()
        raise
    return connection, warning


def _logged(connection: sqlite3.Connection, path: Path) -> str | None:
    """Turn the write-ahead log on."""
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
            raise
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if decoded(mode) == "wal":
        return None
    return (
        f"{path}: this disk does not support shared memory: SQLite is slower, and readers may wait; "
        "a --store on a local disk is better"
    )


def _commit(connection: sqlite3.Connection, statements: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in statements.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def open_existing(path: Path) -> sqlite3.Connection:
    """A connection that reads an existing store."""
    if not path.is_file():
        raise StoreError("no store here", path=path.parent, help="name its folder with --store")
    connection = connect(path, "ro")
    try:
        try:
            version = _version(connection, path)
        except sqlite3.OperationalError:
            # On a read-only disk SQLite cannot use the write-ahead log. Without a log the file alone is
            # complete.
            log = path.with_name(f"{path.name}-wal")
            if os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size):
                raise
            connection.close()
            connection = connect(path, "immutable")
            version = _version(connection, path)
        if version is None:
            raise StoreError("the store is empty", path=path, help="run a command with it first")
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: Path) -> int | None:
    """The version of the tables; None if the file is empty."""
    found = version_of(connection)
    if found is None:
        return None
    application, version = found
    if application != _APPLICATION:
        raise StoreError("the file is not a store of pearl", path=path, help="name another --store")
    if version not in (VERSION - 1, VERSION):
        raise StoreError(
            f"the store is of version {version}, this pearl reads version {VERSION}",
            path=path,
            help="use the pearl that made it, or name another --store",
        )
    return version


MAX_TRACE = 1 << 28
"""Maximum bytes of a trace; a longer trace is truncated."""


def unpacked(data: object) -> dict[str, Any] | None:
    """The JSON object, or None if the data is not one."""
    if not isinstance(data, bytes):
        return None
    try:
        found = json.loads(data.decode())  # json.loads would guess the encoding of bytes
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_done(row: Mapping[str, Any]) -> bool:
    """Whether the task of a row is complete: neither failed nor stopped by a limit."""
    return row.get("status") not in ("failed", "unfinished")


def packed_trace(lines: str) -> bytes:
    """A compressed trace: its prompts have much text in common."""
    return zlib.compress(lines.encode("utf-8", "backslashreplace"), 1)


def unpacked_trace(data: object) -> str:
    """The lines of a trace, compressed or, in older stores, plain; of a damaged trace the readable part."""
    if not isinstance(data, bytes):
        return ""
    if not data.startswith(b"{"):
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(data, MAX_TRACE)
        except zlib.error:
            return ""
    return data.decode("utf-8", "replace")


def packed_reply(completion: Completion) -> bytes:
    """The body of a reply."""
    usage = completion.usage
    return json_bytes(
        {
            "text": completion.text,
            "model": completion.model,
            "usage": {
                "input_tokens": usage.n_input_tokens,
                "output_tokens": usage.n_output_tokens,
                "cached_tokens": usage.n_cached_tokens,
            },
        }
    )


def unpacked_reply(body: object) -> Completion | None:
    """The completion in the body of a reply; None if it is damaged."""
    match unpacked(body):
        case {
            "text": str(text),
            "model": str(model),
            "usage": {
                "input_tokens": int(n_input),
                "output_tokens": int(n_output),
                "cached_tokens": int(n_cached),
            },
        } if not is_blank(text):
            return Completion(text, model, Usage(n_input, n_output, n_cached))
        case _:
            return None


Result = TypeVar("Result")

Work = Callable[[sqlite3.Connection], Result]
"""Statements that are run in a transaction."""

_MAX_GROUP = 1_000
"""Maximum works per commit: a bound for the memory and for the wait of other processes."""

GATHER_S = 0.003
"""Seconds that a commit waits for more work if the last commit had several works. So many concurrent
writers share a few commits, and a single writer does not wait (PostgreSQL's `commit_delay`)."""


@dataclass(slots=True)
class _Item:
    work: Work[Any]
    done: asyncio.Future[Any] | Future[Any]
    loop: asyncio.AbstractEventLoop | None
    """The event loop of the future; None if a thread waits for it."""
    result: Any = None


class StoreWriter:
    """A thread that writes to the store."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriteLock) -> None:
        self._path = path
        self._connection = connection
        self._lock = lock
        self._place = _place(path)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write, name="pearl-store", daemon=True)
        self._thread.start()

    async def write(self, work: Work[None]) -> None:
        """Do work in a commit that other works share; returns when it is on the disk."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._put(_Item(work, done, loop))
        await done

    def transact(self, work: Work[Result]) -> Result:
        """Do work in a transaction of its own, and wait for it; an error undoes it."""
        done: Future[Result] = Future()
        self._put(_Item(work, done, None))
        return done.result()

    def close(self) -> None:
        """Finish pending work and stop; idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._thread.join()

    def _put(self, item: _Item) -> None:
        if self._is_closed:
            raise StoreError("the store is closed", path=self._path)
        self._queue.put(item)

    def _write(self) -> None:
        is_open = True
        n_last = 1
        while is_open:
            items = [self._queue.get()]
            if n_last > 1 and items[0] is not None and items[0].loop is not None:
                time.sleep(GATHER_S)
            while len(items) < _MAX_GROUP and items[-1] is not None:
                try:
                    items.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            is_open = items[-1] is not None
            n_last = len(items)
            group: list[_Item] = []
            for item in items:
                if item is None:
                    break
                if item.loop is None:
                    self._commit(group)
                    self._commit([item])
                    group = []
                else:
                    group.append(item)
            self._commit(group)
        self._end()

    def _end(self) -> None:
        # The last connection to close moves the log into the file, and no other process may write then.
        # If that fails the log stays, and the next process that opens the store reads it.
        with suppress(StoreError, *FAILURES), self._lock.held():
            self._connection.close()
        self._lock.close()

    def _commit(self, items: list[_Item]) -> None:
        if not items:
            return
        error: BaseException | None = None
        try:
            with self._lock.held():
                self._transact(items)
        except FAILURES as problem:
            error = to_store_error(problem, self._path)
        except BaseException as problem:  # noqa: BLE001 - whoever waits for it is told
            error = problem
        _tell(items, error)

    def _transact(self, items: list[_Item]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for item in items:
                item.result = item.work(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        # Writing to a removed file succeeds, and the data is lost.
        if _place(self._path) != self._place:
            raise StoreError(
                "the file was moved or removed while it was written",
                path=self._path,
                help="put it back, and run the same command again",
            )


def _place(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - in every commit, and a Path takes ten times as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _tell(items: list[_Item], error: BaseException | None) -> None:
    """Resolve the futures; each event loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[_Item]] = {}
    for item in items:
        if item.loop is None:
            _settle([item], error)
        else:
            loops.setdefault(item.loop, []).append(item)
    for loop, own in loops.items():
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_settle, own, error)


def _settle(items: list[_Item], error: BaseException | None) -> None:
    for item in items:
        if item.done.done():
            continue  # cancelled meanwhile
        if error is None:
            item.done.set_result(item.result)
        else:
            item.done.set_exception(error)
