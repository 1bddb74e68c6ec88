"""Text Embeddings Inference of Hugging Face, whose server has one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DESCRIPTION = "Text Embeddings Inference: tei, with the address of the server"

URL = ""

KEYS: dict[str, str] = {}

MAX_TEXTS = 32
"""Its `--max-client-batch-size`, unless it is told otherwise."""

NEEDS_MODEL = False


def body(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    """The JSON data of a request; what is too long for the model is truncated, and no error."""
    return {"query": query, "texts": list(texts), "truncate": True}
