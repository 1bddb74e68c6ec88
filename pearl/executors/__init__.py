"""Where the work runs. The unit of work is one document × one question or plan.

Every other module of this folder is one executor, with
`run(pearl, tasks, *, listener) -> AsyncIterator[Outcome]`: one outcome a task, in the
order of the tasks, failures recorded in the outcome and never raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pearl.answerer import Answer
from pearl.errors import PearlError
from pearl.sources import Document
from pearl.trace import Event, Trace

__all__ = ["Listener", "Outcome", "Task"]

Listener = Callable[[str, Event], None]
"""Told the id of a task and what happens in it."""


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work.

    Attributes:
        id: Names the row of the result.
        document: Loads the document; may raise `DataError`. Loaded late, so that memory stays flat.
        question: Asked where there is no plan; kept beside the plan otherwise.
        plan: Text of a plan.
        problem: Why this row of the input is no piece of work at all.
        extra: Fields of the input for its row of the result, as options and what is right.
    """

    id: str
    document: Callable[[], Document] | None = None
    question: str | None = None
    plan: str | None = None
    problem: PearlError | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task: an answer, or the error that stopped it."""

    task: Task
    answer: Answer | None
    error: Exception | None
    trace: Trace = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """One row of a results file; `status` is `answered` or `failed`."""
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
