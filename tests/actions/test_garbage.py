"""Garbage collection is put off while rows are made, and goes on afterwards, whatever happens."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from pearl.actions.garbage import collection_paused
from pearl.actions.native import compute, count, known
from pearl.documents.rows import Row, Rows


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_enabled else gc.disable)()


def test_native_actions_are_computed_without_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(count, "run", lambda _: seen.append(gc.isenabled()) or 0)
    compute(known()["COUNT"], [["a"]])
    assert seen == [False]
    assert gc.isenabled()


def test_collections_go_on_after_an_error() -> None:
    with pytest.raises(ValueError, match="no field"):
        compute(known()["FIELD"], [Rows((Row("a"),)), "nothing"])
    assert gc.isenabled()


def test_a_pause_within_a_pause_does_not_end_it() -> None:
    with collection_paused():
        with collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_the_last_pause_of_any_thread_ends_it() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def other() -> None:
        with collection_paused():
            begun.set()
            may_end.wait()

    thread = threading.Thread(target=other)
    with collection_paused():
        thread.start()
        begun.wait()
    assert not gc.isenabled()
    may_end.set()
    thread.join()
    assert gc.isenabled()
