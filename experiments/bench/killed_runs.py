"""Kills `pearl execute` again and again, and gives the same command again. Prints one JSON line.

    python experiments/bench/killed_runs.py [--kills N] [--seed S] [--at-most-s T]

A plan of two steps runs over 400 documents against a server on loopback. At a random moment after its
first call the command is killed (SIGKILL) and given again, until it ends by itself; then the rows have to
be those of all documents, each once, and the next round begins with an empty store. After every kill the
store has to be whole and to have all replies and rows that it had before. Commands are forked from one
process that has imported everything, lest most of the time goes into starting.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.runs.store.children import integrity  # noqa: E402
from tests.server import Server, serving  # noqa: E402

N_DOCUMENTS, AT_ONCE = 400, 8
PLAN = """\
New actions:
- None

1. day = FIND(CTX, "the day she left") : Find the day
2. ans = FIND(CTX, day) : Find what happened then
"""

FORKING = """
import os, sys
import aiohttp  # what a command would import later
from pearl.cli import run
import pearl.cli.commands.execute, pearl.cli.work, pearl.runs.session, pearl.runs.executors.local, pearl.runs.session, pearl.runs.tasks
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        os.close(1)
        os.dup2(2, 1)
        os._exit(run(line.split()))
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@dataclass
class Found:
    """What went wrong, and how much was done."""

    kills: int = 0
    rounds: int = 0
    lost: int = 0
    twice: int = 0
    damaged: int = 0
    bad_ends: int = 0


def kept(folder: Path) -> set[bytes]:
    """The keys of the replies and rows that are on the disk."""
    connection = sqlite3.connect(folder / "store.db")
    try:
        replies = connection.execute("SELECT key FROM replies").fetchall()
        rows = connection.execute("SELECT key FROM results").fetchall()
    finally:
        connection.close()
    return {b"reply" + key for (key,) in replies} | {b"row" + key for (key,) in rows}


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def round_(
    folder: Path, server: Server, forks: subprocess.Popen[str], chance: random.Random,
    at_most_s: float, n_kills: int, found: Found,
) -> None:  # fmt: skip
    """One run, killed until it ends or there were enough kills, which it then survives."""
    found.rounds += 1
    (folder / "why.plan").write_text(PLAN)
    (folder / "rows.jsonl").unlink(missing_ok=True)  # of the round before, another run
    with (folder / "d.jsonl").open("w") as file:
        for i in range(N_DOCUMENTS):
            row = {"id": str(i), "document": f"Round {found.rounds}. She left on day {i}."}
            file.write(json.dumps(row) + "\n")
    command = (
        f"execute {folder}/why.plan --data {folder}/d.jsonl --out {folder}/rows.jsonl "
        f"--store {folder}/store --model openai:test-model --base-url {server.url} "
        f"--concurrency {AT_ONCE}\n"
    )
    assert forks.stdin is not None
    assert forks.stdout is not None
    before: set[bytes] = set()
    while True:
        n_seen = len(server.requests)
        forks.stdin.write(command)
        forks.stdin.flush()
        pid = int(forks.stdout.readline())
        if found.kills < n_kills:
            while len(server.requests) == n_seen and is_alive(pid):
                time.sleep(0.002)
            time.sleep(chance.uniform(0, at_most_s))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = int(forks.stdout.readline())
        if code >= 0:
            if code:
                found.bad_ends += 1
                return
            break
        found.kills += 1
        found.damaged += integrity(folder / "store") != "ok"
        now = kept(folder / "store")
        found.lost += len(before - now)
        before = now
    ids = [json.loads(line)["id"] for line in (folder / "rows.jsonl").read_text().splitlines()]
    found.lost += len({str(i) for i in range(N_DOCUMENTS)} - set(ids))
    found.twice += len(ids) - len(set(ids))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-most-s", type=float, default=0.2)
    said = parser.parse_args()
    chance, found, began = random.Random(said.seed), Found(), time.monotonic()
    with serving() as server, tempfile.TemporaryDirectory() as home:
        server.delay_s = 0.01
        env = {**os.environ, "HOME": home, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            [sys.executable, "-c", FORKING], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as forks:  # fmt: skip
            while found.kills < said.kills and not found.bad_ends:
                with tempfile.TemporaryDirectory() as folder:
                    round_(Path(folder), server, forks, chance, said.at_most_s, said.kills, found)
            assert forks.stdin is not None
            forks.stdin.close()
        asked = Counter(request.prompt for request in server.requests)
    again = sum(asked.values()) - len(asked)
    figures = {
        "bench": "killed_runs", "kills": found.kills, "runs": found.rounds,
        "documents": found.rounds * N_DOCUMENTS, "lost": found.lost, "twice": found.twice,
        "damaged": found.damaged, "bad_ends": found.bad_ends, "calls": sum(asked.values()),
        "calls_again": again, "calls_again_at_most": found.kills * AT_ONCE,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    print(json.dumps(figures))
    is_good = not (found.lost or found.twice or found.damaged or found.bad_ends)
    return 0 if is_good and again <= found.kills * AT_ONCE else 1


if __name__ == "__main__":
    sys.exit(main())
