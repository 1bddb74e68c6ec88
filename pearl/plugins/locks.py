"""A file lock that the system releases with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pearl.errors import StoreError


class WriteLock:
    """Lets one process write at a time."""

    def __init__(self, path: Path, help: str, patience_s: float = 60.0) -> None:
        self._path = path
        self._help = help
        self._patience_s = patience_s
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(path, flags, 0o600)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        give_up = time.monotonic() + self._patience_s
        wait_s = 0.000_5
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise StoreError(
                        f"another process has been writing for {self._patience_s:.0f} s",
                        path=self._path,
                        help="end the process that hangs, then run the same command again",
                    ) from None
                # By chance, so that many who wait do not all come back at the same moment.
                time.sleep(wait_s * random.uniform(0.5, 1.5))
                wait_s = min(0.02, 2 * wait_s)
            except OSError as error:
                raise lockless(self._path, error, self._help) from None
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def lockless(path: Path, error: OSError, help: str) -> StoreError:
    """The error of a disk that knows no locks."""
    return StoreError(f"this disk knows no locks: {error.strerror}", path=path, help=help)


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Be the only process that holds a file, after any other; for what is seldom done at once."""
    with path.open("wb") as file:  # the lock ends with it
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
