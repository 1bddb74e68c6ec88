"""Settings → a `Client`: a model with its middleware (`layers`), used by the command line, Python, cluster workers and batches."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import uuid4

from msgspec.structs import replace

from pearl.documents.tokens import Counter
from pearl.errors import ModelError, PearlError, UsageError
from pearl.llm import (
    Completion,
    Constrains,
    Model,
    ModelBase,
    PrefixCaching,
    Request,
    Sampling,
    parameters_of,
)
from pearl.llm.backends import ModelSettings, create_model, own_key_variable
from pearl.llm.fallback import ConstraintFallback, Mode, reply_fallback
from pearl.llm.middleware import wrappers
from pearl.llm.middleware.budget import Budget, Budgeted
from pearl.llm.middleware.caching import (
    CacheWriter,
    Claimed,
    DedupCache,
    ItemCache,
    Measured,
    Replies,
    parameters_key,
)
from pearl.llm.middleware.prefix_warmup import PrefixWarmup, PrimingMode
from pearl.llm.middleware.rate import Limited, LimitedBy
from pearl.llm.middleware.retry import DEADLINE_S, CircuitBreaker, Retrying

if TYPE_CHECKING:
    from openai import AsyncOpenAI


Function = Callable[[list[dict[str, str]]], str | Awaitable[str]]
"""Messages, each with a `role` and its `content` → the reply."""


class FunctionModel(ModelBase):
    """Asks a function, in a thread if it is not asynchronous. Its identity is new each time, because it is unknown what replies depend on."""

    def __init__(self, function: Function) -> None:
        self.name = f"function:{getattr(function, '__qualname__', type(function).__name__)}"
        self.identity = f"{self.name} {uuid4().hex}"
        self._function: Callable[..., Any] = function
        self._is_async = iscoroutinefunction(function) or iscoroutinefunction(
            type(function).__call__
        )

    async def complete(self, request: Request) -> Completion:
        """Call the function."""
        messages = [{"role": each.role, "content": each.content} for each in request.messages]
        try:
            text = (
                self._function(messages)
                if self._is_async
                else await asyncio.to_thread(self._function, messages)
            )
            if isawaitable(text):
                text = await text
        except PearlError:
            raise
        except (ConnectionError, TimeoutError) as error:
            raise self._failed(error, "transport") from error
        except Exception as error:
            raise self._failed(error, "bad_request") from error
        if not isinstance(text, str):
            raise ModelError(
                f"{self.name} returned {type(text).__name__}, not text", kind="bad_request"
            )
        return Completion(text, self.name)

    def _failed(self, error: Exception, kind: Any) -> ModelError:
        return ModelError(f"{self.name}: {type(error).__name__}: {error}", kind=kind)


Role = Literal["planner", "main", "rows", "escalate", "checker", "mapper"]
"""The roles of models: write plans; carry out steps; read rows; decide what stays undecided; check claims; match options."""

Layer = Callable[[Model], Model]  # A wrapper around a model


class ClientSettings(Sampling, frozen=True):
    """Settings of a client, with the parameters of all its requests (`Sampling`); picklable if the model is a name.

    Attributes:
        model: `extractive` (no network, quotes passages), `openai:NAME`, ..., a `Model`, a function
            from messages to text, or an official client: `openai.AsyncOpenAI`, `AsyncAzureOpenAI`.
        base_url: Server of the model.
        api_key_env: Name of the environment variable whose key is sent to the server; "" to send
            none, None for `PEARL_API_KEY`, else `OPENAI_API_KEY`.
        server: Kind of the server of an `openai:` model, if it cannot be detected.
        window: Context window in tokens, overriding the shipped table.
        timeout_s: Maximum seconds of one call.
        is_asked: Whether requests are sent; a forecast sends none and needs no key.
        concurrency: Maximum concurrent calls, and concurrent tasks.
        requests_per_minute: Maximum calls sent; None for no limit but the server's.
        tokens_per_minute: Maximum tokens of prompts and replies; None for no limit but the server's.
        prefix: `auto` delays calls over a document until the first one has filled the server's cache,
            where that pays; `off` does not.
        constrain: Constrain plans to their grammar, and replies of steps to their form: `auto` for the
            best supported constraint, `grammar` or `json` to require one, `off`.
        attempts: Maximum calls per request, including the first.
        first_wait_s: Seconds before the second call if the server names none.
        deadline_s: Maximum seconds of all calls of one request; None for no limit.
        is_shared: Whether identical calls share one reply.
        embeddings: Embedder of sentences for a model that ranks them (`extractive`), by its name in
            `pearl.llm.embedders`.
        model_name: Name of the model of an official client; an Azure client with a deployment
            needs none.
    """

    model: str | Model | Function | AsyncOpenAI = "extractive"
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
    embeddings: str | None = None
    model_name: str | None = None

    def create_model(self) -> Model:
        """Create the model without middleware."""
        names = ModelSettings.__struct_fields__
        settings = ModelSettings(**{name: getattr(self, name) for name in names})
        if isinstance(self.model, str):
            return create_model(self.model, settings)
        # Importing the package takes a second, and only a caller who passes an official client
        # has imported it.
        if (openai := sys.modules.get("openai")) is None or not isinstance(
            self.model, openai.AsyncOpenAI | openai.OpenAI
        ):
            if hasattr(self.model, "complete"):
                return cast("Model", self.model)
            if callable(self.model):
                return FunctionModel(self.model)
            raise UsageError(
                f"{type(self.model).__name__} is no model",
                help="give a name such as 'openai:gpt-4o', a function from messages to text, or a Model",
            )
        if isinstance(self.model, openai.OpenAI):
            raise UsageError("a synchronous client cannot be used", help="pass an AsyncOpenAI")
        from pearl.llm.backends.openai import official

        return official.create(self.model, self.model_name, settings)


class Client(wrappers.Wrapper):
    """A model with caching, retries, limits and a budget.

    Args:
        settings: The settings; None for the embedded default.
        model: The model; None to create it from the settings.
        counter: Token counter of another client of the same model, to share its cache.
        replies: Persistent cache of replies, as `pearl.runs.store.Store`.
        budget: Limits of spending; None for none.
        collecting: Middleware that collects calls, as for batches, in place of the prefix warm-up.
        breaker: The circuit breaker of the run.
        limiter: The layer with the limits of another client of the same server, to share them.
        claimed: Shares calls in flight with other processes.

    Attributes:
        settings: Its settings.
        model: The innermost model, without middleware.
        replies: The persistent cache of replies, or None.
        counter: Counts tokens by the model's tokenizer, or estimates them.
        breaker: The circuit breaker of the run.
        budget: Limits and spending.
        layers: The middleware, from outside to inside.
        items: Cached replies about single rows; None for a model that reads no prompts.
        limiter: The layer with the limits; `limiter.limits` has the learned ones.
        plan_fallback: The constraint level of plans.
        reply_fallback: The constraint level of replies of steps.

    Raises:
        UsageError: A setting has an unknown name.
        ModelError: The model cannot be set up: no key.

    Example:
        >>> client = Client(ClientSettings("extractive", concurrency=2))
        >>> [type(layer).__name__ for layer in client.layers]
        ['MarksRestored', 'Retrying', 'Limited', 'ReplyGuard', 'Budgeted']
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
        limiter: Limited | None = None,
        claimed: Claimed | None = None,
    ) -> None:
        self.settings = settings = settings or ClientSettings()
        self.model = model = model or settings.create_model()
        if counter is None:
            counter = Counter.for_model(model.name, getattr(model, "tokenizer", None))
        self.counter = counter
        self.breaker = breaker or CircuitBreaker()
        self.replies = replies
        self.budget = budget or Budget()
        reads = model.reads_prompts  # Otherwise equal messages may belong to different requests
        # A model without prompts computes a reply faster than the cache finds it.
        is_kept = reads and settings.is_shared
        drawn = parameters_key(parameters_of(settings), "seed", "temperature")
        self.items = ItemCache(f"{model.identity} {drawn}", replies) if is_kept else None
        constrains = model.constrains
        if collecting is not None and settings.constrain == "auto":  # Batches support only JSON
            constrains = Constrains(constrains.by & {"json"})
        judged = {"judge": model.judge} if hasattr(model, "judge") else {}
        of_plans = {name: partial(judge, is_of_plans=True) for name, judge in judged.items()}
        self.plan_fallback = ConstraintFallback(constrains, settings.constrain, **of_plans)
        self.reply_fallback = reply_fallback(constrains, settings.constrain, **judged)
        caching: PrefixCaching | None = getattr(model, "caching", None)
        warm_up = partial(
            PrefixWarmup,
            mode=settings.prefix,
            n_places=settings.concurrency,
            price=self.budget.price_of(model.name),
            caching=caching,
        )
        order: tuple[Layer | None, ...] = (
            # Calls that wait for the server's cache or for a batch do not occupy a slot.
            collecting or (warm_up if reads else None),
            partial(LimitedBy, limiter=limiter)
            if limiter is not None
            else partial(
                Limited,
                n=settings.concurrency,
                requests_per_minute=settings.requests_per_minute,
                tokens_per_minute=settings.tokens_per_minute,
                count_tokens=lambda request: counter.count(request.prompt),
                breaker=self.breaker,
            ),
            # Stored before the slot is released: if the process is killed, at most one reply per
            # slot is lost.
            partial(CacheWriter, replies=replies, breaker=self.breaker)
            if reads and replies is not None
            else None,
            wrappers.ReplyGuard,  # Unusable replies are not stored
            # Only calls that are sent reserve budget.
            partial(Budgeted, budget=self.budget, caching=caching),
            wrappers.AttemptReporter if reads else None,
            # Backends limit the time of their calls themselves.
            partial(wrappers.TimeLimit, timeout_s=settings.timeout_s)
            if model is settings.model or isinstance(model, FunctionModel)
            else None,
        )
        # Cache hits need no slot and no tokens.
        shared = partial(DedupCache, replies=replies, claimed=claimed) if is_kept else None
        self._sending = _stack(model, order)
        self.layers = (*self._asking(shared, {}), *self._sending)
        self.limiter = limiter or next(
            layer for layer in self._sending if isinstance(layer, Limited)
        )
        super().__init__(self.layers[0])

    @property
    def window(self) -> int | None:
        """Context window in tokens, from the settings or the model."""
        return self.settings.window or self.model.window

    def unshared(
        self, seed: int | None = None, temperature: float | None = None, *, scope: str = ""
    ) -> Model:
        """The model with the same limits and budget that shares no replies, except those of the same work (`scope`), at their original cost."""
        drawn = {"seed": seed, "temperature": temperature}
        measured = partial(Measured, replies=self.replies, scope=scope)
        is_measured = scope and self.model.reads_prompts
        return self._asking(measured if is_measured else None, drawn)[0]

    def _asking(self, cache: Layer | None, drawn: Mapping[str, Any]) -> tuple[Model, ...]:
        """The layers outside of those that send a call; every call passes them, whether replies are shared or not."""
        settings = self.settings
        given = {name: value for name, value in drawn.items() if value is not None}
        parameters = parameters_of(settings) | given
        retrying = partial(
            Retrying,
            attempts=settings.attempts,
            first_wait_s=settings.first_wait_s,
            deadline_s=settings.deadline_s,
            breaker=self.breaker,
            budget=self.budget,
        )
        sampled = partial(wrappers.Sampled, parameters=parameters) if parameters else None
        # A call that waits for a retry occupies no slot, so retries are outside of the limits.
        return _stack(self._sending[0], (wrappers.MarksRestored, retrying, sampled, cache))


def _stack(model: Model, order: Sequence[Layer | None]) -> tuple[Model, ...]:
    """Wrap a model in layers; return them from outside to inside."""
    layers: list[Model] = []
    for layer in filter(None, reversed(order)):
        layers.insert(0, layer(layers[0] if layers else model))
    return tuple(layers)


def as_client(
    model: str | Model | Function | AsyncOpenAI,
    settings: Mapping[str, Any],
    *,
    replies: Replies | None = None,
    budget: Budget | None = None,
) -> Client:
    """Create a client of a model; a given client is returned unchanged."""
    if not isinstance(model, Client):
        return Client(ClientSettings(model, **settings), replies=replies, budget=budget)
    if settings or replies or budget:
        raise UsageError("a Client already has settings", help="pass them to the Client")
    return model


def clients_by_role(
    main: Client, models: Mapping[Role, str | Model | Function | None]
) -> dict[Role, Client]:
    """The clients of a run by role, which share replies, budget, breaker and limits. A role without a model uses the main one, except `escalate`."""
    clients: dict[Role, Client] = {"main": main}
    for role, model in models.items():
        if model is None:
            if role != "escalate":
                clients[role] = main
            continue
        given = model if isinstance(model, Client) else None
        if given and given.breaker is main.breaker:
            clients[role] = given
            continue
        settings = given.settings if given else role_settings(main.settings, model)
        beside = [c for c in clients.values() if _server(c.settings) == _server(settings)]
        same = next((c for c in beside if c.settings.model == settings.model), None)
        clients[role] = same or Client(
            settings,
            model=given.model if given else None,
            counter=given.counter if given else None,
            replies=main.replies,
            budget=main.budget,
            breaker=main.breaker,
            limiter=beside[0].limiter if beside else None,
        )
        name = clients[role].name
        if main.budget.max_cost_usd is not None and name not in (main.name, *main.budget.prices):
            raise UsageError(
                f"the budget has no price for '{name}'",
                help="give it: Budget(prices={NAME: PRICE})",
            )
    return clients


def _server(settings: ClientSettings) -> object:
    """A key that is equal for models of the same server."""
    name = settings.model
    return (name.partition(":")[0], settings.base_url) if isinstance(name, str) else name


def role_settings(main: ClientSettings, model: str | Model | Function) -> ClientSettings:
    """The settings of a role's client: on the server of the main model, or the default server of another backend."""
    settings = replace(main, model=model, window=None, model_name=None)
    if _server(settings) == _server(main):
        return settings
    key = own_key_variable(model) if isinstance(model, str) else None
    return replace(settings, base_url=None, server=None, api_key_env=key)
