"""Files that several processes use: locks, SQLite connections, and their errors in one line.

Used by the store, the cache of embeddings, indexes and downloads. The user's own files may be damaged,
which is reported in one line; they are not expected to be hostile.

Locks are the operating system's own: importing `filelock` takes 36 ms of processor time, and its lock
takes 90 us per commit instead of 2 us.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from pearl.errors import StoreError

if sys.platform == "win32":
    from msvcrt import LK_NBLCK as _LOCK
    from msvcrt import LK_NBRLCK as _SHARED
    from msvcrt import LK_UNLCK as _UNLOCK
    from msvcrt import locking

    def _flock(file: int, how: int) -> None:
        locking(file, how, 1)

else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH
    from fcntl import LOCK_UN as _UNLOCK
    from fcntl import flock as _flock

    _LOCK, _SHARED = LOCK_EX | LOCK_NB, LOCK_SH | LOCK_NB


_BUSY_S = 60.0  # Seconds to wait for other programs that lock a database, such as backups

FAILURES: tuple[type[Exception], ...] = (sqlite3.Error, OSError, UnicodeDecodeError)
"""Errors of using a database. UnicodeError: Python cannot decode SQLite messages that quote damaged text."""

_REASONS = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free disk space; committed data is kept"),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written",
        "check the disk and its free space; committed data is kept",
    ),
    sqlite3.SQLITE_READONLY: ("cannot be written", "check its permissions, or {elsewhere}"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "check its permissions, or {elsewhere}"),
    sqlite3.SQLITE_PERM: ("cannot be opened", "check its permissions, or {elsewhere}"),
    sqlite3.SQLITE_BUSY: ("another program has locked it", "wait for it to end, and try again"),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "restore a copy, or move the file away and run the command again",
    ),
    sqlite3.SQLITE_NOTADB: (
        "not a store of pearl, or damaged",
        "restore a copy, or move the file away and run the command again",
    ),
}


def connect(
    path: Path, mode: Literal["ro", "rw", "rwc", "immutable"], *, vfs: str | None = None
) -> sqlite3.Connection:
    """A connection without implicit transactions; texts are returned as bytes, because they may be damaged."""
    how = "immutable=1" if mode == "immutable" else f"mode={mode}"
    uri = f"{path.resolve().as_uri()}?{how}{f'&vfs={vfs}' if vfs else ''}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_S
    )
    connection.text_factory = bytes
    return connection


def create_private(path: Path) -> None:
    """Create a file that only the user can read, unless it exists."""
    # An existing database is never opened here: closing a file drops all locks that this process
    # has on it.
    if not path.exists():
        with suppress(FileExistsError):  # Another process has just created it, also privately
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    elif path.stat().st_mode & 0o077:
        path.chmod(0o600)  # SQLite gives its additional files the same permissions


def write_private(path: Path, data: bytes, *, is_synced: bool = False) -> None:
    """Write a file that only the user can access, creating its folder if needed; other processes see the whole file or none."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    create_private(part)
    with part.open("wb") as file:
        file.write(data)
        if is_synced:
            file.flush()
            os.fsync(file.fileno())
    part.replace(path)
    if is_synced:
        sync_folder(path.parent)


def version_of(connection: sqlite3.Connection) -> tuple[int, int] | None:
    """Application id and version of a database; None if it is empty."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return None if (version, application, n_tables) == (0, 0, 0) else (application, version)


def is_damaged(error: Exception) -> bool:
    """Whether an error means that a database is damaged."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_of_text = isinstance(error, UnicodeDecodeError)
    return is_of_text or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def to_store_error(
    error: Exception, path: Path, elsewhere: str = "name another --store"
) -> StoreError:
    """The error of a database, with its path and advice."""
    if isinstance(error, OSError):
        return StoreError(f"cannot be used: {error.strerror}", path=path, help=elsewhere)
    if isinstance(error, UnicodeDecodeError):
        message, help = _REASONS[sqlite3.SQLITE_CORRUPT]
        return StoreError(message, path=path, help=help)
    code = getattr(error, "sqlite_errorcode", None) or 0
    message, help = _REASONS.get(
        code & 0xFF, ("cannot be read", _REASONS[sqlite3.SQLITE_CORRUPT][1])
    )
    # SQLite may quote damaged text.
    reason = str(error).partition("\n")[0][:200].encode("ascii", "replace").decode()
    return StoreError(f"{message}: {reason}", path=path, help=help.format(elsewhere=elsewhere))


class WriteLock:
    """Lets one process write at a time; the system releases it when the process ends."""

    def __init__(self, path: Path, help: str, patience_s: float = 60.0) -> None:
        self._path = path
        self._help = help
        self._patience_s = patience_s
        self._file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        give_up = time.monotonic() + self._patience_s
        wait_s = 0.000_5
        while not _try_lock(self._file, self._path, self._help):
            if time.monotonic() > give_up:
                raise StoreError(
                    f"another process has been writing for {self._patience_s:.0f} s",
                    path=self._path,
                    help="end the process that hangs, then run the same command again",
                )
            import random

            # Random, so that waiting processes do not retry at the same time.
            time.sleep(wait_s * random.uniform(0.5, 1.5))
            wait_s = min(0.02, 2 * wait_s)
        try:
            yield
        finally:
            _flock(self._file, _UNLOCK)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Lease:
    """A lock held for a long time; its file is removed at the end."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file: int | None = file

    @classmethod
    def take(cls, path: Path, help: str) -> Lease | None:
        """The lease of a file; None if a running process holds it."""
        give_up = time.monotonic() + 0.2  # `is_held` locks the file for a moment
        while True:
            file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            is_ours = False
            try:
                if not _try_lock(file, path, help):
                    if time.monotonic() > give_up:
                        return None
                    time.sleep(0.001)
                    continue
                # The previous holder may have removed the file after it was opened here.
                is_ours = path.exists() and os.path.samestat(os.fstat(file), path.stat())
                if is_ours:
                    return cls(path, file)
            finally:
                if not is_ours:
                    os.close(file)

    @classmethod
    def is_held(cls, path: Path) -> bool:
        """Whether a running process holds the lease of a file."""
        try:
            if not path.is_file():  # Opening a pipe would wait
                return False
            file = os.open(path, os.O_RDONLY)
        except OSError:
            return False
        try:  # A shared lock: others may look at the same time
            return not _try_lock(file, path, "name a local disk", _SHARED)
        finally:
            os.close(file)  # And releases the lock

    def release(self) -> None:
        """Release the lease; later calls do nothing."""
        if self._file is not None:
            with suppress(PermissionError):  # Windows keeps open files; it is used again
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


def _try_lock(file: int, path: Path, help: str, how: int = _LOCK) -> bool:
    try:
        _flock(file, how)
    except (BlockingIOError, PermissionError):  # The latter on Windows
        return False
    except OSError as error:
        raise StoreError(
            f"this disk does not support locks: {error.strerror}", path=path, help=help
        ) from None
    return True


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Hold a lock file; waits as long as necessary."""
    with path.open("wb") as file:  # Closing the file releases the lock
        while not _try_lock(file.fileno(), path, "name a local disk"):
            time.sleep(0.02)
        yield


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power failure."""
    with suppress(OSError):  # Some systems cannot synchronise folders
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
