"""Cached replies with their original usage, for measurements of cost."""

from __future__ import annotations

from pearl.documents.digest import digest
from pearl.llm import Completion, Model, Request
from pearl.llm.middleware.dedup_cache import Replies, request_key
from pearl.llm.middleware.wrapper import Wrapper

__all__ = ["Measured"]


class Measured(Wrapper):
    """Finds the replies that it kept itself, with their usage: work that goes on costs what it costs.

    Unlike `DedupCache`, which tells a reply that is found as one that cost nothing, and which finds
    what any other work has kept.

    Args:
        model: The model to ask.
        replies: Where they are kept.
        scope: Names the work; what another one has kept is not found.
    """

    def __init__(self, model: Model, replies: Replies, scope: str) -> None:
        super().__init__(model)
        self._replies = replies
        self._scope = scope

    async def complete(self, request: Request) -> Completion:
        """Return the cached reply, or send the request.

        Raises:
            ModelError: The model gave no usable reply.
        """
        key = digest((self._scope, request_key(request, self.identity).hex()))
        known = await self._replies.reply(key)
        if known is not None:
            return known
        completion = await self._model.complete(request)
        await self._replies.keep(key, completion)
        return completion
