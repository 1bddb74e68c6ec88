"""Resources shared by the units of one process: a `Pearl`, documents, plans and cached values."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from pearl.data.samples import given
from pearl.documents.document import Document, load_at_once
from pearl.documents.document import load as load_file
from pearl.documents.readers import reading
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import build_graph
from pearl.dsl.passes import n_following
from pearl.errors import BudgetError, PausedError, PearlError
from pearl.interpreter.context import off_loop
from pearl.llm.concurrency import SingleFlight
from pearl.pipeline import Pearl

Made = TypeVar("Made")

KEPT_PLANS = 1_000  # Maximum parsed plans in the cache, some kilobytes each
KEPT = 2  # Maximum unused documents in the cache; one in use is never loaded again


class Resources:
    """Resources of units, shared between them."""

    def __init__(self, pearl: Pearl, on_loaded: Callable[[], None] = lambda: None) -> None:
        self.pearl = pearl
        self.on_loaded = on_loaded
        """Called when the document of a task is there."""
        self.n_loading = 0
        """Units that wait for their documents."""
        self._plan = lru_cache(KEPT_PLANS)(self._read)
        self._made: dict[Hashable, Any] = {}
        self._documents: WeakValueDictionary[Hashable, Document] = WeakValueDictionary()
        self._kept: deque[Document] = deque(maxlen=KEPT)
        self._loading: SingleFlight[Document] = SingleFlight()

    async def document(self, load: Callable[[], Document]) -> Document:
        """The document that `load` returns, loaded once for units that follow one another."""
        if isinstance(load, partial) and load.func is given:
            # Not remembered: a key that holds its document would keep it for ever.
            document: Document = load()
            await off_loop(
                len(document.text), partial(self.pearl.limits.counter.count, document.text)
            )
            return document
        self.n_loading += 1
        try:
            key = loader_key(load)
            if key is None:
                return await asyncio.to_thread(self._counted, load)
            known = self._documents.get(key)
            if known is None:
                known = await self._loading.do(key, lambda: self._load(key, load))
            return known
        finally:
            self.n_loading -= 1

    def plan(self, text: str, question: str | None) -> CheckedPlan:
        """Parse a plan, cached by its text."""
        return self._plan(text, question)[0]

    def n_chained(self, text: str, question: str | None) -> int:
        """Length of the longest chain of calls in a plan; 0 if it is invalid."""
        try:
            return self._plan(text, question)[1]
        except PearlError:
            return 0  # the unit will fail with this error

    def is_over(self, error: Exception) -> bool:
        """Whether an error ends the run rather than one unit."""
        return (
            isinstance(error, BudgetError | PausedError)
            or self.pearl.client.breaker.error is not None
        )

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The result of `make`, cached by key."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    def _read(self, text: str, question: str | None) -> tuple[CheckedPlan, int]:
        checked = self.pearl.compile(text, question=question)
        return checked, max(n_following(build_graph(checked)))

    async def _load(self, key: Hashable, load: Callable[[], Document]) -> Document:
        document = None
        if isinstance(load, partial) and load.func is load_file:
            document = load_at_once(*load.args, **load.keywords)  # a small file needs no thread
        if document is None:
            document = await asyncio.to_thread(self._counted, load)
        if document not in self._kept:
            self._kept.append(document)
        self._documents[key] = document
        return document

    def _counted(self, load: Callable[[], Document]) -> Document:
        with reading(self.pearl.settings):
            document = load()
        # In the thread, because counting takes as long as loading.
        self.pearl.limits.counter.count(document.text)
        return document


def loader_key(load: Callable[[], Document]) -> Hashable:
    """Cache key of a loader, or None; two calls prepared alike load the same document."""
    key: Hashable = load
    if isinstance(load, partial):
        key = (load.func, load.args, tuple(sorted(load.keywords.items())))
    try:
        hash(key)
    except TypeError:
        return None
    return key
