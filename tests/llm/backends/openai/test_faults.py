"""Refusals of servers: their kinds, and how long they ask to wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import ModelErrorKind
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.faults import StatusError, cut_off, refused, retry_after_s

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


def test_the_innermost_cause_of_a_lost_connection_is_named() -> None:
    error = OSError("outer")
    error.__cause__ = OSError("inner")
    assert "connection: inner" in str(cut_off(error, ENDPOINT))


@given(st.text())
def test_every_header_is_a_wait_or_none(text: str) -> None:
    wait_s = retry_after_s({"retry-after": text, "x-ratelimit-reset-tokens": text})
    assert wait_s is None or 0 <= wait_s < float("inf")
