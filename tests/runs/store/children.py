"""Child processes that work with a store."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
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


def await_replies(folder: Path, n: int) -> None:
    """Wait until a store has so many replies on the disk, those that another process writes."""
    while _n_kept(folder, "replies") < n:
        time.sleep(0.01)


def _n_kept(folder: Path, table: Literal["replies", "results"]) -> int:
    uri = f"{(folder / 'store.db').absolute().as_uri()}?mode=ro"
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(uri, uri=True)) as store:
        found: int = store.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found
    return 0  # it is being made
