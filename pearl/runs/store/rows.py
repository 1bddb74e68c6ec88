"""Stored values ↔ bytes: JSON with a checksum, never executable data."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from pearl.documents.digest import digest
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, Usage
from pearl.llm.flaws import is_blank

MAX_TRACE = 1 << 28
"""Bytes of a trace that are read; what is longer is cut off there."""


def unpacked(data: object) -> dict[str, Any] | None:
    """The object that the JSON stands for, or None where it stands for none."""
    if not isinstance(data, bytes):
        return None
    try:
        found = json.loads(data.decode())  # of bytes it would guess the encoding
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_done(row: Mapping[str, Any]) -> bool:
    """Whether a row says what came of its task: neither a failure nor cut off by a limit."""
    return row.get("status") not in ("failed", "unfinished")


def checksum(*parts: bytes) -> bytes:
    """16 bytes that tell whether one of the parts is another."""
    return digest(parts)[:16]


def packed_trace(lines: str) -> bytes:
    """What happened in a task, compressed: prompts of one kind repeat each other."""
    return zlib.compress(lines.encode("utf-8", "backslashreplace"), 1)


def unpacked_trace(data: object) -> str:
    """The lines of a trace, those that older versions kept as text included; of a damaged one, what can be read."""
    if not isinstance(data, bytes):
        return ""
    if not data.startswith(b"{"):
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(data, MAX_TRACE)
        except zlib.error:
            return ""
    return data.decode("utf-8", "replace")


def packed_reply(completion: Completion) -> bytes:
    """The body of a reply."""
    usage = completion.usage
    return json_bytes(
        {
            "text": completion.text,
            "model": completion.model,
            "usage": {
                "input_tokens": usage.n_input_tokens,
                "output_tokens": usage.n_output_tokens,
                "cached_tokens": usage.n_cached_tokens,
            },
        }
    )


def unpacked_reply(key: bytes, digest: object, body: object) -> Completion | None:
    """The completion of a row of the replies, or None where it is not what was kept."""
    if not isinstance(body, bytes) or digest != checksum(key, body):
        return None
    match unpacked(body):
        case {
            "text": str(text),
            "model": str(model),
            "usage": {
                "input_tokens": int(n_input),
                "output_tokens": int(n_output),
                "cached_tokens": int(n_cached),
            },
        } if not is_blank(text):
            return Completion(text, model, Usage(n_input, n_output, n_cached))
        case _:
            return None
