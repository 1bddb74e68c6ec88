"""Voyage AI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DESCRIPTION = "Voyage AI: voyage:MODEL"

URL = "https://api.voyageai.com/v1/rerank"

KEYS = {"api.voyageai.com": "VOYAGE_API_KEY"}

MAX_TEXTS = 1_000

NEEDS_MODEL = True


def body(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    """The JSON data of a request."""
    return {"model": model, "query": query, "documents": list(texts), "top_k": len(texts)}
