"""Rejects replies that cannot be used, before they are kept or read."""

from __future__ import annotations

from pearl.errors import ModelError
from pearl.llm import Completion, Request
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.usable import trimmed, usable


class ReplyGuard(Wrapper):
    """Removes reasoning from replies, and rejects those that are none.

    It belongs inside the cache, so that none is stored. Batches check their replies themselves.
    """

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        try:
            completion = await self._model.complete(request)
        except ModelError as error:
            raise trimmed(error, self.name) from None
        return usable(completion, request, is_computed=not self.reads_prompts)
