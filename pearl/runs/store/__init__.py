"""The store: persistent cached replies and rows of runs.

One folder with one SQLite file. What a method has returned from is on the disk. Every process that
works with the store has one thread that writes; processes take turns by a lock that dies with them.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from pearl.errors import StoreError
from pearl.llm import Completion
from pearl.plugins.files import why_unsafe
from pearl.plugins.persistence import FAILURES, WriteLock, connect, to_store_error
from pearl.runs.store.database import (
    FILE,
    VERSION,
    StoreWriter,
    create_database,
    open_existing,
    packed_reply,
)
from pearl.runs.store.reading import Reader
from pearl.runs.store.runs import LOCAL, Holder, RunInfo, RunSpec, Status
from pearl.runs.store.writing import Merged, Pruned, Run, begin_run, chosen, merge, prune

__all__ = [
    "FILE",
    "VERSION",
    "FreshCache",
    "Holder",
    "Merged",
    "Pruned",
    "Run",
    "RunInfo",
    "RunSpec",
    "Status",
    "Store",
    "default_folder",
    "refuse_others",
]

_KEEP = """
INSERT INTO replies (key, body, created) VALUES (?, CAST(? AS TEXT), ?)
ON CONFLICT (key) DO UPDATE SET body = excluded.body, created = excluded.created
"""


def default_folder() -> Path:
    """`$PEARL_STORE`, else `pearl` in `$XDG_DATA_HOME` or `~/.local/share`."""
    if named := os.environ.get("PEARL_STORE"):
        return Path(named)
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    if data.is_absolute():  # as the rules for that variable say
        return data / "pearl"
    try:
        return Path.home() / ".local" / "share" / "pearl"
    except RuntimeError:
        raise StoreError("no home folder found", help="name a folder with --store") from None


def refuse_others(folder: Path) -> None:
    """Check that only the user can write to a store."""
    for path in (folder, *(folder / f"{FILE}{end}" for end in ("", "-wal", "-shm"))):
        why = why_unsafe(path) if path.exists() else ""
        if why:
            raise StoreError(
                f"a run of this store is not resumed: {why}",
                path=path,
                help="take over what you trust into a store of yours: pearl runs merge",
            )


class FreshCache:
    """A reply cache that finds only replies stored since its creation."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[bytes] = set()

    async def reply(self, key: bytes) -> Completion | None:
        """The reply that was kept under a key since then."""
        return await self._store.reply(key) if key in self._known else None

    async def keep(self, key: bytes, completion: Completion) -> None:
        """Keep a reply."""
        await self.keep_all({key: completion})

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        """Keep replies, all or none."""
        await self._store.keep_all(completions)
        self._known.update(completions)


class Store(Reader):
    """An open store; use it as a context manager, or close it. `Store.open` makes one."""

    def __init__(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        writer: StoreWriter | None,
        warning: str | None = None,
    ) -> None:
        super().__init__(folder / FILE, connection)
        self.folder = folder
        self.warning = warning
        self.is_mended = False
        self._writer = writer
        self._runs: list[Run] = []

    @classmethod
    def open(cls, folder: Path | None = None, *, read_only: bool = False) -> Store:
        """Open the store of a folder; it is made where it is not there, unless it is only read."""
        folder = default_folder() if folder is None else folder
        path = folder / FILE
        try:
            if read_only:
                return cls(folder, open_existing(path), None)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls._opened(folder, path)
        except FAILURES as error:
            raise to_store_error(error, path) from None

    @classmethod
    def _opened(cls, folder: Path, path: Path) -> Store:
        # SQLite would see to that, too, but before 3.51.3 two connections that write and empty the
        # log at the same moment can damage the file, and a process waiting for its lock may starve.
        lock = WriteLock(folder / "write.lock", LOCAL)
        try:
            with lock.held():
                connection, warning = create_database(path)
        except BaseException:
            lock.close()
            raise
        writer = StoreWriter(path, connection, lock)
        try:
            return cls(folder, connect(path, "ro"), writer, warning)
        except BaseException:
            writer.close()
            raise

    async def reply(self, key: bytes) -> Completion | None:
        """The reply that was kept under this key, if it is there and whole."""
        return self.kept_reply(key)

    async def keep(self, key: bytes, completion: Completion) -> None:
        """Keep a reply; returns when it is on the disk."""
        await self.keep_all({key: completion})

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        """Keep replies by key, all or none: as `keep` does, in one commit."""
        now = time.time()
        rows = [(key, packed_reply(reply), now) for key, reply in completions.items()]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_KEEP, rows)

        await self._writing.write(work)

    def fresh(self) -> FreshCache:
        """A cache that stores replies here and ignores those stored before."""
        return FreshCache(self)

    def begin(self, spec: RunSpec, *, fresh: bool = False, id: str | None = None) -> Run:
        """Begin a run, or resume the latest of the same spec."""
        run_id, lease = begin_run(self.folder, self._writing, spec, is_fresh=fresh, id=id)
        run = Run(run_id, self, self._writing, lease)
        self._runs.append(run)
        if not self.are_indexed(run_id):
            self._writing.transact(lambda connection: connection.execute("REINDEX results"))
            self.is_mended = True
        return run

    def prune(
        self,
        *,
        older_than_s: float | None = None,
        keep: int | None = None,
        ids: Sequence[str] = (),
        replies: bool = False,
    ) -> Pruned:
        """Remove runs with their results; never one that is in use."""
        named = {info.id: info for info in map(self.run, ids)}
        for info in chosen(self.runs(), older_than_s=older_than_s, keep=keep):
            named.setdefault(info.id, info)
        return prune(
            self.folder, self._writing, list(named.values()), replies=replies,
            older_than_s=older_than_s,
        )  # fmt: skip

    def merge(self, folders: Sequence[Path]) -> Merged:
        """Import results and replies of other stores; repeating it changes nothing."""
        merged = Merged()
        for folder in folders:
            if folder.resolve() == self.folder.resolve():
                raise StoreError(
                    "a store cannot be merged into itself", path=folder, help="name another store"
                )
            with Store.open(folder, read_only=True) as other:
                merged += merge(other, self.folder, self._writing)
        return merged

    @property
    def _writing(self) -> StoreWriter:
        if self._writer is None:
            raise StoreError("the store was opened read-only", path=self.folder)
        return self._writer

    def close(self) -> None:
        """Write pending rows, mark unfinished runs as stopped, and close the file."""
        try:
            for run in self._runs:
                # The error was reported when the first result could not be stored.
                with suppress(StoreError):
                    run.finish("stopped")
        finally:
            super().close()  # first: the last connection removes the log, this one cannot
            if self._writer is not None:
                self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
