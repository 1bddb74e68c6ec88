"""Request → body of Chat Completions, without parameters that the model rejected."""

from __future__ import annotations

import re
from typing import Any

from pearl.llm import Request
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed

LEAST_TOKENS = 500
"""Minimum of a lowered limit of the reply."""

_LIMITS = ("max_tokens", "max_completion_tokens")
"""OpenAI's newer models reject the older name, other servers do not know the newer one."""

_IS_OF_LIMIT = re.compile(
    r"max_(?:completion_|output_|new_)?tokens|(?:completion|output) tokens", re.IGNORECASE
)
_IS_TOO_LARGE = re.compile(
    r"too (?:large|high|long|big)|at most|exceed|maximum|less than|no more than|valid range",
    re.IGNORECASE,
)
_IS_OF_WINDOW = re.compile(r"context[ _]length|input tokens|prompt", re.IGNORECASE)
_IS_UNKNOWN = re.compile(r"unsupported|not supported|instead", re.IGNORECASE)


class Parameters:
    """The parameters that one model accepts."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._model = endpoint.model
        self._limit = _LIMITS[endpoint.is_openai]
        self._most_tokens: int | None = None
        self._takes_temperature = True

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": message.role, "content": scrubbed(message.content)}
                for message in request.messages
            ],
        }
        if request.max_output_tokens is not None:
            most = self._most_tokens or request.max_output_tokens
            body[self._limit] = min(most, request.max_output_tokens)
        if request.temperature is not None and self._takes_temperature:
            body["temperature"] = request.temperature
        if request.seed is not None:
            body["seed"] = request.seed
        return body

    def drop_temperature(self) -> None:
        """Send no temperature from now on."""
        self._takes_temperature = False

    def mended(
        self, body: dict[str, Any], said: str, named: object = None
    ) -> dict[str, Any] | None:
        """A rejected body without the rejected parameter; None if that is not the reason.

        A limit that is too large for the model is halved for all requests; one that is too large
        with this prompt, for this request.
        """
        if "temperature" in body and (named == "temperature" or "temperature" in said):
            self.drop_temperature()
            return {key: body[key] for key in body if key != "temperature"}
        limit = next((name for name in (*_LIMITS, "max_output_tokens") if name in body), None)
        if limit is None or not (named == limit or _IS_OF_LIMIT.search(said)):
            return None
        other = next((name for name in _LIMITS if name != limit and name in said), None)
        if other and limit in _LIMITS and _IS_UNKNOWN.search(said):
            self._limit = other
            return {other if key == limit else key: body[key] for key in body}
        lowered = body[limit] // 2
        if lowered < LEAST_TOKENS or not _IS_TOO_LARGE.search(said):
            return None
        if not _IS_OF_WINDOW.search(said):
            self._most_tokens = lowered
        return {**body, limit: lowered}
