"""Typed events of a run, in order; written as JSON Lines and read by viewers.

A trace is append-only. It contains replies of models, but no other document text and no API keys.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, assert_never

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pearl.actions.reply import State
from pearl.errors import DataError
from pearl.errors.escaping import json_bytes
from pearl.llm import (
    ActionTask,
    ChooseTask,
    CombineTask,
    ItemsTask,
    MineTask,
    PlanTask,
    PrefixUse,
    RefineTask,
    Task,
    Usage,
)
from pearl.llm.fallback import ConstraintLevelName
from pearl.llm.progress import CallProgress, CallWait, Phase

__all__ = [
    "SCHEMA_VERSION",
    "AnswerStatus",
    "ConstraintRefused",
    "Event",
    "ModelCalled",
    "ModelProgressed",
    "ModelWaited",
    "OptionChosen",
    "PlanAttempted",
    "PlanFailed",
    "PlanRewritten",
    "Purpose",
    "RunFinished",
    "RunStarted",
    "StepFailed",
    "StepFinished",
    "StepStarted",
    "Trace",
    "read_trace",
]

SCHEMA_VERSION = 1

AnswerStatus = Literal["answered", "nothing_found", "undecided"]
"""Whether there is an answer, the document has none, or it is uncertain."""

Purpose = Literal["step", "part", "combine", "again", "items"]
"""Why a step calls the model: for its result, for one part of the document, to merge such results,
again because the reply could not be parsed, or about a batch of rows."""


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    t_s: float = 0.0
    """Seconds since the start of the trace."""


class PlanAttempted(_Event):
    """One round of planning: a reply and its diagnostics."""

    event: Literal["plan_attempted"] = "plan_attempted"
    round: int
    model: str
    reply: str
    notes: tuple[str, ...] = ()
    """The fixes that were applied, rendered."""
    diagnostics: tuple[str, ...] = ()
    """The remaining errors, rendered; empty for the accepted plan."""
    constraint: ConstraintLevelName = "none"
    """The constraint level that the reply was written under."""
    usage: Usage = Usage()
    shape: str = ""
    """What the planner was told about the document; "" for nothing."""


class ConstraintRefused(_Event):
    """A constraint level is not available: the server rejected it, or the reply violated it."""

    event: Literal["constraint_refused"] = "constraint_refused"
    constraint: ConstraintLevelName
    reason: str


class PlanFailed(_Event):
    """The repair budget was spent; `fallback` is the alternative used, if any."""

    event: Literal["plan_failed"] = "plan_failed"
    n_attempts: int
    fallback: Literal["direct"] | None = None


class RunStarted(_Event):
    """The execution of a plan over a document starts."""

    event: Literal["run_started"] = "run_started"
    question: str
    plan: str
    method: Literal["plan", "direct"]
    document: str
    document_sha256: str
    n_characters: int
    n_document_tokens: int | None
    """None where they were not counted: its length alone shows that it fits a prompt, or there is no limit."""
    token_count: str
    """How tokens are counted: the name of an encoding, or `estimate`."""
    model: str
    window: int | None
    """Context window in tokens; None for no limit."""
    steps: tuple[str, ...] = ()
    """Outputs of the plan's steps in order; empty in traces older than this field."""


class PlanRewritten(_Event):
    """A pass rewrote the plan; its answer does not change."""

    event: Literal["plan_rewritten"] = "plan_rewritten"
    by: str
    """Name of the pass."""
    what: str


class StepStarted(_Event):
    """A step starts: its inputs are available."""

    event: Literal["step_started"] = "step_started"
    step: str
    action: str


class ModelProgressed(_Event):
    """Progress of a call; sent to listeners, but not recorded."""

    event: Literal["model_progressed"] = "model_progressed"
    purpose: Literal["plan", "step", "combine", "choose", "mine", "refine"]
    step: str = ""
    """The step that makes the call, if any."""
    attempt: int = 1
    """The round of planning, from 1."""
    phase: Phase
    n_tokens: int = 0
    """Tokens of the prompt processed, or of the reply generated, including hidden ones."""
    n_total: int | None = None
    """Tokens of the prompt; None while the reply is generated."""


class ModelWaited(_Event):
    """A call waits, to be retried after a transient failure or because of a rate limit.

    Long waits are reported again every ten seconds, with the remaining seconds.
    """

    event: Literal["model_waited"] = "model_waited"
    reason: str
    wait_s: float
    attempt: int


class ModelCalled(_Event):
    """One reply of the model."""

    event: Literal["model_called"] = "model_called"
    step: str
    purpose: Purpose
    model: str
    duration_s: float
    usage: Usage
    """Zero for a cache hit."""
    is_remembered: bool = False
    """Whether the reply was cached, or shared with a concurrent identical call."""
    prefix: PrefixUse | None = None
    """How the call used the server's prefix cache; None if unknown."""


class StepFinished(_Event):
    """A step finished.

    `context` is the way its document was presented: in full, part by part with the results merged
    (map-reduce), by its most relevant passages (retrieve), row by row (rows), or not at all (none).
    """

    event: Literal["step_finished"] = "step_finished"
    step: str
    action: str
    value: str
    state: State = "found"
    is_native: bool
    context: Literal["full", "map-reduce", "retrieve", "rows", "none"]
    coverage: float | None
    """Fraction of the document's characters that the model was shown; None without a document."""
    n_calls: int
    usage: Usage
    duration_s: float


class StepFailed(_Event):
    """A step failed, which ends the run."""

    event: Literal["step_failed"] = "step_failed"
    step: str
    error: str


class OptionChosen(_Event):
    """An option was chosen, based on the answer in words or on the document."""

    event: Literal["option_chosen"] = "option_chosen"
    by: Literal["answer", "document"]
    reply: str
    choice: int | None
    """Index of the option, from 0; None if the reply names none."""
    coverage: float | None = None
    """Fraction of the document that was shown; None for a choice based on the answer."""
    n_calls: int = 1
    """0 if the answer was an option verbatim, so that no model was called."""
    usage: Usage
    duration_s: float


class RunFinished(_Event):
    """A run finished."""

    event: Literal["run_finished"] = "run_finished"
    status: AnswerStatus | Literal["failed"]
    answer: str
    usage: Usage
    duration_s: float


Event = Annotated[
    PlanAttempted | ConstraintRefused | PlanFailed | RunStarted | PlanRewritten | StepStarted | ModelProgressed
    | ModelWaited | ModelCalled | StepFinished | StepFailed | OptionChosen | RunFinished,
    Field(discriminator="event"),
]  # fmt: skip

Stamped = TypeVar("Stamped", bound=_Event)

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


class Trace:
    """An append-only list of events.

    Attributes:
        id: The id of the task, which identifies the run in a file of several.

    Args:
        id: The id of the task.
        listener: Callback for every event and for the progress of calls (`ModelProgressed`), in the
            thread of the event loop.
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

    def progressed(self, task: Task, news: CallProgress | CallWait) -> None:
        """Record a wait of a call; pass progress to the listener without recording it."""
        if isinstance(news, CallWait):
            self.append(ModelWaited(reason=news.reason, wait_s=news.wait_s, attempt=news.attempt))
        elif self._listener is not None:
            event = ModelProgressed(
                phase=news.phase,
                n_tokens=news.n_tokens,
                n_total=news.n_total,
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
        """Tokens of every reply so far: plans, steps and choices."""
        return sum((event.usage for event in self._replies()), Usage())

    @property
    def n_calls(self) -> int:
        """Replies so far."""
        return sum(
            event.n_calls if isinstance(event, OptionChosen) else 1 for event in self._replies()
        )

    def _replies(self) -> Iterator[PlanAttempted | ModelCalled | OptionChosen]:
        for event in self._events:
            if isinstance(event, PlanAttempted | ModelCalled | OptionChosen):
                yield event

    def to_jsonl(self) -> str:
        """One JSON object per line, each with the schema version and the id of the run."""
        head = json_bytes({"v": SCHEMA_VERSION, "id": self.id})[:-1] + b","
        return b"".join(head + json_bytes(event)[1:] + b"\n" for event in self._events).decode()

    @classmethod
    def from_jsonl(cls, id: str, text: str) -> Self:
        """The inverse of `to_jsonl`; keeps the times.

        Raises:
            ValidationError: A line is not an event.
        """
        trace = cls(id)
        for line in text.splitlines():
            row = json.loads(line)
            del row["v"], row["id"]
            trace._events.append(_ADAPTER.validate_python(row))
        return trace


def _purpose(task: Task) -> dict[str, Any]:
    """The fields of an event that describe the purpose of a call."""
    match task:
        case PlanTask():
            return {"purpose": "plan", "attempt": task.round + 1}
        case ActionTask() | ItemsTask():
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


def read_trace(path: str | Path) -> list[Trace]:
    """The traces of a file, one per id, in order of first appearance.

    Raises:
        DataError: A line is not an event of this version.
    """
    traces: dict[str, Trace] = {}
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                version, id = row.pop("v"), row.pop("id")
                event = _ADAPTER.validate_python(row)
            except (ValueError, KeyError, AttributeError, ValidationError) as error:
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
