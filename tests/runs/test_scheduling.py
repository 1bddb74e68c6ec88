"""Concurrency: bounds, order, cancellation, nothing left running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.runs.executors.local import each_kept, in_order


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=20),
    st.integers(1, 4),
    st.integers(0, 9),
    st.booleans(),
)
def test_no_result_is_lost_or_out_of_order_and_bounds_hold(
    items: list[tuple[int, int]], n: int, ahead: int, is_grouped: bool
) -> None:
    """An item has a group, and says how long it takes."""
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
        group = (lambda item: item[1][0]) if is_grouped else None
        async for i in in_order(source(), work, n, ahead=ahead, group=group):
            given_ += 1
            found.append(i)
        assert len(asyncio.all_tasks()) == 1
        return found

    assert asyncio.run(main()) == list(range(len(items)))
    assert most <= n


@pytest.mark.parametrize("fails", ["source", "second item"])
def test_an_error_comes_after_earlier_results_and_cancels_running_work(fails: str) -> None:
    found, cancelled = [], []

    def source() -> Iterator[int]:
        yield from range(4)
        raise OSError("the file is gone")

    async def work(item: int) -> int:
        if item == 0:
            return item
        if item == 1 and fails != "source":
            raise OSError("no such item")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    async def collect() -> None:
        async for result in in_order(source(), work, 5 if fails == "source" else 4):
            found.append(result)

    async def main() -> None:
        with pytest.raises(OSError, match=r"gone|no such"):
            await collect()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    # Of a source that fails at once, no work has begun.
    assert (found, cancelled) == (([], []) if fails == "source" else ([0], [2, 3]))


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
