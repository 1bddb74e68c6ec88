"""Rejects replies that cannot be used, before they are kept or read."""

from __future__ import annotations

from pearl.errors import ModelError
from pearl.llm import Completion, Request
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.repetition import loop_in, repeats
from pearl.llm.usable import usable
from pearl.replies.normaliser import without_reasoning

__all__ = ["ReplyGuard"]


class ReplyGuard(Wrapper):
    """Removes reasoning from replies, and rejects those that are none.

    It belongs inside the cache, so that none is stored. Batches check their replies themselves.
    """

    async def complete(self, request: Request) -> Completion:
        """Send one request.

        Raises:
            ModelError: The model gave no usable reply, as `usable` says.
        """
        try:
            completion = await self._model.complete(request)
        except ModelError as error:
            loop = loop_in(error.reply) if error.kind == "truncated" else None
            error.reply = without_reasoning(error.reply).text
            if loop is None:
                raise
            raise repeats(self.name, loop, error.usage, error.reply) from None
        return usable(completion, request, is_computed=not self.reads_prompts)
