"""Traces: the events of a run as JSON Lines. They contain replies, quoted passages and prompts without the texts of documents, but no API keys."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, assert_never, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from pearl.actions.values import Fetched
from pearl.errors import DataError, ModelError, ModelErrorKind
from pearl.errors.callers import ShownInNotebooks
from pearl.errors.escaping import json_bytes
from pearl.llm import (
    ActionTask,
    CheckTask,
    ChooseTask,
    ItemsTask,
    LookupTask,
    Message,
    MineTask,
    PlanTask,
    PrefixUse,
    RefineTask,
    Task,
    Usage,
)
from pearl.llm.fallback import Level
from pearl.llm.progress import AttemptError, CallAttempt, CallReplied, CallWait, News, Phase
from pearl.replies.step_replies import State

AnswerStatus = Literal["answered", "degraded", "nothing_found", "undecided", "refused"]
"""The status of an answer: `degraded` has failed checks, `nothing_found` is not in the document, `undecided` is uncertain, `refused` was refused by the model."""

MAX_PASSAGES = 20  # Maximum passages in an event

Purpose = Literal["step", "part", "combine", "again", "look", "items", "choose", "check"]
"""Why the model is called: for the result of a step, for one part of the document, to merge such results,
again because the reply could not be parsed, for a further look after nothing was found, about a batch of rows, to choose
an option, or to check claims."""


class EventBase(Struct, frozen=True, kw_only=True):
    """Fields of every event. Readers ignore unknown fields, such as those of earlier versions."""

    is_recorded: ClassVar[bool] = True
    """Whether traces record the event; if not, only listeners receive it."""

    t_s: float = 0.0  # Seconds since the start of the trace

    @classmethod
    def of(cls, *sources: Any, **others: Any) -> Self:
        """An event whose fields are the attributes of these objects with the same names, and the other arguments."""
        held = {n: getattr(each, n) for each in sources for n in _copied(cls, each.__class__)}
        return cls(**{**held, **others})


@cache
def _copied(event: Any, source: Any) -> frozenset[str]:
    """The fields of a class of events that objects of another class have, too."""
    return frozenset(n for n in event.__struct_fields__ if hasattr(source, n)) - {"event", "t_s"}


class AskingEvent(EventBase, frozen=True, kw_only=True):
    """Fields of events that represent calls of a model."""

    usage: Usage = Usage()
    n_calls: int = 0  # Calls, including cached replies and calls without a usable reply
    n_cached: int = 0  # Replies from the cache
    n_failed: int = 0  # Calls without a usable reply


class PlanAttempted(AskingEvent, frozen=True, kw_only=True):
    """One round of planning: a reply and its diagnostics."""

    event: Literal["plan_attempted"] = "plan_attempted"
    round: int
    model: str
    reply: str
    notes: tuple[str, ...] = ()
    """The fixes that were applied, as text; before the first plan, what its prompt omits."""
    diagnostics: tuple[str, ...] = ()  # The remaining errors, as text; empty for the accepted plan
    constraint: str = "none"
    """The constraint level of the reply; earlier versions had other levels."""
    n_calls: int = 1  # Under some constraints, new actions are a separate reply


class ConstraintRefused(AskingEvent, frozen=True, kw_only=True):
    """A constraint level is not available: the server rejected it, or a reply violated it."""

    event: Literal["constraint_refused"] = "constraint_refused"
    constraint: str
    reason: str


class PlanFailed(EventBase, frozen=True, kw_only=True):
    """No repair rounds are left; `fallback` is the alternative used, if any."""

    event: Literal["plan_failed"] = "plan_failed"
    n_attempts: int
    fallback: Literal["direct"] | None = None


class RunStarted(EventBase, frozen=True, kw_only=True):
    """A plan starts to run over a document."""

    event: Literal["run_started"] = "run_started"
    question: str
    plan: str
    method: Literal["plan", "direct"]
    document: str
    document_sha256: str
    n_characters: int
    n_document_tokens: int | None
    """None if not counted: the document is short enough for the prompt in any case, or there is no limit."""
    token_count: str  # The counting method: the name of an encoding, or `estimate`
    model: str
    window: int | None  # Context window in tokens; None for no limit
    steps: tuple[str, ...] = ()
    """The outputs of the plan's steps, in order; empty in traces older than this field."""
    parameters: Mapping[str, str] = {}  # The values of the plan's parameters


class PlanRewritten(EventBase, frozen=True, kw_only=True):
    """A pass rewrote the plan without changing its answer."""

    event: Literal["plan_rewritten"] = "plan_rewritten"
    by: str  # Name of the pass
    what: str


class StepStarted(EventBase, frozen=True, kw_only=True):
    """A step starts: its inputs are available."""

    event: Literal["step_started"] = "step_started"
    step: str
    action: str


CallPurpose = Literal["plan", "step", "combine", "choose", "mine", "refine"]
"""The purpose of a call."""


class LiveEvent(EventBase, frozen=True, kw_only=True):
    """Fields of events about a call in progress; sent to listeners, but not recorded."""

    is_recorded = False

    purpose: CallPurpose
    step: str = ""  # The step that makes the call; "" for none
    attempt: int = 1  # The round of planning, counted from 1


class ModelProgressed(LiveEvent, frozen=True, kw_only=True):
    """Progress of a call."""

    event: Literal["model_progressed"] = "model_progressed"
    phase: Phase
    n_tokens: int = 0
    """Tokens processed of the prompt, or generated of the reply, including hidden ones."""
    n_total: int | None = None  # Tokens of the prompt; None while the reply is generated
    text: str = ""  # The end of the reply so far; "" if the server does not stream


class ModelAttempted(LiveEvent, frozen=True, kw_only=True):
    """An attempt of a call has ended; a retried call has several attempts, a cached reply has none."""

    event: Literal["model_attempted"] = "model_attempted"
    model: str  # `backend:name`
    server: str = ""  # Address without password and query; "" for a model in this process
    number: int  # Number of failed attempts of this call so far
    error: AttemptError | None = None  # None for a usable reply
    replied_by: str = ""  # The model name reported by the server; "" without a usable reply
    finish_reason: str = ""  # `stop`, or "" if the server reports none
    messages: tuple[Message, ...]  # The prompt
    reply: str = ""  # The text of the reply
    parameters: dict[str, float | int] = {}  # By their Chat Completions names
    left_out: tuple[str, ...] = ()  # Parameters that were not sent to the server
    usage: Usage = Usage()
    duration_s: float


class ModelWaited(AskingEvent, frozen=True, kw_only=True):
    """A call waits for a retry or a rate limit; repeated every ten seconds, the first time with the failed attempt."""

    event: Literal["model_waited"] = "model_waited"
    reason: str
    wait_s: float
    attempt: int
    n_attempts: int = 0
    """Maximum number of attempts; 0 if a limit delays the call, and in traces older than this field."""
    step: str = ""
    """The step that makes the call; "" for none, and in traces older than this field."""


class CallEvent(EventBase, frozen=True, kw_only=True):
    """Fields of events about a finished call."""

    step: str  # "" for a choice among options, which belongs to no step
    purpose: Purpose
    model: str
    duration_s: float
    usage: Usage  # Zero for a cache hit, or if the server reported none
    prompt: str = ""
    """The messages, with document texts replaced by their lengths; "" in older traces."""
    reply: str = ""  # The text of the reply; "" if there was none, and in older traces


class ModelCalled(CallEvent, frozen=True, kw_only=True):
    """A reply of a model."""

    event: Literal["model_called"] = "model_called"
    is_remembered: bool = False
    """Whether the reply was cached, or shared with a concurrent identical call."""
    prefix: PrefixUse | None = None  # How the call used the server's prefix cache; None if unknown
    reasoning: str = ""
    """The reasoning sent with the reply; "" if none was sent, and in older traces."""


class CallFailed(CallEvent, frozen=True, kw_only=True):
    """A call had no usable reply."""

    event: Literal["call_failed"] = "call_failed"
    kind: ModelErrorKind
    is_sent: bool = True  # Whether the request reached the server


class FoundPassage(Struct, frozen=True, forbid_unknown_fields=True):
    """A passage that a search found."""

    document: str
    start: int
    end: int
    rank: int
    score: float


class Retrieved(EventBase, frozen=True, kw_only=True):
    """A search for passages, which become rows, or the context of a step over a corpus."""

    event: Literal["retrieved"] = "retrieved"
    step: str
    look: str = ""
    """What a step searches after it found nothing: the next ranks, other words or other periods; "" for its first search."""
    queries: tuple[str, ...]
    method: str
    k: int  # The number of passages requested
    n_hits: int
    passages: tuple[FoundPassage, ...]  # The best of the passages, at most `MAX_PASSAGES`
    notes: tuple[str, ...] = ()  # Deviations from the requested search
    duration_s: float


class LookedUp(EventBase, frozen=True, kw_only=True):
    """A query answered a question about a table."""

    event: Literal["looked_up"] = "looked_up"
    step: str
    table: str  # Its caption and first columns
    query: str  # JSON
    n_lines: int  # Lines of the result, before the limit is applied
    n_undecided: int  # Rows that may or may not meet the conditions
    n_repairs: int  # Replies that were returned to the model for repair


class StepFinished(EventBase, frozen=True, kw_only=True):
    """A step finished; `context` is how its document was shown: full, map-reduce, retrieve, rows or none."""

    event: Literal["step_finished"] = "step_finished"
    step: str
    action: str
    value: str
    state: State = "found"
    truncated: str = ""  # Why the result may be incomplete; "" if it is complete
    verdicts: dict[str, int] = {}  # Rows by verdict on the step's condition: yes, no, not stated
    is_native: bool
    context: Literal["full", "map-reduce", "retrieve", "rows", "none"]
    coverage: float | None
    """Fraction of the document's characters sent to the model; None without a document."""
    n_calls: int
    usage: Usage
    duration_s: float
    models: tuple[str, ...] = ()
    """The models that wrote its replies; empty in traces older than this field."""


class StepFailed(EventBase, frozen=True, kw_only=True):
    """A step failed, which ends the run."""

    event: Literal["step_failed"] = "step_failed"
    step: str
    error: str


class OptionChosen(AskingEvent, frozen=True, kw_only=True):
    """An option was chosen, based on the answer in words, the document or the question alone."""

    event: Literal["option_chosen"] = "option_chosen"
    by: Literal["answer", "document", "question"]  # `question`: without reading any text
    reply: str
    choice: int | None  # Index of the option, from 0; None if the reply names no option
    coverage: float | None = None
    """Fraction of the document in the prompt; None for a choice based on the answer."""
    n_calls: int = 1  # 0 if the answer equals an option, so that no model was called
    duration_s: float


class RunFinished(EventBase, frozen=True, kw_only=True):
    """A run finished."""

    event: Literal["run_finished"] = "run_finished"
    status: AnswerStatus | Literal["failed"]
    answer: str
    usage: Usage
    duration_s: float
    evidence: tuple[dict[str, Any], ...] | None = None
    """Passages that the answer quotes, in the form used in results; None in older traces."""
    unverified_quotes: tuple[dict[str, str], ...] = ()
    n_rows: int = 0  # Number of rows from which the answer is computed


Event = (
    PlanAttempted | ConstraintRefused | PlanFailed | RunStarted | PlanRewritten | StepStarted | ModelProgressed
    | ModelAttempted | ModelWaited | ModelCalled | CallFailed | Retrieved | LookedUp | StepFinished | StepFailed | OptionChosen | RunFinished
)  # fmt: skip

# Read from the default, because `typing` would have to import the names in the annotations.
KINDS: Mapping[str, type[Event]] = {
    dict(zip(kind.__struct_fields__[::-1], kind.__struct_defaults__[::-1], strict=False))[
        "event"
    ]: kind
    for kind in get_args(Event)
}
"""The classes of events by the field `event`."""


def constraint_refused(level: Level, error: ModelError) -> ConstraintRefused:
    """The event of a constraint that the server rejected or a reply violated."""
    n, usage = int(error.is_sent), error.usage or Usage()
    return ConstraintRefused(
        constraint=level or "none", reason=error.message, n_calls=n, n_failed=n, usage=usage
    )


def retrieved(step: str, fetched: Fetched, look: str = "") -> Retrieved:
    """The event of a search."""
    passages = tuple(
        FoundPassage(
            document=hit.document, start=hit.span.start, end=hit.span.end, rank=hit.rank,
            score=hit.score,
        )
        for hit in fetched.hits[:MAX_PASSAGES]
    )  # fmt: skip
    n_hits = len(fetched.hits)
    return Retrieved.of(fetched, step=step, look=look, n_hits=n_hits, passages=passages)


SCHEMA_VERSION = 1

Stamped = TypeVar("Stamped", bound=EventBase)


def read_event(data: Mapping[str, Any]) -> Event:
    """Read the data of an event; unknown fields are ignored, and `ValueError` says what is wrong."""
    kind = KINDS.get(data["event"])
    if kind is None:
        raise ValueError("no event of this name")
    return msgspec.convert(data, kind)


class Trace(ShownInNotebooks):
    """An append-only list of events.

    Attributes:
        id: The id of the task, which identifies the run in a file of several.

    Args:
        id: The id of the task, or the listener: `Trace(print)`.
        listener: Callback for every event in the thread of the event loop, also for those that are
            not recorded: `ModelProgressed` and, unless its attribute `hears_attempts` is false,
            `ModelAttempted`.
    """

    def __init__(
        self,
        id: str | Callable[[Event], object] = "",
        listener: Callable[[Event], object] | None = None,
    ) -> None:
        if not isinstance(id, str):
            listener = id
            id = ""
        self.id = id
        self.replied: list[tuple[CallPurpose, str, CallReplied]] = []
        """The purpose, step and reply of each call of measured work; not part of the file."""
        self._events: list[Event] = []
        self._listener = listener
        self._hears_attempts = getattr(listener, "hears_attempts", True)
        self._began = time.monotonic()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_jsonl, (self.id, self.to_jsonl())  # Listeners cannot be pickled

    def append(self, event: Event) -> None:
        """Record an event with its time, and pass it to the listener."""
        stamped = self._stamped(event)
        self._events.append(stamped)
        if self._listener is not None:
            self._listener(stamped)

    def progressed(self, task: Task, news: News) -> None:
        """Record the wait of a call; pass its progress and attempts to the listener without recording them."""
        if isinstance(news, CallWait):
            step = _purpose(task).get("step", "")
            self.append(ModelWaited.of(news, step=step, n_calls=news.n_failed))
        elif isinstance(news, CallReplied):
            asked = _purpose(task)
            self.replied.append((asked["purpose"], asked.get("step", ""), news))
        elif self._listener is None:
            return
        elif isinstance(news, CallAttempt):
            if self._hears_attempts:
                done = news.completion
                _, _, server = news.identity.partition("@")
                told = ModelAttempted.of(
                    news,
                    news.request,
                    **_purpose(task),
                    parameters=news.request.told,
                    left_out=done.left_out if done else (),
                    server=server.partition("?")[0]
                    if server.startswith(("http://", "https://"))
                    else "",
                    replied_by=done.model if done else "",
                    finish_reason=(done.finish_reason or "") if done else "",
                )
                self._listener(self._stamped(told))
        else:
            self._listener(self._stamped(ModelProgressed.of(news, **_purpose(task))))

    def _stamped(self, event: Stamped) -> Stamped:
        # Modified in place, because a copy takes as long as creating and writing the event.
        force_setattr(event, "t_s", round(time.monotonic() - self._began, 6))
        return event

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    @property
    def usage(self) -> Usage:
        """Tokens of all replies so far: for questions, plans, steps and choices."""
        return spent(self._events).usage

    @property
    def n_calls(self) -> int:
        """Number of calls so far, including failed ones."""
        return spent(self._events).n_calls

    def to_jsonl(self) -> str:
        """One JSON object per line, with the schema version and the id of the run."""
        head = _head(self.id)
        return b"".join(head + json_bytes(each)[1:] + b"\n" for each in self._events).decode()

    @classmethod
    def from_jsonl(cls, id: str, text: str) -> Self:
        """Read the events that `to_jsonl` wrote, with their times; `ValueError` for a line that is no event."""
        trace = cls(id)
        for line in text.split("\n"):  # str.splitlines would also split at U+0085 and U+2028
            if not line:
                continue
            row = json.loads(line)
            del row["v"], row["id"]
            trace._events.append(read_event(row))
        return trace


class Spent(NamedTuple):
    """Number of calls of a run (failed ones and cached replies included) and their tokens."""

    n_calls: int = 0
    n_cached: int = 0
    n_failed: int = 0
    usage: Usage = Usage()


def spent(events: Iterable[Event]) -> Spent:
    """Count the calls of a run and their tokens.

    Example:
        >>> called = PlanAttempted(round=0, model="m", reply="", usage=Usage(10, 2))
        >>> spent([called, msgspec.structs.replace(called, n_cached=1, usage=Usage())])
        Spent(n_calls=2, n_cached=1, n_failed=0, usage=Usage(n_input_tokens=10, n_output_tokens=2, n_cached_tokens=0, n_implausible_calls=0, n_written_tokens=0, n_written_long_tokens=0))
    """
    n_calls = n_cached = n_failed = 0
    usage = Usage()
    for event in events:
        match event:
            case AskingEvent():
                n_calls += event.n_calls
                n_cached += event.n_cached
                n_failed += event.n_failed
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
    """One line of a trace file: the event as a JSON object with the schema version and the id of the run."""
    return (_head(id) + json_bytes(event)[1:] + b"\n").decode()


def _head(id: str) -> bytes:
    return json_bytes({"v": SCHEMA_VERSION, "id": id})[:-1] + b","


def _purpose(task: Task) -> dict[str, Any]:
    """The event fields that say why a call was made."""
    match task:
        case PlanTask():
            return {"purpose": "plan", "attempt": task.round + 1}
        case ActionTask(parts=[*_]):
            return {"purpose": "combine", "step": task.output}
        case ActionTask() | ItemsTask() | LookupTask() | CheckTask():
            return {"purpose": "step", "step": task.output}
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

    A killed process may leave an incomplete last line, which is left out with a `UserWarning`.

    Raises:
        DataError: A line is not an event of this version.
    """
    traces: dict[str, Trace] = {}
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                version, id = row.pop("v"), row.pop("id")
                event = read_event(row)
                if not isinstance(id, str):
                    raise ValueError("its id is not a text")
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
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
                    f"trace version {version}; this pearl reads version {SCHEMA_VERSION}",
                    path=path,
                    line=number,
                )
            traces.setdefault(id, Trace(id))._events.append(event)
    return list(traces.values())
