"""The right to write a run: a file lock that the system releases with its process."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from pearl.plugins.locks import lockless

LOCAL = "name a --store on a local disk"
"""What to do on a disk that knows no locks."""


class RunLease:
    """The right to write a run. It ends with the process, however that ends."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file: int | None = file

    @classmethod
    def take(cls, path: Path) -> RunLease | None:
        """The lease of the run whose lock this file is; None where a living process has it."""
        while True:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return None
            except OSError as error:
                os.close(file)
                raise lockless(path, error, LOCAL) from None
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


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that writes a run."""

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
