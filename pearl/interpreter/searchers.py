"""Settings → a `Searcher` with its embedder."""

from __future__ import annotations

from pearl.llm.client import ClientSettings
from pearl.retrieval import Embedder, SearchSettings
from pearl.retrieval.search import EmbeddingProgress, Searcher


def new_searcher(
    client: ClientSettings,
    settings: SearchSettings,
    embeddings: str | None = None,
    *,
    embeddings_url: str | None = None,
    progress: EmbeddingProgress | None = None,
) -> Searcher:
    """Create the searcher of a run or a command."""
    embedder: Embedder | None = None
    if embeddings is not None:
        from pearl.llm.embedders import embedder_beside  # Imported on use: most runs have none

        embedder = embedder_beside(
            embeddings, embeddings_url, base_url=client.base_url, api_key_env=client.api_key_env,
            is_asked=client.is_asked, concurrency=client.concurrency,
        )  # fmt: skip
    return Searcher(settings, embedder, progress=progress)
