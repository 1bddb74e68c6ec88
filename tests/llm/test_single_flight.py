"""Work that is shared: each event loop has its own. `test_dedup_cache` tests callers of one loop."""

from __future__ import annotations

import asyncio

from pearl.llm.concurrency import SingleFlight


def test_event_loops_share_no_work() -> None:
    flights = SingleFlight[str]()

    async def main() -> None:
        may_end = asyncio.Event()

        async def outer() -> str:
            await may_end.wait()
            return "outer"

        async def inner() -> str:
            return "inner"

        task = asyncio.create_task(flights.do("a", outer))
        await asyncio.sleep(0)
        assert await asyncio.to_thread(asyncio.run, flights.do("a", inner)) == "inner"
        may_end.set()
        assert await task == "outer"

    asyncio.run(main())
