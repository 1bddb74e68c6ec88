"""`run`: an awaitable's result in a script, which has no event loop of its own."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import threading
from collections.abc import Awaitable
from typing import TypeVar

from pearl.errors import UsageError

Result = TypeVar("Result")

_threads = threading.local()


def run(awaitable: Awaitable[Result]) -> Result:
    """Wait for what a method of `Pearl` gives, or a run of a `Session`.

    All calls in a thread share one event loop, as connections and limits of a `Pearl` belong to the
    loop they were first used in: `asyncio.run` has a new one for each call.

    Raises:
        UsageError: It is none; or an event loop is running already, as in a notebook, where `await` stands as it is.

    Example:
        >>> import pearl
        >>> document = pearl.Document("Ada sold the boat because it leaked.")
        >>> pearl.run(pearl.Pearl().ask("Why did Ada sell the boat?", document)).evidence[0].text
        'Ada sold the boat because it leaked.'
    """
    if not inspect.isawaitable(awaitable):
        raise UsageError(
            f"there is nothing to wait for in a {type(awaitable).__name__}",
            help="call the method: pearl.run(pearl.Pearl().ask(...))",
        )
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _runner().run(_awaited(awaitable))
    if asyncio.iscoroutine(awaitable):
        awaitable.close()  # or it would be said that it was never awaited
    raise UsageError(
        "pearl.run is for scripts, and an event loop is running here",
        help="in a notebook or in asynchronous code: await pearl.ask(...)",
    )


def _runner() -> asyncio.Runner:
    """The runner of this thread, closed when the program ends."""
    runner: asyncio.Runner | None = getattr(_threads, "runner", None)
    if runner is None:
        runner = _threads.runner = asyncio.Runner()
        atexit.register(runner.close)
    return runner


async def _awaited(awaitable: Awaitable[Result]) -> Result:
    return await awaitable
