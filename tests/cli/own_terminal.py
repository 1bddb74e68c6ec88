"""Python processes with a terminal of their own."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

GIVE_UP_S = 120.0
"""Seconds without output after which a process counts as hung."""


class OnTerminal:
    """A Python process with a terminal of its own."""

    def __init__(self, folder: Path, *args: str, **env: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.written = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

        def own_terminal() -> None:  # from which Ctrl-C comes
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore it

        self.process = subprocess.Popen(
            [sys.executable, *args], stdin=slave, stdout=slave, stderr=slave, cwd=folder,
            env={**os.environ, "TERM": "xterm-256color", **env}, preexec_fn=own_terminal,
        )  # fmt: skip
        os.close(slave)

    def read(self) -> str:
        """The next output; "" at the end."""
        if not select.select([self._master], [], [], GIVE_UP_S)[0]:
            raise AssertionError(f"no more output:\n{self.written}")
        try:
            text = self._decoder.decode(os.read(self._master, 65_536))
        except OSError:  # the other end is closed
            return ""
        self.written += text
        return text or self.read()

    def type(self, text: str) -> None:
        """Type on its keyboard."""
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Read to the end; returns the exit code."""
        while self.read():
            pass
        return self.process.wait()

    def close(self) -> None:
        """Kill the process if it still runs."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)
