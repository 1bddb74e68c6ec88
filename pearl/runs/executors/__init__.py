"""Where the work runs. The unit of work is one document × one question or plan.

Every other module of this folder is one executor, with `DESCRIPTION` (one line), `KEEPS_LIMITS` (whether
every call is made by the model of the `pearl` that it is given, so that limits of the run hold) and

    run(pearl, tasks, *, listener=None, is_stopping=...) -> AsyncGenerator[Outcome, None]

- One outcome a task, in the order of the tasks. What stops a task is in its outcome, and never
  raised; raised is only what no task could do without, as a cluster that cannot be reached.
- An outcome is the same whichever executor makes it: the same row, but for `duration_s`, and the
  same events, but for their times. Whoever wants it kept keeps it, and leaves out what is kept
  already: an executor has no memory of its own.
- Tasks are taken one by one, not far ahead of the outcomes, so that memory stays flat.
- `listener` is told every event of every task, at the latest when its outcome comes.
- Once `is_stopping` says so, no more tasks are begun; those that are begun are finished.
- Closing the generator cancels what is under way.
- An executor may take more keyword arguments, each with a default; those that are called as in
  `Offered` it is given by whoever runs it for a command. Importing it imports no extra.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from pearl import plugins
from pearl.documents.document import Document
from pearl.errors import ModelError, PearlError, UsageError, did_you_mean
from pearl.interpreter.answer import Answer
from pearl.trace import Event, Trace

if TYPE_CHECKING:
    from pearl.llm.middleware.dedup_cache import Replies
    from pearl.pipeline import Pearl

__all__ = [
    "CONTRACT",
    "DEFAULT",
    "Execute",
    "Executor",
    "Listener",
    "Offered",
    "Outcome",
    "Task",
    "load_executor",
    "run_with",
    "text_source",
]

DEFAULT = "local"

Listener = Callable[[str, Event], None]
"""Told the id of a task and what happens in it."""

Execute = Callable[..., AsyncGenerator["Outcome", None]]
"""The `run` of an executor."""


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work.

    Attributes:
        id: Names the row of the result.
        document: Loads the document; may raise `DataError`. Loaded late, so that memory stays flat.
        question: Asked where there is no plan; kept beside the plan otherwise.
        plan: Text of a plan.
        problem: Why this row of the input is no piece of work at all.
        source: What tells its document from others without loading it; "" where nothing does.
        extra: Fields of the input for its row of the result, as options and what is right.
    """

    id: str
    document: Callable[[], Document] | None = None
    question: str | None = None
    plan: str | None = None
    problem: PearlError | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task: an answer, or the error that stopped it."""

    task: Task
    answer: Answer | None
    error: Exception | None
    trace: Trace = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """One row of a results file; `status` is that of the answer, or `failed`."""
        if self.answer is not None:
            return {"id": self.task.id, **self.task.extra, **self.answer.to_json()}
        assert self.error is not None
        return {
            "id": self.task.id,
            **self.task.extra,
            "status": "failed",
            "question": self.task.question,
            "error": {"type": type(self.error).__name__, "message": str(self.error)},
        }


class Executor(Protocol):
    """What a module of this folder looks like to its users."""

    DESCRIPTION: str
    KEEPS_LIMITS: bool

    def run(
        self,
        pearl: Pearl,
        tasks: Iterable[Task],
        *,
        listener: Listener | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> AsyncGenerator[Outcome, None]:
        """Run the tasks; outcomes come in the order of the tasks.

        Raises:
            PearlError: No task can be run.
        """
        ...


CONTRACT = Executor


class Offered(TypedDict, total=False):
    """What an executor is given if its `run` has a parameter of that name.

    Attributes:
        replies: Where the model's replies are found and kept.
        folder: That of the store, for what has to outlive the process.
        on_progress: Told how far the work is, as what `str` makes a line of.
        on_trouble: Told what a server fails with, and for how many seconds it is asked again.
    """

    replies: Replies
    folder: Path
    on_progress: Callable[[object], None]
    on_trouble: Callable[[ModelError, float], None]


def load_executor(name: str) -> Executor:
    """The executor of that name.

    Raises:
        UsageError: There is none.
    """
    if not plugins.is_there(__name__, name):
        known = plugins.names(__name__)
        close = did_you_mean(name, known)
        raise UsageError(
            f"unknown executor '{name}'",
            help=f"did you mean '{close}'?" if close else f"executors: {', '.join(known)}",
        )
    executor: Executor = plugins.load(__name__, name)
    return executor


def run_with(executor: Executor, **offered: Unpack[Offered]) -> Execute:
    """The `run` of an executor, with what it takes of what is offered."""
    run: Execute = executor.run
    names = signature(run).parameters
    return partial(run, **{name: value for name, value in offered.items() if name in names})


def text_source(text: str) -> str:
    """A text by its digest."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
