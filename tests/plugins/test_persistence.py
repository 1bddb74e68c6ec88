"""Files that several processes share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pearl.plugins.persistence import create_private


def test_a_file_that_several_create_at_once_is_created_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        for i in range(100):
            path, at_once = tmp_path / str(i), threading.Barrier(8)

            def create(_: int, path: Path = path, at_once: threading.Barrier = at_once) -> None:
                at_once.wait()
                create_private(path)

            assert list(threads.map(create, range(8))) == [None] * 8
            assert path.stat().st_mode & 0o077 == 0
