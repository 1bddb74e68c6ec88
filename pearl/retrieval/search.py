"""Query + index → hits: apply filters, rank by a method, merge the rankings of sub-queries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from pearl.documents.comparisons import Verdict, Wanted, all_of, any_of, comparison
from pearl.documents.dates import read_period
from pearl.documents.numbers import find_quantity
from pearl.documents.passages import analyzer
from pearl.errors import ModelError, UsageError, suggest
from pearl.errors.privacy import is_private
from pearl.retrieval import Embedder, Hit, SearchSettings
from pearl.retrieval.index import DOCUMENT, Index
from pearl.retrieval.methods import Query, Ranking, depth_for, find_method, rank_fusion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_OPERATORS = {
    "=": "is", "!=": "is not", ">=": "at least", "<=": "at most", ">": "after", "<": "before",
    "~": "contains",
}  # fmt: skip
"""Signs of conditions; a sign stands after the longer ones that begin with it."""


class Filter(Struct, frozen=True):
    """One condition: `year>=2005`, `title~wing` (contains) or `year=2005..2009`. All must hold; several `=` on one field are alternatives."""

    field: str
    tests: tuple[tuple[str, str], ...]
    is_alternative: bool = False


def parse_filter(text: str) -> Filter:
    """Parse a condition."""
    at = next((at for at, character in enumerate(text) if character in "=!<>~"), len(text))
    sign = next((sign for sign in _OPERATORS if text.startswith(sign, at)), "")
    field, value = text[:at].strip(), text[at + len(sign) :].strip()
    if not sign or not field:
        raise UsageError(
            f"'{text}' is not a condition",
            help="field=value, field!=value, field>=2005, field=2005..2009 or field~text",
        )
    if not value and sign not in ("=", "!="):
        raise UsageError(f"missing value in '{text}'", help=f"{field}{sign}2005")
    if sign == "=" and ".." in value:
        ends = map(str.strip, value.split("..", 1))
        said = tuple(
            (test, end) for test, end in zip(("at least", "at most"), ends, strict=True) if end
        )
        if said and all(find_quantity(end) or read_period(end)[0] for _, end in said):
            return Filter(field, said, is_alternative=True)
    return Filter(field, ((_OPERATORS[sign], value),), is_alternative=sign == "=")


def select(index: Index, filters: Iterable[Filter]) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """The mask of passages that meet all conditions, shape (passages,), and notes on undecided ones."""
    import numpy as np

    by_field: dict[str, list[Filter]] = {}
    for each in filters:
        by_field.setdefault(_named(each.field, index.contents.field_names), []).append(each)
    names = tuple(by_field)
    values, places = index.columns(names)
    notes: list[str] = []
    verdicts = [
        _verdicts(name, by_field[name], list(dict.fromkeys(value[i] for value in values)), notes)
        for i, name in enumerate(names)
    ]
    found = [all_of([verdicts[i][text] for i, text in enumerate(value)]) for value in values]
    mask = np.array([verdict is True for verdict in found], np.bool_)[places]
    is_open = np.array([verdict is None for verdict in found], np.bool_)[places]
    if n_open := int(is_open.sum()):
        told = " or ".join(f"'{name}'" for name in names)
        left_out = f"{n_open:,} passage{'s' * (n_open > 1)} left out"
        notes.append(f"{left_out}: {told} cannot be compared there")
    return mask, tuple(dict.fromkeys(notes))


def _named(name: str, known: Sequence[str]) -> str:
    """The field with this name, exactly or ignoring case."""
    names = list(dict.fromkeys((*known, DOCUMENT)))
    alike = [name] if name in names else [n for n in names if n.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise UsageError(
            f"'{name}' matches several fields: {', '.join(alike)}", help="spell the field exactly"
        )
    # Field names are text of the documents.
    help = None if is_private() else suggest(name, names, "fields")
    raise UsageError(f"no passage has a field '{name}'", help=help)


def _verdicts(
    name: str, conditions: Sequence[Filter], values: Sequence[str], notes: list[str]
) -> dict[str, Verdict]:
    """Whether each value meets all conditions; of several `=`, one suffices."""

    def test(operator: str, text: str) -> Callable[[str], Verdict]:
        try:
            meets, remarks = comparison(operator, Wanted((text,)), values, name)
        except ValueError as error:
            raise UsageError(
                f"'{name}' cannot be compared that way: {error}",
                help=f"for texts: {name}=... or {name}~...",
            ) from None
        notes.extend(filter(None, remarks))
        return meets

    alternatives, others = (
        [[test(*each) for each in one.tests] for one in conditions if one.is_alternative == kind]
        for kind in (True, False)
    )
    verdicts: dict[str, Verdict] = {}
    for value in values:
        met = [all_of(meets(value) for meets in tests) for tests in others]
        if alternatives:
            met.append(any_of(all_of(meets(value) for meets in tests) for tests in alternatives))
        verdicts[value] = all_of(met)
    return verdicts


STEP = 1_024  # Passages between two reports of progress

EmbeddingProgress = Callable[[int, int], None]
"""Called with the number of embedded passages, and of all passages to embed."""


class _Embedded(Struct):
    """An index with the vectors of each embedder that has searched it."""

    indexes: dict[str, Index] = {}
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    loop: asyncio.AbstractEventLoop | None = None


_EMBEDDED: WeakKeyDictionary[Index, _Embedded] = WeakKeyDictionary()


async def embed_index(
    index: Index, embedder: Embedder, progress: EmbeddingProgress | None = None
) -> Index:
    """The index with an embedder's vectors, which are computed and stored if they are missing."""
    embedded = _EMBEDDED.setdefault(index, _Embedded())
    loop = asyncio.get_running_loop()
    if embedded.loop is not loop:  # A lock belongs to one event loop
        embedded.loop, embedded.lock = loop, asyncio.Lock()
    async with embedded.lock:
        if embedder.name not in embedded.indexes and len(index.passages):
            folder, contents = index.opened and index.opened.folder, index.contents
            vectors = folder.read_vectors(embedder.name, contents) if folder else None
            if vectors is None:
                vectors = await _vectors(index, embedder, progress)
                if folder:
                    with suppress(OSError):  # The folder was removed or is full
                        folder.write_vectors(embedder.name, contents, vectors)
            embedded.indexes[embedder.name] = replace(index, vectors=vectors)
        return embedded.indexes.get(embedder.name, index)


async def _vectors(
    index: Index, embedder: Embedder, progress: EmbeddingProgress | None
) -> NDArray[np.float32]:
    """The vectors of all passages, shape (passages, dimension); zero for blank passages."""
    import numpy as np

    parts: list[NDArray[np.float32]] = []
    n = len(index.passages)
    for start in range(0, n, STEP):
        texts = [index.contents.text(number) for number in range(start, min(n, start + STEP))]
        places = [place for place, text in enumerate(texts) if text.strip()]
        # At least one text is embedded, to find out the dimension.
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
"""Minimum passages for which ranking runs in a thread, so that it does not block the event loop."""


class SearchResult(Struct, frozen=True):
    """The result of a search."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()


class Searcher:
    r"""Searches indexes."""

    def __init__(
        self,
        settings: SearchSettings | None = None,
        embedder: Embedder | None = None,
        progress: EmbeddingProgress | None = None,
    ) -> None:
        self.settings = settings or SearchSettings()
        self.method = find_method(self.settings.method)
        if self.method.NEEDS_VECTORS and embedder is None:
            raise UsageError(
                f"the method '{self.settings.method}' needs embeddings",
                help="--embeddings openai:NAME",
            )
        self.embedder = embedder
        self._progress = progress

    async def aclose(self) -> None:
        """Close the connections of the embedder."""
        if self.embedder is not None:
            await self.embedder.aclose()

    async def search(
        self,
        index: Index,
        query: str | Sequence[str],
        k: int,
        *,
        filters: Iterable[str] = (),
    ) -> SearchResult:
        """The `k` best matching passages, or fewer."""
        notes: list[str] = []
        best = await self.rank(index, query, k, notes, filters=filters)
        pairs = list(zip(best.passages.tolist(), best.scores.tolist(), strict=True))
        # In the order of documents: the text of each is decoded once.
        passages = {at: index.passages[at] for at, _ in sorted(pairs)}
        hits = (Hit(passages[at], rank, score) for rank, (at, score) in enumerate(pairs, 1))
        return SearchResult(tuple(hits), tuple(notes))

    async def rank(
        self,
        index: Index,
        query: str | Sequence[str],
        k: int,
        notes: list[str],
        *,
        filters: Iterable[str] = (),
    ) -> Ranking:
        """The numbers of the `k` best matching passages, or fewer; their texts are not read. Adds to `notes`."""
        texts = [query] if isinstance(query, str) else query
        queries = list(dict.fromkeys(filter(str.strip, texts)))
        parsed = [parse_filter(each) for each in filters]
        mask: NDArray[np.bool_] | None = None
        if parsed:
            mask, left_out = await _work(index, lambda: select(index, parsed))
            notes += left_out
        if k <= 0 or not queries or not len(index.passages):
            return rank_fusion([], 0)
        settings, method, searched = self.settings, self.method, index
        vectors: Sequence[NDArray[np.float32] | None] = [None] * len(queries)
        if method.NEEDS_VECTORS:
            try:
                searched, vectors = await self._with_vectors(index, queries)
            except ModelError as error:
                if not hasattr(method, "without_vectors"):
                    raise
                lexical = method.without_vectors(settings)
                notes.append(f"ranked by words alone ({lexical}), without vectors: {error.message}")
                method = find_method(lexical)
        depth = depth_for(k) if len(queries) > 1 else k
        rankings = []
        for text, vector in zip(queries, vectors, strict=True):
            ready = Query(dict.fromkeys(analyzer(index.stem)(text), 1.0), vector, mask)
            rank = partial(method.rank, ready, searched, settings, depth)
            rankings.append(await _work(index, rank))
        return rankings[0] if len(rankings) == 1 else rank_fusion(rankings, k)

    async def _with_vectors(
        self, index: Index, texts: Sequence[str]
    ) -> tuple[Index, Sequence[NDArray[np.float32]]]:
        """The index with the embedder's vectors, computed if missing, and the vectors of texts."""
        assert self.embedder is not None
        vectors = await self.embedder.embed(texts, "query")
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


async def _work(index: Index, do: Callable[[], Done]) -> Done:
    """Do work whose time grows with the size of an index; in a thread if the index is large."""
    if index.terms.n_passages < MANY_PASSAGES:
        return do()
    return await asyncio.to_thread(do)
