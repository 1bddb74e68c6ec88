"""Names of embedders, and the texts that are not embedded twice."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from pearl.errors import UsageError
from pearl.llm.embedders import EmbedderSettings, create_embedder
from tests.server import Server


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openay:x", "did you mean 'openai:x'"),
        ("model2vek:x", "did you mean 'model2vec:x'"),
        ("", "model2vec:NAME"),
        ("potion", "model2vec:NAME"),
        ("openai", "openai:text-embedding"),
        ("openai:", "openai:text-embedding"),
        ("model2vec", "model2vec:minishlab"),
    ],
)
def test_unknown_names_are_corrected(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        create_embedder(spec)


def test_cached_vectors_are_not_requested_again(openai_server: Server) -> None:
    async def embed(*texts: str) -> np.ndarray:
        embedder = create_embedder("openai:m", EmbedderSettings(openai_server.url))
        try:
            return await embedder.embed(texts, "passage")
        finally:
            await embedder.aclose()

    first = asyncio.run(embed("a ship", "a lamp", "a ship"))
    second = asyncio.run(embed("a lamp", "a storm", "a ship"))
    assert [seen.body["input"] for seen in openai_server.requests] == [
        ["a ship", "a lamp"],
        ["a storm"],
    ]
    np.testing.assert_array_equal(first[[0, 1, 0]], second[[2, 0, 2]])
