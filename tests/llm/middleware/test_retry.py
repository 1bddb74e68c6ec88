"""Retries, around models that fail on purpose and servers that name a wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pearl.errors import RETRYABLE_KINDS, ModelError, ModelErrorKind, PausedError, UsageError
from pearl.llm import Completion, Message, Model, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.scripted import Scripted
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import Retrying
from pearl.llm.middleware.wrappers import Sampling
from pearl.llm.progress import CallWait
from tests.clock import computed
from tests.models import Acting, answer_task, telling_waits
from tests.server import Canned, Server, error

REQUEST = Request((Message("user", "who?"),), answer_task("who?", ""))

FINAL: tuple[ModelErrorKind, ...] = (
    "auth", "quota", "bad_request", "truncated", "filtered",
)  # fmt: skip


def failing(*errors: ModelError) -> Scripted:
    """A model that fails with these, one a call, then answers."""
    left: Iterator[ModelError] = iter(errors)

    def reply(request: Request) -> str:
        for failure in left:
            raise failure
        return "ok"

    return Scripted(reply, window=7)


def ask(model: Model) -> Completion:
    return asyncio.run(model.complete(REQUEST))


@pytest.mark.parametrize("kind", sorted(RETRYABLE_KINDS))
def test_transient_failures_are_retried(kind: ModelErrorKind) -> None:
    model = failing(ModelError("not now", kind=kind), ModelError("nor now", kind=kind))
    waits: list[CallWait] = []
    assert ask(telling_waits(Retrying(model, first_wait_s=0.01), waits.append)).text == "ok"
    assert len(model.requests) == 3
    assert [(wait.reason, wait.attempt) for wait in waits] == [("not now", 1), ("nor now", 2)]
    first_s, second_s = (wait.wait_s for wait in waits)
    assert 0.01 <= first_s <= 0.02 <= second_s <= 0.03


@pytest.mark.parametrize("kind", FINAL)
def test_permanent_failures_are_not_retried(kind: ModelErrorKind) -> None:
    error = ModelError("no", kind=kind, retry_after_s=1)
    model = failing(error)
    with pytest.raises(ModelError) as caught:
        ask(Retrying(model))
    assert caught.value is error
    assert len(model.requests) == 1


def test_a_refusal_is_retried_once() -> None:
    model = failing(*(ModelError(f"no. {i}", kind="refused") for i in range(3)))
    with pytest.raises(ModelError, match=r"no\. 1"):
        ask(Retrying(model))
    assert len(model.requests) == 2


def test_the_last_error_surfaces_when_the_attempts_are_spent() -> None:
    errors = [ModelError(f"no. {i}", kind="transport") for i in range(5)]
    model = failing(*errors)
    waits: list[CallWait] = []
    with pytest.raises(ModelError) as caught:
        ask(telling_waits(Retrying(model, 3, first_wait_s=0.01), waits.append))
    assert caught.value is errors[2]
    assert len(model.requests) == 3
    assert len(waits) == 2


def test_the_wait_named_by_the_server_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[CallWait] = []
    model = failing(ModelError("slow down", kind="rate_limited", retry_after_s=0.2))
    with computed(monkeypatch) as runner:
        runner.run(telling_waits(Retrying(model), waits.append).complete(REQUEST))
        assert 0.2 <= runner.get_loop().time() < 0.6
    assert [wait.wait_s for wait in waits] == [0.2]


def test_a_wait_that_is_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    model = failing(ModelError("tomorrow", kind="rate_limited", retry_after_s=601.0))
    with computed(monkeypatch) as runner:
        with pytest.raises(
            PausedError, match="asks for a pause of 11 minutes before the next call: tomorrow"
        ):
            runner.run(Retrying(model).complete(REQUEST))
        assert runner.get_loop().time() == 0
    assert len(model.requests) == 1


def test_a_wait_that_ends_after_the_deadline_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    model = failing(ModelError("slow down", kind="rate_limited", retry_after_s=60.0))
    with computed(monkeypatch) as runner:
        with pytest.raises(ModelError, match="slow down"):
            runner.run(Retrying(model, deadline_s=30.0).complete(REQUEST))
        assert runner.get_loop().time() == 0


def test_the_deadline_cuts_a_call_off() -> None:
    async def wait(request: Request) -> str:
        await asyncio.sleep(60)
        return "late"

    with pytest.raises(ModelError, match=r"no reply from acting within 0\.1 s"):
        ask(Retrying(Acting(wait), deadline_s=0.1))


def test_limits_without_a_call_are_refused() -> None:
    assert ask(Retrying(failing(), deadline_s=None)).text == "ok"
    with pytest.raises(UsageError, match="greater than 0 s"):
        Retrying(failing(), deadline_s=0.0)
    with pytest.raises(UsageError, match="0 attempts"):
        Retrying(failing(), 0)


def test_a_timeout_error_of_the_model_is_not_retried() -> None:
    def broken(request: Request) -> str:
        raise TimeoutError("a bug")

    with pytest.raises(TimeoutError, match="a bug"):
        ask(Retrying(Scripted(broken)))


def test_a_waiting_call_leaves_its_place() -> None:
    """With one place, the second call is answered while the first one waits."""
    model = failing(ModelError("not now", kind="transport"))
    order: list[str] = []

    async def call(name: str, retrying: Retrying) -> None:
        await retrying.complete(REQUEST)
        order.append(name)

    async def main() -> None:
        retrying = Retrying(Limited(model, 1), first_wait_s=0.1)
        await asyncio.gather(call("first", retrying), call("second", retrying))

    asyncio.run(main())
    assert order == ["second", "first"]


def test_a_seed_goes_along_with_every_request() -> None:
    model = failing()
    asyncio.run(Sampling(model, 7).complete(REQUEST))
    asyncio.run(Sampling(model, 8, 0.7).complete(REQUEST))
    asyncio.run(Retrying(Sampling(Limited(model, 1), 9, 0.0)).complete(REQUEST))
    asked = [(request.seed, request.temperature) for request in model.requests]
    assert asked == [(7, 0.0), (8, 0.7), (9, 0.0)]
    assert [request.messages for request in model.requests] == [REQUEST.messages] * 3
    assert REQUEST.seed is None


# What servers say of the wait --------------------------------------------------------------------


def in_s(seconds: float) -> Callable[[], str]:
    """A date as headers have it, so many seconds from when it is sent."""
    return lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


FORMS: list[tuple[dict[str, str | Callable[[], str]], float | None]] = [
    *(
        ({"retry-after": text}, wait_s)
        for text, wait_s in [
            ("0", None), ("1", 1), ("1.5", 1.5), ("1.", 1), ("2", 2), ("30", 30), ("59.9", 59.9),
            ("60", 60), ("120", 120), ("121", 121), ("599", 599), ("600", 600), ("007", 7),
            (" 3 ", 3), ("1m30s", 90), ("500ms", 0.5), ("6m0s", 360), ("7.66s", 7.66), ("1s", 1),
            ("9m59s", 599), ("601", 601), ("1h", 3_600), ("86400", 86_400), ("999999999", 999_999_999),
            ("-1", None), ("-0.5", None), ("soon", None), ("", None), ("nan", None), ("inf", None),
            ("1e3", None), ("0x10", None), ("1,5", None), ("5 minutes", None), ("1;2", None),
            ("9" * 30, None), ("Fri, 31 Dec 100000 23:59:59 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
        ]
    ),
    ({"retry-after": in_s(30)}, 29), ({"retry-after": in_s(300)}, 299),
    ({"retry-after": in_s(-30)}, None), ({"retry-after": in_s(7_200)}, 7_199),
    ({"retry-after-ms": "300"}, 0.3), ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ({"retry-after-ms": "x", "retry-after": "4"}, 4),
    ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "1m30s"}, 90),
    ({"x-ratelimit-reset-requests": "120ms"}, 0.12), ({"x-ratelimit-reset-tokens": "6m0s"}, 360),
    ({"retry-after": "2", "x-ratelimit-reset-tokens": "1m30s"}, 2), ({}, None),
]  # fmt: skip


class _EnoughError(Exception):
    """The wait has been told; nobody has to sit it out."""


def test_every_form_of_retry_after_is_obeyed(openai_server: Server) -> None:
    told: list[float] = []

    def on_wait(wait: CallWait) -> None:
        told.append(wait.wait_s)
        raise _EnoughError

    async def main() -> Iterator[None]:
        model = create_model("openai:test-model", ModelSettings(openai_server.url))
        for headers, wait_s in FORMS:
            began = time.monotonic()
            sent = {
                name: text if isinstance(text, str) else text() for name, text in headers.items()
            }
            openai_server.next(Canned(error("slow down"), 429, sent))
            retrying = telling_waits(Retrying(model), on_wait)
            if wait_s is not None and wait_s > 600:
                with pytest.raises(PausedError, match="minutes before the next call"):
                    await retrying.complete(REQUEST)
                continue
            with pytest.raises(_EnoughError):
                await retrying.complete(REQUEST)
            if wait_s is None:
                assert 1.0 <= told[-1] <= 2.0, headers  # our own first wait
            else:
                since_s = time.monotonic() - began  # a date comes nearer
                assert wait_s - since_s <= told[-1] <= wait_s * 1.1 + 1, headers
        await model.aclose()
        return iter(())

    asyncio.run(main())
    assert len(FORMS) >= 40
    assert len(openai_server.requests) == len(FORMS)
