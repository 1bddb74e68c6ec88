"""Several processes on one store: killed ones, concurrent ones."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pearl.errors import StoreError
from pearl.runs.store import FILE, Holder, Store
from pearl.runs.store.runs import _started
from tests.runs.store.children import KILLED, Said, child, integrity
from tests.runs.store.killed import SPEC, key_of, reply_of

CONCURRENCY = 8


def run_to_the_end(folder: Path, *numbers: int) -> Said:
    """Run `killed.py` with these arguments."""
    said = Said()
    out, err = child(str(KILLED), str(folder), *map(str, numbers)).communicate()
    said.add(out, err)
    return said


def check(folder: Path, said: Said, n_kills: int, concurrency: int) -> None:
    """Nothing that was acknowledged is lost, nothing is there twice, little was asked twice."""
    assert integrity(folder) == "ok"
    assert said.errors == []
    with sqlite3.connect(folder / FILE) as connection:
        kept = [int.from_bytes(key) for (key,) in connection.execute("SELECT key FROM replies")]
        done = [int(id) for (id,) in connection.execute("SELECT task_id FROM results")]
    connection.close()
    assert said.kept <= set(kept)
    assert said.done <= set(done)
    assert len(kept) == len(set(kept))
    assert len(done) == len(set(done))
    assert sum(said.calls.values()) - len(said.calls) <= n_kills * concurrency


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    n_kills = 40
    said = run_to_the_end(tmp_path, 1_000_000, CONCURRENCY, n_kills)
    assert not said.is_finished
    assert len(said.done) > n_kills
    check(tmp_path, said, n_kills, CONCURRENCY)
    n_steps = len(said.done) + 50
    last = run_to_the_end(tmp_path, n_steps, CONCURRENCY)
    assert last.is_finished
    assert not set(last.calls) & said.kept
    with Store.open(tmp_path) as store:
        (info,) = store.runs()
        run = store.begin(SPEC)
        assert all(run.has(key_of(i)) for i in range(n_steps))
        assert info.state == "done"


def test_run_in_use_is_refused(tmp_path: Path) -> None:
    first = child(str(KILLED), str(tmp_path), "1000000", "1")
    assert first.stdout is not None
    assert first.stdout.readline() == "begun\n"
    with Store.open(tmp_path) as store:
        with pytest.raises(
            StoreError, match=rf"in use by process {first.pid} on .* since \d{{4}}-"
        ):
            store.begin(SPEC)
        (info,) = store.runs()
        assert info.holder is not None
        assert info.state == "running"
        other = store.begin(SPEC, fresh=True)
        other.finish("done")
        first.send_signal(signal.SIGKILL)
        first.communicate()
        assert store.run(info.id).state == "interrupted"
        assert store.begin(SPEC, id=info.id).id == info.id
    assert not list(tmp_path.glob("*.lock-*"))


def test_reused_process_id_does_not_hold_a_run(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.begin(SPEC)
        with sqlite3.connect(tmp_path / FILE) as connection:
            connection.execute("UPDATE runs SET lease_started = 'earlier:1'")
        connection.close()
        assert store.runs()[0].holder is None
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE runs SET status = 'running', lease_pid = ?", (os.getpid(),))
        connection.execute("UPDATE runs SET lease_started = 'earlier:1', lease_host = 'x', lease_at = 0")  # fmt: skip
    connection.close()
    with Store.open(tmp_path) as store:
        store.begin(SPEC)


def test_holder_of_a_run() -> None:
    me = Holder.this()
    assert me.is_alive
    assert Holder(me.pid, "another machine", "x:1", 0).is_alive
    assert not Holder(me.pid, me.host, "x:1", 0).is_alive
    process = child("-c", "")
    process.communicate()
    assert not Holder(process.pid, me.host, "", 0).is_alive


STARTER = """
import asyncio, os, sys
from pathlib import Path
from pearl.llm import Completion
from pearl.runs.store import RunSpec, Store
async def main(n):
    with Store.open(Path(sys.argv[1])) as store:
        run = store.begin(RunSpec(("x",), {"n": n}, {}))
        for i in range(5):
            await store.keep(bytes([n, i]), Completion("x", "m"))
            await run.record(bytes([n, i]), i, str(i), {"status": "answered"}, None)
        run.finish("done")
release, hold = os.pipe()
children = []
for n in range(int(sys.argv[2])):
    children.append(os.fork())
    if children[-1] == 0:
        os.close(hold)
        os.read(release, 1)  # until the other end is closed: all at once
        asyncio.run(main(n))
        os._exit(0)
os.close(hold)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


@pytest.mark.slow
def test_many_processes_start_on_one_store(tmp_path: Path) -> None:
    n = 40
    process = child("-c", STARTER, str(tmp_path / "new"), str(n))
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    assert integrity(tmp_path / "new") == "ok"
    with Store.open(tmp_path / "new", read_only=True) as store:
        assert [(info.state, info.n_results) for info in store.runs()] == [("done", 5)] * n


def test_readers_do_not_wait_for_writers(tmp_path: Path) -> None:
    writer = child(str(KILLED), str(tmp_path), "1000000", "4")
    assert writer.stdout is not None
    assert writer.stdout.readline() == "begun\n"
    try:
        with Store.open(tmp_path, read_only=True) as store:
            seen = 0
            while seen < 50:
                (info,) = store.runs()
                assert info.n_results >= seen
                seen = info.n_results
                rows = [row["answer"] for row in store.rows(info.id)]
                assert len(rows) >= seen
                assert all(answer.startswith("answer ") for answer in rows)
    finally:
        writer.kill()
        writer.communicate()


def test_cached_reply_equals_the_reply(tmp_path: Path) -> None:
    said = run_to_the_end(tmp_path, 50, CONCURRENCY)
    assert said.is_finished
    assert json.loads(reply_json(tmp_path, 7))["text"] == reply_of(7).text


def reply_json(folder: Path, i: int) -> str:
    connection = sqlite3.connect(folder / FILE)
    try:
        (body,) = connection.execute(
            "SELECT body FROM replies WHERE key = ?", (key_of(i),)
        ).fetchone()
        return str(body)[32:]  # behind the seal
    finally:
        connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_zombie_process_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = Holder(process.pid, Holder.this().host, _started(process.pid) or "", 0)
    assert started.is_alive
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert not started.is_alive
    process.communicate()


AT_EXIT = """
import atexit, sys
from pathlib import Path
from pearl.runs.store import RunSpec, Store
store = Store.open(Path(sys.argv[1]))
store.begin(RunSpec((), {}, {}))
atexit.register(store.close)
"""


def test_store_is_closed_at_exit(tmp_path: Path) -> None:
    """By then Python has ended the thread that writes."""
    _, err = child("-c", AT_EXIT, str(tmp_path)).communicate()
    assert err == ""
    with Store.open(tmp_path, read_only=True) as store:
        assert store.runs()[0].state == "stopped"


IN_A_THREAD = """
import asyncio, sys, threading, time
from pathlib import Path
from pearl.llm import Completion
from pearl.runs.store import Store
store = Store.open(Path(sys.argv[1]))
async def keep():
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    for n in range(2):
        await asyncio.wait_for(store.keep(bytes([n]) * 32, Completion("ok", "m")), 60)
    store.close()
threading.Thread(target=lambda: asyncio.run(keep())).start()
"""


def test_thread_writes_after_the_end_of_the_main_thread(tmp_path: Path) -> None:
    _, err = child("-c", IN_A_THREAD, str(tmp_path)).communicate()
    assert err == ""
    with Store.open(tmp_path, read_only=True) as store:
        assert store.all("SELECT count(*) FROM replies") == [(2,)]
