"""Files that several processes share."""

from __future__ import annotations

import fcntl
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pearl.plugins.persistence import Lease, create_private


def test_a_file_that_several_create_at_once_is_created_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        for i in range(100):
            path, at_once = tmp_path / str(i), threading.Barrier(8)

            def create(_: int, path: Path = path, at_once: threading.Barrier = at_once) -> None:
                at_once.wait()
                create_private(path)

            assert list(threads.map(create, range(8))) == [None] * 8
            assert path.stat().st_mode & 0o077 == 0


def test_a_look_at_a_lease_neither_holds_nor_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.lock"
    path.touch()
    look = path.open("rb")
    fcntl.flock(look, fcntl.LOCK_SH)  # as of another process that lists the runs
    assert not Lease.is_held(path)
    monkeypatch.setattr("time.sleep", lambda _s: look.close())
    lease = Lease.take(path, "")
    assert lease is not None
    assert Lease.is_held(path)
    lease.release()
    assert not Lease.is_held(path)


def test_a_lease_that_is_a_pipe_is_not_held(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.lock")
    assert not Lease.is_held(tmp_path / "run.lock")
