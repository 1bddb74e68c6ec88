"""The ledger of a run on a cluster: workers use the driver's budget, limits, breaker and replies.

The ledger is in the driver's process, so that the store has one writer, and a lost worker loses no state.
A worker reaches it by a `WorkerChannel`, which collects messages while the last ones are on their way,
and sends them together. The driver runs each request of a worker as a task in the same contexts as a
call of its own (`Limited.slot`, `Budget.reserve`); if the worker is lost, its tasks are cancelled, as
calls of the driver would be.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from inspect import signature
from itertools import count
from time import monotonic
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl.errors import ModelError, PearlError
from pearl.llm import Completion
from pearl.llm.client import Client, ClientSettings, Role
from pearl.llm.concurrency import gather
from pearl.llm.middleware.budget import Budget, Call
from pearl.llm.middleware.caching import Replies
from pearl.llm.middleware.rate import Limited, Slot
from pearl.llm.middleware.retry import CircuitBreaker

SETTLE_S = 10.0  # Maximum seconds to wait for the last messages of the workers at the end of a run

Message = tuple[int, str, Any]
"""From a worker: the number of a request, its name or outcome, and a value."""

_REPORTED_FIELDS = ("usage", "reply", "share", "is_told", "may_write")
"""The fields of `Call` with its result, which a worker reports."""

Answer = tuple[int, Any]
"""From the driver: the number of a request, and its result or error; number 0 ends the run."""


class Terms(Struct, frozen=True):
    """The settings of the driver's clients that a worker needs."""

    clients: Mapping[Role, ClientSettings]
    budget: Mapping[str, Any]
    has_replies: bool

    @classmethod
    def of(cls, clients: Mapping[Role, Client]) -> Terms:
        """The terms of the clients of a run."""
        settings = {role: client.settings for role, client in clients.items()}
        main = clients["main"]
        limits = [name for name in signature(Budget).parameters if name != "counter"]
        budget = {name: getattr(main.budget, name) for name in limits}
        return cls(settings, budget, main.replies is not None)


# --- in a worker


class WorkerChannel:
    """A worker's channel to the ledger."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._messages: list[Message] = []
        self._has_messages = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._breaker: CircuitBreaker | None = None

    def clients(self, terms: Terms) -> dict[Role, Client]:
        """The clients of a run, whose limits, budget and replies are those of the ledger."""
        budget = _RemoteBudget(self, terms)
        replies = _RemoteReplies(self, has_any=terms.has_replies)
        breaker = self._breaker = CircuitBreaker()
        made: dict[ClientSettings, Client] = {}
        for role, settings in terms.clients.items():
            if settings not in made:
                bare = Client(settings, breaker=breaker)
                made[settings] = Client(
                    settings, model=bare.model, counter=bare.counter, replies=replies, budget=budget,
                    breaker=breaker, limiter=_RemoteLimited(self, role, bare), claimed=replies.claimed,
                )  # fmt: skip
        if budget.counts_tokens:
            budget.counter = made[terms.clients["main"]].counter
        return {role: made[settings] for role, settings in terms.clients.items()}

    def open(self, name: str, value: Any) -> int:
        """Send a request; returns its number."""
        return self.tell(next(self._numbers), name, value)

    def tell(self, number: int, name: str, value: Any = None) -> int:
        """Send a message about a request: `close` with its outcome, or `cancel`."""
        self._messages.append((number, name, value))
        self._has_messages.set()
        return number

    async def answer(self, number: int) -> Any:
        """The answer to a request."""
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            return await waiting
        except asyncio.CancelledError:
            self.tell(number, "cancel")
            raise
        finally:
            del self._waiting[number]

    async def messages(self) -> list[Message]:
        """The messages since the last call; waits for the first one."""
        await self._has_messages.wait()
        self._has_messages.clear()
        messages, self._messages = self._messages, []
        return messages

    def take(self, answers: Sequence[Answer]) -> None:
        """Deliver answers to the calls that wait for them."""
        for number, value in answers:
            waiting = self._waiting.get(number)
            if not number and self._breaker is not None:
                self._breaker.throw(value)
            elif waiting is None or waiting.done():
                continue  # it was cancelled
            elif isinstance(value, Exception):
                waiting.set_exception(value)
            else:
                waiting.set_result(value)


class _RemoteLimited(Limited):
    """Takes its slots from the driver's limiter for a role."""

    def __init__(self, channel: WorkerChannel, role: Role, client: Client) -> None:
        settings, count = client.settings, client.counter.count
        super().__init__(
            client.model, settings.concurrency, tokens_per_minute=settings.tokens_per_minute,
            count_tokens=lambda request: count(request.prompt), breaker=client.breaker,
        )  # fmt: skip
        self._channel, self._role = channel, role

    @asynccontextmanager
    async def slot(self, cost: float) -> AsyncIterator[Slot]:
        """Context of one call."""
        self.breaker.check()
        number = self._channel.open("slot", (self._role, cost))
        await self._channel.answer(number)
        slot = Slot()
        result: Any = None
        try:
            yield slot
            result = slot.n_tokens
        except ModelError as error:
            result = portable(error)
            raise
        finally:
            self._channel.tell(number, "cancel" if result is None else "close", result)


class _RemoteBudget(Budget):
    """Reserves in the driver's budget, and keeps no count of its own."""

    def __init__(self, channel: WorkerChannel, terms: Terms) -> None:
        super().__init__(**terms.budget)
        self._channel = channel
        self._numbers: dict[Call, int] = {}

    async def reserve(self, call: Call) -> Call:
        """Wait until the driver's budget allows a call."""
        number = self._channel.open("spend", replace(call, request=None))
        if self.is_limited:  # else nothing can be refused
            self.stretch, left_s = await self._channel.answer(number)
            if left_s is not None:  # not the deadline, because clocks of machines differ
                self._began = monotonic() + left_s - (self.max_time_s or 0.0)
        self._numbers[call] = number
        return call

    def settle(self, call: Call, **how: bool) -> None:
        """Tell the driver's budget the actual usage."""
        if not self.counts_tokens:
            call.reply = ""  # nobody counts it
        result = [getattr(call, name) for name in _REPORTED_FIELDS], how
        self._channel.tell(self._numbers.pop(call), "close", result)

    def out_of_time(self) -> Any:
        """The error of a call that was in progress at the deadline."""
        self._channel.open("late", None)
        return super().out_of_time()


class _RemoteReplies(Replies):
    """The replies of the driver."""

    def __init__(self, channel: WorkerChannel, *, has_any: bool) -> None:
        self._channel = channel
        self._has_any = has_any

    async def among(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """The cached replies of these keys, by key."""
        if not self._has_any:
            return {}
        known: dict[bytes, Completion] = await self._channel.answer(
            self._channel.open("among", keys)
        )
        return known

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        """Store replies by key, all or none of them; return once they are on the driver's disk."""
        await self._channel.answer(self._channel.open("keep", completions))

    @asynccontextmanager
    async def claimed(self, key: bytes) -> AsyncIterator[Completion | None]:
        """Yield the reply of a key; or None, and then no other worker asks for it during this context."""
        number = self._channel.open("claim", key)
        known = await self._channel.answer(number)
        try:
            yield known
        finally:
            if known is None:
                self._channel.tell(number, "close")


# --- in the driver


class _Request(Struct):
    """A request of a worker; after it is granted, `result` gets its outcome."""

    name: str
    value: Any
    answer: Callable[[Any], None]
    result: asyncio.Future[Any]


class Ledger:
    """The budget, limits, breaker and replies of the clients of a run, for workers."""

    def __init__(self, clients: Mapping[Role, Client]) -> None:
        self.breaker = clients["main"].breaker
        self._limiters = {role: client.limiter for role, client in clients.items()}
        self._budget = clients["main"].budget
        self._replies = clients["main"].replies
        self._flights: dict[bytes, asyncio.Future[Completion | None]] = {}

    async def perform(self, request: _Request) -> None:
        """Perform a request of a worker."""
        match request.name:
            case "slot":
                role, cost = request.value
                async with self._limiters[role].slot(cost) as slot:
                    request.answer(None)
                    result = await request.result
                    if isinstance(result, Exception):
                        raise result
                    slot.n_tokens = result
            case "spend":
                budget = self._budget
                call = await budget.reserve(request.value)
                how = {"is_sure": False, "is_usable": False}  # if the worker is lost
                try:
                    if budget.is_limited:  # else no call waits for it
                        request.answer((budget.stretch, budget.left_s))
                    outcome, how = await request.result
                    for name, value in zip(_REPORTED_FIELDS, outcome, strict=True):
                        setattr(call, name, value)
                finally:
                    budget.settle(call, **how)
            case "late":
                self._budget.out_of_time()
            case "claim":
                await self._claim(request)
            case "among":
                known = None if self._replies is None else self._replies.among(request.value)
                request.answer({} if known is None else await known)
            case "keep":
                if self._replies is not None:
                    await self._replies.keep_all(request.value)
                for key in self._flights.keys() & request.value.keys():
                    if not self._flights[key].done():  # a reply may be kept twice
                        self._flights[key].set_result(request.value[key])
                request.answer(None)

    async def _claim(self, request: _Request) -> None:
        key: bytes = request.value
        while (flight := self._flights.get(key)) is not None:
            if (known := await asyncio.shield(flight)) is not None:
                request.answer(known)
                return
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        known = None
        try:
            known = None if self._replies is None else await self._replies.reply(key)
            request.answer(known)
            if known is None:
                await request.result
        finally:
            del self._flights[key]
            if not flight.done():
                flight.set_result(known)


class Account:
    """The requests of one worker."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._running: dict[int, tuple[_Request, asyncio.Task[None]]] = {}
        self._answers: list[Answer] = []
        self._has_answers = asyncio.Event()

    async def serve(
        self,
        receive: Callable[[], Awaitable[list[Message]]],
        send: Callable[[list[Answer]], Awaitable[None]],
    ) -> None:
        """Perform the requests of a worker until it is lost, which `receive` and `send` show by raising."""
        try:
            await gather([self._receive(receive), self._send(send), self._halt()])
        finally:
            tasks = [task for _, task in self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until all requests are done; call it when no unit is running."""
        if tasks := [task for _, task in self._running.values()]:
            await asyncio.wait(tasks, timeout=SETTLE_S)

    async def _receive(self, receive: Callable[[], Awaitable[list[Message]]]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            for number, name, value in await receive():
                if name not in ("close", "cancel"):
                    answer = partial(self._answer, number)
                    request = _Request(name, value, answer, loop.create_future())
                    task = asyncio.create_task(self._perform(request))
                    self._running[number] = request, task
                    task.add_done_callback(partial(self._running.pop, number))
                elif number in self._running:
                    request, task = self._running[number]
                    if name == "cancel":
                        task.cancel()
                    elif not request.result.done():
                        request.result.set_result(value)

    async def _send(self, send: Callable[[list[Answer]], Awaitable[None]]) -> None:
        while True:
            await self._has_answers.wait()
            self._has_answers.clear()
            answers, self._answers = self._answers, []
            await send(answers)

    async def _halt(self) -> None:
        """Tell the worker the error that ends the run."""
        breaker = self._ledger.breaker
        try:
            breaker.check()
            await breaker.interruptible(asyncio.get_running_loop().create_future())
        except PearlError as error:
            self._answer(0, error)

    async def _perform(self, request: _Request) -> None:
        try:
            await self._ledger.perform(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker may wait for an answer
            request.answer(error)

    def _answer(self, number: int, value: Any) -> None:
        self._answers.append((number, portable(value)))
        self._has_answers.set()


def portable(value: Any) -> Any:
    """Return the value; replace an error that cannot be pickled by one with the same text."""
    if isinstance(value, Exception):
        try:
            pickle.loads(pickle.dumps(value))
        except Exception:  # noqa: BLE001 - whatever a class of another library does
            return PearlError(f"{type(value).__name__}: {value}")
    return value
