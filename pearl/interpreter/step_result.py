"""The result of a step: its value, where it is from, and how people and later steps are shown it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pearl.actions.searching import Fetched
from pearl.actions.values import Scalar, Value, as_text, behind
from pearl.documents.rows import Rows, shortened
from pearl.interpreter.row_evidence import Cited
from pearl.llm import Usage
from pearl.replies.typed import State
from pearl.trace import StepFinished

MAX_TRACED_ROWS = 20
"""Rows of a value that an event of the trace shows."""

MAX_SHOWN = 5
"""Rows of an answer that people are shown, and of a step at either end."""

MAX_LINE = 120
"""Characters of a line of a step's rows that people are shown."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step.

    A result that is computed from rows has a value where some of them are undecided, too.
    """

    output: str
    action: str
    value: Value
    is_native: bool
    context: Literal["full", "map-reduce", "retrieve", "rows", "none"]
    coverage: float | None
    n_calls: int
    usage: Usage
    duration_s: float
    shown: str | None = field(default=None, repr=False)
    reply: str = field(default="", repr=False)
    quotes: tuple[str, ...] = ()
    state: State = "found"
    why: str = ""
    truncated: str = ""
    fetched: Fetched | None = field(default=None, repr=False)
    cited: Cited | None = field(default=None, repr=False)
    verdicts: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """The value as text."""
        return as_text(self.value)

    @property
    def preview(self) -> str:
        """The value for people: of rows, which may be all that the document says, a few lines."""
        if not self.rows:
            return self.text
        lines = [shortened(line, MAX_LINE) for line in self.text.split("\n")]
        if (left := len(lines) - 2 * MAX_SHOWN) > 0:
            between = f"... ({left:,} line{'s' if left > 1 else ''} not shown)"
            lines = [*lines[:MAX_SHOWN], between, *lines[-MAX_SHOWN:]]
        return "\n".join(lines)

    @property
    def rows(self) -> Rows | None:
        """The rows behind the value; None if it is computed from no rows."""
        return behind([self.value])

    @property
    def is_void(self) -> bool:
        """Whether it has no value that others could be computed from."""
        return self.state in ("undecided", "refused") and self.rows is None

    @property
    def as_input(self) -> Value:
        """What later steps are shown: a model's full reply, because its quotes may matter."""
        return self.value if isinstance(self.value, Rows | Scalar) else self.reply or self.text

    def to_json(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "output": self.output,
            "action": self.action,
            "value": _plain(self.value),
            "state": self.state,
            **({"why": self.why} if self.why else {}),
            **({"truncated": self.truncated} if self.truncated else {}),
            **({"verdicts": dict(self.verdicts)} if self.verdicts else {}),
            "quotes": list(self.quotes),
            "native": self.is_native,
            "context": self.context,
            "coverage": self.coverage,
            "calls": self.n_calls,
        }

    @property
    def event(self) -> StepFinished:
        """What the trace says of it."""
        return StepFinished(
            step=self.output,
            action=self.action,
            value=as_text(self.value, MAX_TRACED_ROWS),
            state=self.state,
            truncated=self.truncated,
            verdicts=dict(self.verdicts),
            is_native=self.is_native,
            context=self.context,
            coverage=self.coverage,
            n_calls=self.n_calls,
            usage=self.usage,
            duration_s=self.duration_s,
        )


def _plain(value: Value) -> str | int | float | bool | list[str]:
    """A value as JSON data; of rows, the first ones: all that count are the answer's evidence."""
    match value:
        case Rows():
            return value.lines(MAX_TRACED_ROWS)
        case Scalar():
            return value.value
        case _:
            return value
