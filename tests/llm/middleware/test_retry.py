"""Waits before a call is made again: as long as the server asks for, told while they last."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pearl.errors import PausedError
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import Retrying
from pearl.llm.progress import CallWait
from tests.llm.middleware.gated import request
from tests.models import telling_waits
from tests.server import Canned, Server, error


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
        retrying = Retrying(limited, breaker=limited.breaker)
        await telling_waits(retrying, on_wait).complete(request())
        at.append(time.monotonic())
        await model.aclose()

    asyncio.run(main())
    asked_s = 1.0 if header == "1" else 0.2
    assert asked_s <= told[0] <= asked_s * 1.1 + 1
    assert at[1] - at[0] >= asked_s - 0.05
