"""Refusals of servers: their kinds, and how long they ask to wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import ModelErrorKind
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.faults import StatusError, refused, retry_after_s

ENDPOINT = Endpoint("http://localhost/v1", "m", "")

STATUSES: dict[ModelErrorKind, tuple[int, ...]] = {
    "auth": (401, 403),
    "quota": (402,),
    "deadline": (408,),
    "rate_limited": (429,),
    "transport": (409, 425, 500, 502, 503, 504, 529, 599, 999),
    "bad_request": (300, 305, 400, 404, 405, 407, 413, 418, 422, 451, 499),
}


def test_a_status_has_a_kind() -> None:
    for kind, statuses in STATUSES.items():
        for status in statuses:
            assert refused(StatusError(status, {"message": "no"}), ENDPOINT).kind == kind


def test_a_refused_key_is_not_quoted_in_part() -> None:
    assert "abc" not in str(refused(StatusError(401, {"message": "abc...xyz?"}), ENDPOINT))


@pytest.mark.parametrize("field", ["code", "type"])
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "content_filter", "filtered"), (403, "content_policy_violation", "filtered"),
        (429, "insufficient_quota", "quota"), (500, "billing_hard_limit_reached", "quota"),
    ],
)  # fmt: skip
def test_a_code_overrides_the_status(status: int, code: str, kind: str, field: str) -> None:
    assert refused(StatusError(status, {"message": "no", field: code}), ENDPOINT).kind == kind


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "121"}, 121),
        ({"retry-after": "1m30s"}, 90),
        ({"retry-after": "1h"}, 3_600),
        ({"retry-after": "500ms"}, 0.5),
        ({"retry-after": "7.66s"}, 7.66),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0),
        ({"retry-after": "Fri, 31 Dec 100000 23:59:59 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "١"}, None),
        ({"retry-after-ms": "300", "retry-after": "1"}, 0.3),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "1m30s"}, 90),
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"retry-after": "2", "x-ratelimit-reset-tokens": "1m30s"}, 2),
    ],
)
def test_a_wait_is_read_from_the_headers(headers: dict[str, str], wait_s: float | None) -> None:
    found = refused(StatusError(429, "no", headers), ENDPOINT).retry_after_s
    assert found == (wait_s if wait_s is None else pytest.approx(wait_s))


@pytest.mark.parametrize(("after_s", "wait_s"), [(30, 30), (-30, 0)])
def test_a_wait_may_be_a_date(after_s: float, wait_s: float) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=after_s), usegmt=True)
    assert retry_after_s({"retry-after": date}) == pytest.approx(wait_s, abs=2)


@given(st.text())
def test_every_header_is_a_wait_or_none(text: str) -> None:
    wait_s = retry_after_s({"retry-after": text, "x-ratelimit-reset-tokens": text})
    assert wait_s is None or 0 <= wait_s < float("inf")
