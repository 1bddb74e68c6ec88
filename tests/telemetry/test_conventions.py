"""Names of attributes by version of the conventions."""

from __future__ import annotations

import pytest

from pearl.errors import UsageError
from pearl.telemetry import Telemetry
from pearl.telemetry.conventions import (
    CONTENT_VARIABLE,
    DEFAULT,
    OPT_IN_VARIABLE,
    VERSIONS,
    captures_content,
    conventions_of,
    provider_of,
)


def test_names_differ_by_version() -> None:
    told = {"provider": "openai", "cached_tokens": 3, "workflow": "pearl", "seed": None}
    old, middle, latest = (conventions_of(version).attributes(**told) for version in VERSIONS)  # type: ignore[arg-type]
    assert old == {"gen_ai.system": "openai"}
    assert middle == latest == {
        "gen_ai.provider.name": "openai",
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.workflow.name": "pearl",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (None, DEFAULT),
        ("", DEFAULT),
        ("http", DEFAULT),
        ("gen_ai_latest_experimental", VERSIONS[-1]),
        ("http/dup, gen_ai_latest_experimental", VERSIONS[-1]),
    ],
)
def test_the_environment_opts_in(
    said: str | None, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if said is None:
        monkeypatch.delenv(OPT_IN_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(OPT_IN_VARIABLE, said)
    assert conventions_of().version == version
    assert conventions_of(VERSIONS[0]).version == VERSIONS[0]


def test_unknown_version_of_conventions() -> None:
    with pytest.raises(UsageError, match=r"genai-1\.41"):
        Telemetry(conventions="genai-1.42")


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
    assert [provider_of(name) for name in ("openai", "gemini", "mistral")] == [
        "openai", "gcp.gemini", "mistral_ai",
    ]  # fmt: skip
