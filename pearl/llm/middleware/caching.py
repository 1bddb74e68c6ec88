"""Caches of replies: identical calls of different steps, questions and documents are made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.digest import digest, keys_after
from pearl.dsl.signatures import NOTHING
from pearl.errors import ModelError, StoreError
from pearl.llm import Completion, ItemsTask, Model, Request, Usage
from pearl.llm.concurrency import SingleFlight
from pearl.llm.flaws import usable
from pearl.llm.messages import without_texts
from pearl.llm.middleware.retry import CircuitBreaker
from pearl.llm.middleware.wrappers import Wrapper
from pearl.llm.progress import CallReplied, report

T = TypeVar("T")


class Replies(Protocol):
    """A persistent cache of replies."""

    async def among(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """The cached replies of these keys, by key."""

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        """Store replies by key, all of them or none; existing ones may be kept."""

    async def reply(self, key: bytes) -> Completion | None:
        """The cached reply of a key, or None."""
        return (await self.among([key])).get(key)

    async def keep(self, key: bytes, completion: Completion) -> None:
        """Store a reply."""
        await self.keep_all({key: completion})


Claimed = Callable[[bytes], AbstractAsyncContextManager[Completion | None]]
"""A context that yields the cached reply of a key, or None: then the caller sends the request, and no other process does."""


def request_key(request: Request, identity: str) -> bytes:
    """Cache key of a request: its messages, the model's identity, all parameters and the whole constraint, without `task`."""
    # Kept with the request, which the cache and its writer ask for it.
    keys: dict[str, bytes] = vars(request).setdefault("_keys", {})
    if identity not in keys:
        sampled = parameters_key(request.parameters, "max_output_tokens", "temperature", "seed")
        parts = ["pearl request 2", identity, sampled]
        if (held := request.constraint) is None:
            parts.append("")
        else:
            is_json = request.constrain_by == "json" and held.json_form is not None
            form = held.rendered("json-schema") if is_json else ""
            parts += [request.constrain_by, held.name, held.lark, form]
        keys[identity] = digest([*parts, request.digest])
    return keys[identity]


def parameters_key(values: Mapping[str, Any], *first: str) -> str:
    """Parameters as a part of a key; those in `first` come first, for the keys of existing stores."""
    rest = (f" {name}={value!r}" for name, value in values.items() if name not in first)
    return repr(tuple(values.get(name) for name in first)) + "".join(rest)


class _Shared(Struct, eq=False):
    """The result of a call, and whether its cost was already assigned to a caller."""

    result: Completion | ModelError
    is_paid: bool


class CacheWriter(Wrapper):
    """Stores every reply before it is returned, within the slot of the call: a killed process loses at most one reply per slot."""

    def __init__(
        self, model: Model, replies: Replies, breaker: CircuitBreaker | None = None
    ) -> None:
        super().__init__(model)
        self._replies = replies
        self._breaker = breaker

    async def complete(self, request: Request) -> Completion:
        """Send one request and store the reply."""
        completion = await self._model.complete(request)
        if completion.cut_prompt:
            return completion
        try:
            await self._replies.keep(request_key(request, self.identity), completion)
        except StoreError as error:
            if self._breaker is not None:
                self._breaker.throw(error)
            raise
        return completion


class DedupCache(Wrapper):
    """Sends identical calls of a model that reads messages once: one caller gets the usage, the others a cache hit with usage 0."""

    def __init__(
        self, model: Model, replies: Replies | None = None, claimed: Claimed | None = None
    ) -> None:
        super().__init__(model)
        self._replies = replies
        self._claimed = claimed
        self._calls: SingleFlight[_Shared] = SingleFlight()

    async def complete(self, request: Request) -> Completion:
        """Return the cached reply, or send the request."""
        key = request_key(request, self.identity)
        shared = await self._calls.do(key, lambda: self._ask(key, request))
        is_paid, shared.is_paid = shared.is_paid, True
        if isinstance(shared.result, ModelError):
            raise shared.result.copy() if is_paid else shared.result
        if not is_paid:
            return shared.result
        return replace(shared.result, usage=Usage(), is_remembered=True, prefix=None)

    async def _ask(self, key: bytes, request: Request) -> _Shared:
        claim: AbstractAsyncContextManager[Completion | None]
        if self._claimed is not None:
            claim = self._claimed(key)
        else:
            claim = nullcontext(None if self._replies is None else await self._replies.reply(key))
        async with claim as known:
            if known is not None:
                with suppress(ModelError):  # Stored by a version that accepted refusals
                    return _Shared(usable(known, request), is_paid=True)
            try:
                return _Shared(await self._model.complete(request), is_paid=False)
            except ModelError as error:
                return _Shared(error, is_paid=False)


class Measured(Wrapper):
    """Caches replies of one scope with their usage and prompts, so that resumed work has its full cost; reports each reply."""

    def __init__(self, model: Model, replies: Replies | None, scope: str) -> None:
        super().__init__(model)
        self._replies = replies
        self._scope = scope

    async def complete(self, request: Request) -> Completion:
        """Return the cached reply, or send the request."""
        if self._replies is None:
            completion = await self._model.complete(request)
            report(CallReplied(completion))
            return completion
        key = digest((self._scope, request_key(request, self.identity).hex()))
        known = await self._replies.reply(key)
        if known is None:
            known = await self._model.complete(request)
            await self._replies.keep(key, replace(known, prompt=without_texts(request.messages)))
        report(CallReplied(known, key.hex()))
        return known


class ItemCache:
    """Cached replies about items, in memory and in the persistent cache."""

    def __init__(self, identity: str, replies: Replies | None = None) -> None:
        self._identity = identity
        self._replies = replies
        self._known: dict[bytes, str] = {}
        self._of_batches: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}

    async def find(self, task: ItemsTask, texts: Sequence[str], document: str) -> dict[str, str]:
        """The cached replies, by text."""
        instruction = self._instruction(task)
        found: dict[str, str] = {}
        for scope in (document, ""):
            key_of = keys_after((instruction, scope))
            keys = {key_of(text): text for text in texts if text not in found}
            unknown = [key for key in keys if key not in self._known]
            if unknown and self._replies is not None:
                for key, kept in (await self._replies.among(unknown)).items():
                    self._known[key] = "" if kept.text == NOTHING else kept.text
            found |= {text: self._known[key] for key, text in keys.items() if key in self._known}
        return found

    def of_batch(self, task: ItemsTask) -> dict[str, str]:
        """The replies about an equal batch in this process, by text."""
        return self._of_batches.get((self._instruction(task), task.items), {})

    async def keep(
        self, task: ItemsTask, replies: Mapping[str, str], document: str, model: str
    ) -> None:
        """Store the replies of one call by text; "" for an item without a result."""
        instruction = self._instruction(task)
        scope = "" if len(task.items) == 1 else document
        key_of = keys_after((instruction, scope))
        keyed = {key_of(text): reply for text, reply in replies.items()}
        self._known.update(keyed)
        self._of_batches.setdefault((instruction, task.items), {}).update(replies)
        if self._replies is not None:
            # All or none: if only a part were stored, the rest would form new batches that are
            # not cached.
            made = {reply: Completion(reply or NOTHING, model) for reply in set(keyed.values())}
            await self._replies.keep_all({key: made[reply] for key, reply in keyed.items()})

    def _instruction(self, task: ItemsTask) -> str:
        parts = (
            "pearl item 2", self._identity, task.kind, task.action.signature, task.action.definition,
            task.arguments, task.labels, *(["quoted"] if task.is_quoted else []),
        )  # fmt: skip
        return digest(map(repr, parts)).hex()
