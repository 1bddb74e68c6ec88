"""Kills a process that works with a store, again and again. Prints one JSON line.

    python experiments/bench/kills.py [--kills N] [--seed S] [--at-most-s T] FOLDER [COMMAND ...]

COMMAND is run by this Python, `FOLDER` for its `{}`; by default it is `tests/runs/store/killed.py` with
8 steps at once. It has to print `call I` before the work of a step, `kept I` when the store has
acknowledged it, `done I` when its row is recorded. It is killed (SIGKILL) at a random moment after its
first line, N times (1,000). After every kill the store has to be whole; at the end nothing that was
acknowledged may be missing or there twice.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.runs.store.children import KILLED, Said, integrity, kill_at_random  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-most-s", type=float, default=0.1)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("folder", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    said_to = parser.parse_args()
    folder: Path = said_to.folder
    command = [word.replace("{}", str(folder)) for word in said_to.command] or [
        str(KILLED), str(folder), "100000000", str(said_to.concurrency),
    ]  # fmt: skip
    chance, said = random.Random(said_to.seed), Said()
    began, n_damaged = time.monotonic(), 0
    for _ in range(said_to.kills):
        kill_at_random(command, said, chance, said_to.at_most_s)
        n_damaged += integrity(folder) != "ok"
    connection = sqlite3.connect(folder / "store.db")
    kept = [int.from_bytes(key) for (key,) in connection.execute("SELECT key FROM replies")]
    done = [int(id) for (id,) in connection.execute("SELECT task_id FROM results")]
    connection.close()
    n_again = sum(said.calls.values()) - len(said.calls)
    figures = {
        "kills": said_to.kills,
        "acknowledged": len(said.kept) + len(said.done),
        "lost": len(said.kept - set(kept)) + len(said.done - set(done)),
        "twice": len(kept) - len(set(kept)) + len(done) - len(set(done)),
        "damaged": n_damaged,
        "errors": len(said.errors),
        "calls": sum(said.calls.values()),
        "calls_again": n_again,
        "calls_again_at_most": said_to.kills * said_to.concurrency,
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(figures))
    is_good = not (figures["lost"] or figures["twice"] or n_damaged or said.errors)
    return 0 if is_good and n_again <= said_to.kills * said_to.concurrency else 1


if __name__ == "__main__":
    sys.exit(main())
