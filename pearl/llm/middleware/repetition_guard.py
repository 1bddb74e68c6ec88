"""Rejects replies that end in a loop."""

from __future__ import annotations

from pearl.errors import ModelError
from pearl.llm import Completion, Request
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.repetition import loop_in, repeats

__all__ = ["RepetitionGuard"]


class RepetitionGuard(Wrapper):
    """Rejects repetitive replies, complete or truncated.

    It belongs inside the cache, so that none is stored. Streaming backends stop them themselves.
    """

    async def complete(self, request: Request) -> Completion:
        """Send one request; a reply that ends in a loop is an error of the kind `repetition`."""
        try:
            completion = await self._model.complete(request)
        except ModelError as error:
            loop = loop_in(error.reply) if error.kind == "truncated" else None
            if loop is None:
                raise
            raise repeats(self.name, loop, error.usage, error.reply) from None
        loop = None if request.candidates else loop_in(completion.text)  # numbers may be equal
        if loop is not None:
            raise repeats(completion.model, loop, completion.usage, completion.text)
        return completion
