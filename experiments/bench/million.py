"""What do very many short documents cost, beside the model: processor time, memory, going on after a kill?

    python experiments/bench/million.py [--documents N] [--quick]

`pearl execute` runs a plan of one step over N documents (1,000,000) of 100 characters in one JSON Lines file,
with scripted replies, its store, its rows and its traces: killed (SIGKILL) when half of them are stored, and run
again, to the end. Processor time is that of both processes, start-up taken off; memory is that of the process that runs
when so many are stored. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN = (
    'Question: Why was the boat sold?\n\n1. ans = FIND_REASON(CTX, "the boat") : Find the reason\n'
)
REPLY = json.dumps({"answer": "Ada sold it because it leaked.", "quotes": ["because it leaked"]})
SMALL = 500  # documents of the run whose time is start-up


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

    def started(self, data: str, run: str) -> subprocess.Popen[bytes]:
        """Start a run."""
        arguments = [
            "execute", "why.plan", "--data", data, "--model", "scripted:rules.json",
            "--out", f"{run}.jsonl", "--store", run,
        ]  # fmt: skip
        command = [sys.executable, "-m", "pearl", *arguments]
        return subprocess.Popen(command, cwd=self._folder, stderr=subprocess.DEVNULL)

    def reached(self, run: str, n: int, process: subprocess.Popen[bytes]) -> bool:
        """Wait until so many rows are stored; False if the run ended before."""
        while self._n_rows(run) < n:
            time.sleep(0.1)
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return False
        return True

    def _n_rows(self, run: str) -> int:
        path = self._folder / run / "store.db"
        if not path.exists():
            return 0
        store = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
        try:
            return int(store.execute("SELECT max(rowid) FROM results").fetchone()[0] or 0)
        except sqlite3.OperationalError:  # the store is being created
            return 0
        finally:
            store.close()

    def ids(self, run: str) -> list[str]:
        """The ids of the rows that a run wrote."""
        lines = (self._folder / f"{run}.jsonl").open()
        return [json.loads(line)["id"] for line in lines]


def memory_mb(process: subprocess.Popen[bytes]) -> int:
    """What a process holds now."""
    said = Path(f"/proc/{process.pid}/status").read_text()
    return int(said.partition("VmRSS:")[2].split()[0]) // 1_000


def waited(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    """Processor seconds of a process, and its peak memory in megabytes."""
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1_000


def main() -> None:
    """Run once, with a kill in the middle."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    n = options.documents or (2_000 if options.quick else 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        start_s, small_mb = waited(bench.started(bench.documents(SMALL), "small"))
        data = bench.documents(n)
        process = bench.started(data, "run")
        memory = {}
        for share in (10, 50):
            assert bench.reached("run", n * share // 100, process), "the run ended too soon"
            memory[f"{share} %"] = memory_mb(process)
        process.kill()
        first_s, _ = waited(process)
        n_before = bench._n_rows("run")
        began = time.monotonic()
        process = bench.started(data, "run")
        assert bench.reached("run", n_before + 1, process), "the second process stored nothing"
        resumed_s = time.monotonic() - began
        second_s, memory["100 %"] = waited(process)
        ids = bench.ids("run")
        assert len(ids) == len(set(ids)) == n, f"{len(ids)} rows, {len(set(ids))} of them different"
    print(json.dumps({
        "bench": "million", "documents": n, "kept": n_before,
        "cpu_ms_per_document": round(1_000 * (first_s + second_s - 2 * start_s) / (n - 2 * SMALL), 3),
        "memory_mb": memory, "memory_mb_of_500": small_mb, "resumed_s": round(resumed_s, 2),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
