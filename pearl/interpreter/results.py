"""The results of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from pearl.actions.groups import NONE
from pearl.actions.values import MAY_CHANGE, Fetched, Scalar, Value, as_text, behind
from pearl.documents.evidence import Evidence, Unverified
from pearl.documents.record import Record
from pearl.documents.rows import Rows, shortened
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import Action
from pearl.errors.callers import ShownInPart
from pearl.errors.escaping import counted
from pearl.interpreter.provenance import Provenance, Sources
from pearl.llm import Usage
from pearl.replies.step_replies import State
from pearl.trace import StepFinished


class Cited(Struct, frozen=True):
    """The table cells that a step is computed from."""

    numbers: Mapping[int, int]  # Offset of a row → its number in the table
    columns: tuple[str, ...]


class Look(NamedTuple):
    """A further search of a step and its result; an empty `queries` means those of the first search."""

    by: str
    queries: Sequence[str] = ()
    passages: int = 0
    state: State = "nothing"

    def __str__(self) -> str:
        what = f" ({'; '.join(self.queries)})" if self.queries else ""
        return f"{self.by}{what}: {self.state if self.passages else 'no further passage'}"


MAX_TRACED_ROWS = 20  # Maximum rows of a value in a trace event

MAX_SHOWN = 5
"""Displayed rows of an answer; also the number shown at the beginning and at the end of a step's rows."""

MAX_LINE = 120  # Maximum displayed characters of a row


COPIED = "copied"  # The verdict on a sentence that the document contains word for word

DROPPED = frozenset({"contradicted", "not stated"})
"""Verdicts on sentences that are left out of an answer."""


class Checks(Struct, frozen=True):
    """The sentences of a composed answer, each with its verdict: that of a checker, which `by` names ("" for none), or `COPIED`."""

    by: str = ""
    verdicts: tuple[tuple[str, str], ...] = ()
    why: str = ""

    @property
    def failure(self) -> str:
        """Why sentences that should be checked are not; "" if they are."""
        return f"meaning was not checked: {self.why}" if self.why and self.by else ""

    @property
    def notes(self) -> list[str]:
        """Notes on sentences that were left out or not checked."""
        left = [
            f"left out, because its quotes say {'otherwise' if verdict == 'contradicted' else 'nothing of it'}: {shortened(text)!r}"
            for text, verdict in self.verdicts
            if verdict in DROPPED
        ]
        if self.why:
            left.append(self.failure or "meaning was not checked")
        return left


class StepResult(ShownInPart, Struct, frozen=True):
    """The result of a step. A result computed from rows has a value even if some rows are undecided."""

    unshown = frozenset({
        "shown", "reply", "fetched", "cited", "verdicts", "composed", "parts", "checks", "record", "sources",
        "provenance", "decided_by", "deciding",
    })  # fmt: skip

    output: str
    action: str
    value: Value
    is_native: bool
    context: Literal["full", "map-reduce", "retrieve", "rows", "none"] = "none"
    coverage: float | None = None
    n_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    duration_s: float = 0.0
    shown: str | None = None
    reply: str = ""
    quotes: tuple[str, ...] = ()
    state: State = "found"
    why: str = ""
    truncated: str = ""
    fetched: Fetched | None = None
    cited: Cited | None = None
    verdicts: Mapping[str, int] = {}
    composed: tuple[tuple[str, tuple[Evidence, ...]], ...] = ()
    notes: tuple[str, ...] = ()
    looks: tuple[Look, ...] = ()
    """The searches made after the first one found nothing."""
    # `AnswerPart`s; typed as Any because their module imports this one.
    parts: tuple[Any, ...] = ()
    """The parts from which the answer was composed."""
    checks: Checks = Checks()
    record: Record | None = None
    sources: Sources | None = None
    provenance: Provenance | None = None
    decided_by: Mapping[object, str] = {}
    """Keys of rows that only a scorer decided → its name."""
    deciding: Mapping[object, Evidence] = {}
    """Keys of rows → the passage that decided each row's value."""
    misquoted: tuple[Unverified, ...] = ()
    """Quotes that should decide rows, but are not in them."""
    models: tuple[str, ...] = ()  # The models that gave its replies
    took: tuple[str, ...] = ()
    """The tried result whose value was taken, or all tried results if none found anything."""
    is_used: bool = True
    """Whether the answer derives from this result; False if another one was taken instead."""

    @property
    def text(self) -> str:
        """The value as text."""
        return as_text(self.value)

    @property
    def preview(self) -> str:
        """The value for display; rows are shortened to a few lines."""
        if not self.rows:
            return self.text
        lines = [shortened(line, MAX_LINE) for line in self.text.split("\n")]
        if (left := len(lines) - 2 * MAX_SHOWN) > 0:
            between = f"... ({left:,} line{'s' if left > 1 else ''} not shown)"
            lines = [*lines[:MAX_SHOWN], between, *lines[-MAX_SHOWN:]]
        return "\n".join(lines)

    @property
    def rows(self) -> Rows | None:
        """The rows that the value is computed from; None if there are no such rows."""
        return behind([self.value])

    @property
    def has_found(self) -> bool:
        """Whether anything was found; rows count even if some are undecided."""
        is_empty = isinstance(self.value, list | Rows) and not self.value
        is_open = self.state == "undecided" and not (self.is_void or is_empty)
        return self.state == "found" or is_open

    @property
    def is_void(self) -> bool:
        """Whether the result has no value that later steps can use."""
        return self.state in ("undecided", "refused") and self.rows is None

    @property
    def plain(self) -> str | int | float | bool | list[str]:
        """The value as JSON data; only the first rows, because the answer's evidence has all relevant ones."""
        match self.value:
            case Rows() as rows:
                return rows.lines(MAX_TRACED_ROWS)
            case Scalar(value=value):
                return value
            case value:
                return value

    @property
    def event(self) -> StepFinished:
        """The trace event of this result."""
        value, verdicts = as_text(self.value, MAX_TRACED_ROWS), dict(self.verdicts)
        return StepFinished.of(self, step=self.output, value=value, verdicts=verdicts)


def computed(
    step: Step, action: Action, value: Value, why: str = "", state: State = "found"
) -> StepResult:
    """The result of a computed step: `nothing` for an empty value, undecided if a reason `why` is given."""
    rows = behind([value])
    if rows is not None:
        why = why or rows_undecided(rows)
    # A ranking without entries is the text `none`.
    entries = value.rows if isinstance(value, Scalar) and value.value == NONE else value
    if isinstance(entries, list | Rows) and not entries and not why:
        state = "nothing"
    elif why and state == "found":
        state = "undecided"
    notes = () if rows is None or state != "found" else rows.notes
    flaw = next((note for note in notes if note.startswith(MAY_CHANGE)), "")
    return StepResult(
        step.output, action.name, value, action.is_native, state=state, why=why, truncated=flaw
    )


def void(step: Step, action: Action, why: str) -> StepResult:
    """The result of a step without a value."""
    return computed(step, action, f"undecided: {why}", why)


def rows_undecided(rows: Rows, n_asked: int = 0) -> str:
    """A note on the number of undecided rows among those that a model was asked about; "" for none."""
    n = len(rows.undecided)
    told = counted(n, "row")
    if n_asked:
        told = f"{n:,} of {counted(max(n_asked, n + len(rows.values)), 'row')}"
    return f"{told} {'is' if n == 1 else 'are'} undecided" if n else ""
