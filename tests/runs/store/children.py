"""Child processes that work with a store."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
KILLED = Path(__file__).with_name("killed.py")


def child(*args: str, **options: object) -> subprocess.Popen[str]:
    """A Python process that can import the project and the tests."""
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [sys.executable, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, **options,
    )  # fmt: skip


@dataclass
class Said:
    """What killed processes said, all together."""

    calls: Counter[int] = field(default_factory=Counter)
    kept: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    is_finished: bool = False

    def add(self, out: str, err: str) -> None:
        lines = out.splitlines(keepends=True)
        for line in lines:
            if not line.endswith("\n"):
                continue  # cut off by the kill
            word, _, number = line.strip().partition(" ")
            match word:
                case "call":
                    self.calls[int(number)] += 1
                case "kept":
                    self.kept.add(int(number))
                case "done":
                    self.done.add(int(number))
                case "finished":
                    self.is_finished = True
        if err:
            self.errors.append(err)


def kill_at_random(
    command: Sequence[str], said: Said, chance: random.Random, at_most_s: float
) -> None:
    """Start it, kill it a while after it has begun, and read what it had said."""
    process = child(*command)
    assert process.stdout is not None
    first = process.stdout.readline()
    try:
        out, err = process.communicate(timeout=chance.uniform(0, at_most_s))
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    said.add(first + out, err)


def integrity(folder: Path) -> str:
    """What SQLite says of the file."""
    connection = sqlite3.connect(folder / "store.db")
    try:
        (said,) = connection.execute("PRAGMA integrity_check").fetchone()
        return str(said)
    finally:
        connection.close()


def await_replies(folder: Path, n: int) -> None:
    """Wait until a store has so many replies on the disk, those that another process writes."""
    while _n_kept(folder, "replies") < n:
        time.sleep(0.01)


def await_rows(folder: Path, n: int) -> None:
    """The same of results."""
    while _n_kept(folder, "results") < n:
        time.sleep(0.01)


def _n_kept(folder: Path, table: Literal["replies", "results"]) -> int:
    uri = f"{(folder / 'store.db').absolute().as_uri()}?mode=ro"
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(uri, uri=True)) as store:
        found: int = store.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found
    return 0  # it is being made
