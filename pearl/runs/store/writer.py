"""The writer thread with group commit: work submitted during a commit joins the next one."""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pearl.errors import StoreError
from pearl.plugins.locks import WriteLock
from pearl.runs.store.database import FAILURES, to_store_error

Result = TypeVar("Result")

Work = Callable[[sqlite3.Connection], Result]
"""Statements of a transaction that is begun and committed around it."""

_MAX_GROUP = 1_000
"""Pieces of work in one commit: a bound for the memory and for the wait of other processes."""

GATHER_S = 0.003
"""Seconds that a commit waits for more to do, where the last one had more than one piece of work: so
many writers at once make a few commits, and one alone does not wait (PostgreSQL's `commit_delay`)."""


@dataclass(slots=True)
class _Item:
    work: Work[Any]
    done: asyncio.Future[Any] | Future[Any]
    loop: asyncio.AbstractEventLoop | None
    """Whose the future is; None for one that a thread waits for."""
    result: Any = None


class StoreWriter:
    """Writes to the store from a thread of its own."""

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
        """Do it in some commit, together with others; returns when that is on the disk."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._put(_Item(work, done, loop))
        await done

    def transact(self, work: Work[Result]) -> Result:
        """Do it in a transaction of its own, and wait for it; what it raises undoes it."""
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
        # The last to close moves the log into the file: nobody else may write meanwhile. Where that
        # cannot be done the log stays, and whoever opens the store next reads it.
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
        # A file that was removed takes what is written to it, and is gone at the end.
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
        with suppress(RuntimeError):  # the loop has ended, nobody waits
            loop.call_soon_threadsafe(_settle, own, error)


def _settle(items: list[_Item], error: BaseException | None) -> None:
    for item in items:
        if item.done.done():
            continue  # given up meanwhile
        if error is None:
            item.done.set_result(item.result)
        else:
            item.done.set_exception(error)
