"""What happened, as typed events in order: written as JSON lines, read back by viewers.

A trace only grows. It holds no document text beyond what models replied, and no keys.
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
from pearl.llm import (
    ActionTask,
    ChooseTask,
    CombineTask,
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
"""What an answer is: one, that there is none in the document, or something that is not sure."""

Purpose = Literal["step", "part", "combine", "again"]
"""Why a step calls the model: for its result, over a part of the document, to merge such results,
or once more because the reply could not be read."""


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    t_s: float = 0.0
    """Seconds since the trace began."""


class PlanAttempted(_Event):
    """One round of planning: a reply and what was found in it."""

    event: Literal["plan_attempted"] = "plan_attempted"
    round: int
    model: str
    reply: str
    notes: tuple[str, ...] = ()
    """What the tolerant reader forgave and which fixes were applied, rendered."""
    diagnostics: tuple[str, ...] = ()
    """What was still wrong, rendered; empty for the accepted plan."""
    constraint: ConstraintLevelName = "none"
    """What the model was held to while it wrote."""
    usage: Usage = Usage()


class ConstraintRefused(_Event):
    """The model cannot be held to something: refused by the server, or not kept to."""

    event: Literal["constraint_refused"] = "constraint_refused"
    constraint: ConstraintLevelName
    reason: str


class PlanFailed(_Event):
    """The repair budget was spent; `fallback` says what is done instead, if anything."""

    event: Literal["plan_failed"] = "plan_failed"
    n_attempts: int
    fallback: Literal["direct"] | None = None


class RunStarted(_Event):
    """A plan begins to run over a document."""

    event: Literal["run_started"] = "run_started"
    question: str
    plan: str
    method: Literal["plan", "direct"]
    document: str
    document_sha256: str
    n_characters: int
    n_document_tokens: int
    token_count: str
    """How tokens were counted: the name of an encoding, or that it is an estimate."""
    model: str
    window: int | None
    """Tokens of the model's window; None where it has no limit."""
    steps: tuple[str, ...] = ()
    """Outputs of the plan's steps in its order; none in traces that are older than this field."""


class PlanRewritten(_Event):
    """A pass changed how the plan is run, not what it answers."""

    event: Literal["plan_rewritten"] = "plan_rewritten"
    by: str
    """The pass."""
    what: str


class StepStarted(_Event):
    """A step begins: everything it needs is there."""

    event: Literal["step_started"] = "step_started"
    step: str
    action: str


class ModelProgressed(_Event):
    """How far a call is; told to listeners as it happens, and not kept in the trace."""

    event: Literal["model_progressed"] = "model_progressed"
    purpose: Literal["plan", "step", "combine", "choose", "mine", "refine"]
    step: str = ""
    """The step that the call is for, if it is for one."""
    attempt: int = 1
    """Which writing of the plan this is, from 1."""
    phase: Phase
    n_tokens: int = 0
    """Tokens read of the prompt, or written of the reply, hidden ones included."""
    n_total: int | None = None
    """Tokens of the prompt; None while writing."""


class ModelWaited(_Event):
    """A call failed in a way that may pass, and is tried again after a wait; or a limit holds it back.

    Long waits are told again every ten seconds, with the seconds that are left.
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
    """Of a remembered reply: nothing."""
    is_remembered: bool = False
    """Whether the reply was there already, or was on its way for another call."""
    prefix: PrefixUse | None = None
    """How the call met the server's cache of prompts; None where nobody looked after that."""


class StepFinished(_Event):
    """A step has its value.

    `context` says how its document was shown: in full, part by part with the results merged
    (map-reduce), by its most relevant passages (retrieve), or not at all (none).
    """

    event: Literal["step_finished"] = "step_finished"
    step: str
    action: str
    value: str
    state: State = "found"
    is_native: bool
    context: Literal["full", "map-reduce", "retrieve", "none"]
    coverage: float | None
    """Share of the document's characters that the model was shown; None without a document."""
    n_calls: int
    usage: Usage
    duration_s: float


class StepFailed(_Event):
    """A step failed, and with it the run."""

    event: Literal["step_failed"] = "step_failed"
    step: str
    error: str


class OptionChosen(_Event):
    """An option was chosen: by the answer in words, or by the document itself."""

    event: Literal["option_chosen"] = "option_chosen"
    by: Literal["answer", "document"]
    reply: str
    choice: int | None
    """The option, counted from 0; None where the reply names none."""
    coverage: float | None = None
    """Share of the document that was shown; None where the choice was by the answer."""
    n_calls: int = 1
    """0 where the answer was an option word for word, and no model was asked."""
    usage: Usage
    duration_s: float


class RunFinished(_Event):
    """A run is over."""

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


_encoded = json.JSONEncoder(ensure_ascii=False).encode  # made once


class Trace:
    """An append-only list of events.

    Attributes:
        id: Which run this is, where a file holds several: the id of a task.

    Args:
        id: The same.
        listener: Told of every event as it happens, and of how far calls are (`ModelProgressed`),
            in the thread of the event loop.
    """

    def __init__(self, id: str = "", listener: Callable[[Event], None] | None = None) -> None:
        self.id = id
        self._events: list[Event] = []
        self._listener = listener
        self._began = time.monotonic()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_jsonl, (self.id, self.to_jsonl())  # whoever listens is not here

    def append(self, event: Event) -> None:
        """Add an event, stamped with its time, and tell the listener."""
        stamped = self._stamped(event)
        self._events.append(stamped)
        if self._listener is not None:
            self._listener(stamped)

    def progressed(self, task: Task, news: CallProgress | CallWait) -> None:
        """Add what a call waits for; tell the listener how far it is, and keep nothing of that."""
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
        return event.model_copy(update={"t_s": round(time.monotonic() - self._began, 6)})

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
        """One JSON object a line, each with the schema version and the id of the run."""
        head = {"v": SCHEMA_VERSION, "id": self.id}
        return "".join(
            f"{_encoded({**head, **event.model_dump(mode='json')})}\n" for event in self._events
        )

    @classmethod
    def from_jsonl(cls, id: str, text: str) -> Self:
        """What `to_jsonl` wrote, times included.

        Raises:
            ValidationError: A line is no event.
        """
        trace = cls(id)
        for line in text.splitlines():
            row = json.loads(line)
            del row["v"], row["id"]
            trace._events.append(_ADAPTER.validate_python(row))
        return trace


def _purpose(task: Task) -> dict[str, Any]:
    """What a call is for, as an event says it."""
    match task:
        case PlanTask():
            return {"purpose": "plan", "attempt": task.round + 1}
        case ActionTask():
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
    """The traces of a file, one for every id, in order of first appearance.

    Raises:
        DataError: A line is no event of this version.
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
