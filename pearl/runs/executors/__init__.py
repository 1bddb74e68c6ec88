"""Executors, and the units of work that they run.

Every other module of this folder is one executor, with `DESCRIPTION` (one line), `KEEPS_LIMITS` (whether
every call is made by the model of the `pearl` that it is given, so that limits of the run hold),
`UNITS` (the kind of units that it runs: `Unit` for all of them, or `Task`) and

    run(pearl, units, *, listener=None, is_stopping=...) -> AsyncGenerator[Outcome, None]

- One outcome a unit, in the order of the units. What stops a unit is in its outcome, and never
  raised; raised is only what no unit could do without, as a cluster that cannot be reached.
- An outcome is the same whichever executor makes it: the same row, but for `duration_s`, and the
  same events, but for their times. Whoever wants it kept keeps it, and leaves out what is kept
  already: an executor has no memory of its own.
- Units are taken one by one, not far ahead of the outcomes, so that memory stays flat.
- `listener` is told every event of every unit, at the latest when its outcome comes.
- Once `is_stopping` says so, no more units are begun; those that are begun are finished.
- Closing the generator cancels what is under way.
- An executor may take more keyword arguments, each with a default; those that are called as in
  `Offered` it is given by whoever runs it for a command. Importing it imports no extra.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, TypeVar, Unpack

from pearl import plugins
from pearl.documents.document import Document, DocumentKind
from pearl.errors import (
    BudgetError,
    ExecutionError,
    ModelError,
    PausedError,
    PearlError,
    UsageError,
)
from pearl.interpreter.answer import Answer
from pearl.interpreter.bounds import Range, StepCosts
from pearl.pipeline import Pearl
from pearl.runs.resources import OnBegun, Resources
from pearl.trace import Event, Trace

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pearl.llm.middleware.caching import Replies

__all__ = [
    "CONTRACT",
    "DEFAULT",
    "Execute",
    "Executor",
    "Listener",
    "Offered",
    "Outcome",
    "RecordUnit",
    "Task",
    "Unit",
    "load_executor",
    "run_with",
]

DEFAULT = "local"

Listener = Callable[[str, Event], None]
"""Callback for the events of a unit, with its id."""

Execute = Callable[..., AsyncGenerator["Outcome[Any]", None]]
"""The `run` of an executor."""


class Unit(ABC):
    """One unit of work: what an executor runs, and what a run of the store has one row of.

    A kind of unit is a frozen dataclass. It can be pickled where its document can, so that it
    travels to the workers of a cluster.

    Attributes:
        id: Names the row.
        document: Loads the document; may raise `DataError`. Loaded late, so that memory stays flat.
            None where there is none to be read.
        source: What tells its document from others without loading it; "" where nothing does, and
            the unit is never taken for one whose row is kept.
    """

    __slots__ = ()

    id: str
    document: Callable[[], Document] | None
    source: str

    @property
    @abstractmethod
    def depends_on(self) -> Sequence[str]:
        """Further values that its row depends on, beside id, source and `Pearl`."""

    @property
    def shard_key(self) -> str:
        """Units of one key are in the same shard."""
        return self.id

    def n_chained(self, resources: Resources) -> int:
        """Length of its longest chain of calls; 0 if unknown."""
        return 0

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """Its estimated cost without its document, under a name shared by similar units."""
        some = Range(1, None)
        return "(units)", StepCosts(some, some, some, some)

    @abstractmethod
    async def perform(self, resources: Resources, trace: Trace) -> Any:
        """Execute the unit.

        Raises:
            Exception: What stops it.
        """

    def is_failure(self, result: Any) -> bool:
        """Whether the result of `perform` is a failure."""
        return False

    def is_unsure(self, result: Any) -> bool:
        """Whether the result of `perform` may be incomplete, or is undecided."""
        return False

    @abstractmethod
    def row(self, result: Any, error: Exception | None) -> Mapping[str, Any] | None:
        """The row to record, as JSON data; its `status` is `failed` if it should be retried.

        Args:
            result: What `perform` returned.
            error: Or what it raised.

        Returns:
            None where an error is no row of this kind: it ends the run.
        """


@dataclass(frozen=True, slots=True)
class RecordUnit(Unit):
    """A unit whose result is a record with a `status`, of which its row is the JSON data."""

    id: str
    document: Callable[[], Document] | None
    source: str

    def is_failure(self, result: Any) -> bool:
        """Whether the unit should be retried."""
        return bool(result.status == "failed")

    def row(self, result: BaseModel | None, error: Exception | None) -> Mapping[str, Any] | None:
        """The record as it is in a file."""
        return None if result is None else result.model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class Task(Unit):
    """A question or a plan to run over a document.

    Attributes:
        question: Asked where there is no plan; kept beside the plan otherwise.
        problem: Why this row of the input is no piece of work at all.
        extra: Fields of the input for its row of the result, as options and what is right.
        kind: What the document probably is; when it is loaded, it says itself.
    """

    id: str
    document: Callable[[], Document] | None = None
    question: str | None = None
    plan: str | None = None
    problem: PearlError | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    kind: DocumentKind = "document"

    @property
    def depends_on(self) -> Sequence[str]:
        """Plan, question, and what its row says of the input.

        Raises:
            UsageError: `extra` is not JSON data.
        """
        try:
            extra = json.dumps(self.extra, sort_keys=True) if self.extra else "{}"
        except TypeError as error:
            raise UsageError(
                f"the extra of task '{self.id}' is not JSON data: {error}",
                help="give it texts, numbers, lists and dictionaries",
            ) from None
        return self.plan or "", self.question or "", extra

    def n_chained(self, resources: Resources) -> int:
        """Length of the longest chain of steps of its plan."""
        return 0 if self.plan is None else resources.n_chained(self.plan, self.question)

    async def perform(self, resources: Resources, trace: Trace) -> Answer:
        """Run the plan, writing it first if necessary.

        Raises:
            PearlError: There is no answer.
        """
        if self.problem is not None or self.document is None:
            raise self.problem or PearlError("the task has no document")
        document = await resources.document(self.document)
        await resources.begin(self, document)
        if self.plan is None:
            return await resources.pearl.ask(self.question or "", document, trace=trace)
        plan = resources.plan(self.plan, self.question)
        return await resources.pearl.execute(plan, document, trace=trace)

    def is_unsure(self, result: Answer) -> bool:
        """Whether there is no answer, or the answer may be incomplete."""
        return result.is_unsure

    def row(self, result: Answer | None, error: Exception | None) -> Mapping[str, Any]:
        """One row of a results file; `status` is that of the answer, `failed`, or `unfinished`."""
        if result is not None:
            return {"id": self.id, **self.extra, **result.to_json()}
        finished = error.finished if isinstance(error, ExecutionError) else ()
        return {
            "id": self.id,
            **self.extra,
            "status": "unfinished" if isinstance(error, BudgetError | PausedError) else "failed",
            "question": self.question,
            "error": {"type": type(error).__name__, "message": str(error)},
            **({"steps": [step.to_json() for step in finished]} if finished else {}),
        }


U = TypeVar("U", bound=Unit, covariant=True)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[U]):
    """The outcome of a unit.

    Attributes:
        result: What performing it returned: of a `Task` an `Answer`; None where it failed.
    """

    unit: U
    result: Any
    error: Exception | None
    trace: Trace = field(repr=False)

    @property
    def is_failed(self) -> bool:
        """Whether its row is a failure that should be retried."""
        return self.error is not None or self.unit.is_failure(self.result)

    @property
    def is_unfinished(self) -> bool:
        """Whether the end of the run interrupted it: a limit, or an unreachable server."""
        return isinstance(self.error, BudgetError | PausedError)

    @property
    def has_row(self) -> bool:
        """Whether the outcome, a failure included, is recorded as a row."""
        return self.unit.row(self.result, self.error) is not None

    def to_json(self) -> Mapping[str, Any]:
        """Its row.

        Raises:
            Exception: What stopped it, where that is no row of its kind.
        """
        row = self.unit.row(self.result, self.error)
        if row is None:
            assert self.error is not None
            raise self.error
        return row


class Executor(Protocol):
    """The interface of the modules of this folder."""

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
        """Execute the units; yields outcomes in the order of the units.

        Raises:
            PearlError: No unit can be performed.
        """
        ...


CONTRACT = Executor


class Offered(TypedDict, total=False):
    """Optional arguments of an executor's `run`, passed if it has a parameter of that name.

    Attributes:
        replies: Where the model's replies are found and kept.
        folder: That of the store, for what has to outlive the process.
        on_begun: Callback, maybe in a thread, for every unit that is started, with its document if it has read one.
        on_progress: Told how far the work is, as what `str` makes a line of.
        on_trouble: Told what a server fails with, and for how many seconds it is asked again.
    """

    replies: Replies
    folder: Path
    on_begun: OnBegun
    on_progress: Callable[[object], None]
    on_trouble: Callable[[ModelError, float], None]


def load_executor(name: str) -> Executor:
    """Load an executor by name.

    Raises:
        UsageError: There is none.
    """
    executor: Executor = plugins.load(__name__, name, "executor")
    return executor


def run_with(executor: Executor, **offered: Unpack[Offered]) -> Execute:
    """The `run` of an executor with the optional arguments that it accepts."""
    run: Execute = executor.run
    names = signature(run).parameters
    return partial(run, **{name: value for name, value in offered.items() if name in names})
