"""Concurrency: bounds, order, cancellation, nothing left running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.runs.executors.local import each_kept, in_order


class Work:
    """Doubles numbers; keeps count of what is begun, under way, ended and cancelled."""

    def __init__(self, delays: dict[int, float] | None = None, broken: int | None = None) -> None:
        self.begun: list[int] = []
        self.cancelled: list[int] = []
        self.n = self.peak = 0
        self._delays = delays or {}
        self._broken = broken

    async def __call__(self, item: int) -> int:
        self.begun.append(item)
        self.n += 1
        self.peak = max(self.peak, self.n)
        try:
            await asyncio.sleep(self._delays.get(item, 0))
            if item == self._broken:
                raise KeyError(item)
            return 2 * item
        except asyncio.CancelledError:
            self.cancelled.append(item)
            raise
        finally:
            self.n -= 1


async def collect(results: AsyncIterator[int], into: list[int]) -> None:
    async for result in results:
        into.append(result)


async def all_done() -> bool:
    """Whether no task but this one is left."""
    return asyncio.all_tasks() == {asyncio.current_task()}


@given(st.integers(0, 30), st.integers(1, 40), st.lists(st.sampled_from([0, 0.001]), max_size=30))
def test_every_item_has_a_result_within_the_bound(
    n_items: int, n: int, delays: list[float]
) -> None:
    work = Work(dict(enumerate(delays)))

    async def main() -> None:
        found = [result async for result in in_order(range(n_items), work, n)]
        assert sorted(found) == [2 * i for i in range(n_items)]
        assert await all_done()

    asyncio.run(main())
    assert work.begun == list(range(n_items))  # taken in their order
    assert work.peak <= min(n, n_items)


def test_error_of_the_source_cancels_running_work() -> None:
    def source() -> Iterator[int]:
        yield 0
        yield 1
        raise OSError("the file is gone")

    work = Work({0: 60, 1: 60})

    async def main() -> None:
        with pytest.raises(OSError, match="gone"):
            await collect(in_order(source(), work, 3), [])
        assert await all_done()

    asyncio.run(main())
    # Tasks that had no time to begin have nothing to be cancelled in.
    assert work.n == 0


@pytest.mark.parametrize("how", ["close", "cancel"])
def test_closing_and_cancelling_end_running_work(how: str) -> None:
    work = Work({1: 60, 2: 60})

    async def main() -> None:
        results = in_order(range(3), work, 3)
        assert await anext(results) == 0
        if how == "close":
            await results.aclose()
        else:
            waiting = asyncio.ensure_future(anext(results))
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert await all_done()

    asyncio.run(main())
    assert sorted(work.cancelled) == [1, 2]


# --- in_order ---------------------------------------------------------------------------------


def test_failure_comes_after_earlier_results() -> None:
    work = Work({2: 60.0, 3: 60.0}, broken=1)
    found: list[int] = []

    async def main() -> None:
        with pytest.raises(KeyError):
            await collect(in_order(range(9), work, 3), found)
        assert await all_done()

    asyncio.run(main())
    assert found == [0]
    assert work.cancelled == [2]


# --- in_order, in groups ----------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=20),
    st.integers(1, 4),
    st.integers(0, 9),
)
def test_groups_neither_lose_nor_reorder_results(
    items: list[tuple[int, int]], n: int, ahead: int
) -> None:
    taken = given_ = running = most = 0

    def source() -> Iterator[tuple[int, tuple[int, int]]]:
        nonlocal taken
        for item in enumerate(items):
            taken += 1
            assert taken - given_ <= max(n, ahead)
            yield item

    async def work(item: tuple[int, tuple[int, int]]) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(item[1][1]):
            await asyncio.sleep(0)
        running -= 1
        return item[0]

    async def main() -> list[int]:
        nonlocal given_
        found = []
        async for i in in_order(source(), work, n, ahead=ahead, group=lambda item: item[1][0]):
            given_ += 1
            found.append(i)
        return found

    assert asyncio.run(main()) == list(range(len(items)))
    assert most <= n


def test_stopping_starts_nothing_and_keeps_results() -> None:
    work = Work({1: 0.02})
    found: list[int] = []

    async def main() -> list[int]:
        results = in_order(
            range(100), work, 2, ahead=50, group=lambda i: 0, is_stopping=lambda: bool(found)
        )
        await collect(results, found)
        assert await all_done()
        return found

    found = asyncio.run(main())
    assert found == [2 * i for i in work.begun]
    assert len(found) < 10


def test_results_are_kept_concurrently_and_yielded_in_order() -> None:
    kept: list[int] = []
    may_keep_first = asyncio.Event()

    async def results() -> AsyncGenerator[int, None]:
        for i in range(5):
            yield i
            await asyncio.sleep(0.001)  # the caller looks while the first one is not kept yet

    async def keep(i: int) -> None:
        if i == 0:
            await may_keep_first.wait()
        kept.append(i)
        if i == 4:
            may_keep_first.set()

    async def main() -> list[tuple[int, bool]]:
        return [(i, i in kept) async for i in each_kept(results(), keep)]

    assert asyncio.run(main()) == [(i, True) for i in range(5)]
    assert kept == [1, 2, 3, 4, 0]
