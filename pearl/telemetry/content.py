"""Content of spans: what users must ask for, as OpenTelemetry's JSON forms have it."""

from __future__ import annotations

from collections.abc import Iterable

from pearl.errors.escaping import to_json
from pearl.llm import Message

MAX_CHARACTERS = 32_768
"""Of one text in a span: a batch of spans with whole documents would be refused by collectors."""


def text_of(text: str) -> str:
    """A text as a span can hold it: cut off after `MAX_CHARACTERS`, and Unicode.

    Example:
        >>> text_of("x" * 40_000)[-30:]
        'xx... (7,232 more characters)'
    """
    more = len(text) - MAX_CHARACTERS
    if more > 0:
        text = f"{text[:MAX_CHARACTERS]}... ({more:,} more characters)"
    return text.encode("utf-8", "replace").decode()


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "content": text_of(text)}


def prompt_json(messages: Iterable[Message]) -> str:
    """The messages of a prompt but for those of the system."""
    return to_json(
        [
            {"role": message.role, "parts": [_part(message.content)]}
            for message in messages
            if message.role != "system"
        ]
    )


def system_json(messages: Iterable[Message]) -> str | None:
    """The instructions of the system; None where there are none."""
    parts = [_part(message.content) for message in messages if message.role == "system"]
    return to_json(parts) if parts else None


def reply_json(text: str, finish_reason: str) -> str | None:
    """A reply; None where there is none."""
    if not text:
        return None
    told = {"role": "assistant", "parts": [_part(text)], "finish_reason": finish_reason}
    return to_json([told])
