"""Data that tests put into a store, and other processes that work with one."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from pearl.llm import Completion, Usage
from pearl.runs.store import FILE, Run, RunSpec, Store
from tests.root import ROOT

SPEC = RunSpec(("execute", "t.jsonl"), {"model": "m"}, {"t.jsonl": "1"})
REPLY = Completion("Because it was rotten. \U0001f511", "m", Usage(10, 3, 2, 0, 4, 1))
KEY = b"k" * 32


def row(i: int, **fields: Any) -> dict[str, Any]:
    return {"id": str(i), "status": "answered", "answer": f"a{i}", **fields}


def key(i: int) -> bytes:
    return i.to_bytes(32, "big")


def record(run: Run, *numbers: int, **fields: Any) -> None:
    async def every() -> None:
        await asyncio.gather(*(run.record(key(i), i, str(i), row(i, **fields), f"t{i}\n") for i in numbers))  # fmt: skip

    asyncio.run(every())


def keep(folder: Path, completion: Completion = REPLY) -> None:
    with Store.open(folder) as store:
        asyncio.run(store.keep(KEY, completion))


def change(folder: Path, statement: str, *values: Any) -> None:
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute(statement, values)
    connection.close()


def reply_of(i: int) -> Completion:
    return Completion(f"reply {i} " + "é" * (i % 500), "m", Usage(i, 1, 0))


def child(*args: str) -> subprocess.Popen[str]:
    """A Python process that can import the project and the tests."""
    return subprocess.Popen(
        [sys.executable, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
