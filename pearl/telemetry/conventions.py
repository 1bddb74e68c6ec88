"""Names of attributes by the version of OpenTelemetry's conventions for generative models.

The conventions are in development, and names change: `_NAMES` is the one place that has them. Sources:
open-telemetry/semantic-conventions 1.36 and 1.41 (the last one there with these conventions), and
open-telemetry/semantic-conventions-genai, where they have moved to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pearl.errors import UsageError, suggest

AttributeValue = str | bool | int | float | Sequence[str]

OPT_IN_VARIABLE = "OTEL_SEMCONV_STABILITY_OPT_IN"

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

VERSIONS = ("genai-1.36", "genai-1.41", "genai-latest")
"""The versions, in the order of the columns of `_NAMES`."""

DEFAULT = "genai-1.41"

_SCHEMAS = (
    "https://opentelemetry.io/schemas/1.36.0",
    "https://opentelemetry.io/schemas/1.41.0",
    None,
)

_NAMES: Mapping[str, tuple[str | None, str | None, str | None]] = {
    "operation": ("gen_ai.operation.name",) * 3,
    "provider": ("gen_ai.system", "gen_ai.provider.name", "gen_ai.provider.name"),
    "conversation": ("gen_ai.conversation.id",) * 3,
    "workflow": (None, "gen_ai.workflow.name", "gen_ai.workflow.name"),
    "agent": ("gen_ai.agent.name",) * 3,
    "tool": ("gen_ai.tool.name",) * 3,
    "tool_type": ("gen_ai.tool.type",) * 3,
    "tool_call": ("gen_ai.tool.call.id",) * 3,
    "tool_arguments": (None, "gen_ai.tool.call.arguments", "gen_ai.tool.call.arguments"),
    "tool_result": (None, "gen_ai.tool.call.result", "gen_ai.tool.call.result"),
    "request_model": ("gen_ai.request.model",) * 3,
    "temperature": ("gen_ai.request.temperature",) * 3,
    "seed": ("gen_ai.request.seed",) * 3,
    "max_tokens": ("gen_ai.request.max_tokens",) * 3,
    "response_model": ("gen_ai.response.model",) * 3,
    "finish_reasons": ("gen_ai.response.finish_reasons",) * 3,
    "input_tokens": ("gen_ai.usage.input_tokens",) * 3,
    "output_tokens": ("gen_ai.usage.output_tokens",) * 3,
    "cached_tokens": (None, "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read.input_tokens"),
    "system_instructions": (None, "gen_ai.system_instructions", "gen_ai.system_instructions"),
    "input_messages": (None, "gen_ai.input.messages", "gen_ai.input.messages"),
    "output_messages": (None, "gen_ai.output.messages", "gen_ai.output.messages"),
    "error": ("error.type",) * 3,
    "resend_count": ("http.request.resend_count",) * 3,
    "server_address": ("server.address",) * 3,
    "server_port": ("server.port",) * 3,
}  # fmt: skip
"""What is told → its attribute in each of `VERSIONS`; None where that has none."""

_PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
"""Backends whose provider has another name in the conventions than here."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """The names of one version."""

    version: str
    schema_url: str | None
    names: Mapping[str, str]

    def attributes(self, **told: AttributeValue | None) -> dict[str, AttributeValue]:
        """Attributes of a span; what is None, or has no name in this version, is left out.

        Example:
            >>> conventions_of("genai-1.36").attributes(provider="openai", cached_tokens=3, seed=None)
            {'gen_ai.system': 'openai'}
        """
        return {
            self.names[what]: value
            for what, value in told.items()
            if value is not None and what in self.names
        }


def conventions_of(version: str | None = None) -> Conventions:
    """The conventions of a version."""
    if version is None:
        opted_in = os.environ.get(OPT_IN_VARIABLE, "").replace(" ", "").split(",")
        version = VERSIONS[-1] if "gen_ai_latest_experimental" in opted_in else DEFAULT
    if version not in VERSIONS:
        raise UsageError(
            f"there are no conventions {version!r}", help=suggest(version, VERSIONS, "conventions")
        )
    column = VERSIONS.index(version)
    names = {what: name for what, row in _NAMES.items() if (name := row[column]) is not None}
    return Conventions(version, _SCHEMAS[column], names)


def captures_content() -> bool:
    """Whether the environment asks for prompts, replies and other content in spans.

    As the conventions have it: `SPAN_ONLY`, `SPAN_AND_EVENT` or `true`. Anything else is no, for what was
    sent cannot be taken back.
    """
    said = os.environ.get(CONTENT_VARIABLE, "").strip().upper()
    return said in ("SPAN_ONLY", "SPAN_AND_EVENT", "TRUE")


def provider_of(backend: str) -> str:
    """The name of a backend's provider in the conventions."""
    return _PROVIDERS.get(backend, backend)
