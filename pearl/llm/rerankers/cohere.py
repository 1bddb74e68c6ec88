"""The format that most servers speak: Cohere v2, Jina, vLLM, SiliconFlow, LocalAI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DESCRIPTION = "Cohere, Jina, vLLM and most others: cohere:MODEL"

URL = "https://api.cohere.com/v2/rerank"

KEYS = {"api.cohere.com": "COHERE_API_KEY", "api.jina.ai": "JINA_API_KEY"}

MAX_TEXTS = 1_000

NEEDS_MODEL = True


def body(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    """The JSON data of a request."""
    return {"model": model, "query": query, "documents": list(texts), "top_n": len(texts)}
