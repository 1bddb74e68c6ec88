"""Several processes on one store: killed ones, concurrent ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pearl.errors import StoreError
from pearl.runs.store import RunSpec, Store
from tests.runs.store.filling import child

HOLDING = """
import sys, time
from pathlib import Path
from pearl.runs.store import RunSpec, Store
store = Store.open(Path(sys.argv[1]))
store.begin(RunSpec((), {}, {}))
print("begun", flush=True)
time.sleep(600)
"""


def test_a_run_is_in_use_until_its_process_ends(tmp_path: Path) -> None:
    spec, process = RunSpec((), {}, {}), child("-c", HOLDING, str(tmp_path))
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    with Store.open(tmp_path) as store:
        (info,) = store.runs()
        assert info.state == "running"
        with pytest.raises(
            StoreError, match=rf"in use by process {process.pid} on .* since \d{{4}}-"
        ):
            store.begin(spec)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # nobody has waited for it yet
        assert store.run(info.id).state == "interrupted"
        assert store.begin(spec, id=info.id).id == info.id
        assert store.run(info.id).state == "running"
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
