"""The SQLite file of the store: open, create or check its tables, and translate errors."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Literal

from pearl.errors import StoreError

FILE = "store.db"

VERSION = 2
"""Of the tables; a file of another version is refused, never changed."""

_APPLICATION = 0x5045524C
"""SQLite application id of a store: `PERL`."""

_TABLES = """
CREATE TABLE replies (
    key BLOB PRIMARY KEY, checksum BLOB NOT NULL, body TEXT NOT NULL, created REAL NOT NULL
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
    status TEXT NOT NULL, checksum BLOB NOT NULL, row TEXT NOT NULL, trace TEXT,
    PRIMARY KEY (run_id, key)
);
CREATE INDEX results_by_seq ON results (run_id, seq);
CREATE INDEX results_failed ON results (run_id) WHERE status = 'failed';
"""

_BUSY_S = 60.0
"""Seconds to wait for programs that lock the file without being pearl, as a backup."""

FAILURES = (sqlite3.Error, OSError, UnicodeDecodeError)
"""What comes of using the file. Python cannot read what SQLite says where it quotes damaged text."""

_SAID = {
    sqlite3.SQLITE_FULL: ("there is no room for more", "make room; what was committed stays"),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written",
        "check the disk and its room; what was committed stays",
    ),
    sqlite3.SQLITE_READONLY: ("cannot be written", "check its rights, or name another --store"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "check its rights, or name another --store"),
    sqlite3.SQLITE_PERM: ("cannot be opened", "check its rights, or name another --store"),
    sqlite3.SQLITE_BUSY: ("another program has locked it", "wait for it to end, and try again"),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "put a copy back, or move the file away and give the command again",
    ),
    sqlite3.SQLITE_NOTADB: ("no store of pearl, or damaged", "move the file away"),
}


def to_store_error(error: sqlite3.Error | OSError | UnicodeDecodeError, path: Path) -> StoreError:
    """What went wrong, for people."""
    if isinstance(error, OSError):
        return StoreError(
            f"cannot be used: {error.strerror}", path=path, help="name another --store"
        )
    if isinstance(error, UnicodeDecodeError):
        return StoreError(
            _SAID[sqlite3.SQLITE_CORRUPT][0], path=path, help=_SAID[sqlite3.SQLITE_CORRUPT][1]
        )
    code = getattr(error, "sqlite_errorcode", None)
    said = _SAID.get(code & 0xFF) if code is not None else None
    message, help = said or ("cannot be read", _SAID[sqlite3.SQLITE_CORRUPT][1])
    # SQLite may quote what is damaged.
    reason = str(error).partition("\n")[0][:200].encode("ascii", "replace").decode()
    return StoreError(f"{message}: {reason}", path=path, help=help)


def decoded(value: object) -> str:
    """A text of the file; whatever stands in a damaged one comes out as some text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def connect(
    path: Path, mode: Literal["ro", "rw", "immutable"], *, vfs: str | None = None
) -> sqlite3.Connection:
    """A connection without transactions of its own; texts come as bytes, see `decoded`."""
    how = "immutable=1" if mode == "immutable" else f"mode={mode}"
    uri = f"{path.resolve().as_uri()}?{how}{f'&vfs={vfs}' if vfs else ''}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_S
    )
    # A damaged text has to come back as it is: whoever reads it decides what becomes of it.
    connection.text_factory = bytes
    return connection


def create_database(path: Path, *, vfs: str | None = None) -> tuple[sqlite3.Connection, str | None]:
    """The one connection that writes; the file and its tables are made where they are not."""
    # Never opened by other means than SQLite's once it is there: closing a file in a process drops
    # all locks that this process has on it, SQLite's, too.
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    elif path.stat().st_mode & 0o077:
        path.chmod(0o600)  # SQLite gives its other files the same rights
    connection = connect(path, "rw", vfs=vfs)
    try:
        is_new = _compare(connection, path)
        if is_new:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        warning = _logged(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            _make_tables(connection)
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
        f"{path}: this disk has no shared memory for SQLite's log: slower, and readers may wait; "
        "a --store on a local disk is better"
    )


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def open_existing(path: Path) -> sqlite3.Connection:
    """A connection that reads a store that is there."""
    if not path.is_file():
        raise StoreError(
            "there is no store here", path=path.parent, help="name its folder with --store"
        )
    connection = connect(path, "ro")
    try:
        try:
            is_new = _compare(connection, path)
        except sqlite3.OperationalError:
            # On a disk that cannot be written a log cannot be shared. Where there is none, nothing
            # is missing from the file itself.
            log = path.with_name(f"{path.name}-wal")
            if os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size):
                raise
            connection.close()
            connection = connect(path, "immutable")
            is_new = _compare(connection, path)
        if is_new:
            raise StoreError(
                "the store is empty", path=path, help="it is filled when a command runs with it"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _compare(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is still empty."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (version, application, n_tables) == (0, 0, 0):
        return True
    if application != _APPLICATION:
        raise StoreError("the file is no store of pearl", path=path, help="name another --store")
    if version != VERSION:
        raise StoreError(
            f"the store is of version {version}, this pearl reads version {VERSION}",
            path=path,
            help="use the pearl that made it, or name another --store",
        )
    return False
