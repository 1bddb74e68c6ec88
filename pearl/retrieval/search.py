"""Query + index → hits: filters, a method, fusion of sub-queries, reranking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from pearl.errors import ModelError, UsageError
from pearl.retrieval import Embedder, Hit, Reranker, SearchSettings
from pearl.retrieval.filters import Filter, parse_filter, select
from pearl.retrieval.fusion import depth_for, rank_fusion, reranked
from pearl.retrieval.index import Index
from pearl.retrieval.methods import Query, Ranking, TermScore, find_method, first
from pearl.retrieval.queries import WeightedQuery, analyzer, contextual_query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


STEP = 1_024
"""Passages between two reports of progress."""

EmbeddingProgress = Callable[[int, int], None]
"""Receives the number of embedded passages, and of all passages to embed."""


@dataclass(slots=True)
class _Embedded:
    """An index with the vectors of each embedder that searched it."""

    indexes: dict[str, Index] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    loop: asyncio.AbstractEventLoop | None = None


_EMBEDDED: WeakKeyDictionary[Index, _Embedded] = WeakKeyDictionary()


async def embed_index(
    index: Index, embedder: Embedder, progress: EmbeddingProgress | None = None
) -> Index:
    """The index with the vectors of an embedder, made and stored if they are missing."""
    embedded = _EMBEDDED.setdefault(index, _Embedded())
    loop = asyncio.get_running_loop()
    if embedded.loop is not loop:  # a lock belongs to one event loop
        embedded.loop, embedded.lock = loop, asyncio.Lock()
    async with embedded.lock:
        if embedder.name not in embedded.indexes and len(index.passages):
            vectors = index.stored_vectors(embedder.name)
            if vectors is None:
                vectors = await _vectors(index, embedder, progress)
                index.store_vectors(embedder.name, vectors)
            embedded.indexes[embedder.name] = replace(index, vectors=vectors)
        return embedded.indexes.get(embedder.name, index)


async def _vectors(
    index: Index, embedder: Embedder, progress: EmbeddingProgress | None
) -> NDArray[np.float32]:
    """The vectors of all passages, shape (passages, dimension); 0 for blank ones."""
    import numpy as np

    parts: list[NDArray[np.float32]] = []
    n = len(index.passages)
    for start in range(0, n, STEP):
        texts = [index.contents.text(number) for number in range(start, min(n, start + STEP))]
        places = [place for place, text in enumerate(texts) if text.strip()]
        # At least one text is embedded, to know the dimension.
        made = await embedder.embed([texts[place] for place in places] or ["."], "passage")
        part = np.zeros((len(texts), made.shape[1]), dtype=np.float32)
        part[places] = made[: len(places)]
        parts.append(part)
        if progress:
            progress(start + len(texts), n)
    if len({part.shape[1] for part in parts}) > 1:
        raise ModelError(
            f"the vectors of {embedder.name} have different dimensions",
            kind="malformed",
            help="check that the name stands for one model",
        )
    return np.concatenate(parts)


Done = TypeVar("Done")

MANY_PASSAGES = 20_000
"""From so many passages on, ranking runs in a thread, so that the event loop goes on."""

SUB_QUERIES = "sub-queries"
"""Name of the ranking that several queries were merged into."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()


class Searcher:
    r"""Searches indexes.

    Example:
        >>> import asyncio
        >>> from pearl.retrieval.corpus import CorpusDocument
        >>> index = Index.build([CorpusDocument("a", "Iron.\n\nSalt, and more salt.")])
        >>> found = asyncio.run(Searcher().search(index, "salt", 3))
        >>> [(hit.rank, hit.passage.text) for hit in found.hits]
        [(1, 'Salt, and more salt.')]
    """

    def __init__(
        self,
        settings: SearchSettings | None = None,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        progress: EmbeddingProgress | None = None,
    ) -> None:
        self.settings = settings or SearchSettings()
        self.method = find_method(self.settings.method)
        if self.method.NEEDS_VECTORS and embedder is None:
            raise UsageError(
                f"the method '{self.settings.method}' needs embeddings", help="--embeddings minilm"
            )
        self.embedder = embedder
        self.reranker = reranker
        self._progress = progress

    async def aclose(self) -> None:
        """Close the connections of the embedder and the reranker."""
        for each in (self.embedder, self.reranker):
            if each is not None:
                await each.aclose()

    async def search(
        self,
        index: Index,
        query: str | Sequence[str],
        k: int,
        *,
        filters: Iterable[Filter | str] = (),
        history: Sequence[str] = (),
    ) -> SearchResult:
        """The `k` best passages, or fewer if fewer match."""
        queries = _queries(query, history)
        parsed = [parse_filter(each) if isinstance(each, str) else each for each in filters]
        notes: list[str] = []
        mask: NDArray[np.bool_] | None = None
        if parsed:
            mask, left_out = await _work(index, lambda: select(index, parsed))
            notes += left_out
        if k <= 0 or not queries or not len(index.passages):
            return SearchResult((), tuple(notes))
        name, ranking = await self._ranked(index, queries, k, mask, notes)
        if self.reranker is not None and len(ranking.passages):
            n = max(k, self.settings.n_reranked)
            text = "\n".join(query.text for query in queries)
            try:
                ranking = await reranked(index, name, ranking, text, self.reranker, n)
            except ModelError as error:
                notes.append(f"not reranked: {error.message}")
        return SearchResult(_hits(index, first(ranking, k)), tuple(notes))

    async def _ranked(
        self,
        index: Index,
        queries: Sequence[WeightedQuery],
        k: int,
        mask: NDArray[np.bool_] | None,
        notes: list[str],
    ) -> tuple[str, Ranking]:
        """The passages that match, the best first, and the name of the ranking."""
        settings, method, name = self.settings, self.method, self.settings.method
        vectors: Sequence[NDArray[np.float32] | None] = [None] * len(queries)
        searched = index
        if method.NEEDS_VECTORS:
            try:
                searched, vectors = await self._with_vectors(index, queries)
            except ModelError as error:
                lexical = self._lexical_method()
                if lexical is None:
                    raise
                notes.append(f"ranked by words alone ({lexical}), without vectors: {error.message}")
                name, method = lexical, find_method(lexical)
        is_reordered = self.reranker is not None or len(queries) > 1
        depth = max(depth_for(k), settings.n_reranked) if is_reordered else k
        rankings = {}
        for query, vector in zip(queries, vectors, strict=True):
            ready = Query(query.terms(analyzer(index.stem)), vector, mask)
            rank = partial(method.rank, ready, searched, settings, depth)
            rankings[query.question] = ranking = await _work(index, rank)
        if len(rankings) == 1:
            return name, ranking
        return SUB_QUERIES, rank_fusion(rankings, depth)

    async def _with_vectors(
        self, index: Index, queries: Sequence[WeightedQuery]
    ) -> tuple[Index, Sequence[NDArray[np.float32]]]:
        """The index with the embedder's vectors, made where they are missing, and the queries'."""
        assert self.embedder is not None
        vectors = await self.embedder.embed([query.text for query in queries], "query")
        searched = await embed_index(index, self.embedder, self._progress)
        before = vectors.shape[1] if searched.vectors is None else searched.vectors.shape[1]
        if before != vectors.shape[1]:
            raise ModelError(
                f"{self.embedder.name} now returns vectors of another dimension: before {before:,}, now "
                f"{vectors.shape[1]:,}",
                kind="malformed",
                help="the name now stands for another model: remove pearl/embeddings.sqlite of the cache "
                "folder, then pearl index --fresh",
            )
        return searched, list(vectors)

    def terms(
        self, index: Index, query: str | Sequence[str], history: Sequence[str] = ()
    ) -> dict[str, dict[str, float]]:
        """The terms of each query, with weights."""
        analyse = analyzer(index.stem)
        return {each.question: each.terms(analyse) for each in _queries(query, history)}

    def explain(
        self, index: Index, query: str | Sequence[str], passage: int, history: Sequence[str] = ()
    ) -> dict[str, tuple[TermScore, ...]]:
        """The contribution of each term of each query to the lexical score of a passage."""
        lexical = self._lexical_method()
        explain = getattr(find_method(lexical) if lexical else self.method, "explain", None)
        if explain is None:
            return {}
        return {
            text: explain(Query(terms), index, self.settings, passage)
            for text, terms in self.terms(index, query, history).items()
        }

    def _lexical_method(self) -> str | None:
        """The method that replaces this one without vectors, or None."""
        fallback: Callable[[SearchSettings], str] | None
        fallback = getattr(self.method, "without_vectors", None)
        return fallback(self.settings) if fallback else None


def _queries(query: str | Sequence[str], history: Sequence[str]) -> list[WeightedQuery]:
    """The different queries that are not blank, in order."""
    texts = [query] if isinstance(query, str) else dict.fromkeys(query)
    return [contextual_query(text, history) for text in texts if text.strip()]


async def _work(index: Index, do: Callable[[], Done]) -> Done:
    """Do work whose time grows with the size of an index."""
    if index.terms.n_passages < MANY_PASSAGES:
        return do()
    return await asyncio.to_thread(do)


def _hits(index: Index, ranking: Ranking) -> tuple[Hit, ...]:
    legs: dict[int, dict[str, tuple[int, float]]] = {}
    for name, leg in ranking.legs.items():
        pairs = zip(leg.passages.tolist(), leg.scores.tolist(), strict=True)
        for rank, (number, score) in enumerate(pairs, 1):
            legs.setdefault(number, {})[name] = rank, score
    pairs = zip(ranking.passages.tolist(), ranking.scores.tolist(), strict=True)
    return tuple(
        Hit(index.passages[number], rank, score, legs.get(number, {}))
        for rank, (number, score) in enumerate(pairs, 1)
    )
