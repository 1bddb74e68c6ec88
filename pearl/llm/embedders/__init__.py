"""`EMBEDDER` or `EMBEDDER:NAME` → `Embedder`. Every other module of this folder is one kind.

A module has `DESCRIPTION` (one line), `IS_CACHED` and `create(name, settings) -> TextEmbedder`.
Vectors are of unit length; failures are `ModelError`s, so that a hybrid search can go on without
them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Protocol

from pearl import plugins
from pearl.errors import UsageError, did_you_mean
from pearl.llm.embedding_cache import CachedEmbedder, EmbeddingCache
from pearl.plugins.files import content_cache
from pearl.retrieval import Embedder

# The embedding model usually runs on another server than the language model.
ADDRESS_VARIABLE = "PEARL_EMBEDDINGS_URL"


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Settings of an embedder; local embedders ignore those for servers.

    Attributes:
        base_url: Address of the server; None for `PEARL_EMBEDDINGS_URL`, else `OPENAI_BASE_URL`,
            else OpenAI.
        api_key_env: Name of the environment variable whose key is sent; "" to send none, None for
            `PEARL_EMBEDDINGS_API_KEY`, else `PEARL_API_KEY`, else `OPENAI_API_KEY`.
        is_asked: Whether texts will be sent; if not, no key is needed.
        timeout_s: Time limit of one call in seconds.
        concurrency: Maximum concurrent calls.
        attempts: Maximum calls per request, including the first.
        first_wait_s: Seconds before the second call if the server names none.
        is_cached: Whether vectors are stored in the cache folder and read from there.
    """

    base_url: str | None = None
    api_key_env: str | None = None
    is_asked: bool = True
    timeout_s: float = 120.0
    concurrency: int = 8
    attempts: int = 4
    first_wait_s: float = 0.5
    is_cached: bool = True


class TextEmbedder(Embedder, Protocol):
    """An embedder of this package."""

    @property
    def notice(self) -> str:
        """One line to show users before its first use, or ""."""


class EmbedderModule(Protocol):
    """The interface of a module of this folder."""

    DESCRIPTION: str
    IS_CACHED: bool  # Whether computing a vector takes longer than reading it from the cache

    def create(self, name: str, settings: EmbedderSettings) -> TextEmbedder:
        """Create the embedder of a name, which may be "", or raise a `PearlError`."""


CONTRACT = EmbedderModule


def address_in_environment() -> str | None:
    """The address of the user's embedding server; None if not set."""
    return os.environ.get(ADDRESS_VARIABLE, "").strip() or None


def create_embedder(spec: str, settings: EmbedderSettings | None = None) -> TextEmbedder:
    """Create the embedder of `KIND` or `KIND:NAME`.

    Example:
        >>> create_embedder("openay:text-embedding-3-small")
        Traceback (most recent call last):
            ...
        pearl.errors.UsageError: unknown embeddings 'openay:text-embedding-3-small'
          help: did you mean 'openai:text-embedding-3-small'?
    """
    kind, _, name = spec.partition(":")
    known = plugins.names(__name__)
    if kind not in known:
        if close := did_you_mean(kind, known):
            help = f"did you mean '{close}{':' + name if name else ''}'?"
        else:
            help = "openai:NAME, or model2vec:NAME for a folder or a model of the Hub"
        raise UsageError(f"unknown embeddings '{spec}'", help=help)
    settings = settings or EmbedderSettings()
    module: EmbedderModule = plugins.load(__name__, kind)
    embedder = module.create(name, settings)
    path = content_cache("embeddings.sqlite") if module.IS_CACHED and settings.is_cached else None
    if path is None:  # also if other users may write to the cache folder
        return embedder
    return CachedEmbedder(embedder, EmbeddingCache(path), settings.concurrency)


def embedder_beside(
    spec: str,
    url: str | None = None,
    *,
    base_url: str | None,
    api_key_env: str | None,
    is_asked: bool = True,
    concurrency: int = 8,
) -> TextEmbedder:
    """Create the embedder that works beside a model: at `url`, else the server of the environment, else the model's."""
    settings = EmbedderSettings(url, is_asked=is_asked, concurrency=concurrency)
    # The key of the model goes to the server of the model only.
    if not (url or address_in_environment()):
        settings = replace(settings, base_url=base_url, api_key_env=api_key_env)
    return create_embedder(spec, settings)
