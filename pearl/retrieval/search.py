"""Query + index → hits: expansion, filters, a method, years, fusion of sub-queries, reranking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from pearl.documents.passages import Stem
from pearl.errors import ModelError, UsageError
from pearl.retrieval import Embedder, Hit, Reranker, SearchSettings
from pearl.retrieval.filters import Filter, parse_filter, select
from pearl.retrieval.fusion import boost_years, depth_for, rank_fusion, reranked
from pearl.retrieval.index import Index
from pearl.retrieval.methods import (
    Query,
    Ranking,
    RankingMethod,
    TermScore,
    explains,
    find_method,
    first,
    free_passages,
)
from pearl.retrieval.queries import (
    Expansion,
    QueryThesaurus,
    WeightedQuery,
    analyzer,
    contextual_query,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


STEP = 1_024
"""Passages between two reports of progress."""

EmbeddingProgress = Callable[[int, int], None]
"""Is told how many of the passages without vectors have one now, and how many they were."""


@dataclass(slots=True)
class _State:
    """What is known of an index."""

    embedded: dict[str, Index] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    loop: asyncio.AbstractEventLoop | None = None


_states: WeakKeyDictionary[Index, _State] = WeakKeyDictionary()


async def embed_index(
    index: Index, embedder: Embedder, progress: EmbeddingProgress | None = None
) -> Index:
    """The index with the vectors of an embedder, made and stored where they are missing.

    Each time the same one for the same index. A blank passage has the vector 0, which no method
    finds.
    """
    state = _states.setdefault(index, _State())
    loop = asyncio.get_running_loop()
    if state.loop is not loop:  # a lock belongs to one event loop
        state.loop, state.turn = loop, asyncio.Lock()
    async with state.turn:
        if embedder.name not in state.embedded and len(index.passages):
            state.embedded[embedder.name] = await _embedded(index, embedder, progress)
        return state.embedded.get(embedder.name, index)


async def _embedded(index: Index, embedder: Embedder, progress: EmbeddingProgress | None) -> Index:
    import numpy as np

    vectors = index.stored_vectors(embedder.name)
    every = np.arange(len(index.passages))
    missing = every if vectors is None else np.flatnonzero(np.isnan(vectors[:, 0]))
    if len(missing):
        made = await _made(index, missing, embedder, progress)
        if vectors is None or len(missing) == len(every):
            vectors = made
        elif made.shape[1] == vectors.shape[1]:
            vectors = vectors.copy()
            vectors[missing] = made
        else:  # another model answers under this name
            vectors = await _made(index, every, embedder, progress)
        index.store_vectors(embedder.name, vectors)
    return replace(index, vectors=vectors)


async def _made(
    index: Index,
    numbers: NDArray[np.int64],
    embedder: Embedder,
    progress: EmbeddingProgress | None,
) -> NDArray[np.float32]:
    """The vectors of some passages, shape (len(numbers), dimension)."""
    import numpy as np

    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(numbers), STEP):
        some = numbers[start : start + STEP].tolist()
        parts.append(await _vectors([index.contents.text(n) for n in some], embedder))
        if progress:
            progress(start + len(some), len(numbers))
    if len({part.shape[1] for part in parts}) > 1:
        raise ModelError(
            f"the vectors of {embedder.name} have different dimensions",
            kind="malformed",
            help="check that the name stands for one model",
        )
    return np.concatenate(parts)


async def _vectors(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """Vectors of passages, shape (len(texts), dimension); 0 for those that are blank."""
    import numpy as np

    numbers = [number for number, text in enumerate(texts) if text.strip()]
    # Something has to be embedded, if only to know the dimension.
    made = await embedder.embed([texts[number] for number in numbers] or ["."], "passage")
    vectors = np.zeros((len(texts), made.shape[1]), dtype=np.float32)
    vectors[numbers] = made[: len(numbers)]
    return vectors


Done = TypeVar("Done")

MANY_PASSAGES = 20_000
"""From so many passages on, ranking is done in a thread, so that others can go on."""

SUB_QUERIES = "sub-queries"
"""Name of the ranking that several queries were merged into."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found."""

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
        expansion: Expansion | None = None,
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
        self._expansion = expansion
        self._progress = progress
        self._thesauri: dict[Stem, QueryThesaurus] = {}

    async def aclose(self) -> None:
        """Close the connections of what makes vectors and of what reranks."""
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
        mask: NDArray[np.bool_] | None = None,
    ) -> SearchResult:
        """The `k` best passages, or fewer if fewer match."""
        queries = _queries(query, history)
        parsed = [parse_filter(each) if isinstance(each, str) else each for each in filters]
        notes: list[str] = []
        if parsed:
            selected, left_out = await _work(index, lambda: select(index, parsed))
            mask = selected if mask is None else mask & selected
            notes += left_out
        if k <= 0 or not queries or not len(index.passages):
            return SearchResult((), tuple(notes))
        name, ranking = await self._ranked(index, queries, k, mask, notes)
        free = free_passages(index.terms, self.settings)
        if self.reranker is not None and len(ranking.passages):
            n = max(k, self.settings.n_reranked)
            text = "\n".join(query.text for query in queries)
            try:
                ranking = await reranked(index, name, ranking, text, self.reranker, n)
            except ModelError as error:
                notes.append(f"not reranked: {error.message}")
        return SearchResult(_hits(index, first(ranking, k, free), free), tuple(notes))

    async def _ranked(
        self,
        index: Index,
        queries: Sequence[WeightedQuery],
        k: int,
        mask: NDArray[np.bool_] | None,
        notes: list[str],
    ) -> tuple[str, Ranking]:
        """The passages that match, the best first, and the name of what ranked them."""
        settings, method, name = self.settings, self.method, self.settings.method
        vectors: Sequence[NDArray[np.float32] | None] = [None] * len(queries)
        searched = index
        if method.NEEDS_VECTORS:
            try:
                searched, vectors = await self._with_vectors(index, queries)
            except ModelError as error:
                name = _without_vectors(method, settings) or ""
                if not name:
                    raise
                notes.append(f"ranked by words alone ({name}), without vectors: {error.message}")
                method = find_method(name)
        is_reordered = self.reranker is not None or settings.year_boost > 1 or len(queries) > 1
        depth = max(depth_for(k), settings.n_reranked) if is_reordered else k
        rankings = {}
        for query, vector in zip(queries, vectors, strict=True):
            ready = Query(self._terms(query, index.stem), vector, mask)
            rank = _bound(method, ready, searched, settings, depth)
            ranking = await _work(index, rank)
            if settings.year_boost > 1:
                ranking = boost_years(index, name, ranking, query.text, settings.year_boost)
            rankings[query.parts[-1][0]] = ranking
        if len(rankings) == 1:
            return name, ranking
        return SUB_QUERIES, rank_fusion(rankings, depth, free_passages(index.terms, settings))

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
                f"{self.embedder.name} now makes vectors of another dimension; before {before:,}, now "
                f"{vectors.shape[1]:,}",
                kind="malformed",
                help="the name now stands for another model: remove pearl/embeddings.sqlite of the cache "
                "folder, then pearl index --fresh",
            )
        return searched, list(vectors)

    def terms(
        self, index: Index, query: str | Sequence[str], history: Sequence[str] = ()
    ) -> dict[str, dict[str, float]]:
        """The terms that each query is searched by, with their weights; those of synonyms, too."""
        return {
            each.parts[-1][0]: self._terms(each, index.stem) for each in _queries(query, history)
        }

    def explain(
        self, index: Index, query: str | Sequence[str], passage: int, history: Sequence[str] = ()
    ) -> dict[str, tuple[TermScore, ...]]:
        """What each term of each query adds to the lexical score of a passage."""
        method, settings = self.method, self.settings
        lexical = _without_vectors(method, settings)
        if lexical:
            method = find_method(lexical)
        if not explains(method):
            return {}
        return {
            text: method.explain(Query(terms), index, settings, passage)
            for text, terms in self.terms(index, query, history).items()
        }

    def _terms(self, query: WeightedQuery, stem: Stem) -> dict[str, float]:
        terms, expansion = query.terms(analyzer(stem)), self._expansion
        if expansion is None and self.settings.thesaurus:
            if stem not in self._thesauri:
                path, weight = Path(self.settings.thesaurus), self.settings.synonym_weight
                self._thesauri[stem] = QueryThesaurus.read(path, stem, weight)
            expansion = self._thesauri[stem]
        return terms if expansion is None else dict(expansion(terms))


def _queries(query: str | Sequence[str], history: Sequence[str]) -> list[WeightedQuery]:
    """The different queries that ask anything, in order."""
    said = [query] if isinstance(query, str) else dict.fromkeys(query)
    return [contextual_query(text, history) for text in said if text.strip()]


def _without_vectors(method: RankingMethod, settings: SearchSettings) -> str | None:
    """The method that goes on where no vector can be had; None if there is none."""
    fallback: Callable[[SearchSettings], str] | None = getattr(method, "without_vectors", None)
    return fallback(settings) if fallback else None


def _bound(
    method: RankingMethod, query: Query, index: Index, settings: SearchSettings, k: int
) -> Callable[[], Ranking]:
    return lambda: method.rank(query, index, settings, k)


async def _work(index: Index, do: Callable[[], Done]) -> Done:
    """Do what takes time with the size of an index."""
    if index.terms.n_passages < MANY_PASSAGES:
        return do()
    return await asyncio.to_thread(do)


def _hits(index: Index, ranking: Ranking, free: NDArray[np.bool_] | None) -> tuple[Hit, ...]:
    places = {
        name: {int(n): i for i, n in enumerate(leg.passages, 1)}
        for name, leg in ranking.legs.items()
    }
    hits = []
    pairs = zip(ranking.passages.tolist(), ranking.scores.tolist(), strict=True)
    for rank, (number, score) in enumerate(pairs, 1):
        legs = {
            name: (place[number], float(ranking.legs[name].scores[place[number] - 1]))
            for name, place in places.items()
            if number in place
        }
        is_free = free is not None and bool(free[number])
        hits.append(Hit(index.passages[number], rank, score, legs, is_free))
    return tuple(hits)
