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
    return Searcher(
        settings,
        None if embeddings is None else _embedder(embeddings, embeddings_url, client),
        None if reranker is None else _reranker(reranker, reranker_url, client),
        progress=progress,
    )


def _embedder(name: str, url: str | None, client: ClientSettings) -> Embedder:
    from pearl.llm.embedders import embedder_beside  # imported on use: most runs have none

    return embedder_beside(
        name, url, base_url=client.base_url, api_key_env=client.api_key_env,
        is_asked=client.is_asked, concurrency=client.concurrency,
    )  # fmt: skip


def _reranker(name: str, url: str | None, client: ClientSettings) -> Reranker:
    from pearl.llm.rerankers import create_reranker

    return create_reranker(name, url=url, api_key_env=None if client.is_asked else "")
