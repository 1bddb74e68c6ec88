"""One model of one server: its `Wire` in whichever event loop runs, and the error for a refusal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pearl.errors import ModelError
from pearl.llm.backends.openai import faults, replies
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.faults import StatusError

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire

LIST_TIMEOUT_S = 5.0


class HttpSession:
    """Calls of one model of one server."""

    def __init__(self, endpoint: Endpoint, timeout_s: float, kind: str = "openai") -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._kind = kind
        self._wire: Wire | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def connect(self) -> Wire:
        """The connections of the event loop that runs."""
        from pearl.llm.backends.openai.wire import Wire

        loop = asyncio.get_running_loop()
        if self._wire is None or self._loop is not loop:  # connections are bound to an event loop
            try:
                self._wire = Wire(self._endpoint, self._timeout_s)
            except ValueError as error:
                raise faults.no_way(error, self._endpoint) from None
            self._loop = loop
        return self._wire

    async def aclose(self) -> None:
        """Close connections."""
        wire, self._wire = self._wire, None
        if wire and self._loop is asyncio.get_running_loop():
            await wire.close()

    async def refused(self, error: StatusError) -> ModelError:
        """The error for a status other than 2xx, which names similar models if this is unknown."""
        if faults.may_be_unknown_model(error, self._endpoint):
            served = await self._served()
            if served and self._endpoint.model not in served:
                return faults.unknown_model(error, self._endpoint, served, self._kind)
        return faults.refused(error, self._endpoint)

    async def listed(self) -> list[replies.Listed]:
        """The models that the server lists."""
        async with asyncio.timeout(LIST_TIMEOUT_S):
            return replies.read_models(await self.connect().get("/models"))

    async def _served(self) -> list[str]:
        """Names of the models that the server lists; empty if it does not."""
        try:
            return [model.id for model in await self.listed()]
        except (StatusError, ModelError, ValueError, TimeoutError):
            return []
