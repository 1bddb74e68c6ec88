"""The store's SQLite file: open it, create or check its tables, translate errors."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from pearl.documents.digest import sealed, unsealed
from pearl.errors import StoreError
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, Usage
from pearl.llm.flaws import is_blank
from pearl.plugins import persistence

FILE = "store.db"

VERSION = 4
"""Version of the tables. Versions 2 and 3 are converted; files of other versions are refused."""

_CONVERSIONS = {
    2: "ALTER TABLE replies DROP COLUMN checksum;\nALTER TABLE results DROP COLUMN checksum",
    3: "UPDATE replies SET body = CAST(sealed(key, CAST(body AS BLOB)) AS TEXT);\n"
    "UPDATE results SET row = CAST(sealed(key, CAST(row AS BLOB)) AS TEXT)",
}
"""Version → the statements that convert it to the next version."""

_APPLICATION = 0x5045524C  # SQLite application id of a store: `PERL`

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


CURRENT = (_APPLICATION, VERSION)


def decoded(value: object) -> str:
    """A text from the file; damaged bytes are replaced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def create_database(
    path: Path, *, vfs: str | None = None
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Open a connection for writing, and return warnings; tables are created or converted if needed."""
    persistence.create_private(path)
    connection = persistence.connect(path, "rw", vfs=vfs)
    try:
        version = _version(connection, path)
        if version is None:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        warnings = _logged(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")  # Overwrites deleted texts
        if version is None:
            _commit(connection, f"{_TABLES}PRAGMA application_id = {_APPLICATION}")
        elif version < VERSION:
            copy = path.with_name(f"{path.name}.version-{version}")
            copy.unlink(missing_ok=True)  # Left by an interrupted conversion
            persistence.create_private(copy)
            try:
                connection.execute("VACUUM INTO ?", (str(copy),))
            except BaseException:
                copy.unlink(missing_ok=True)
                raise
            warnings += (
                f"{path}: the store of version {version} is converted to version {VERSION}, which earlier "
                f"versions of PEARL refuse; the old one is {copy.name}",
            )
            connection.create_function("sealed", 2, sealed)
            _commit(connection, ";\n".join(_CONVERSIONS[v] for v in range(version, VERSION)))
    except BaseException:
        connection.close()
        raise
    return connection, warnings


def _logged(connection: sqlite3.Connection, path: Path) -> tuple[str, ...]:
    """Turn on the write-ahead log; return warnings."""
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (
            sqlite3.SQLITE_FULL,
            sqlite3.SQLITE_READONLY,
        ):
            raise
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if decoded(mode) == "wal":
        return ()
    return (
        f"{path}: this disk does not support shared memory: SQLite is slower, and readers may wait; "
        "a --store on a local disk is better",
    )


def _commit(connection: sqlite3.Connection, statements: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in statements.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def open_existing(path: Path) -> sqlite3.Connection:
    """Open an existing store for reading; it may be of an older version."""
    if not path.is_file():
        raise StoreError("no store here", path=path.parent, help="name its folder with --store")
    connection = persistence.connect(path, "ro")
    try:
        try:
            version = _version(connection, path)
        except sqlite3.OperationalError:
            # On a read-only disk, SQLite cannot use the write-ahead log; without a log, the file
            # alone is complete.
            log = path.with_name(f"{path.name}-wal")
            if os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size):
                raise
            connection.close()
            connection = persistence.connect(path, "immutable")
            version = _version(connection, path)
        if version is None:
            raise StoreError("the store is empty", path=path, help="run a command with it first")
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: Path) -> int | None:
    """The version of the tables; None if the file is empty."""
    found = persistence.version_of(connection)
    if found is None:
        return None
    application, version = found
    if application != _APPLICATION:
        raise StoreError("the file is not a store of pearl", path=path, help="name another --store")
    if version not in (*_CONVERSIONS, VERSION):
        raise StoreError(
            f"the store is of version {version}, this pearl reads version {VERSION}",
            path=path,
            help="use the pearl that made it, or name another --store",
        )
    return version


MAX_TRACE = 1 << 28  # Maximum bytes of a trace; longer ones are truncated


def unpacked(data: object) -> dict[str, Any] | None:
    """The JSON object in a row; None if the data is not one."""
    if not isinstance(data, bytes):
        return None
    try:
        try:
            found = msgspec.json.decode(data)
        except msgspec.DecodeError:  # A lone surrogate, a number without bounds
            found = json.loads(data.decode())  # json.loads would guess the encoding of bytes
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_done(row: Mapping[str, Any]) -> bool:
    """Whether the task of a row is complete: it neither failed nor was stopped by a limit."""
    return row.get("status") not in ("failed", "unfinished")


def packed_trace(lines: str) -> bytes:
    """Compress a trace; its prompts have much text in common."""
    data = lines.encode("utf-8", "backslashreplace")
    if len(data) > _SMALL_TRACE:
        return zlib.compress(data, 1)
    small = zlib.compressobj(1, zlib.DEFLATED, 12, 6)
    return small.compress(data) + small.flush()


_SMALL_TRACE = 4_096
"""Bytes, the window of 12 bits: of so many, more memory makes no smaller result, but takes longer to clear."""


def unpacked_trace(data: object) -> str:
    """The lines of a trace, which is compressed or, in older stores, plain; of a damaged trace, the readable part."""
    if not isinstance(data, bytes):
        return ""
    if not data.startswith(b"{"):
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(data, MAX_TRACE)
        except zlib.error:
            return ""
    return data.decode("utf-8", "replace")


_RARE: Mapping[str, type | tuple[type, ...]] = {
    "fingerprint": str, "temperature": (int, float), "prompt": str,
}  # fmt: skip
"""Fields of a completion that few stored replies have, with their types."""


def packed_replies(completions: Mapping[bytes, Completion]) -> Iterator[tuple[bytes, bytes]]:
    """Encode replies for the store, each with its key; many rows have the same reply."""
    bodies: dict[int, bytes] = {}
    for key, completion in completions.items():
        if (body := bodies.get(id(completion))) is None:
            usage = completion.usage.to_dict()
            said = {"text": completion.text, "model": completion.model, "usage": usage}
            rare = {name: getattr(completion, name) for name in _RARE}
            said |= {name: value for name, value in rare.items() if value not in ("", None)}
            body = bodies[id(completion)] = json_bytes(said)
        yield key, sealed(key, body)


def unpacked_reply(key: bytes, body: object) -> Completion | None:
    """Decode a stored reply; None if it is damaged."""
    match unpacked(unsealed(key, body)):
        case {
            "text": str(text),
            "model": str(model),
            "usage": {
                "input_tokens": int(n_input),
                "output_tokens": int(n_output),
                "cached_tokens": int(n_cached),
                **more,
            },
            **rare,
        } if not is_blank(text):
            written = (more.get("written_tokens"), more.get("written_long_tokens"))
            n_written = [n if isinstance(n, int) else 0 for n in written]
            usage = Usage.bounded(n_input, n_output, n_cached, *n_written)
            known: dict[str, Any] = {
                name: rare[name] for name, kind in _RARE.items() if isinstance(rare.get(name), kind)
            }
            return Completion(text, model, usage, **known)
        case _:
            return None


Result = TypeVar("Result")

Work = Callable[[sqlite3.Connection], Result]  # Statements to run in a transaction

GATHER_S = 0.003
"""Seconds that a commit waits for more work, if the previous commit had several pieces of work. Thus many concurrent
writers share a few commits, and a single writer does not wait (PostgreSQL's `commit_delay`)."""


class _Write(Struct):
    work: Work[None]
    done: asyncio.Future[None]


class StoreWriter:
    """A thread that writes to the store."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, lock: persistence.WriteLock
    ) -> None:
        self._path = path
        self._connection = connection
        self._lock = lock
        self._place = _place(path)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="pearl-store")
        self._mutex = threading.Lock()
        self._waiting: list[_Write] = []
        self._n_last = 1
        self._is_closed = False

    async def write(self, work: Work[None]) -> None:
        """Add work to a commit shared with others; return when it is on disk."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._check_open()
        with self._mutex:
            self._waiting.append(_Write(work, done))
            is_first = len(self._waiting) == 1
        if is_first:  # The others share this commit
            self._submit(self._commit_group)
        await done

    def transact(self, work: Work[Result]) -> Result:
        """Run work in its own transaction and wait for it; an error rolls it back."""
        self._check_open()
        return self._submit(partial(self._commit, work)).result()

    def close(self) -> None:
        """Finish pending work and stop; later calls do nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._submit(self._end)
            self._executor.shutdown()

    def _submit(self, call: Callable[[], Result]) -> Future[Result]:
        """Call a function in the thread, or directly if Python is exiting and has ended the thread."""
        try:
            return self._executor.submit(call)
        except RuntimeError:
            done: Future[Result] = Future()
            done.set_result(call())
            return done

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("the store is closed", path=self._path)

    def _commit_group(self) -> None:
        if self._n_last > 1:
            time.sleep(GATHER_S)
        with self._mutex:
            group, self._waiting = self._waiting, []
        self._n_last = len(group)
        error: BaseException | None = None

        def work(connection: sqlite3.Connection) -> None:
            for write in group:
                write.work(connection)

        try:
            self._commit(work)
        except BaseException as problem:  # noqa: BLE001 - every waiting task receives it
            error = problem
        loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for write in group:
            loops.setdefault(write.done.get_loop(), []).append(write.done)
        for loop, futures in loops.items():  # Wake each loop once
            with suppress(RuntimeError):  # The loop has ended
                loop.call_soon_threadsafe(_settle, futures, error)

    def _commit(self, work: Work[Result]) -> Result:
        try:
            with self._lock.held():
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    result = work(self._connection)
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
        except persistence.FAILURES as error:
            raise persistence.to_store_error(error, self._path) from None
        # Writing to a deleted file succeeds, but the data is lost.
        if _place(self._path) != self._place:
            raise StoreError(
                "the file was moved or removed while it was written",
                path=self._path,
                help="put it back, and run the same command again",
            )
        return result

    def _end(self) -> None:
        # The last connection to close moves the log into the file, during which no other process
        # may write. If that fails, the log remains, and the next process that opens the store
        # reads it.
        with suppress(StoreError, *persistence.FAILURES), self._lock.held():
            self._connection.close()
        self._lock.close()


def _place(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - in every commit, and a Path takes ten times as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _settle(futures: list[asyncio.Future[None]], error: BaseException | None) -> None:
    for future in futures:
        if future.done():
            continue  # Cancelled meanwhile
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
