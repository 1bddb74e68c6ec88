"""What do `--data` and `--out` at an address cost, beside the model?

    python experiments/bench/addresses.py [--quick] [--rows N]

N documents of 500 characters lie in Parquet files of 50,000 rows on this disk. Measured, in processes of their own: reading
them as tasks (`read`), as `pearl execute --data` does, beside pyarrow, which makes Python dictionaries of the same rows
(`peer`); writing their rows as parts, as `--out` does (`write`); and finding out in a second run that every row is there
(`resume`). Processor time for a row, and the most memory. Prints a table and one JSON line.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PART = 50_000
PLAN = 'Question: Why?\n\n1. ans = FIND_REASON(CTX, "the boat") : Find the reason\n'


def prepare(folder: Path, n: int) -> None:
    """The documents."""
    import pyarrow
    from pyarrow import parquet

    (folder / "in").mkdir()
    text = "Nils sold the boat because its hull was rotten. " * 10
    for start in range(0, n, PART):
        numbers = range(start, min(n, start + PART))
        columns = {
            "id": [f"r{i}" for i in numbers],
            "document": [f"{i} {text}" for i in numbers],
        }
        parquet.write_table(
            pyarrow.table(columns), folder / f"in/{start:09}.parquet", row_group_size=5_000
        )


def tasks(folder: Path) -> Any:
    from functools import partial

    from pearl.data.domains import Source, read_samples
    from pearl.runs.tasks import StreamedTasks

    return StreamedTasks(partial(read_samples, "generic", Source(f"file://{folder}/in")), PLAN)


def read(folder: Path) -> int:
    """Read them as tasks."""
    return sum(1 for _ in tasks(folder))


def peer(folder: Path) -> int:
    """Read them by pyarrow."""
    from pyarrow import parquet

    n = 0
    for path in (folder / "in").iterdir():
        for batch in parquet.ParquetFile(path).iter_batches(256):
            n += len(batch.to_pylist())
    return n


def _parts(folder: Path) -> Any:
    from pearl.data.storage import OutputFolder
    from pearl.runs.parts import Parts

    parts = Parts(OutputFolder(f"file://{folder}/out"), PLAN, {})
    parts.open()
    return parts


def _keys(folder: Path) -> Any:
    from pearl import Pearl
    from pearl.runs.session import keyed

    return keyed(Pearl(), enumerate(tasks(folder)))


def write(folder: Path) -> int:
    """Read them as tasks, and write a row for each."""
    import asyncio

    parts, n = _parts(folder), 0
    step = {"output": "ans", "state": "found", "value": "The hull was rotten."}
    row = {"status": "answered", "answer": "The hull was rotten.", "steps": [step], "plan": PLAN}

    async def go() -> None:
        nonlocal n
        for place, task, key in _keys(folder):
            await parts.record(key, place, task.id, {"id": task.id, **row}, "")
            n += 1

    asyncio.run(go())
    parts.close()
    return n


def resume(folder: Path) -> int:
    """Find every row of `write`."""
    parts = _parts(folder)
    return sum(parts.has(key) for _, _, key in _keys(folder))


WORKS = {"peer": peer, "read": read, "write": write, "resume": resume}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if (
        args.work == "prepare"
    ):  # in a process of its own: the memory of a process counts for those that it starts
        prepare(args.folder, args.rows)
        return
    if args.work:
        began, elapsed = time.process_time(), time.monotonic()
        n = WORKS[args.work](args.folder)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        spent = [time.process_time() - began, time.monotonic() - elapsed, most, n]
        print(json.dumps(spent))
        return
    n = args.rows or (5_000 if args.quick else 1_000_000)
    figures: dict[str, Any] = {"rows": n}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--folder", folder, "--work"]
        subprocess.run([*command, "prepare", "--rows", str(n)], check=True)
        print(f"{'work':8}{'ms a row':>10}{'s':>8}{'MB':>6}")
        for work in WORKS:
            ran = subprocess.run([*command, work], check=True, stdout=subprocess.PIPE, text=True)
            cpu_s, s, most, n_rows = json.loads(ran.stdout.splitlines()[-1])
            assert n_rows == n, (work, n_rows)
            figures[work] = {"ms": round(1000 * cpu_s / n, 4), "s": round(s, 2), "mb": round(most)}
            print(f"{work:8}{1000 * cpu_s / n:10.3f}{s:8.1f}{most:6.0f}")
    figures["read_to_peer"] = round(figures["read"]["ms"] / figures["peer"]["ms"], 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
