"""Retries and limits, around models that fail on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

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
from tests.models import answer_task, telling_waits
from tests.server import Server

REQUEST = Request((Message("user", "who?"),), answer_task("who?", ""))

FINAL: tuple[ModelErrorKind, ...] = (
    "auth", "quota", "bad_request", "truncated", "filtered",
)  # fmt: skip


def failing(*errors: ModelError) -> Scripted:
    """A model that fails with these, one a call, then answers."""
    left: Iterator[ModelError] = iter(errors)

    def reply(request: Request) -> str:
        for error in left:
            raise error
        return "ok"

    return Scripted(reply, window=7)


def ask(model: Model) -> Completion:
    return asyncio.run(model.complete(REQUEST))


@pytest.mark.parametrize("kind", sorted(RETRYABLE_KINDS))
def test_what_may_pass_is_tried_again(kind: ModelErrorKind) -> None:
    model = failing(ModelError("not now", kind=kind), ModelError("nor now", kind=kind))
    waits: list[CallWait] = []
    assert ask(telling_waits(Retrying(model, first_wait_s=0.01), waits.append)).text == "ok"
    assert len(model.requests) == 3
    assert [(wait.reason, wait.attempt) for wait in waits] == [("not now", 1), ("nor now", 2)]
    first_s, second_s = (wait.wait_s for wait in waits)
    assert 0.01 <= first_s <= 0.02 <= second_s <= 0.03


@pytest.mark.parametrize("kind", FINAL)
def test_what_cannot_pass_is_not(kind: ModelErrorKind) -> None:
    error = ModelError("no", kind=kind, retry_after_s=1)
    model = failing(error)
    with pytest.raises(ModelError) as caught:
        ask(Retrying(model))
    assert caught.value is error
    assert len(model.requests) == 1


def test_a_refusal_is_asked_again_once() -> None:
    model = failing(*(ModelError(f"no. {i}", kind="refused") for i in range(3)))
    with pytest.raises(ModelError, match=r"no\. 1"):
        ask(Retrying(model))
    assert len(model.requests) == 2


def test_every_kind_is_one_or_the_other() -> None:
    assert not RETRYABLE_KINDS & set(FINAL)


def test_the_last_error_surfaces_when_the_attempts_are_spent() -> None:
    errors = [ModelError(f"no. {i}", kind="transport") for i in range(5)]
    model = failing(*errors)
    waits: list[CallWait] = []
    with pytest.raises(ModelError) as caught:
        ask(telling_waits(Retrying(model, 3, first_wait_s=0.01), waits.append))
    assert caught.value is errors[2]
    assert len(model.requests) == 3
    assert len(waits) == 2


def test_one_attempt_is_no_retry() -> None:
    model = failing(ModelError("no", kind="transport"))
    with pytest.raises(ModelError):
        ask(Retrying(model, 1))
    assert len(model.requests) == 1


def test_the_server_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[CallWait] = []
    model = failing(ModelError("slow down", kind="rate_limited", retry_after_s=0.2))
    with computed(monkeypatch) as runner:
        runner.run(telling_waits(Retrying(model), waits.append).complete(REQUEST))
        assert 0.2 <= runner.get_loop().time() < 0.6
    assert [wait.wait_s for wait in waits] == [0.2]


def test_a_wait_of_zero_is_no_advice() -> None:
    waits: list[CallWait] = []
    model = failing(ModelError("slow down", kind="rate_limited", retry_after_s=0.0))
    ask(telling_waits(Retrying(model, first_wait_s=0.02), waits.append))
    assert waits[0].wait_s >= 0.02


def test_a_wait_that_is_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    model = failing(ModelError("tomorrow", kind="rate_limited", retry_after_s=601.0))
    with computed(monkeypatch) as runner:
        with pytest.raises(PausedError, match="wants 11 minutes before the next call: tomorrow"):
            runner.run(Retrying(model).complete(REQUEST))
        assert runner.get_loop().time() == 0
    assert len(model.requests) == 1


def test_the_deadline_cuts_a_call_off() -> None:
    model = _Slow(60.0)
    with pytest.raises(ModelError, match=r"no reply from slow within 0\.1 s"):
        ask(Retrying(model, deadline_s=0.1))


def test_a_wait_that_ends_after_the_deadline_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    model = failing(ModelError("slow down", kind="rate_limited", retry_after_s=60.0))
    with computed(monkeypatch) as runner:
        with pytest.raises(ModelError, match="slow down"):
            runner.run(Retrying(model, deadline_s=30.0).complete(REQUEST))
        assert runner.get_loop().time() == 0


def test_without_a_deadline_calls_take_as_long_as_they_do() -> None:
    assert ask(Retrying(failing(), deadline_s=None)).text == "ok"
    with pytest.raises(UsageError, match="within 0 s"):
        Retrying(failing(), deadline_s=0.0)


def test_a_timeout_of_the_model_itself_is_a_bug() -> None:
    def broken(request: Request) -> str:
        raise TimeoutError("a bug")

    with pytest.raises(TimeoutError, match="a bug"):
        ask(Retrying(Scripted(broken)))


def test_bugs_are_not_retried() -> None:
    def broken(request: Request) -> str:
        raise KeyError("a bug")

    model = Scripted(broken)
    with pytest.raises(KeyError, match="a bug"):
        ask(Retrying(model))
    assert len(model.requests) == 1


def test_a_cancelled_wait_ends() -> None:
    async def main() -> None:
        model = failing(ModelError("slow down", kind="rate_limited", retry_after_s=60.0))
        task = asyncio.create_task(Retrying(model).complete(REQUEST))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_limit_holds() -> None:
    slow = _Slow()

    async def main() -> None:
        limited = Limited(slow, 3)
        await asyncio.gather(*(limited.complete(REQUEST) for _ in range(10)))

    asyncio.run(main())
    assert slow.peak == 3


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


def test_a_server_that_is_busy_is_left_alone_by_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[float] = []

    def reply(request: Request) -> str:
        began.append(asyncio.get_running_loop().time())
        if len(began) == 1:
            raise ModelError("slow down", kind="rate_limited", retry_after_s=0.3)
        return "ok"

    async def main() -> None:
        retrying = Retrying(Limited(Scripted(reply), 1))
        await asyncio.gather(*(retrying.complete(REQUEST) for _ in range(4)))

    with computed(monkeypatch) as runner:
        runner.run(main())
    assert len(began) == 5
    assert all(0.25 <= at - began[0] < 1 for at in began[1:])


def test_a_failed_call_gives_its_place_back() -> None:
    async def main() -> None:
        limited = Limited(failing(ModelError("no", kind="transport")), 1)
        with pytest.raises(ModelError):
            await limited.complete(REQUEST)
        assert (await limited.complete(REQUEST)).text == "ok"

    asyncio.run(main())


def test_a_limit_survives_its_event_loop() -> None:
    slow = _Slow()
    limited = Limited(slow, 1)

    async def main() -> None:
        await asyncio.gather(*(limited.complete(REQUEST) for _ in range(3)))

    for _ in range(2):
        asyncio.run(main())
    assert slow.peak == 1


def test_a_seed_goes_along_with_every_request() -> None:
    model = failing()
    asyncio.run(Sampling(model, 7).complete(REQUEST))
    asyncio.run(Sampling(model, 8, 0.7).complete(REQUEST))
    asyncio.run(Retrying(Sampling(Limited(model, 1), 9, 0.0)).complete(REQUEST))
    asked = [(request.seed, request.temperature) for request in model.requests]
    assert asked == [(7, 0.0), (8, 0.7), (9, 0.0)]
    assert [request.messages for request in model.requests] == [REQUEST.messages] * 3
    assert REQUEST.seed is None


def test_a_server_is_told_seed_and_temperature(openai_server: Server) -> None:
    async def main() -> None:
        model = create_model("openai:test-model", ModelSettings(openai_server.url))
        await model.complete(REQUEST)
        await Sampling(model, 7).complete(REQUEST)
        await Sampling(model, 8, 0.7).complete(REQUEST)
        await model.aclose()

    asyncio.run(main())
    plain, seeded, warm = (request.body for request in openai_server.requests)
    assert "seed" not in plain
    assert (seeded["seed"], seeded["temperature"]) == (7, 0.0)
    assert (warm["seed"], warm["temperature"]) == (8, 0.7)


def test_wrappers_are_models() -> None:
    model = failing()
    for wrapped in (
        Retrying(model),
        Limited(model, 2),
        Sampling(model, 1),
        Retrying(Limited(model, 2)),
    ):
        assert (wrapped.name, wrapped.window, wrapped.notice) == ("scripted", 7, model.notice)
        asyncio.run(wrapped.aclose())
    assert repr(Retrying(Limited(model, 2))) == "Retrying(Limited(Scripted('scripted')))"


def test_numbers_below_one_are_refused() -> None:
    with pytest.raises(UsageError, match="0 attempts"):
        Retrying(failing(), 0)
    with pytest.raises(UsageError, match="0 calls"):
        Limited(failing(), 0)


class _Slow:
    """A model that takes its time, and counts how many use it at once."""

    name = identity = "slow"
    window = None
    notice = ""
    reads_prompts = True

    def __init__(self, call_s: float = 0.01) -> None:
        self.n = self.peak = 0
        self.call_s = call_s

    async def complete(self, request: Request) -> Completion:
        self.n += 1
        self.peak = max(self.peak, self.n)
        await asyncio.sleep(self.call_s)
        self.n -= 1
        return Completion("ok", self.name)

    async def aclose(self) -> None:
        """Nothing to let go of."""
