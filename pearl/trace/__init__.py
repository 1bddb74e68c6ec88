"""What happens in a run, in order: appended event by event, written as JSON Lines, read by viewers.

A trace contains what models were asked, but for texts of the document, whose lengths stand in their
place, and what they replied; no other document text and no API keys.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar, assert_never

from pydantic import TypeAdapter, ValidationError

from pearl.errors import DataError
from pearl.errors.escaping import json_bytes
from pearl.errors.in_notebooks import ShownInNotebooks
from pearl.llm import (
    ActionTask,
    ChooseTask,
    CombineTask,
    DecomposeTask,
    ItemsTask,
    LookupTask,
    MineTask,
    PlanTask,
    RefineTask,
    StandaloneTask,
    Task,
    Usage,
)
from pearl.llm.progress import CallAttempt, CallWait, News
from pearl.trace.events import (
    AnswerStatus,
    CallFailed,
    ConstraintRefused,
    Event,
    EventBase,
    FoundPassage,
    LookedUp,
    ModelAttempted,
    ModelCalled,
    ModelProgressed,
    ModelWaited,
    OptionChosen,
    PlanAttempted,
    PlanCandidate,
    PlanChosen,
    PlanFailed,
    PlanRewritten,
    PlansCompared,
    PlanWriter,
    Purpose,
    QuestionRouted,
    QuestionUnderstood,
    Retrieved,
    RunFinished,
    RunStarted,
    StepFailed,
    StepFinished,
    StepStarted,
    retrieved,
)

__all__ = [
    "SCHEMA_VERSION",
    "AnswerStatus",
    "CallFailed",
    "ConstraintRefused",
    "Event",
    "FoundPassage",
    "LookedUp",
    "ModelAttempted",
    "ModelCalled",
    "ModelProgressed",
    "ModelWaited",
    "OptionChosen",
    "PlanAttempted",
    "PlanCandidate",
    "PlanChosen",
    "PlanFailed",
    "PlanRewritten",
    "PlanWriter",
    "PlansCompared",
    "Purpose",
    "QuestionRouted",
    "QuestionUnderstood",
    "Retrieved",
    "RunFinished",
    "RunStarted",
    "StepFailed",
    "StepFinished",
    "StepStarted",
    "Trace",
    "event_line",
    "read_trace",
    "retrieved",
]

SCHEMA_VERSION = 1

Stamped = TypeVar("Stamped", bound=EventBase)

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


class Trace(ShownInNotebooks):
    """An append-only list of events.

    Attributes:
        id: The id of the task, which identifies the run in a file of several.

    Args:
        id: The id of the task.
        listener: Callback for every event, those that are not recorded included (`ModelProgressed`,
            `ModelAttempted`), in the thread of the event loop.
    """

    def __init__(self, id: str = "", listener: Callable[[Event], None] | None = None) -> None:
        self.id = id
        self._events: list[Event] = []
        self._listener = listener
        self._began = time.monotonic()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_jsonl, (self.id, self.to_jsonl())  # listeners stay in their process

    def append(self, event: Event) -> None:
        """Record an event with its time, and pass it to the listener."""
        stamped = self._stamped(event)
        self._events.append(stamped)
        if self._listener is not None:
            self._listener(stamped)

    def of_plan(self, number: int) -> Trace:
        """A trace of one of several plans, from 1: its events are events of this one, with the number."""

        def adopt(event: Event) -> None:
            event.__dict__["plan_number"] = number
            if event.is_recorded:
                self._events.append(event)
            if self._listener is not None:
                self._listener(event)

        trace = Trace(self.id, adopt)
        trace._began = self._began
        return trace

    def progressed(self, task: Task, news: News) -> None:
        """Record a wait of a call; pass progress and attempts to the listener without recording them."""
        if isinstance(news, CallWait):
            waited = ModelWaited(
                reason=news.reason,
                wait_s=news.wait_s,
                attempt=news.attempt,
                n_attempts=news.n_attempts,
                step=_purpose(task).get("step", ""),
            )
            self.append(waited)
        elif self._listener is None:
            return
        elif isinstance(news, CallAttempt):
            self._listener(self._stamped(_attempted(task, news)))
        else:
            event = ModelProgressed(
                phase=news.phase,
                n_tokens=news.n_tokens,
                n_total=news.n_total,
                text=news.text,
                **_purpose(task),
            )
            self._listener(self._stamped(event))

    def _stamped(self, event: Stamped) -> Stamped:
        # In place: to copy it takes as long as to make and to write it.
        event.__dict__["t_s"] = round(time.monotonic() - self._began, 6)
        return event

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    @property
    def usage(self) -> Usage:
        """Tokens of every reply so far: questions, plans, steps and choices."""
        return sum((event.usage for event in self._replies()), Usage())

    @property
    def n_calls(self) -> int:
        """Calls so far that were answered, or failed."""
        return sum(
            event.n_calls
            if isinstance(event, OptionChosen | QuestionUnderstood | PlanChosen)
            else 1
            for event in self._replies()
        )

    def _replies(
        self,
    ) -> Iterator[
        QuestionUnderstood | PlanAttempted | PlanChosen | ModelCalled | CallFailed | OptionChosen
    ]:
        counted = (
            QuestionUnderstood
            | PlanAttempted
            | PlanChosen
            | ModelCalled
            | CallFailed
            | OptionChosen
        )
        for event in self._events:
            if isinstance(event, counted):
                yield event

    def to_jsonl(self) -> str:
        """One JSON object per line, each with the schema version and the id of the run."""
        head = _head(self.id)
        return b"".join(head + json_bytes(event)[1:] + b"\n" for event in self._events).decode()

    @classmethod
    def from_jsonl(cls, id: str, text: str) -> Self:
        """The inverse of `to_jsonl`; keeps the times.

        Raises:
            ValidationError: A line is not an event.
        """
        trace = cls(id)
        for line in text.split("\n"):  # str.splitlines ends lines at U+0085 and U+2028, too
            if not line:
                continue
            row = json.loads(line)
            del row["v"], row["id"]
            trace._events.append(_ADAPTER.validate_python(row))
        return trace


def event_line(id: str, event: Event) -> str:
    """One line of a file: the event as a JSON object with the schema version and the id of the run."""
    return (_head(id) + json_bytes(event)[1:] + b"\n").decode()


def _head(id: str) -> bytes:
    return json_bytes({"v": SCHEMA_VERSION, "id": id})[:-1] + b","


def _purpose(task: Task) -> dict[str, Any]:
    """The fields of an event that describe the purpose of a call."""
    match task:
        case PlanTask():
            return {"purpose": "plan", "attempt": task.round + 1}
        case StandaloneTask() | DecomposeTask():
            return {"purpose": "question"}
        case ActionTask() | ItemsTask() | LookupTask():
            return {"purpose": "step", "step": task.output}
        case CombineTask():
            return {"purpose": "combine", "step": task.step.output}
        case ChooseTask():
            return {"purpose": "choose"}
        case MineTask():
            return {"purpose": "mine"}
        case RefineTask():
            return {"purpose": "refine"}
        case _:
            assert_never(task)


def _attempted(task: Task, news: CallAttempt) -> ModelAttempted:
    done, request = news.completion, news.request
    _, _, server = news.identity.partition("@")
    return ModelAttempted(
        **_purpose(task),
        model=news.model,
        server=server.partition("?")[0] if server.startswith(("http://", "https://")) else "",
        number=news.number,
        error=news.error,
        replied_by=done.model if done else "",
        finish_reason=(done.finish_reason or "") if done else "",
        messages=request.messages,
        reply=news.reply,
        temperature=request.temperature,
        seed=request.seed,
        max_output_tokens=request.max_output_tokens,
        usage=news.usage,
        duration_s=news.duration_s,
    )


def read_trace(path: str | Path) -> list[Trace]:
    """The traces of a file, one per id, in order of first appearance.

    The file of a process that was killed ends where that was: a last line that was cut off is left
    out, with a `UserWarning`.

    Raises:
        DataError: A line is not an event of this version.
    """
    traces: dict[str, Trace] = {}
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                version, id = row.pop("v"), row.pop("id")
                event = _ADAPTER.validate_python(row)
            except (ValueError, KeyError, AttributeError, ValidationError) as error:
                if not line.endswith(b"\n"):
                    told = f"{path}:{number}: the last event was cut off and is left out"
                    warnings.warn(told, stacklevel=2)
                    break
                reason = str(error).splitlines()[0]
                raise DataError(
                    f"not an event of a trace: {reason}", path=path, line=number
                ) from error
            if version != SCHEMA_VERSION:
                raise DataError(
                    f"trace version {version}, this is {SCHEMA_VERSION}", path=path, line=number
                )
            traces.setdefault(id, Trace(id))._events.append(event)
    return list(traces.values())
