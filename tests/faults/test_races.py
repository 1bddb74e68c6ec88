"""Several processes on one run, one store, one cache, one index."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.programs import WORKS, Lab, files, kept_keys
from tests.suite import Trial


def leave_holder(folder: Path, pid: int) -> None:
    """The run says that a process works on it which, by its start, is another one."""
    with closing(sqlite3.connect(folder / "kept" / "store.db")) as connection, connection:
        connection.execute(
            "UPDATE runs SET status = 'running', lease_pid = ?, lease_host = 'x', lease_started = 'earlier:1'", (pid,)
        )  # fmt: skip


@pytest.mark.row("R21", "two processes on one run")
@pytest.mark.parametrize(
    "start", ["new run", "run of a dead process", "run of a reused process id"]
)
def test_two_processes_on_one_run(trial: Trial, lab: Lab, start: str) -> None:
    """Both begin at the same moment: one works, the other says who does, or finds all done."""
    work, n = WORKS["documents"], Counter[str]()
    lab.n_documents = 4
    lab.server.delay_s = 0.01
    expected = lab.expected(work)
    n_races = trial.n(ci=5, nightly=167, release=1_670)
    for _ in range(n_races):
        folder = lab.folder(work)
        args = lab.args(work, folder)
        if start != "new run":
            lab.server.hold_after = 2
            program = lab.programs.start(folder, *args)
            while len(lab.server.requests) <= 2:
                time.sleep(0.005)
            program.signal(signal.SIGKILL)
            program.wait()
            lab.server.hold_after = None
            if "reused" in start:
                leave_holder(folder, os.getpid())
        n_before = len(lab.server.requests)
        both = [lab.programs.start(folder, *args, is_held=True) for _ in range(2)]
        for program in both:
            time.sleep(trial.random.uniform(0, 0.02))
            program.signal(signal.SIGCONT)
        codes = [program.wait() for program in both]
        losers = [program for program, code in zip(both, codes, strict=True) if code == 8]
        n["refused"] += len(losers)
        n["not told"] += sum("in use by " not in program.stderr for program in losers)
        n["without winner"] += codes.count(0) + len(losers) != 2 or not codes.count(0)
        n["twice"] += max(0, len(lab.server.requests) - n_before - 2 * lab.n_documents)
        kept_keys(folder)
        n["different"] += lab.result(work, folder, both[codes.index(0)]) != expected
        n["locks"] += sum("run-" in name for name in files(folder))
        shutil.rmtree(folder)
    trial.figure("races", n_races)
    trial.figure("processes that were refused", n["refused"])
    trial.figure("refusals that do not say who works on the run", n["not told"], at_most=0)
    trial.figure(
        "races that did not end with a whole run and at most one refusal",
        n["without winner"],
        at_most=0,
    )
    trial.figure("calls paid twice", n["twice"], at_most=0)
    trial.figure("different results", n["different"], at_most=0)
    trial.figure("locks left behind", n["locks"], at_most=0)


STORE = """
import asyncio, sys
from pathlib import Path
from pearl.llm import Completion
from pearl.runs.store import RunSpec, Store
async def main(n):
    with Store.open(Path("kept")) as store:
        run = store.begin(RunSpec(("x",), {"n": n}, {}))
        for i in range(5):
            key = (5 * n + i).to_bytes(32, "big")
            await store.keep(key, Completion("x", "m"))
            await run.record(key, i, str(i), {"status": "answered"}, None)
        run.finish("done")
asyncio.run(main(int(sys.argv[1])))
"""
VECTORS = """
import sys
from pathlib import Path
import numpy as np
from pearl.llm.embedders import EmbeddingCache
n = int(sys.argv[1])
for i in range(5):
    EmbeddingCache(Path("embeddings.sqlite")).keep({(5 * n + i).to_bytes(32, "big"): np.ones(1, np.float32)})
"""
STARTS = {
    "store": ("-c", STORE),
    "cache of embeddings": ("-c", VECTORS),
    "index": WORKS["index"].args,
}


@pytest.mark.row("R22", "many processes begin at once")
@pytest.mark.parametrize("what", STARTS)
def test_many_processes_begin_at_once(trial: Trial, lab: Lab, what: str) -> None:
    n_processes, n_rounds = (
        trial.n(ci=20, nightly=200, release=200),
        trial.n(ci=1, nightly=4, release=10),
    )
    n: Counter[str] = Counter()
    for _ in range(n_rounds):
        folder = lab.folder(WORKS["index"])
        numbered = [] if what == "index" else [str]
        programs = [
            lab.programs.start(folder, *STARTS[what], *(kind(i) for kind in numbered), is_held=True)
            for i in range(n_processes)
        ]
        for program in programs:
            program.signal(signal.SIGCONT)
        n["failed"] += sum(program.wait() != 0 for program in programs)
        n["locked"] += sum("locked" in program.stderr for program in programs)
        n["results"] += len({program.stdout for program in programs})
        n["entries"] += len(kept_keys(folder))
    trial.figure("processes", n_processes * n_rounds)
    trial.figure("processes that failed", n["failed"], at_most=0)
    trial.figure("processes told that a database is locked", n["locked"], at_most=0)
    trial.figure("different results", n["results"] - n_rounds, at_most=0)
    per_process = {"store": 10, "cache of embeddings": 5, "index": 0}[what]
    trial.figure(
        "entries lost", per_process * n_processes * n_rounds - n["entries"], at_most=0, at_least=0
    )
