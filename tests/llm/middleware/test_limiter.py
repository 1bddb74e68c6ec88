"""One limiter for all calls of a run: order, rates, pauses, and the end of the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pearl.errors import ModelError, ModelErrorKind, PausedError, PearlError, UsageError
from pearl.llm import Completion, Message, Request, Usage
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.middleware.adaptive_concurrency import COOLDOWN_S, AdaptiveConcurrency
from pearl.llm.middleware.circuit_breaker import SILENT_CALLS, CircuitBreaker, OutageDetector
from pearl.llm.middleware.limiter import Limited
from pearl.llm.middleware.retry import Retrying
from pearl.llm.middleware.token_bucket import TokenBucket
from pearl.llm.progress import CallWait
from tests.clock import computed
from tests.models import answer_task, telling_waits
from tests.server import Canned, Server, error


def request(text: str = "who?") -> Request:
    return Request((Message("user", text),), answer_task(text, ""))


class Gated:
    """A model whose calls end when the test says so.

    Attributes:
        begun: Prompts in the order in which they came.
    """

    name = identity = "gated"
    window = None
    notice = ""
    reads_prompts = True

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Future[Completion]] = {}

    async def complete(self, request: Request) -> Completion:
        self.begun.append(request.prompt)
        end = self._ends[request.prompt] = asyncio.get_running_loop().create_future()
        return await end

    def answer(self, prompt: str) -> None:
        self._ends[prompt].set_result(Completion("ok", self.name, Usage(100, 20)))

    def fail(self, prompt: str, error: ModelError) -> None:
        self._ends[prompt].set_exception(error)

    async def aclose(self) -> None:
        """Nothing to let go of."""


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def start(limited: Limited | Retrying, *prompts: str) -> list[asyncio.Task[Completion]]:
    return [asyncio.create_task(limited.complete(request(prompt))) for prompt in prompts]


def test_first_come_first_served() -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_calls_that_are_cancelled_leave_no_hole() -> None:
    async def main() -> None:
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
        assert not limited.halt._waiters

    asyncio.run(main())


def test_a_call_that_is_cancelled_in_its_turn_passes_it_on() -> None:
    async def main() -> None:
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

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["quota", "auth"])
def test_an_end_of_the_run_ends_what_waits_and_not_what_runs(kind: ModelErrorKind) -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 2)
        retrying = Retrying(limited, halt=limited.halt)
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

        limited.halt.lift()
        (next_run,) = start(retrying, "h")
        await settle()
        model.answer("h")
        assert (await next_run).text == "ok"

    asyncio.run(main())


def test_an_end_of_the_run_wakes_those_that_wait_to_ask_again() -> None:
    async def main() -> None:
        model, halt = Gated(), CircuitBreaker()
        retrying = Retrying(Limited(model, 2, halt=halt), halt=halt)
        (task,) = start(retrying, "a")
        await settle()
        model.fail("a", ModelError("slow down", kind="rate_limited", retry_after_s=500.0))
        await settle()
        assert not task.done()
        halt.throw(ModelError("no credit", kind="quota"))
        with pytest.raises(ModelError, match="no credit"):
            await task

    asyncio.run(main())


def test_a_server_that_wants_too_long_a_wait_pauses_the_run() -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_a_pause_is_told_while_it_lasts() -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 4)
        first, *_ = tasks = start(limited, "a")
        await settle()
        model.fail("a", ModelError("slow down", kind="rate_limited", retry_after_s=34.0))
        await settle()
        tasks += start(limited, "b")
        await settle()
        assert limited.limits.waits_for == "the server"
        assert 30 < limited.limits.wait_s <= 34
        assert limited.limits.n_refused == 1
        assert model.begun == ["a"]
        assert first.exception()
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


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


def test_tokens_per_minute_are_those_that_the_server_counts() -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 50, tokens_per_minute=6_000, count_tokens=lambda request: 10)
        tasks = start(limited, *"abcdefgh")
        await settle()
        assert model.begun == [*"abcde"]  # 50 tokens are there, 10 are thought to be needed
        assert limited.limits.waits_for == "the token limit"
        model.answer("a")  # it took 120
        await settle()
        assert limited.limits.wait_s > 1.0
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_a_limiter_serves_one_event_loop_after_the_other() -> None:
    limited = Limited(Gated(), 1)

    async def main() -> None:
        tasks = start(limited, *"ab")
        await settle()
        assert (limited.limits.n_running, limited.limits.n_waiting) == (1, 1)
        del tasks  # the loop ends while one runs and one waits

    for _ in range(3):
        asyncio.run(main())


def test_limits_that_allow_nothing_are_refused() -> None:
    for settings in ({"requests_per_minute": 0}, {"tokens_per_minute": -1}, {"start": 0}):
        with pytest.raises(UsageError, match="too few"):
            Limited(Gated(), 1, **settings)  # type: ignore[arg-type]


def test_places_grow_while_they_are_needed_and_shrink_once_per_episode() -> None:
    places = AdaptiveConcurrency(most=100, start=10)
    for _ in range(10):
        places.on_reply(0.0)
    assert places.n == 20  # twice as many in the time of one call
    places.on_refused()
    assert places.n == 16
    places.on_trouble(0.0)
    for _ in range(100):
        places.on_reply(COOLDOWN_S - 1)
    assert places.n == 16
    for _ in range(17):
        places.on_reply(COOLDOWN_S)
    assert places.n == 17
    for _ in range(10_000):
        places.on_reply(COOLDOWN_S)
    assert places.n == 100
    for _ in range(100):
        places.on_refused()
    assert places.n == 1


def test_faults_of_the_server_take_no_place_away() -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 8)
        for prompt in "abcdef":
            tasks = start(limited, prompt)
            await settle()
            model.fail(prompt, ModelError("internal", kind="transport"))
            await asyncio.gather(*tasks, return_exceptions=True)
        assert limited.limits.n_places == 8
        assert limited.limits.requests_per_s is None

    asyncio.run(main())


def test_a_refusal_at_random_holds_up_its_own_call_alone() -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 4)
        limited._learned.faults.share = 0.05
        tasks = start(limited, "a", "b")
        await settle()
        model.fail("a", ModelError("slow down", kind="rate_limited", retry_after_s=34.0))
        await settle()
        tasks += start(limited, "c", "d", "e")
        await settle()
        assert model.begun == [*"abcde"]
        assert (limited.limits.n_places, limited.limits.requests_per_s) == (4, None)
        assert (limited.limits.n_sent, limited.limits.n_refused) == (5, 1)
        for prompt in "bcde":
            model.answer(prompt)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_places_are_given_back_when_refusals_were_none_of_their_doing() -> None:
    places = AdaptiveConcurrency(most=100, start=10)
    for _ in range(10):
        places.on_reply(0.0)
    for _ in range(5):
        places.on_refused()
        places.on_trouble(0.0)
    assert places.n == 6
    places.restore()
    assert places.n == 20
    places.on_reply(1.0)
    assert places.n == 21
    places.on_refused()
    places.restart()
    for _ in range(7):
        places.on_reply(1.0)
    assert places.n == 8, "each reply brings another, as before the first refusal"


def test_a_bucket_never_has_its_caller_come_back_for_nothing() -> None:
    bucket, now = TokenBucket(7.3, 0.0), 0.0
    for _ in range(1_000):
        delay_s = bucket.delay_s(1.0, now)
        if delay_s:
            now += delay_s
            assert bucket.delay_s(1.0, now) == 0.0
        bucket.spend(1.0)
    assert now == pytest.approx(1_000 / 7.3, rel=0.02)


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
                    await retrying.complete(request())
                continue
            with pytest.raises(_EnoughError):
                await retrying.complete(request())
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


@pytest.mark.parametrize("header", ["0.2", "200ms", "1"])
def test_a_wait_is_neither_shorter_nor_much_longer(openai_server: Server, header: str) -> None:
    openai_server.next(Canned(error("slow down"), 429, {"retry-after": header}))
    at: list[float] = []
    told: list[float] = []

    def on_wait(wait: CallWait) -> None:
        told.append(wait.wait_s)
        at.append(time.monotonic())

    async def main() -> None:
        model = create_model("openai:test-model", ModelSettings(openai_server.url))
        limited = Limited(model, 4)
        model_told = telling_waits(Retrying(limited, halt=limited.halt), on_wait)
        await model_told.complete(request())
        at.append(time.monotonic())
        await model.aclose()

    asyncio.run(main())
    asked_s = 1.0 if header == "1" else 0.2
    assert asked_s <= told[0] <= asked_s * 1.1 + 1
    assert at[1] - at[0] >= asked_s - 0.05


@pytest.mark.parametrize(("fault", "message"), [("quota", "quota"), ("401", "401"), ("403", "403")])
def test_a_refused_key_is_one_call(openai_server: Server, fault: str, message: str) -> None:
    openai_server.next(fault)

    async def main() -> None:
        model = create_model("openai:test-model", ModelSettings(openai_server.url))
        limited = Limited(model, 1)
        retrying = Retrying(limited, halt=limited.halt)
        tasks = start(retrying, *map(str, range(20)))
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert len({id(outcome) for outcome in outcomes}) == 1
        assert isinstance(outcomes[0], PearlError)
        assert message in str(outcomes[0])
        await model.aclose()

    asyncio.run(main())
    assert len(openai_server.requests) == 1


def test_a_server_that_is_gone_pauses_the_run() -> None:
    """So many calls, over so long: neither a burst of failures nor a single slow call is it."""
    gone, slow = ModelError("no server", kind="transport"), ModelError("late", kind="deadline")
    silence = OutageDetector()
    assert not any(silence.go_on(gone, 0.1 * i) for i in range(3 * SILENT_CALLS))
    silence.end()
    assert not any(silence.go_on(slow, 30.0 * i) for i in range(SILENT_CALLS - 1))
    silence.end()
    found = [silence.go_on(gone, 100.0 + 3.0 * i) for i in range(SILENT_CALLS)]
    assert not any(found[:-1])
    assert isinstance(found[-1], PausedError)
    assert "10 calls in a row got no answer in 27 s: no server" in str(found[-1])


def test_a_run_on_a_server_that_is_gone_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(request: Request) -> Completion:
        raise ModelError("no server", kind="transport")

    async def main() -> list[BaseException | Completion]:
        model = Gated()
        model.complete = fail  # type: ignore[method-assign]
        limited = Limited(model, 4)
        asked = Retrying(limited, first_wait_s=0.0, halt=limited.halt)
        return await asyncio.gather(*start(asked, *map(str, range(40))), return_exceptions=True)

    monkeypatch.setattr("pearl.llm.middleware.circuit_breaker.SILENT_S", 0.0)
    kinds = [type(found) for found in asyncio.run(main())]
    assert kinds.count(PausedError) > 30


def test_work_that_begins_beside_other_work_is_of_the_same_run() -> None:
    halt, error = CircuitBreaker(), ModelError("no credit", kind="quota")
    with halt.running():
        with halt.running():
            halt.throw(error)
        with halt.running():
            assert halt.error is error
    with halt.running():
        halt.check()
