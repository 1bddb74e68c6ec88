"""What the environment says of content, and names of providers."""

from __future__ import annotations

import pytest

from pearl.contrib.telemetry import Telemetry
from pearl.contrib.telemetry.conventions import (
    CONTENT_VARIABLE,
    captures_content,
)


@pytest.mark.parametrize(
    ("said", "is_captured"),
    [
        (None, False), ("", False), ("NO_CONTENT", False), ("EVENT_ONLY", False), ("false", False),
        ("nonsense", False), ("SPAN_ONLY", True), ("span_and_event", True), ("true", True),
    ],
)  # fmt: skip
def test_variable_that_requests_content(
    said: str | None, is_captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if said is None:
        monkeypatch.delenv(CONTENT_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(CONTENT_VARIABLE, said)
    assert captures_content() == is_captured
    assert Telemetry().has_content == is_captured
    assert Telemetry(content=not is_captured).has_content != is_captured
