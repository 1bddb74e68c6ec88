"""What happens in a run, in order: appended event by event, written as JSON Lines, read by viewers.

A trace contains what models were asked, but for texts of the document, whose lengths stand in their
place, what they replied, and the passages that the answer quotes; no other document text and no API
keys.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, assert_never

from pydantic import TypeAdapter, ValidationError

from pearl.errors import DataError
from pearl.errors.escaping import json_bytes
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
from pearl.notebooks import ShownInNotebooks
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
    "Spent",
    "StepFailed",
    "StepFinished",
    "StepStarted",
    "Trace",
    "event_line",
    "read_trace",
    "retrieved",
    "spent",
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
        return spent(self._events).usage

    @property
    def n_calls(self) -> int:
        """Calls so far that were answered, or failed."""
        return spent(self._events).n_calls

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


class Spent(NamedTuple):
    """Calls of a run, for questions, plans, steps and choices.

    Attributes:
        n_calls: Calls that were answered or failed, cached replies included.
        n_cached: Those of them whose reply was cached, so that nothing was sent.
        n_failed: Those of them that gave no usable reply.
        usage: Tokens of all of them.
    """

    n_calls: int = 0
    n_cached: int = 0
    n_failed: int = 0
    usage: Usage = Usage()


def spent(events: Iterable[Event]) -> Spent:
    """Count the calls of a run and their tokens.

    Example:
        >>> called = PlanAttempted(round=0, model="m", reply="", usage=Usage(10, 2))
        >>> spent([called, called.model_copy(update={"n_cached": 1, "usage": Usage()})])
        Spent(n_calls=2, n_cached=1, n_failed=0, usage=Usage(n_input_tokens=10, n_output_tokens=2, n_cached_tokens=0, n_implausible_calls=0))
    """
    n_calls = n_cached = n_failed = 0
    usage = Usage()
    for event in events:
        match event:
            case (
                QuestionUnderstood()
                | QuestionRouted()
                | PlanAttempted()
                | PlanChosen()
                | OptionChosen()
            ):
                n_calls += event.n_calls
                n_cached += event.n_cached
            case ModelCalled():
                n_calls += 1
                n_cached += event.is_remembered
            case CallFailed():
                n_calls += event.is_sent
                n_failed += event.is_sent
            case _:
                continue
        usage += event.usage
    return Spent(n_calls, n_cached, n_failed, usage)


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
