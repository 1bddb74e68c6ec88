"""Settings → a `Searcher` with its embedder and its reranker."""

from __future__ import annotations

from pearl.errors import UsageError
from pearl.llm.client import ClientSettings
from pearl.retrieval import Embedder, Reranker, SearchSettings
from pearl.retrieval.search import EmbeddingProgress, Searcher


def new_searcher(
    client: ClientSettings,
    settings: SearchSettings,
    embeddings: str | None = None,
    reranker: str | None = None,
    reranker_url: str | None = None,
    *,
    embeddings_url: str | None = None,
    progress: EmbeddingProgress | None = None,
) -> Searcher:
    """The searcher of a run, or of a command."""
    if reranker_url is not None and reranker is None:
        raise UsageError("a reranker URL is set, but no reranker", help="--reranker cohere:MODEL")
    embedder: Embedder | None = None
    reranks: Reranker | None = None
    if embeddings is not None:
        from pearl.llm.embedders import embedder_beside  # imported on use: most runs have none

        embedder = embedder_beside(
            embeddings, embeddings_url, base_url=client.base_url, api_key_env=client.api_key_env,
            is_asked=client.is_asked, concurrency=client.concurrency,
        )  # fmt: skip
    if reranker is not None:
        from pearl.llm.rerankers import create_reranker

        key = None if client.is_asked else ""
        reranks = create_reranker(reranker, url=reranker_url, api_key_env=key)
    return Searcher(settings, embedder, reranks, progress=progress)
