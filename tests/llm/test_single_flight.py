"""Work that is shared: begun once, never an error for ever, never work for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from pearl.llm.middleware.caching import SingleFlight


class Work:
    """Ends when it is let, and fails the first so many times."""

    def __init__(self, n_failures: int = 0) -> None:
        self.n_begun = self.n_cancelled = 0
        self.may_end = asyncio.Event()
        self._n_failures = n_failures

    async def __call__(self) -> int:
        self.n_begun += 1
        number = self.n_begun
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        if number <= self._n_failures:
            raise ValueError(number)
        return number


def within_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


async def asking(flights: SingleFlight[int], work: Work, *keys: str) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(flights.do(key, work)) for key in keys]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


@within_a_loop
async def test_what_is_under_way_is_shared_by_key_and_not_kept() -> None:
    flights, work = SingleFlight[int](), Work()
    tasks = await asking(flights, work, "a", "a", "b")
    work.may_end.set()
    assert await asyncio.gather(*tasks) == [1, 1, 2]
    assert await flights.do("a", work) == 3


@within_a_loop
async def test_an_error_is_for_those_who_wait_and_for_nobody_after_them() -> None:
    flights, work = SingleFlight[int](), Work(n_failures=1)
    tasks = await asking(flights, work, "a", "a")
    work.may_end.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(error) for error in found] == ["1", "1"]
    assert await flights.do("a", work) == 2


@within_a_loop
async def test_who_leaves_leaves_the_others_alone_and_the_last_one_ends_the_work() -> None:
    flights, work = SingleFlight[int](), Work()
    first, second = await asking(flights, work, "a", "a")
    first.cancel()
    await asyncio.wait([first])
    (third,) = await asking(flights, work, "a")
    assert (work.n_begun, work.n_cancelled) == (1, 0)
    second.cancel()
    third.cancel()
    (late,) = await asking(flights, work, "a")  # does not join what is ending
    assert (work.n_begun, work.n_cancelled) == (2, 1)
    work.may_end.set()
    assert await late == 2


def test_a_loop_never_waits_for_the_work_of_another() -> None:
    flights = SingleFlight[int]()

    async def outer() -> None:
        mine = Work()
        (task,) = await asking(flights, mine, "a")

        async def inner() -> int:
            theirs = Work()
            theirs.may_end.set()
            return await flights.do("a", theirs)

        assert await asyncio.to_thread(asyncio.run, inner()) == 1
        mine.may_end.set()
        assert await task == 1

    asyncio.run(outer())
