"""Where the work runs. The unit of work is one document × one question or plan.

Every other module of this folder is one executor, with

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
- An executor may take more keyword arguments, each with a default. Importing it imports no extra.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pearl.documents.document import Document
from pearl.errors import PearlError
from pearl.interpreter.answer import Answer
from pearl.trace import Event, Trace

__all__ = ["Execute", "Listener", "Outcome", "Task"]

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
