"""Cached replies with their original usage, for measurements of cost."""

from __future__ import annotations

from pearl.documents.digest import digest
from pearl.llm import Completion, Model, Request
from pearl.llm.middleware.dedup_cache import Replies, request_key
from pearl.llm.middleware.wrapper import Wrapper


class Measured(Wrapper):
    """Caches replies of one scope with their original usage, so that resumed work has its full cost.

    `DedupCache` shares replies between scopes, and returns cached ones with zero usage.
    """

    def __init__(self, model: Model, replies: Replies, scope: str) -> None:
        super().__init__(model)
        self._replies = replies
        self._scope = scope

    async def complete(self, request: Request) -> Completion:
        """Return the cached reply, or send the request."""
        key = digest((self._scope, request_key(request, self.identity).hex()))
        known = await self._replies.reply(key)
        if known is not None:
            return known
        completion = await self._model.complete(request)
        await self._replies.keep(key, completion)
        return completion
