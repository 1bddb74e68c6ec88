"""Threads that share the work by batches, each of whose matrix products has one thread.

The threads of a matrix product wait for each other by spinning: where other programs want the
cores, too, that takes ten times the CPU time of the product itself, as measured for short texts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_n_users = 0
_limited = ExitStack()


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_thread_a_product() -> Iterator[None]:
    """Limit the threads of matrix products of this process, until the last of several users leaves."""
    global _n_users
    with _lock:
        if not _n_users:
            _limited.enter_context(ThreadpoolController().limit(limits=1, user_api="blas"))
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if not _n_users:
                _limited.close()
