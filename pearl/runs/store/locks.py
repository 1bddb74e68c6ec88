"""File locks that the system releases with their process: one for writing, one per run."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pearl.errors import StoreError

__all__ = ["Holder", "RunLease", "WriteLock"]


class WriteLock:
    """Serialises commits and checkpoints between processes.

    SQLite would see to that, too, but before 3.51.3 two connections that write and empty the log
    at the same moment can damage the file, and whoever waits for SQLite's own lock may starve.

    Args:
        path: The file of the lock; made where it is not there, and left.
        patience_s: Seconds to wait for another process.

    Raises:
        OSError: The file cannot be made.
    """

    def __init__(self, path: Path, patience_s: float = 60.0) -> None:
        self._path = path
        self._patience_s = patience_s
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock.

        Raises:
            StoreError: Another process does not let go of it, or the disk knows no locks.
        """
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
                raise _lockless(self._path, error) from None
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


class RunLease:
    """The right to write a run. It ends with the process, however that ends."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file: int | None = file

    @classmethod
    def take(cls, path: Path) -> RunLease | None:
        """The lease of the run whose lock this file is; None where a living process has it.

        Raises:
            StoreError: The disk knows no locks.
            OSError: The file cannot be made.
        """
        while True:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return None
            except OSError as error:
                os.close(file)
                raise _lockless(path, error) from None
            # Whoever had it may have removed the file after it was opened here.
            try:
                if os.path.samestat(os.fstat(file), path.stat()):
                    return cls(path, file)
            except FileNotFoundError:
                pass
            os.close(file)

    def release(self) -> None:
        """Release the lock; idempotent."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


def _lockless(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"this disk knows no locks: {error.strerror}",
        path=path,
        help="name a --store on a local disk",
    )


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that writes a run.

    Attributes:
        pid: Its number.
        host: The machine it is on.
        started: When it began, in a form that no later process with its number has; "" where the
            machine does not say.
        since: When it took the run, in seconds since 1970.
    """

    pid: int
    host: str
    started: str
    since: float

    @classmethod
    def this(cls) -> Holder:
        """This process."""
        pid = os.getpid()
        return cls(pid, socket.gethostname(), _started(pid) or "", time.time())

    @property
    def is_alive(self) -> bool:
        """Whether the process is alive; processes on other hosts are assumed to be."""
        if self.host != socket.gethostname():
            return True
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass
        started = _started(self.pid)
        return not (started and self.started) or started == self.started


def _started(pid: int) -> str | None:
    """When a process started: the boot of the machine, and ticks after it; "ended" for a zombie."""
    try:
        # The name of the program, in brackets, may have blanks and brackets of its own.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):  # it has ended, and its parent has not asked how yet
            return "ended"
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{int(fields[19])}"
    except (OSError, ValueError, IndexError):
        return None
