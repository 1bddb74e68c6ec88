"""Retries, around models that fail on purpose and servers that name a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from pearl.errors import RETRYABLE_KINDS, ModelError, ModelErrorKind, PausedError, UsageError
from pearl.llm import Completion, Message, Model, Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.middleware.retry import Retrying
from pearl.llm.progress import CallWait
from tests.clock import computed
from tests.models import Acting, answer_task, telling_waits

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
