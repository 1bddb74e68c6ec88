"""Settings → a model with its middleware, composed in one place.

The command line, Python, cluster workers and batches all use a `Client`; `layers` is the list of
middleware between a caller and a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from pearl.documents.own_tokenizer import Tokenizer
from pearl.documents.tokens import Counter
from pearl.errors import UsageError
from pearl.llm import Completion, Constrains, Model, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.fallback import ConstraintFallback, Mode, reply_fallback
from pearl.llm.middleware.budget import Budget, Budgeted
from pearl.llm.middleware.caching import CacheWriter, DedupCache, ItemCache, Measured, Replies
from pearl.llm.middleware.prefix_warmup import PrefixWarmup, PrimingMode
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import DEADLINE_S, CircuitBreaker, Retrying
from pearl.llm.middleware.wrappers import AttemptReporter, ReplyGuard, Sampling, Wrapper

Layer = Callable[[Model], Model]
"""Wraps the model that it is given."""


@runtime_checkable
class HasTokenizer(Protocol):
    """A model whose own tokenizer is at hand."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """It; None where it is known to be of no use."""
        ...


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of a client; picklable if the model is a name.

    Attributes:
        model: `extractive` (no network, quotes passages), `openai:NAME`, ... or a `Model`.
        base_url: Server of the model.
        api_key_env: Name of the environment variable whose key is sent to the server; "" to send
            none, None for `PEARL_API_KEY`, else `OPENAI_API_KEY`.
        server: Kind of server that an `openai:` model runs on, where it does not say so itself.
        window: Tokens of the model's window, where you know better than the shipped table.
        timeout_s: Seconds that one call may take in all.
        is_asked: Whether anything is sent; a forecast, which sends nothing, needs no key.
        concurrency: Calls to the model at once, and tasks under way at once.
        requests_per_minute: Calls sent at most; None for as many as the server bears.
        tokens_per_minute: Of prompts and replies together; None likewise.
        prefix: Let the first call over a document fill the server's cache before the others follow
            (`auto`, where it pays), or not (`off`).
        constrain: Hold the model to the grammar of plans while it writes one, and to the form of a
            step's reply where that has one, as a list: `auto` for the best that it takes,
            `grammar` or `json` to insist, `off`.
        attempts: Calls of one request at most, the first included.
        first_wait_s: Seconds before the second call where the server names none.
        deadline_s: Seconds that all calls of one request may take; None for no limit.
        is_shared: Whether identical calls are made once.
        seed: Have replies drawn by it; None to leave that to the server.
        temperature: Of all calls that are drawn by a seed; None for that of each request.
        embeddings: What makes vectors of sentences for a model that ranks them (`extractive`), as
            `pearl.llm.embedders` names it.
    """

    model: str | Model = "extractive"
    base_url: str | None = None
    api_key_env: str | None = None
    server: str | None = None
    window: int | None = None
    timeout_s: float = 600.0
    is_asked: bool = True
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    prefix: PrimingMode = "auto"
    constrain: Mode = "auto"
    attempts: int = 4
    first_wait_s: float = 0.5
    deadline_s: float | None = DEADLINE_S
    is_shared: bool = True
    seed: int | None = None
    temperature: float | None = None
    embeddings: str | None = None

    def create_model(self) -> Model:
        """The model alone, which nothing is around.

        Raises:
            UsageError: The name is that of no model.
            ModelError: The model cannot be set up: no key.
        """
        if not isinstance(self.model, str):
            return self.model
        return create_model(
            self.model,
            ModelSettings(
                self.base_url, self.timeout_s, self.window, self.server, self.api_key_env,
                is_asked=self.is_asked, embeddings=self.embeddings,
            ),
        )  # fmt: skip


class Client(Wrapper):
    """A model with caching, retries, limits and a budget.

    Args:
        settings: The settings; None for the embedded default.
        model: Who is asked, where that is made already; None for what the settings say.
        counter: Counts the tokens of the model, where another client of it does already.
        replies: Where replies are kept, so that no call is made twice: a `pearl.runs.store.Store`.
        budget: What calls may spend; None for no limit, and for spending as the server tells it.
        collecting: Collects calls and sends them another way, as batches do; the cache of the
            server is not warmed up then.
        breaker: The circuit breaker of the run.

    Attributes:
        settings: What it is built from.
        model: Who is asked in the end.
        replies: Where replies are kept; None for nowhere.
        counter: Counts tokens the way the model does, or estimates them.
        breaker: The circuit breaker of the run.
        budget: What calls may spend, and what they have spent.
        layers: The middleware, from outside to inside.
        items: What is known about single rows; None for a model that computes replies itself.
        limiter: The one of them that sends; its `limits` say what the server bore.
        plan_fallback: What the model is held to while it writes plans.
        reply_fallback: What it is held to where the reply to a step has a form.

    Raises:
        UsageError: A setting names nothing that exists.
        ModelError: The model cannot be set up: no key.

    Example:
        >>> client = Client(ClientSettings("extractive", concurrency=2))
        >>> [type(layer).__name__ for layer in client.layers]
        ['Retrying', 'Limited', 'ReplyGuard', 'Budgeted']
    """

    def __init__(
        self,
        settings: ClientSettings | None = None,
        *,
        model: Model | None = None,
        counter: Counter | None = None,
        replies: Replies | None = None,
        budget: Budget | None = None,
        collecting: Layer | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.settings = settings = settings or ClientSettings()
        self.model = model = model or settings.create_model()
        if counter is None:
            tokenizer = model.tokenizer if isinstance(model, HasTokenizer) else None
            counter = Counter.for_model(model.name, tokenizer)
        self.counter = counter
        self.breaker = breaker or CircuitBreaker()
        self.replies = replies
        self.budget = budget or Budget()
        self.plan_fallback = ConstraintFallback(model.constrains, settings.constrain)
        # What is computed without a prompt costs less than finding it again.
        sampled = repr((settings.seed, settings.temperature))
        is_kept = model.reads_prompts and settings.is_shared
        self.items = ItemCache(f"{model.identity} {sampled}", replies) if is_kept else None
        # A reply that is held to a form is asked for at once; collected, it costs less.
        is_free = collecting is not None and settings.constrain == "auto"
        self.reply_fallback = reply_fallback(
            Constrains() if is_free else model.constrains, settings.constrain
        )
        reads = model.reads_prompts  # else equal messages may be different requests
        order: tuple[Layer | None, ...] = (
            self._retrying,  # who waits after a failure holds no place
            _sampling(settings.seed, settings.temperature),
            # What is known costs neither a place nor a token.
            partial(DedupCache, replies=replies) if reads and settings.is_shared else None,
            # Who waits for the server's cache, or for a batch, holds no place either.
            collecting or (self._warming_up if reads else None),
            partial(
                Limited,
                n=settings.concurrency,
                requests_per_minute=settings.requests_per_minute,
                tokens_per_minute=settings.tokens_per_minute,
                count_tokens=lambda request: counter.count(request.prompt),
                breaker=self.breaker,
            ),
            # Kept within the place of the call: a kill loses no more replies than there are places.
            partial(CacheWriter, replies=replies, breaker=self.breaker)
            if reads and replies is not None
            else None,
            ReplyGuard,  # unusable replies are not kept
            partial(Budgeted, budget=self.budget),  # what is reserved is what is sent
            AttemptReporter if reads else None,
        )
        layers: list[Model] = []
        for layer in filter(None, reversed(order)):
            layers.insert(0, layer(layers[0] if layers else model))
        self.layers = tuple(layers)
        self.limiter = next(layer for layer in layers if isinstance(layer, Limited))
        super().__init__(layers[0])

    @property
    def window(self) -> int | None:
        """Tokens of the window, as the settings say, or the model."""
        return self.settings.window or self.model.window

    async def complete(self, request: Request) -> Completion:
        """Send one request.

        Raises:
            BudgetError: The budget does not allow it.
            ModelError: The model gave no usable reply.
            PausedError: The server asks for too long a wait, or is unreachable.
        """
        return await self._model.complete(request)

    def unshared(
        self, seed: int | None = None, temperature: float | None = None, *, scope: str = ""
    ) -> Model:
        """The model with the same limits and budget, whose calls cost what they cost.

        No reply is shared with other calls or taken from those that are kept, but for those that
        the same work has kept: they count as what they cost.

        Args:
            seed: Have replies drawn by it.
            temperature: Of all calls, where there is a seed.
            scope: Names the work; "" to find no reply.
        """
        own = (Retrying, Sampling, DedupCache)
        model = next(layer for layer in self.layers if not isinstance(layer, own))
        if scope and self.replies is not None and self.model.reads_prompts:
            model = Measured(model, self.replies, scope)
        sampling = _sampling(seed, temperature)
        return self._retrying(model if sampling is None else sampling(model))

    def _retrying(self, model: Model) -> Model:
        return Retrying(
            model,
            self.settings.attempts,
            first_wait_s=self.settings.first_wait_s,
            deadline_s=self.settings.deadline_s,
            breaker=self.breaker,
            budget=self.budget,
        )

    def _warming_up(self, model: Model) -> Model:
        return PrefixWarmup(model, self.settings.prefix, n_places=self.settings.concurrency)


def as_client(
    model: str | Model,
    settings: Mapping[str, Any],
    *,
    replies: Replies | None = None,
    budget: Budget | None = None,
) -> Client:
    """The client of a model, or the one that is given in place of a model."""
    if not isinstance(model, Client):
        return Client(ClientSettings(model, **settings), replies=replies, budget=budget)
    if settings or replies or budget:
        raise UsageError("a client has its settings already", help="give them to the Client")
    return model


def _sampling(seed: int | None, temperature: float | None) -> Layer | None:
    return None if seed is None else partial(Sampling, seed=seed, temperature=temperature)
