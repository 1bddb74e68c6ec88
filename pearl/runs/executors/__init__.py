"""Executors, and the units of work that they run.

Every other module of this folder is one executor, with `DESCRIPTION` (one line), `KEEPS_LIMITS` (whether
the limits of the given `pearl` hold for all calls), `UNITS` (the kind of
units that it runs: `Unit` for all kinds, or `Task`) and

    run(pearl, units, *, listener=None, is_stopping=...) -> AsyncGenerator[Outcome, None]

- It yields one outcome per unit, in the order of the units. An error of a unit is in its outcome; the
  executor raises only errors that affect every unit, such as an unreachable cluster.
- All executors give the same outcome for a unit: the same row except for `duration_s`, and the same
  events except for their times. An executor stores nothing: its caller stores outcomes, and leaves out
  units that are stored already.
- Units are taken one by one, not far ahead of the outcomes, so that memory stays flat.
- `listener` receives every event of every unit, at the latest with the outcome.
- Once `is_stopping` returns true, no more units are started; running units are finished.
- Closing the generator cancels running units.
- An executor may take more keyword arguments, each with a default; it receives those of `Offered` that
  it has parameters for. Importing an executor imports no extra.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from inspect import signature
from math import inf
from pathlib import Path
from typing import Any, Generic, Protocol, TypedDict, TypeVar, Unpack
from weakref import WeakValueDictionary

from msgspec import Struct, to_builtins

from pearl import errors, plugins
from pearl.data.samples import given
from pearl.documents.document import Document, DocumentKind, load_at_once
from pearl.documents.document import load as load_file
from pearl.documents.readers import reading
from pearl.dsl.binding import bind
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import build_graph
from pearl.dsl.passes import n_following
from pearl.errors.callers import ShownInPart
from pearl.interpreter.answer import Answer
from pearl.interpreter.context import off_loop
from pearl.interpreter.cost_ranges import Range, StepCosts
from pearl.interpreter.row import ErrorData, FailedRow, StepData
from pearl.llm.concurrency import SingleFlight
from pearl.llm.middleware.caching import Replies
from pearl.pipeline import Pearl
from pearl.trace import Event, Trace

DEFAULT = "local"

Made = TypeVar("Made")

KEPT_PLANS = 1_000  # Maximum parsed plans in the cache, a few kilobytes each
KEPT = 2  # Maximum unused documents in the cache; a document in use is never loaded again


class Resources:
    """Resources shared by the units of a run."""

    def __init__(self, pearl: Pearl, on_loaded: Callable[[], None] = lambda: None) -> None:
        self.pearl = pearl
        self.on_loaded = on_loaded
        """Called when the document of a task has been loaded."""
        self.n_loading = 0
        """Units that are waiting for their documents."""

        @lru_cache(KEPT_PLANS)
        def read(text: str, question: str | None) -> tuple[CheckedPlan, int]:
            checked = pearl.compile(text, question=question)
            return checked, max(n_following(build_graph(checked)))

        self._plan = read
        self._made: dict[Hashable, Any] = {}
        self._documents: WeakValueDictionary[Hashable, Document] = WeakValueDictionary()
        self._kept: deque[Document] = deque(maxlen=KEPT)
        self._loading: SingleFlight[Document] = SingleFlight()

    async def document(self, load: Callable[[], Document]) -> Document:
        """The document that `load` returns; consecutive units with the same document load it once."""
        if isinstance(load, partial) and load.func is given:
            # Not cached: the key contains the document and would keep it in memory forever.
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
            if known is None and isinstance(load, partial) and load.func is load_file:
                known = load_at_once(*load.args, **load.keywords)  # A small file needs no thread
            if known is None:
                known = await self._loading.do(key, lambda: asyncio.to_thread(self._counted, load))
            if known not in self._kept:
                self._kept.append(known)
            self._documents[key] = known
            return known
        finally:
            self.n_loading -= 1

    def plan(self, text: str, question: str | None) -> CheckedPlan:
        """Parse a plan, cached by its text."""
        return self._plan(text, question)[0]

    def n_chained(self, text: str, question: str | None) -> int:
        """Number of calls in the longest chain of a plan; 0 if the plan is invalid."""
        try:
            return self._plan(text, question)[1]
        except errors.PearlError:
            return 0  # The unit will fail with this error

    def is_over(self, error: Exception) -> bool:
        """Whether an error ends the run, not just one unit."""
        return (
            isinstance(error, errors.BudgetError | errors.PausedError)
            or self.pearl.client.breaker.error is not None
        )

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The result of `make`, cached by key."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    def _counted(self, load: Callable[[], Document]) -> Document:
        with reading(self.pearl.settings):
            document = load()
        # In the thread, because counting takes as long as loading.
        self.pearl.limits.counter.count(document.text)
        return document


def loader_key(load: Callable[[], Document]) -> Hashable:
    """Cache key of a loader; None if it has none. Equal `partial` calls load the same document."""
    key: Hashable = load
    if isinstance(load, partial):
        key = (load.func, load.args, tuple(sorted(load.keywords.items())))
    try:
        hash(key)
    except TypeError:
        return None
    return key


Listener = Callable[[str, Event], None]  # Callback for the events of a unit, with its id

Execute = Callable[..., AsyncGenerator["Outcome[Any]", None]]  # The `run` function of an executor


class Unit(ABC):
    """One unit of work: an executor runs it, and the store has one row for it.

    A kind of unit is a frozen dataclass. It can be pickled if its document can, so that it can be sent
    to the workers of a cluster.

    Attributes:
        id: The id of its row.
        document: Loads the document; may raise `DataError`. Loaded late, so that memory stays flat.
            None for a unit without a document.
        source: Identity of the document, known without loading it; "" if unknown: such a unit is run
            again even if a row is stored for it.
    """

    __slots__ = ()

    id: str
    document: Callable[[], Document] | None
    source: str

    @property
    @abstractmethod
    def depends_on(self) -> Sequence[str]:
        """Values that the row depends on, besides id, source and `Pearl`."""

    @property
    def shard_key(self) -> str:
        """Key that determines the shard; units with the same key are in the same shard."""
        return self.id

    def n_chained(self, resources: Resources) -> int:
        """Number of calls in its longest chain; 0 if unknown."""
        return 0

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """A name that similar units share, and the estimated cost of this unit without its document."""
        some = Range(1, inf)
        return "(units)", StepCosts(some, some, some)

    @abstractmethod
    async def perform(self, resources: Resources, trace: Trace) -> Any:
        """Execute the unit; it raises an exception if it failed."""

    def is_failure(self, result: Any) -> bool:
        """Whether the result of `perform` is a failure."""
        return False

    def is_unsure(self, result: Any) -> bool:
        """Whether the result of `perform` is undecided or may be incomplete."""
        return False

    @abstractmethod
    def row(self, result: Any, error: Exception | None) -> Mapping[str, Any] | None:
        """The row to record, as JSON data, with status `failed` if it should be retried; None if the error ends the run."""


@dataclass(frozen=True, slots=True)
class RecordUnit(Unit):
    """A unit whose result is a record with a `status`; its row is the record as JSON data."""

    id: str
    document: Callable[[], Document] | None
    source: str

    def is_failure(self, result: Any) -> bool:
        """Whether the unit should be retried."""
        return bool(result.status == "failed")

    def row(self, result: Struct | None, error: Exception | None) -> Mapping[str, Any] | None:
        """The record as JSON data."""
        return None if result is None else to_builtins(result)


@dataclass(frozen=True, slots=True)
class Task(Unit):
    """A question or a plan to run over a document.

    Attributes:
        question: Asked if there is no plan; else only recorded with the plan.
        problem: Why the row of the input is invalid; such a task fails.
        extra: Fields of the input that are copied to its row, such as options and the gold answer.
        kind: The probable kind of the document, by its name; the loaded document has its own.
        parameters: A text for each parameter of the plan.
        has_sources: Whether the document has sources, of which the planner is told.
    """

    id: str
    document: Callable[[], Document] | None = None
    question: str | None = None
    plan: str | None = None
    problem: errors.PearlError | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    kind: DocumentKind = "document"
    parameters: Mapping[str, str] = field(default_factory=dict)
    has_sources: bool = False

    @property
    def depends_on(self) -> Sequence[str]:
        """Plan, question, parameters and extra fields."""
        if not self.extra and not self.parameters:  # Asked several times about each of many tasks
            return self.plan or "", self.question or "", "[{}, {}]"
        try:
            extra = json.dumps([dict(self.extra), dict(self.parameters)], sort_keys=True)
        except TypeError as error:
            raise errors.UsageError(
                f"the extra of task '{self.id}' is not JSON data: {error}",
                help="give it texts, numbers, lists and dictionaries",
            ) from None
        return self.plan or "", self.question or "", extra

    def n_chained(self, resources: Resources) -> int:
        """Number of steps in the longest chain of its plan."""
        return 0 if self.plan is None else resources.n_chained(self.plan, self.question)

    async def perform(self, resources: Resources, trace: Trace) -> Answer:
        """Run the plan, writing it first if necessary."""
        if self.problem is not None or self.document is None:
            raise self.problem or errors.PearlError("the task has no document")
        document = await resources.document(self.document)
        resources.on_loaded()
        if self.plan is None:
            if self.parameters:
                advice = "pass the plan of the question"
                raise errors.UsageError("parameters need a plan", help=advice)
            return await resources.pearl.ask(self.question or "", document, trace=trace)
        plan = bind(resources.plan(self.plan, self.question), self.parameters)
        return await resources.pearl.execute(plan, document, trace=trace)

    def is_unsure(self, result: Answer) -> bool:
        """Whether the answer is missing or may be incomplete."""
        return result.is_unsure

    def row(self, result: Answer | None, error: Exception | None) -> Mapping[str, Any]:
        """One row of a results file; `status` is that of the answer, `failed`, or `unfinished`."""
        if result is not None:
            return {"id": self.id, **self.extra, **result.to_dict()}
        is_over = isinstance(error, errors.BudgetError | errors.PausedError)
        finished = error.finished if isinstance(error, errors.ExecutionError) else ()
        # A document without text is why the task failed; the error says so.
        texts = {name: text for name, text in self.parameters.items() if isinstance(text, str)}
        row = FailedRow(
            status="unfinished" if is_over else "failed", question=self.question,
            parameters=texts, steps=[*map(StepData.of, finished)],
            error=ErrorData() if error is None else ErrorData(**errors.error_to_dict(error)),
        )  # fmt: skip
        return {"id": self.id, **self.extra, **row.to_dict()}


U = TypeVar("U", bound=Unit, covariant=True)


class Outcome(ShownInPart, Struct, Generic[U], frozen=True):
    """The outcome of a unit; for a `Task`, `result` is an `Answer`, or None if the task failed."""

    unshown = frozenset({"trace"})

    unit: U
    result: Any
    error: Exception | None
    trace: Trace

    @property
    def is_failed(self) -> bool:
        """Whether the unit failed and should be retried."""
        return self.error is not None or self.unit.is_failure(self.result)

    @property
    def is_unfinished(self) -> bool:
        """Whether the unit was interrupted by the end of the run: a limit, or an unreachable server."""
        return isinstance(self.error, errors.BudgetError | errors.PausedError)

    def to_dict(self) -> Mapping[str, Any]:
        """The row; raises the error of a unit that has no row."""
        row = self.unit.row(self.result, self.error)
        if row is None:
            assert self.error is not None
            raise self.error
        return row


class Executor(Protocol):
    """The interface of an executor module."""

    DESCRIPTION: str
    KEEPS_LIMITS: bool
    UNITS: type[Unit]

    def run(
        self,
        pearl: Pearl,
        units: Iterable[Any],
        *,
        listener: Listener | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> AsyncGenerator[Outcome[Any], None]:
        """Execute the units; yield outcomes in the order of the units. Raises if no unit can be executed."""


CONTRACT = Executor


class Offered(TypedDict, total=False):
    """Optional arguments of an executor's `run`, each passed if `run` has a parameter of its name; `on_trouble` is called with the seconds of retries."""

    replies: Replies
    folder: Path
    on_progress: Callable[[object], None]
    on_trouble: Callable[[errors.ModelError, float], None]
    batch_threshold: int


def load_executor(name: str) -> Executor:
    """Load an executor by its name."""
    executor: Executor = plugins.load(__name__, name, "executor")
    return executor


def run_with(executor: Executor, **offered: Unpack[Offered]) -> Execute:
    """The `run` function of an executor, with those optional arguments that it accepts."""
    run: Execute = executor.run
    names = signature(run).parameters
    return partial(run, **{name: value for name, value in offered.items() if name in names})
