"""Work that need not wait runs without an event loop; other work is left."""

from __future__ import annotations

import asyncio

import pytest

from pearl.interpreter.offloading import at_once, off_loop


async def both(n: int) -> int:
    return await off_loop(n, lambda: 3) + await off_loop(n, lambda: 4)


@pytest.mark.parametrize("n", [0, 10**9])
def test_what_computes_only_is_done(n: int) -> None:
    assert at_once(both(n)) == 7
    assert asyncio.run(both(n)) == 7


def test_what_waits_is_left() -> None:
    async def waits() -> int:
        await asyncio.sleep(3_600)
        raise AssertionError

    assert at_once(waits()) is None
    assert at_once(asyncio.to_thread(lambda: 7)) is None  # there is no loop


def test_what_fails_fails() -> None:
    async def fails() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        at_once(fails())
