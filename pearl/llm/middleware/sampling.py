"""Sampling with a seed."""

from __future__ import annotations

from dataclasses import replace

from pearl.llm import Completion, Model, Request
from pearl.llm.middleware.wrapper import Wrapper


class Sampling(Wrapper):
    """Sends every request with a seed, and with a temperature unless it is None.

    One that has a seed of its own is sent as it is.
    """

    def __init__(self, model: Model, seed: int, temperature: float | None = None) -> None:
        super().__init__(model)
        self._seed = seed
        self._temperature = temperature

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        if request.seed is not None:
            return await self._model.complete(request)
        temperature = request.temperature if self._temperature is None else self._temperature
        return await self._model.complete(
            replace(request, seed=self._seed, temperature=temperature)
        )
