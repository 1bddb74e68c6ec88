"""Deduplicates identical calls across steps, questions and documents, also while in flight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from pearl.documents.digest import digest
from pearl.errors import ModelError, StoreError
from pearl.llm import Completion, Model, Request, Usage
from pearl.llm.middleware.circuit_breaker import CircuitBreaker
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.single_flight import SingleFlight
from pearl.llm.usable import usable


class Replies(Protocol):
    """A persistent cache of replies."""

    async def reply(self, key: bytes) -> Completion | None:
        """The cached reply of a key, or None."""
        ...

    async def keep(self, key: bytes, completion: Completion) -> None:
        """Store a reply; an existing one may be kept."""
        ...

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        """Store replies by key, all or none of them."""
        ...


def request_key(request: Request, identity: str) -> bytes:
    """Cache key of a request: a digest of everything that its reply depends on.

    These are the model's `identity`, the messages, which hold the document, the action, the inputs and the
    wording of the prompt, the limit of the reply, the temperature, the seed, the constraint and the
    candidates.
    `request.task` is left out: it says the same to backends that read no prompts, and holds names
    that make no difference to the reply of one that does. Of a constraint told line by line its
    whole text is taken: the lines are made from the same.

    Example:
        >>> from dataclasses import replace
        >>> from pearl.llm import ChooseTask, Message
        >>> request = Request((Message("user", "who?"),), ChooseTask("who?", ("I", "you")))
        >>> key = request_key(request, "openai:m")
        >>> len(key), key == request_key(replace(request, seed=7), "openai:m")
        (32, False)
    """
    return digest(_parts(request, identity))


def _parts(request: Request, identity: str) -> Iterator[str]:
    yield "pearl request 2"
    yield identity
    yield repr((request.max_output_tokens, request.temperature, request.seed))
    if request.constraint is None:
        yield ""
    else:
        yield request.constrain_by
        yield request.constraint.name
        yield request.constraint.lark
        is_json = request.constrain_by == "json" and request.constraint.json_form is not None
        yield request.constraint.rendered("json-schema") if is_json else ""
    yield request.digest
    yield from request.candidates


@dataclass(slots=True, eq=False)
class _Shared:
    """The result of a call, and whether its cost was attributed."""

    result: Completion | ModelError
    is_paid: bool


class CacheWriter(Wrapper):
    """Stores every reply before it is returned.

    Within the place of the call (`Limited(CacheWriter(model, ...), n)`), so that a process that is killed
    has no more than `n` replies to lose.
    """

    def __init__(
        self, model: Model, replies: Replies, breaker: CircuitBreaker | None = None
    ) -> None:
        super().__init__(model)
        self._replies = replies
        self._breaker = breaker

    async def complete(self, request: Request) -> Completion:
        """Send one request and store the reply."""
        completion = await self._model.complete(request)
        try:
            await self._replies.keep(request_key(request, self.identity), completion)
        except StoreError as error:
            if self._breaker is not None:
                self._breaker.throw(error)
            raise
        return completion


class DedupCache(Wrapper):
    """Deduplicates identical calls.

    Concurrent callers of the same call share its result through `SingleFlight`. One of them gets
    its usage; for the others, and all later callers, it is a cache hit with zero usage.

    For models that read `Request.messages`: one that computes its reply from `Request.task` may
    make a difference between requests with the same messages.
    """

    def __init__(self, model: Model, replies: Replies | None = None) -> None:
        super().__init__(model)
        self._replies = replies
        self._calls: SingleFlight[_Shared] = SingleFlight()

    async def complete(self, request: Request) -> Completion:
        """Return the cached reply, or send the request."""
        key = request_key(request, self.identity)
        shared = await self._calls.do(key, lambda: self._ask(key, request))
        is_paid, shared.is_paid = shared.is_paid, True
        if isinstance(shared.result, ModelError):
            raise shared.result.copy() if is_paid else shared.result
        return _remembered(shared.result) if is_paid else shared.result

    async def _ask(self, key: bytes, request: Request) -> _Shared:
        known = None if self._replies is None else await self._replies.reply(key)
        if known is not None:
            with suppress(ModelError):  # kept by a version that took refusals for replies
                return _Shared(usable(known, request), is_paid=True)
        try:
            return _Shared(await self._model.complete(request), is_paid=False)
        except ModelError as error:
            return _Shared(error, is_paid=False)


def _remembered(completion: Completion) -> Completion:
    return replace(completion, usage=Usage(), is_remembered=True, prefix=None)
