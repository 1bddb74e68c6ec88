"""`EMBEDDER` or `EMBEDDER:NAME` → `Embedder`. Every other module of this folder is one kind, an `EmbedderModule`."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pearl import plugins
from pearl.documents.digest import digest, sealed, unsealed
from pearl.errors import StoreError, UsageError, did_you_mean
from pearl.llm.concurrency import gather
from pearl.plugins.files import content_cache
from pearl.plugins.persistence import FAILURES, connect, create_private, is_damaged, locked_file
from pearl.retrieval import Embedder, TextKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]


MAX_BYTES = 4 * 2**30  # Of the file; enough for 2.7 million vectors of 384 dimensions
# Number of texts that are embedded and stored together; an interruption loses at most one batch
# per concurrent call.
BATCH = 64
KEYS_A_QUERY = 500
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"

Result = TypeVar("Result")


class EmbeddingCache:
    """Vectors by key, in an SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    def read(self, keys: Iterable[bytes]) -> dict[bytes, Vector]:
        """The stored vectors; damaged ones are skipped."""
        import numpy as np

        wanted = list(keys)

        def work(connection: sqlite3.Connection) -> list[tuple[bytes, bytes]]:
            rows: list[tuple[bytes, bytes]] = []
            for start in range(0, len(wanted), KEYS_A_QUERY):
                some = wanted[start : start + KEYS_A_QUERY]
                marks = ",".join("?" * len(some))
                rows += connection.execute(
                    f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some
                )
            return rows

        return {
            key: np.frombuffer(whole, dtype="<f4").astype(np.float32)
            for key, data in self._run(work)
            if (whole := unsealed(key, data)) is not None
        }

    def keep(self, vectors: Mapping[bytes, Vector]) -> None:
        """Store vectors by key, all of them or none."""
        rows = [(k, sealed(k, vector.astype("<f4").tobytes())) for k, vector in vectors.items()]

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                ((used, size),) = connection.execute(
                    "SELECT page_count - freelist_count, page_size FROM pragma_page_count, "
                    "pragma_freelist_count, pragma_page_size"
                )
                if used * size > MAX_BYTES:  # The oldest quarter makes room
                    connection.execute(
                        "DELETE FROM vectors WHERE rowid <= "
                        "(SELECT min(rowid) + (max(rowid) - min(rowid)) / 4 FROM vectors)"
                    )
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

        self._run(work)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run work on the file; a damaged file is replaced by an empty one, once."""
        with self._lock:
            try:
                try:
                    return work(self._opened())
                except FAILURES as error:
                    if not is_damaged(error):
                        raise
                self._close()
                with locked_file(self.path.with_suffix(".lock")):
                    if self.path.exists() and self.path.stat().st_ino == self._inode:
                        self.path.unlink()
                        Path(f"{self.path}-journal").unlink(missing_ok=True)
                return work(self._opened())
            except FAILURES as error:
                self._close()
                raise StoreError(
                    f"the cache of embeddings cannot be used: {error}",
                    path=self.path,
                    help="free disk space, check its permissions, or remove the file: it is only a cache",
                ) from None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            # No write-ahead log: before SQLite 3.51.3, two processes could damage it.
            create_private(self.path)
            self._connection = connection = connect(self.path, "rw")
            weakref.finalize(self, connection.close)  # In case the user does not close it
            self._inode = self.path.stat().st_ino
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
        return self._connection


class CachedEmbedder:
    """An embedder with a cache; it embeds each new text only once."""

    def __init__(self, embedder: Embedder, cache: EmbeddingCache, concurrency: int) -> None:
        self.name = embedder.name
        self.notice = str(getattr(embedder, "notice", ""))
        self._embedder = embedder
        self._cache = cache
        self._concurrency = concurrency

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """Vectors of unit length, shape (len(texts), dimension), in order."""
        import numpy as np

        keys = [digest((self.name, kind, text)) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        vectors = await asyncio.to_thread(self._cache.read, wanted)
        new = {key: text for key, text in wanted.items() if key not in vectors}
        vectors |= await self._made(new, kind)
        if len({len(vector) for vector in vectors.values()}) > 1:
            # The name now refers to another model.
            vectors = await self._made(wanted, kind)
        return np.stack([vectors[key] for key in keys]) if keys else np.zeros((0, 0), np.float32)

    async def _made(self, texts: Mapping[bytes, str], kind: TextKind) -> dict[bytes, Vector]:
        """Embed texts and store their vectors, in batches."""
        places = asyncio.Semaphore(self._concurrency)
        items = list(texts.items())

        async def batch(some: list[tuple[bytes, str]]) -> dict[bytes, Vector]:
            async with places:
                made = await self._embedder.embed([text for _, text in some], kind)
                vectors = dict(zip((key for key, _ in some), made, strict=True))
                await asyncio.to_thread(self._cache.keep, vectors)
            return vectors

        batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
        made: dict[bytes, Vector] = {}
        for vectors in await gather([batch(some) for some in batches]):
            made |= vectors
        return made

    async def aclose(self) -> None:
        """Close connections and the file."""
        await self._embedder.aclose()
        self._cache.close()


# Own connections, because the embedding model usually runs on another server than the language
# model.
ADDRESS_VARIABLE = "PEARL_EMBEDDINGS_URL"


class EmbedderSettings(Struct, frozen=True):
    """Settings of an embedder; local embedders ignore those for servers.

    Attributes:
        base_url: Address of the server; None for `PEARL_EMBEDDINGS_URL`, else `OPENAI_BASE_URL`,
            else OpenAI.
        api_key_env: Name of the environment variable whose key is sent; "" to send none, None for
            `PEARL_EMBEDDINGS_API_KEY`, else `PEARL_API_KEY`, else `OPENAI_API_KEY`.
        is_asked: Whether texts will be sent; if not, no key is needed.
        concurrency: Maximum concurrent calls.
    """

    base_url: str | None = None
    api_key_env: str | None = None
    is_asked: bool = True
    concurrency: int = 8


class TextEmbedder(Embedder, Protocol):
    """An embedder of this package."""

    @property
    def notice(self) -> str:
        """One line to show users before its first use, or ""."""


class EmbedderModule(Protocol):
    """The interface of a module in this folder. If it raises a `ModelError`, a hybrid search continues with words alone."""

    DESCRIPTION: str
    IS_CACHED: bool  # Whether computing a vector takes longer than reading it from the cache

    def create(self, name: str, settings: EmbedderSettings) -> TextEmbedder:
        """Create the embedder of a name, which may be ""; raise a `PearlError` if that fails."""


CONTRACT = EmbedderModule


def address_in_environment() -> str | None:
    """The address of the embedding server in the environment; None if it is not set."""
    return os.environ.get(ADDRESS_VARIABLE, "").strip() or None


def create_embedder(spec: str, settings: EmbedderSettings | None = None) -> TextEmbedder:
    """Create the embedder of `KIND` or `KIND:NAME`."""
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
    path = content_cache("embeddings.sqlite") if module.IS_CACHED else None
    if path is None:  # Private run, no cache folder, or one that others may write to
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
    """Create the embedder that is used with a model: at `url`, else at the server in the environment, else at the model's server."""
    settings = EmbedderSettings(url, is_asked=is_asked, concurrency=concurrency)
    # The model's key is sent to the model's server only.
    if not (url or address_in_environment()):
        settings = replace(settings, base_url=base_url, api_key_env=api_key_env)
    return create_embedder(spec, settings)
