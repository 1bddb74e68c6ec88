"""What is found out once, however many ask for it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from pearl.errors import ModelError

__all__ = ["Shared"]

T = TypeVar("T")


class Shared(Generic[T]):
    """The result of a search that all who ask meanwhile wait for.

    None and errors are told to those who wait, and are not remembered. The search goes on where
    one of those who wait is cancelled.
    """

    def __init__(self) -> None:
        self._found: T | None = None
        self._search: asyncio.Task[T | None] | None = None

    async def get(self, find: Callable[[], Coroutine[Any, Any, T | None]]) -> T | None:
        """What was found, or else is found now.

        Args:
            find: The search, the same for all who ask.

        Raises:
            ModelError: The search failed.
        """
        if self._found is not None:
            return self._found
        search = self._search
        # Searches belong to one event loop, as connections do.
        if search is None or search.done() or search.get_loop() is not asyncio.get_running_loop():
            search = self._search = asyncio.create_task(find())
            search.add_done_callback(_looked_at)
        try:
            self._found = await asyncio.shield(search)
        except ModelError as error:
            raise error.copy() from None
        return self._found

    def cancel(self) -> None:
        """End the search, if it goes on in this event loop."""
        search = self._search
        if search and not search.done() and search.get_loop() is asyncio.get_running_loop():
            search.cancel()


def _looked_at(search: asyncio.Task[Any]) -> None:
    """Nobody may be left to hear of an error; asyncio complains of errors nobody looks at."""
    if not search.cancelled():
        search.exception()
