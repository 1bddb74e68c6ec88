"""A model's replies about single items, so that an item is asked about once.

Items are asked about in batches, and a batch changes with any of its items. Each reply is kept
under its item's own key: the instruction, the model, the item's text, and the document, because a
hostile item of a batch may decide the others. The reply to an item that was asked about alone holds
for every document, those of a batch for the same batch of any document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pearl.documents.digest import digest
from pearl.dsl.signatures import NOTHING
from pearl.llm import Completion, ItemsTask
from pearl.llm.middleware.dedup_cache import Replies


class ItemCache:
    """Replies about items, in memory and in the cache of replies."""

    def __init__(self, identity: str, replies: Replies | None = None) -> None:
        self._identity = identity
        self._replies = replies
        self._known: dict[bytes, str] = {}

    async def find(self, task: ItemsTask, texts: Sequence[str], document: str) -> dict[str, str]:
        """The replies that are known, by text."""
        found: dict[str, str] = {}
        instruction = self._instruction(task)
        for text in texts:
            for scope in (document, ""):
                key = digest((instruction, scope, text))
                known = self._known.get(key)
                if known is None and self._replies is not None:
                    kept = await self._replies.reply(key)
                    known = None if kept is None else "" if kept.text == NOTHING else kept.text
                if known is not None:
                    found[text] = self._known[key] = known
                    break
        return found

    def of_batch(self, task: ItemsTask) -> dict[str, str]:
        """The replies of this process to a batch of the same items, by text."""
        scope, instruction = self._batch(task), self._instruction(task)
        keys = {text: digest((instruction, scope, text)) for text in task.items}
        return {text: self._known[key] for text, key in keys.items() if key in self._known}

    async def keep(
        self, task: ItemsTask, replies: Mapping[str, str], document: str, model: str
    ) -> None:
        """Keep the replies of one call by text; "" is that nothing was found."""
        instruction = self._instruction(task)
        scope = "" if len(task.items) == 1 else document
        keyed = {digest((instruction, scope, text)): reply for text, reply in replies.items()}
        self._known.update(keyed)
        batch = self._batch(task)
        self._known.update({digest((instruction, batch, text)): replies[text] for text in replies})
        if self._replies is not None:
            # All or none of a batch: the rest of one would make other batches, which nobody knows.
            await self._replies.keep_all(
                {key: Completion(reply or NOTHING, model) for key, reply in keyed.items()}
            )

    def _batch(self, task: ItemsTask) -> str:
        return digest(task.items).hex()

    def _instruction(self, task: ItemsTask) -> str:
        parts = (
            "pearl item 2", self._identity, task.kind, task.action.signature, task.action.definition,
            task.arguments, task.labels,
        )  # fmt: skip
        return digest(map(repr, parts)).hex()
