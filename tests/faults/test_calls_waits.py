"""Waits that servers name, limits that they do not name, and servers that do not end.

Client and server share one event loop on a computed clock: sockets are real, waits take no time,
and their lengths are exact.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, TypeVar

import pytest

from pearl.errors import ModelError, PausedError
from pearl.llm import Completion
from pearl.llm.client import Client, ClientSettings
from pearl.llm.middleware.budget import Budget
from tests.clock import ComputedLoop, computed
from tests.faults.calls import events, model_of, request, streamed
from tests.llm.middleware.test_rate import Bucketed
from tests.server import FAULTS, WHOLE, Canned, Seen, Server, completion, error
from tests.suite import Trial

T = TypeVar("T")
Use = Callable[[Client, Server], Awaitable[T]]


def on_computed_clock(
    patch: pytest.MonkeyPatch, use: Use[T], form: str = "chat", timeout_s: float = 600.0,
    budget: Budget | None = None, **settings: Any,
) -> T:  # fmt: skip
    """The result of a use of a client and its server on a clock of their own, which starts at 0."""

    async def main() -> T:
        server = Server()
        async with server.within_loop():
            model = model_of(server, form, timeout_s)
            client = Client(ClientSettings(model, prefix="off", **settings), budget=budget)
            try:
                return await use(client, server)
            finally:
                await client.aclose()

    with computed(patch, ComputedLoop(under_way_s=0.001)) as runner:
        return runner.run(main())


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
            ("9" * 30, None), ("Fri, 31 Dec 99999999999 23:59:59 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT", None),
        ]
    ),
    ({"retry-after": in_s(30)}, 30), ({"retry-after": in_s(300)}, 300),
    ({"retry-after": in_s(-30)}, None), ({"retry-after": in_s(7_200)}, 7_200),
    ({"retry-after-ms": "300"}, 0.3), ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ({"retry-after-ms": "x", "retry-after": "4"}, 4),
    ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "1m30s"}, 90),
    ({"x-ratelimit-reset-requests": "120ms"}, 0.12), ({"x-ratelimit-reset-tokens": "6m0s"}, 360),
    ({"retry-after": "2", "x-ratelimit-reset-tokens": "1m30s"}, 2), ({}, None),
]  # fmt: skip
"""Headers, and the wait that they name: None where they name none."""


@pytest.mark.row("R1", "waits that the server names, in every form of its headers")
@pytest.mark.parametrize("status", [429, 503])
def test_named_waits(status: int, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 429 all calls wait, after 503 the one that got it."""
    n_calls = trial.n(ci=3, nightly=20, release=50) if status == 429 else 1
    early_s = late_s = float("-inf")
    n_wrong = 0
    for headers, named_s in FORMS:
        sent = {name: text if isinstance(text, str) else text() for name, text in headers.items()}
        refused = Canned(error("slow down"), status, sent)
        if any(callable(text) for text in headers.values()) and named_s:  # dates have whole seconds
            named_s = parsedate_to_datetime(sent["retry-after"]).timestamp() - time.time()
        times: list[float] = []
        began_s = time.monotonic()

        async def use(client: Client, server: Server) -> list[Any]:
            def answer(seen: Seen) -> Canned:
                times.append(asyncio.get_running_loop().time())  # noqa: B023
                return Canned(completion()) if times[1:] else refused  # noqa: B023

            server.answer = answer
            calls = [client.complete(request(number)) for number in range(n_calls)]
            return await asyncio.gather(*calls, return_exceptions=True)

        outcomes = on_computed_clock(monkeypatch, use, concurrency=1)
        if named_s is not None and named_s > 600:
            n_wrong += len(times) != 1 or not isinstance(outcomes[0], PausedError)
            continue
        n_wrong += not all(isinstance(outcome, Completion) for outcome in outcomes)
        if named_s is not None:
            waited_s = times[1] - times[0]
            is_date = named_s % 1 and time.monotonic() - began_s  # comes nearer in real time
            early_s = max(early_s, named_s - is_date - waited_s)
            late_s = max(late_s, waited_s - 1.1 * named_s)
    trial.figure("forms of headers", len(FORMS), at_least=40)
    trial.figure("seconds earlier than told", early_s, at_most=0.05)
    trial.figure("seconds later than told and a tenth", late_s, at_most=1.0)
    trial.figure("runs that failed, or should have paused", n_wrong, at_most=0)


async def keep_busy(client: Client, server: Server, until_s: float, n_workers: int) -> list[object]:
    """Ask without rest; the errors of calls that failed for good."""
    loop, numbers = asyncio.get_running_loop(), iter(range(10**9))

    async def work() -> list[object]:
        failed: list[object] = []
        while loop.time() < until_s:
            try:
                await client.complete(request(next(numbers)))
            except ModelError as failure:
                failed.append(failure)
        return failed

    failed = await asyncio.gather(*(work() for _ in range(n_workers)))
    return [failure for of_worker in failed for failure in of_worker]


def policies(rate: float) -> dict[str, tuple[Bucketed, float | None, float]]:
    """Limits of servers: the policy, the wait that they name, and the calls per second in the end."""
    return {
        "a bucket of a second": (Bucketed(lambda t: rate), 1.0, rate),
        "a small bucket that names no wait": (Bucketed(lambda t: rate, 0.2), None, rate),
        "a limit that falls to a tenth": (Bucketed(lambda t: rate if t < 30 else rate / 10), 1.0, rate / 10),
        "a limit that grows tenfold": (Bucketed(lambda t: rate / 10 if t < 30 else rate), 1.0, rate),
    }  # fmt: skip


@pytest.mark.row(
    "R2", "a rate limit that the server does not tell: calls per second and rejections"
)
def test_unknown_rate_limits(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    n_seconds = trial.n(ci=30, nightly=60, release=600)
    rates = (5, 50, 200)[: trial.n(ci=1, nightly=2, release=3)]
    cases = [(rate, name, *case) for rate in rates for name, case in policies(rate).items()]
    for rate, name, policy, wait_s, steady_rate in cases:
        times: dict[bool, list[float]] = {True: [], False: []}

        async def use(client: Client, server: Server) -> list[object]:
            def answer(seen: Seen) -> Canned:
                now = asyncio.get_running_loop().time()
                is_admitted = policy.admits(now)  # noqa: B023
                times[is_admitted].append(now)  # noqa: B023
                headers = {"retry-after": str(wait_s)} if wait_s else {}  # noqa: B023
                refused = Canned(error("slow down"), 429, headers)
                return Canned(completion()) if is_admitted else refused

            server.answer, server.delay_s = answer, 0.1
            return await keep_busy(client, server, 60 + n_seconds, 128)

        failed = on_computed_clock(monkeypatch, use, concurrency=64, is_shared=False)
        steady = range(60, 60 + n_seconds)
        n_admitted, n_refused = (sum(int(t) in steady for t in times[is_ok]) for is_ok in (True, False))  # fmt: skip
        used, rejected = n_admitted / n_seconds / steady_rate, n_refused / (n_refused + n_admitted)
        is_low = steady_rate < 50  # a few probes are a large share of few calls
        trial.figure(f"{rate}/s, {name}: share used", used, at_least=0.75 if is_low else 0.9)
        trial.figure(f"{rate}/s, {name}: share rejected", rejected, at_most=0.1 if is_low else 0.02)
        trial.figure(f"{rate}/s, {name}: calls that failed for good", len(failed), at_most=0)


@pytest.mark.row("R8", "a server that hangs, drips or stalls: each call ends at its time limit")
@pytest.mark.parametrize("form", ["chat", "stream"])
def test_endless_replies(form: str, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    long_head = {"x": "y" * 2_000}
    stream = streamed(events("Nils sold the boat. " * 9), end="").encode()
    body = stream if form == "stream" else WHOLE
    late_s, n_wrong = float("-inf"), 0
    faults = [
        FAULTS["hang"], Canned(body, manner="drip"), Canned(body, manner="stall"),
        Canned(body, headers=long_head, manner="drip"), Canned(stream[: len(stream) // 2], manner="stall"),
        Canned(b"", 500, headers=long_head, manner="drip"),
    ]  # fmt: skip
    for fault in faults:
        for timeout_s, attempts, deadline_s in ((2.0, 1, None), (2.0, 3, None), (2.0, 9, 5.0)):

            async def use(client: Client, server: Server) -> tuple[Any, float]:
                server.answer = lambda seen: fault  # noqa: B023
                began_s = asyncio.get_running_loop().time()
                outcomes = await asyncio.gather(client.complete(request(1)), return_exceptions=True)
                return outcomes[0], asyncio.get_running_loop().time() - began_s

            outcome, took_s = on_computed_clock(
                monkeypatch, use, form, timeout_s,
                attempts=attempts, deadline_s=deadline_s, first_wait_s=0.01,
            )  # fmt: skip
            most_s = deadline_s or attempts * timeout_s
            late_s = max(late_s, took_s - 1.05 * most_s)
            n_wrong += not isinstance(outcome, ModelError) or outcome.kind != "deadline"
    trial.figure("calls", 3 * len(faults))
    trial.figure("seconds later than the limit and a twentieth", late_s, at_most=0.5)
    trial.figure("outcomes other than 'deadline'", n_wrong, at_most=0)
