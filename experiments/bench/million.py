"""What do very many short documents cost, beside the model: processor time, memory, resuming?

    python experiments/bench/million.py [--documents N] [--quick] [--resume-only]

`pearl execute` runs a plan of one step over N documents of 100 characters in one JSON Lines file, with
scripted replies, its store, its rows and its traces. Once to the end; once killed (SIGKILL) halfway and
run again, until its first new row is stored. Processor time is that of the command, start-up taken off.
With `--resume-only` nothing is run to the end: the rows of 95 % of the documents are copies of the first one, written
straight to the store, and what is measured is the time until the first new row. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN = (
    'Question: Why was the boat sold?\n\n1. ans = FIND_REASON(CTX, "the boat") : Find the reason\n'
)
REPLY = 'Ada sold the boat because it leaked.\n\nQUOTE: "because it leaked"'
SMALL = 500  # documents of the run whose time is start-up

FILL = """
import os, sqlite3, sys
from pearl.cli import run
from pearl.documents.digest import sealed
from pearl.errors.escaping import json_bytes
from pearl.runs import session
from pearl.runs.executors import local
from pearl.runs.executors import Resources
from pearl.runs.store.database import packed_trace

N = int(sys.argv[1])
INSERT = "INSERT INTO results (run_id, key, seq, task_id, status, row, trace) VALUES (?, ?, ?, ?, ?, CAST(? AS TEXT), ?)"

async def filled(pearl, units, run, **options):
    store = sqlite3.connect(run._store.folder / "store.db", isolation_level=None)
    rows, first = [], None
    for place, unit, key in session.keyed(pearl, units):
        if first is None:
            first = await local.perform(unit, Resources(pearl))
            body, trace = json_bytes(first.to_dict()), packed_trace(first.trace.to_jsonl())
        body = body.replace(first.unit.id.encode(), unit.id.encode()) if place else body
        rows.append((run.id, key, place, unit.id, "answered", sealed(key, body), trace))
        if len(rows) == 10_000 or place + 1 == N:
            store.execute("BEGIN")
            store.executemany(INSERT, rows)
            store.execute("COMMIT")
            rows.clear()
        if place + 1 == N:
            store.close()
            os.kill(os.getpid(), 9)
    yield

session.run_recorded = filled
run(sys.argv[2:])
"""


class Bench:
    """A folder with the documents, the plan and the rules of the replies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "why.plan").write_text(PLAN)
        (folder / "rules.json").write_text(json.dumps([{"match": "", "reply": REPLY}]))

    def documents(self, n: int) -> str:
        """Write a file of documents; returns its name."""
        name = f"documents_{n}.jsonl"
        with (self._folder / name).open("w") as file:
            for i in range(n):
                text = f"Ada, number {i}, sold the boat because it leaked. She left after that, and wrote letters."
                file.write(json.dumps({"id": f"d{i:07}", "document": text}) + "\n")
        return name

    def started(self, data: str, run: str, *script: str) -> subprocess.Popen[bytes]:
        """Start a run, by a script in place of the program."""
        arguments = [
            "execute", "why.plan", "--data", data, "--model", "scripted:rules.json",
            "--out", f"{run}.jsonl", "--store", run,
        ]  # fmt: skip
        command = [sys.executable, *(script or ("-m", "pearl")), *arguments]
        return subprocess.Popen(command, cwd=self._folder, stderr=subprocess.DEVNULL)

    def resumed(self, data: str, n: int, *, is_filled: bool) -> dict[str, float]:
        """Seconds and processor seconds from the start of the second process to its first new row."""
        if is_filled:
            self.started(data, "killed", "-c", FILL, str(n * 95 // 100)).wait()
        else:
            process = self.started(data, "killed")
            while self._n_rows() < n // 2:
                assert process.poll() is None, "the run ended before it could be killed"
                time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
            process.wait()
        n_before = self._n_rows()
        start = time.monotonic()
        process = self.started(data, "killed")
        while self._n_rows() == n_before:
            assert process.poll() is None, "the resumed run stored nothing"
            time.sleep(0.2)
        resumed_s = time.monotonic() - start
        process.kill()
        _, _, usage = os.wait4(process.pid, 0)
        cpu_s = usage.ru_utime + usage.ru_stime
        return {"resumed_s": round(resumed_s, 2), "resumed_cpu_s": round(cpu_s, 2)}

    def _n_rows(self) -> int:
        path = self._folder / "killed" / "store.db"
        if not path.exists():
            return 0
        store = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
        try:
            return int(store.execute("SELECT count(*) FROM results").fetchone()[0])
        except sqlite3.OperationalError:  # the store is being created
            return 0
        finally:
            store.close()


def waited(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    """Processor seconds of a process, and its peak memory in kilobytes."""
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"exit status {status}"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main() -> None:
    """Run once, and kill and resume once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--resume-only", action="store_true")
    options = parser.parse_args()
    n = options.documents or (2_000 if options.quick else 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        if options.resume_only:
            resumed = bench.resumed(bench.documents(n), n, is_filled=True)
            print(json.dumps({"bench": "million, resumed", "documents": n, **resumed}))
            return
        start_s, small_kb = waited(bench.started(bench.documents(SMALL), "small"))
        data = bench.documents(n)
        cpu_s, most_kb = waited(bench.started(data, "whole"))
        figures = {
            "bench": "million",
            "documents": n,
            "cpu_ms_per_document": round(1_000 * (cpu_s - start_s) / (n - SMALL), 3),
            "memory_mb": round(most_kb / 1_000),
            "memory_mb_of_500": round(small_kb / 1_000),
            **bench.resumed(data, n, is_filled=False),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
