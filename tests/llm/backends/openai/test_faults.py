"""How long a server asks to wait, in every form that servers say it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.llm.backends.openai.faults import retry_after_s


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1"}, 1),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "121"}, 121),
        ({"retry-after": "1m30s"}, 90),
        ({"retry-after": "1h"}, 3_600),
        ({"retry-after": "500ms"}, 0.5),
        ({"retry-after": "6m0s"}, 360),
        ({"retry-after": "7.66s"}, 7.66),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0),
        ({"retry-after": "Fri, 31 Dec 100000 23:59:59 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "١"}, None),
        ({"retry-after-ms": "300"}, 0.3),
        ({"retry-after-ms": "300", "retry-after": "1"}, 0.3),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "1m30s"}, 90),
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"retry-after": "2", "x-ratelimit-reset-tokens": "1m30s"}, 2),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after_s(headers) == (wait_s if wait_s is None else pytest.approx(wait_s))


@pytest.mark.parametrize(("after_s", "wait_s"), [(30, 30), (-30, 0), (86_400, 86_400)])
def test_a_server_may_ask_to_wait_until(after_s: float, wait_s: float) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=after_s), usegmt=True)
    assert retry_after_s({"retry-after": date}) == pytest.approx(wait_s, abs=2)


@given(st.text())
def test_any_header_is_a_wait_or_none(text: str) -> None:
    wait_s = retry_after_s({"retry-after": text, "x-ratelimit-reset-tokens": text})
    assert wait_s is None or 0 <= wait_s < float("inf")
