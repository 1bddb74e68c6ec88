"""In this process, so many tasks at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable
from contextlib import aclosing
from functools import lru_cache, partial
from weakref import WeakValueDictionary

from pearl.documents.document import Document
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import build_graph
from pearl.dsl.passes.critical_path import n_following
from pearl.errors import PearlError
from pearl.pipeline import Pearl
from pearl.runs.executors import Listener, Outcome, Task
from pearl.runs.scheduling import in_order
from pearl.trace import Trace

__all__ = ["AHEAD", "DESCRIPTION", "KEEPS_LIMITS", "UNDER_WAY", "Runner", "document_of", "run"]

DESCRIPTION = "in this process, hundreds of calls at once"
KEEPS_LIMITS = True

UNDER_WAY = 2
"""Tasks under way for each call at once: steps wait for each other, and calls for a document to be
primed, and the places that they leave are for other tasks."""

AHEAD = 8
"""Tasks taken for each call at once, to find those over the same document."""

KEPT_PLANS = 1_000
"""Plans kept in their read form, some kilobytes each."""

KEPT = 2
"""Documents kept though no task is over them just now."""


async def run(
    pearl: Pearl,
    tasks: Iterable[Task],
    *,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    window: int | None = None,
) -> AsyncGenerator[Outcome, None]:
    """Run the tasks; outcomes come in the order of the tasks.

    Tasks over one document are begun one after the other, and load it once.

    Args:
        pearl: Model and library.
        tasks: Read one by one, at most `AHEAD` times `pearl.concurrency` ahead of the outcomes.
        listener: Told of every event of every task.
        is_stopping: Whether no more tasks are to be begun, those taken ahead included.
        window: Tasks under way at once, begun in their order, where all of them only wait; None
            for as many as keep `pearl.concurrency` calls going.
    """
    runner = Runner(pearl)
    n = pearl.concurrency

    async def one(task: Task) -> Outcome:
        return await runner.run(task, listener)

    if window is not None:
        found = in_order(tasks, one, window, is_stopping=is_stopping)
    else:
        found = in_order(
            tasks,
            one,
            UNDER_WAY * n if n > 1 else 1,
            ahead=AHEAD * n,
            group=document_of,
            rank=runner.length,
            is_stopping=is_stopping,
        )
    with pearl.halt.running():
        async with aclosing(runner), aclosing(found) as outcomes:
            async for outcome in outcomes:
                yield outcome


class Runner:
    """Runs single tasks with one `Pearl`; documents and plans are kept from one to the next.

    Args:
        pearl: Model and library.
    """

    def __init__(self, pearl: Pearl) -> None:
        self._pearl = pearl
        self._documents = _Documents()
        self._plans = _Plans(pearl)

    async def aclose(self) -> None:
        """Wait for no document that is still being loaded."""
        await self._documents.aclose()

    def length(self, task: Task) -> int:
        """Calls that follow one another in the plan of a task; 0 where there is none yet."""
        return self._plans.length(task)

    async def run(self, task: Task, listener: Listener | None = None) -> Outcome:
        """What becomes of one task; what stops it is in the outcome, and never raised.

        Args:
            task: The task.
            listener: Told of every event.
        """
        trace = Trace(task.id, (lambda event: listener(task.id, event)) if listener else None)
        try:
            if task.problem is not None or task.document is None:
                raise task.problem or PearlError("the task has no document")
            document = await self._documents.get(task.document)
            if task.plan is not None:
                plan = self._plans.get(task.plan, task.question)
                answer = await self._pearl.execute(plan, document, trace=trace)
            else:
                answer = await self._pearl.ask(task.question or "", document, trace=trace)
        except Exception as error:  # noqa: BLE001 - one task's failure is recorded, the rest goes on
            return Outcome(task, None, error, trace)
        return Outcome(task, answer, None, trace)


class _Documents:
    """Documents by what loads them: each is loaded once for the tasks that follow one another.

    A document in use is never loaded again; of the others the last few are kept, so that memory
    stays flat.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, Document] = WeakValueDictionary()
        self._kept: deque[Document] = deque(maxlen=KEPT)
        self._loading: dict[Hashable, asyncio.Task[Document]] = {}

    async def aclose(self) -> None:
        """End what is loading."""
        loading = list(self._loading.values())
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)

    async def get(self, load: Callable[[], Document]) -> Document:
        """The document that `load` gives.

        Raises:
            DataError: What `load` raises; the next to ask loads it again.
        """
        key = _identity(load)
        if key is None:
            return await asyncio.to_thread(load)
        document = self._known.get(key)
        if document is not None:
            return document
        if key not in self._loading:
            self._loading[key] = asyncio.create_task(asyncio.to_thread(load))
            self._loading[key].add_done_callback(lambda _: self._loading.pop(key))
        # Shielded: a task that is cancelled does not take the document from the others.
        document = await asyncio.shield(self._loading[key])
        if document not in self._kept:
            self._kept.append(document)
        self._known[key] = document
        return document


class _Plans:
    """Plans by their text: one that runs over many documents is read once."""

    def __init__(self, pearl: Pearl) -> None:
        self._read = lru_cache(KEPT_PLANS)(self._read_anew)
        self._pearl = pearl

    def get(self, text: str, question: str | None) -> CheckedPlan:
        """The plan.

        Raises:
            PlanError: It is none.
        """
        return self._read(text, question)[0]

    def length(self, task: Task) -> int:
        """Calls that follow one another in the plan of a task; 0 where there is none yet."""
        try:
            return self._read(task.plan, task.question)[1] if task.plan is not None else 0
        except PearlError:
            return 0  # the task will fail, and say why

    def _read_anew(self, text: str, question: str | None) -> tuple[CheckedPlan, int]:
        checked = self._pearl.compile(text, question=question)
        return checked, max(n_following(build_graph(checked)))


def document_of(task: Task) -> Hashable:
    """What tells tasks over one document from others; None where nothing does."""
    return None if task.document is None else _identity(task.document)


def _identity(load: Callable[[], Document]) -> Hashable:
    """What tells one loader from another; None where nothing does.

    Two calls prepared alike load the same document.
    """
    key: Hashable = load
    if isinstance(load, partial):
        key = (load.func, load.args, tuple(sorted(load.keywords.items())))
    try:
        hash(key)
    except TypeError:
        return None
    return key
