"""Short questions to a server that synchronous code asks, in an event loop of a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

Result = TypeVar("Result")


def aside(call: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Run a call there, whatever event loop runs here."""
    return asyncio.run_coroutine_threadsafe(call, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all such calls; its thread ends with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aside", daemon=True).start()
    return loop
