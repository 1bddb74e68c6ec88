"""A terminal of so many cells: what people see after all that was written to it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.cells import get_character_cell_size

_CODE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class Emulator:
    """Knows the few codes that live displays use, and scrolls and wraps as terminals do."""

    def __init__(self, width: int = 80, height: int = 24) -> None:
        self.width, self.height = width, height
        self.has_cursor, self.n_wrapped = True, 0
        self._lines = [[""] * width]
        self._row = self._column = 0
        self._rest = ""

    def feed(self, text: str) -> None:
        """Write to it."""
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                code = _CODE.match(text, at)
                if code is None:
                    assert len(text) - at < 20, f"no known code: {text[at : at + 20]!r}"
                    self._rest = text[at:]
                    return
                self._obey(*code.groups())
                at = code.end()
                continue
            self._put(text[at])
            at += 1

    def resize(self, width: int, height: int) -> None:
        """Make it another size; lines that are there are cut, as xterm does."""
        self._lines = [(line + [""] * width)[:width] for line in self._lines]
        self.width, self.height = width, height

    @property
    def screen(self) -> str:
        """All lines that were written, those that have scrolled away included."""
        lines = [
            "".join(cell or " " for cell in line).replace("\0", "").rstrip() for line in self._lines
        ]
        return "\n".join(lines).rstrip("\n")

    def _obey(self, numbers: str, letter: str) -> None:
        match letter:
            case "m":
                pass
            case "A":  # not into what has scrolled away
                top = max(0, len(self._lines) - self.height)
                self._row = max(top, self._row - int(numbers or 1))
            case "K":
                assert numbers == "2", numbers
                self._lines[self._row] = [""] * self.width
            case "h" | "l":
                assert numbers == "?25", numbers
                self.has_cursor = letter == "h"
            case _:
                raise AssertionError(f"no known code: {numbers}{letter}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row, self._column = self._row + 1, 0
            if self._row == len(self._lines):
                self._lines.append([""] * self.width)
        elif size := get_character_cell_size(character):
            if self._column + size > self.width:
                self.n_wrapped += 1
                self._put("\n")
            self._lines[self._row][self._column] = character
            for at in range(self._column + 1, self._column + size):
                self._lines[self._row][at] = "\0"
            self._column += size


GIVE_UP_S = 120.0
"""Seconds without output after which a process counts as hung."""


class OnTerminal:
    """A Python process with a terminal of its own."""

    def __init__(
        self, folder: Path, *args: str, width: int = 80, height: int = 24, **env: str
    ) -> None:
        self._master, slave = pty.openpty()
        self.terminal = Emulator(width, height)
        self.resize(width, height)
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

    def resize(self, width: int, height: int) -> None:
        """Make its terminal another size."""
        self.terminal.resize(width, height)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

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
