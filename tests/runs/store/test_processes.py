"""Several processes on one store: killed ones, concurrent ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pearl.runs.store import Holder, Store
from pearl.runs.store.runs import _started
from tests.runs.store.filling import SPEC, change, child


def test_holder_of_a_run(tmp_path: Path) -> None:
    me = Holder.this()
    assert me.is_alive
    assert Holder(me.pid, "another machine", "x:1", 0).is_alive
    assert not Holder(me.pid, me.host, "x:1", 0).is_alive
    process = child("-c", "")
    process.communicate()
    assert not Holder(process.pid, me.host, "", 0).is_alive
    with Store.open(tmp_path) as store:
        store.begin(SPEC)
        assert store.runs()[0].state == "running"
        change(tmp_path, "UPDATE runs SET lease_pid = ?", process.pid)
        assert store.runs()[0].state == "interrupted"


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
