"""What a run may spend, what it is predicted to take, and what it took.

Every task is forecast when its document is loaded to be run, so that nothing is read twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from pearl.documents.document import Document
from pearl.llm.middleware.budget import Budget
from pearl.pipeline import Pearl
from pearl.runs.executors import Execute, Task, Unit
from pearl.runs.executors.local import document_of
from pearl.runs.forecast import Forecast, Forecaster

__all__ = ["Spending"]


class Spending:
    """The budget of a run beside its forecast.

    Args:
        pearl: What the tasks are run with.
        budget: What all calls may spend together.

    Attributes:
        budget: What all calls may spend together, and what they did.
    """

    def __init__(self, pearl: Pearl, budget: Budget) -> None:
        self.budget = budget
        self._forecaster = Forecaster(pearl, price=budget.price)
        self._lock = threading.Lock()  # documents are loaded in threads
        self._documents: WeakValueDictionary[Hashable, Document] = WeakValueDictionary()
        self._waiting: dict[Hashable, list[Task]] = {}

    @property
    def predicted(self) -> Forecast:
        """What the tasks that were begun were predicted to take."""
        return self._forecaster.result()

    def watched(self, execute: Execute) -> Execute:
        """An executor whose tasks are forecast when they are begun."""
        return lambda pearl, units, **options: execute(pearl, map(self._watched, units), **options)

    def _watched(self, task: Unit) -> Unit:
        if not isinstance(task, Task):  # what other kinds of work take is not known beforehand
            return task
        load = task.document
        if load is None or task.plan is None:
            self._forecaster.add(task)
            return task
        key = document_of(task) or object()
        with self._lock:
            document = self._documents.get(key)
            if document is None:
                self._waiting.setdefault(key, []).append(task)
        if document is not None:  # the executor has it, and does not load it again
            self._forecaster.add(task, document)
        return replace(task, document=_Loader(key, load, self._loaded))

    def _loaded(self, key: Hashable, document: Document) -> None:
        with self._lock:
            self._documents[key] = document
            waiting = self._waiting.pop(key, [])
        for task in waiting:
            self._forecaster.add(task, document)


@dataclass(frozen=True, slots=True)
class _Loader:
    """Loads a document and tells of it; those that load the same one are equal, as for executors."""

    key: Hashable
    load: Callable[[], Document] = field(compare=False)
    tell: Callable[[Hashable, Document], None] = field(compare=False)

    def __call__(self) -> Document:
        document = self.load()
        self.tell(self.key, document)
        return document
