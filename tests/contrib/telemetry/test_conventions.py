"""What the environment says of content, and names of providers."""

from __future__ import annotations

import pytest

from pearl.contrib.telemetry import Telemetry
from pearl.contrib.telemetry.conventions import (
    CONTENT_VARIABLE,
    call_attributes,
    captures_content,
    text_of,
)
from pearl.llm import Usage


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


def test_providers_have_the_names_of_the_conventions() -> None:
    models = ("openai:a", "gemini:a", "mistral:a")
    told = [call_attributes(model, "", Usage())[1]["gen_ai.provider.name"] for model in models]
    assert told == ["openai", "gcp.gemini", "mistral_ai"]


def test_a_long_text_of_a_span_is_cut_and_says_so() -> None:
    assert text_of("x" * 40_000).endswith("xx... (7,232 more characters)")
    assert text_of("x" * 32_768) == "x" * 32_768
