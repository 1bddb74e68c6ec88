"""One limiter for all calls of a run: order, rates, pauses, and the end of the run."""

from __future__ import annotations

import asyncio

import pytest

from pearl.errors import ModelError, ModelErrorKind, PausedError, UsageError
from pearl.llm import Completion, Request
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import CircuitBreaker, Retrying
from tests.clock import computed
from tests.llm.middleware.gated import Gated, settle, start, within_a_loop


@within_a_loop
async def test_first_come_first_served() -> None:
    model = Gated()
    limited = Limited(model, 2)
    tasks = start(limited, *"abcdef")
    await settle()
    assert model.begun == ["a", "b"]
    assert (limited.limits.n_running, limited.limits.n_waiting) == (2, 4)
    assert limited.limits.waits_for == "a place"
    for i, prompt in enumerate("abcdef"):
        model.answer(prompt)
        await settle()
        assert "".join(model.begun) == "abcdef"[: i + 3]
    await asyncio.gather(*tasks)
    assert (limited.limits.n_running, limited.limits.n_waiting) == (0, 0)
    assert limited.limits.waits_for == ""


@within_a_loop
async def test_cancelled_calls_free_their_slots() -> None:
    model = Gated()
    limited = Limited(model, 1)
    tasks = start(limited, *"abcde")
    await settle()
    tasks[1].cancel()  # waits
    await settle()
    assert limited.limits.n_waiting == 3
    model.answer("a")
    tasks[2].cancel()  # waits, and it is its turn in this moment
    await settle()
    assert model.begun == ["a", "d"]
    tasks[3].cancel()  # runs
    await settle()
    assert model.begun == ["a", "d", "e"]
    model.answer("e")
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [task.cancelled() for task in tasks] == [False, True, True, True, False]
    assert (limited.limits.n_running, limited.limits.n_waiting) == (0, 0)
    assert not limited.breaker._waiters


@within_a_loop
async def test_a_call_cancelled_on_release_passes_its_slot_on() -> None:
    model = Gated()
    limited = Limited(model, 1)
    tasks = start(limited, *"abc")
    await settle()
    model.answer("a")
    await asyncio.sleep(0)
    assert (limited.limits.n_waiting, model.begun) == (1, ["a"])  # granted, not yet begun
    tasks[1].cancel()
    await settle()
    assert model.begun == ["a", "c"]
    model.answer("c")
    await asyncio.gather(*tasks, return_exceptions=True)
    assert limited.limits.n_running == 0


@pytest.mark.parametrize("kind", ["quota", "auth"])
@within_a_loop
async def test_a_fatal_error_ends_waiting_calls_only(kind: ModelErrorKind) -> None:
    model = Gated()
    limited = Limited(model, 2)
    retrying = Retrying(limited, breaker=limited.breaker)
    running, failing, *waiting = start(retrying, *"abcdef")
    await settle()
    over = ModelError("it is over", kind=kind)
    model.fail("b", over)
    await settle()
    assert all(task.exception() is over for task in (failing, *waiting))
    assert limited.limits.n_waiting == 0
    (later,) = start(retrying, "g")
    await settle()
    assert later.exception() is over
    model.answer("a")
    assert (await running).text == "ok"
    assert model.begun == ["a", "b"]

    limited.breaker.lift()
    (next_run,) = start(retrying, "h")
    await settle()
    model.answer("h")
    assert (await next_run).text == "ok"


@within_a_loop
async def test_a_fatal_error_wakes_calls_that_wait_for_a_retry() -> None:
    model, breaker = Gated(), CircuitBreaker()
    retrying = Retrying(Limited(model, 2, breaker=breaker), breaker=breaker)
    (task,) = start(retrying, "a")
    await settle()
    model.fail("a", ModelError("slow down", kind="rate_limited", retry_after_s=500.0))
    await settle()
    assert not task.done()
    breaker.throw(ModelError("no credit", kind="quota"))
    with pytest.raises(ModelError, match="no credit"):
        await task


@within_a_loop
async def test_too_long_a_wait_pauses_the_run() -> None:
    model = Gated()
    limited = Limited(model, 1)
    first, second = start(limited, *"ab")
    await settle()
    model.fail("a", ModelError("tomorrow", kind="rate_limited", retry_after_s=86_400.0))
    await settle()
    assert isinstance(first.exception(), PausedError)
    assert first.exception() is second.exception()
    paused = first.exception()
    assert isinstance(paused, PausedError)
    assert paused.exit_code == 75
    assert "1,440 minutes" in str(paused)
    assert len(str(paused).splitlines()) <= 3


def test_requests_per_minute_are_kept_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[float]:
        began: list[float] = []

        class Quick(Gated):
            async def complete(self, request: Request) -> Completion:
                began.append(asyncio.get_running_loop().time())
                return Completion("ok", "quick")

        limited = Limited(Quick(), 50, requests_per_minute=6_000)
        tasks = start(limited, *map(str, range(90)))
        await settle()
        assert limited.limits.waits_for == "the rate limit"
        assert limited.limits.requests_per_s == 100
        await asyncio.gather(*tasks)
        return began

    with computed(monkeypatch) as runner:
        began = runner.run(main())
    assert (
        0.35 <= began[-1] - began[0] < 0.5
    )  # 90 less those that may be made up for, at 100 a second


def test_the_token_limit_uses_reported_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 50, tokens_per_minute=6_000, count_tokens=lambda request: 10)
        tasks = start(limited, *"abcdefgh")
        await settle()
        assert model.begun == [*"abcde"]  # 50 tokens are there, 10 are thought to be needed
        assert limited.limits.waits_for == "the token limit"
        model.answer("a")  # it took 120
        await settle()
        assert limited.limits.wait_s == pytest.approx(
            1.2
        )  # 110 too many and 10 more, at 100 a second
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with computed(monkeypatch) as runner:
        runner.run(main())


def test_limits_below_one_call_are_refused() -> None:
    for n, settings in ((1, {"requests_per_minute": 0}), (1, {"tokens_per_minute": -1}), (0, {})):
        with pytest.raises(UsageError, match="too low"):
            Limited(Gated(), n, **settings)  # type: ignore[arg-type]


def test_few_unanswered_or_slow_calls_are_no_outage() -> None:
    breaker = CircuitBreaker()
    gone, slow = ModelError("no server", kind="transport"), ModelError("late", kind="deadline")
    assert not any(breaker.unanswered(gone, 0.1 * i)[1] for i in range(30))
    breaker.answered()
    assert not any(breaker.unanswered(slow, 30.0 * i)[1] for i in range(9))
    breaker.answered()
    errors = [breaker.unanswered(gone, 100.0 + 3.0 * i)[1] for i in range(10)]
    assert not any(errors[:-1])
    assert "10 calls in a row got no answer in 27 s: no server" in str(errors[-1])


@within_a_loop
async def test_server_errors_do_not_reduce_the_concurrency() -> None:
    model = Gated()
    limited = Limited(model, 8)
    for prompt in "abcdef":
        tasks = start(limited, prompt)
        await settle()
        model.fail(prompt, ModelError("internal", kind="transport"))
        await asyncio.gather(*tasks, return_exceptions=True)
    assert limited.limits.n_places == 8
    assert limited.limits.requests_per_s is None
