"""Settings → a `Searcher`, with what makes vectors and what reranks."""

from __future__ import annotations

from pearl.errors import UsageError
from pearl.llm.client import ClientSettings
from pearl.retrieval import Embedder, Reranker, SearchSettings
from pearl.retrieval.embedding import EmbeddingProgress
from pearl.retrieval.search import Searcher

__all__ = ["new_searcher"]


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
    """The searcher of a run, or of a command.

    Args:
        client: Says whether anything is sent. Embeddings whose address neither `embeddings_url` nor the
            environment names are on the server of its model, with the key of that.
        settings: How passages are ranked.
        embeddings: What makes vectors, as `pearl.llm.embedders` names it; None for nothing.
        reranker: What reorders the best, as `pearl.llm.rerankers` names it; None for nothing.
        reranker_url: Its whole address; None for the vendor's own.
        embeddings_url: Their server; None for that of the environment, else the client's.
        progress: As of `Searcher`.

    Raises:
        UsageError: A name names nothing, or an address stands alone.
        ModelError: A key is missing.
        DataError: The files of an embedder are not here.
    """
    if reranker_url is not None and reranker is None:
        raise UsageError("a reranker's address without a reranker", help="--reranker cohere:MODEL")
    return Searcher(
        settings,
        None if embeddings is None else _embedder(embeddings, embeddings_url, client),
        None if reranker is None else _reranker(reranker, reranker_url, client),
        progress=progress,
    )


def _embedder(name: str, url: str | None, client: ClientSettings) -> Embedder:
    from pearl.llm.embedders import embedder_beside  # late: most runs have none

    return embedder_beside(
        name, url, base_url=client.base_url, api_key_env=client.api_key_env,
        is_asked=client.is_asked, concurrency=client.concurrency,
    )  # fmt: skip


def _reranker(name: str, url: str | None, client: ClientSettings) -> Reranker:
    from pearl.llm.reranking import create_reranker

    return create_reranker(name, url=url, api_key_env=None if client.is_asked else "")
