"""Everything that can go wrong, as types: the error tree, positions and diagnostics.

The tree (every class carries its process exit code; `cli` shows the message without a traceback):

    PearlError                     expected failure, exit 1
    ├── UsageError                 an argument or a setting is wrong, exit 2
    ├── DataError                  an input cannot be read: `.path`, `.line`, exit 3
    │   └── LibraryError           an action library cannot be used: `.diagnostics`
    ├── PlanError                  a plan is broken: `.diagnostics`, exit 4
    │   ├── PlanSyntaxError        it does not follow the grammar
    │   └── PlanCheckError         it does, and means nothing: unknown action, wrong arity, ...
    ├── PlanningError              the repair budget is spent: `.attempts`, exit 4
    ├── ModelError                 a model gave no usable reply: `.kind`, `.is_retryable`, exit 5
    ├── ExecutionError             a step of a plan failed: `.step`, `__cause__`, exit 6
    ├── BudgetError                a limit of a run is reached: `.limit`, `.spent`, exit 7
    ├── StoreError                 the store cannot be read or written: `.path`, exit 8
    └── PausedError                the run has to wait: resume it later, exit 75

Beside the standard library it needs `addresses` only; every other module may import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pearl.addresses import redacted

if TYPE_CHECKING:
    from pearl.llm import Usage
    from pearl.planner import Attempt

__all__ = [
    "BudgetError",
    "DataError",
    "Diagnostic",
    "ExecutionError",
    "Fix",
    "LibraryError",
    "ModelError",
    "PausedError",
    "PearlError",
    "PlanCheckError",
    "PlanError",
    "PlanSyntaxError",
    "PlanningError",
    "Span",
    "StoreError",
    "UsageError",
    "apply_fixes",
    "did_you_mean",
    "render_diagnostics",
]

MAX_SUGGESTED_LENGTH = 80
"""Longer names get no suggestion: edit distance is quadratic in the length of a name."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of characters: `text[start:end]`, offsets from 0."""

    start: int
    end: int

    def position(self, text: str) -> tuple[int, int]:
        """Line and column of the start in `text`, both from 1."""
        before = text.rfind("\n", 0, self.start) + 1
        return text.count("\n", 0, self.start) + 1, self.start - before + 1


@dataclass(frozen=True, slots=True)
class Fix:
    """A machine-applicable mend: replace `span` of the text by `replacement`."""

    span: Span
    replacement: str


def apply_fixes(text: str, fixes: Iterable[Fix]) -> str:
    """Apply the fixes to the text they were made for.

    A fix that overlaps an earlier one is left out: the next check of the result offers it again.

    Example:
        >>> apply_fixes("a b", [Fix(Span(0, 1), "A"), Fix(Span(2, 3), "B")])
        'A B'
    """
    pieces: list[str] = []
    at = 0
    for fix in sorted(fixes, key=lambda fix: fix.span):
        if fix.span.start < at:
            continue
        pieces += [text[at : fix.span.start], fix.replacement]
        at = fix.span.end
    return "".join([*pieces, text[at:]])


Severity = Literal["error", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about one place of a text.

    Attributes:
        code: Stable, kebab-case; documented in docs/language.md.
        message: What is wrong, without a full stop.
        span: Where, in characters of the text that was read.
        severity: An `error` stops the text from being used, a `note` never does.
        help: What to do about it.
        fix: The one obvious mend, if there is one.
    """

    code: str
    message: str
    span: Span
    severity: Severity = "error"
    help: str | None = None
    fix: Fix | None = None

    def render(self, text: str, name: str = "<text>") -> str:
        """The diagnostic with its source line and a caret, without colour.

        Args:
            text: The text the diagnostic is about.
            name: What to call it: a path, `<stdin>`, `plan`.
        """
        line, column = self.span.position(text)
        first = self.span.start - column + 1
        last = text.find("\n", self.span.start)
        source = text[first : len(text) if last < 0 else last]
        shown, lead = _excerpt(source, column - 1)
        width = max(1, min(self.span.end, first + len(source)) - self.span.start)
        width = min(width, len(shown) - lead if len(shown) > lead else 1)
        margin = " " * len(str(line))
        rows = [
            f"{name}:{line}:{column}: {self.severity}: {self.message} [{self.code}]",
            f"{margin} |",
            f"{line} | {shown}",
            f"{margin} | {_pad(shown[:lead])}{'^' * max(1, width)}",
        ]
        if self.help:
            rows.append(f"{margin} = help: {self.help}")
        return "\n".join(rows)

    def to_json(self, text: str) -> dict[str, object]:
        """The diagnostic as JSON data; line and column from 1, offsets from 0."""
        line, column = self.span.position(text)
        fix = self.fix and {
            "start": self.fix.span.start,
            "end": self.fix.span.end,
            "replacement": self.fix.replacement,
        }
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "line": line,
            "column": column,
            "start": self.span.start,
            "end": self.span.end,
            "help": self.help,
            "fix": fix,
        }


def _excerpt(source: str, at: int, width: int = 160) -> tuple[str, int]:
    """At most `width` characters of a source line around offset `at`, and `at` within them."""
    if len(source) <= width:
        return source, min(at, len(source))
    begin = max(0, min(at - width // 2, len(source) - width))
    return source[begin : begin + width], at - begin


def _pad(lead: str) -> str:
    """Blanks as wide as `lead`, tabs kept so that the caret lines up."""
    return "".join("\t" if character == "\t" else " " for character in lead)


def render_diagnostics(diagnostics: Sequence[Diagnostic], text: str, name: str = "<text>") -> str:
    """All diagnostics, one after the other: the text people and models are shown."""
    return "\n".join(diagnostic.render(text, name) for diagnostic in diagnostics)


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant, or None.

    Args:
        name: What was written.
        known: What there is.
        cutoff: Least similarity, 0 to 1. A suggestion to people may be bold; a fix that is applied
            unasked should ask for 0.85.

    Example:
        >>> did_you_mean("FIND_EVNT", ["FIND_EVENT", "CONCAT"])
        'FIND_EVENT'
    """
    if len(name) > MAX_SUGGESTED_LENGTH:
        return None
    import difflib  # which is for errors: most commands have none

    folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


class PearlError(Exception):
    """An expected failure. Its text says what happened, where, and what to do, in ≤ 3 lines."""

    exit_code: int = 1

    def __init__(self, message: str, *, help: str | None = None) -> None:
        # Errors go into rows, traces and stores: no address in them gives access to anything.
        message, help = redacted(message), help and redacted(help)
        super().__init__(message if help is None else f"{message}\n  help: {help}")
        self.message = message
        self.help = help


class UsageError(PearlError, ValueError):
    """An argument or a setting is wrong."""

    exit_code = 2


class DataError(PearlError, ValueError):
    """An input cannot be read."""

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        help: str | None = None,
    ) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(f"{where}{message}", help=help)
        self.path = path
        self.line = line


class LibraryError(DataError):
    """An action library cannot be used."""

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        help: str | None = None,
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(message, path=path, line=line, help=help)
        self.diagnostics = tuple(diagnostics)


class PlanError(PearlError, ValueError):
    """A plan is broken.

    Attributes:
        text: The text that was read.
        diagnostics: Every error found in it, in order of position, notes included.
    """

    exit_code = 4

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic], name: str = "plan") -> None:
        errors = [d for d in diagnostics if d.severity == "error"]
        first = errors[0]
        line, column = first.span.position(text)
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(
            f"{name}:{line}:{column}: {first.message} [{first.code}]{more}", help=first.help
        )
        self.text = text
        self.diagnostics = tuple(diagnostics)

    def render(self, name: str = "plan") -> str:
        """Every diagnostic with its source line."""
        return render_diagnostics(self.diagnostics, self.text, name)


class PlanSyntaxError(PlanError):
    """The text does not follow the grammar of plans."""


class PlanCheckError(PlanError):
    """The plan follows the grammar and means nothing."""


class PlanningError(PearlError):
    """No valid plan came out of the repair loop.

    Attributes:
        attempts: Every reply of the model with its diagnostics, first to last.
    """

    exit_code = 4

    def __init__(
        self, message: str, *, attempts: Sequence[Attempt] = (), help: str | None = None
    ) -> None:
        super().__init__(message, help=help)
        self.attempts = tuple(attempts)


ModelErrorKind = Literal[
    "truncated", "repetition", "filtered", "refused", "empty", "malformed",
    "transport", "rate_limited", "quota", "auth", "bad_request", "deadline", "unconstrained",
]  # fmt: skip
"""What came in place of a usable reply, exactly one of these:

- `truncated`, `filtered`, `refused`, `empty`, `malformed`: a reply that is of no use;
- `repetition`: one that came to say the same over and over; asked again, it mostly would;
- `transport`: no reply, be it the connection or the server (5xx) that failed; `deadline`: not in time;
- `rate_limited`, `quota`, `auth`, `bad_request`: the server will not, now or at all;
- `unconstrained`: it cannot be held to the constraint of the request, and might reply without.
"""

RETRYABLE_KINDS: frozenset[ModelErrorKind] = frozenset(
    {"rate_limited", "deadline", "transport", "malformed", "empty"}
)


class ModelError(PearlError):
    """A model gave no usable reply.

    Attributes:
        kind: What came instead of a reply.
        retry_after_s: Seconds the server asked to wait, if it did.
        usage: Tokens that the reply took which is of no use; None where the server does not say.
        reply: What it said as far as it goes; "" where there is nothing of it.
        is_sent: Whether the request left this machine; False where it is refused before.
    """

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind,
        help: str | None = None,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
        reply: str = "",
        is_sent: bool = True,
    ) -> None:
        super().__init__(message, help=help)
        self.reply = reply
        self.is_sent = is_sent
        self.kind: ModelErrorKind = kind
        self.retry_after_s = retry_after_s
        self.usage = usage

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE_KINDS

    def again(self) -> ModelError:
        """The same error for another who waits: one object would gather the traces of all.

        What the reply took is told once, and not here.
        """
        return ModelError(
            self.message,
            kind=self.kind,
            help=self.help,
            retry_after_s=self.retry_after_s,
            is_sent=self.is_sent,
        )


class ExecutionError(PearlError):
    """A step of a plan failed; `__cause__` says why.

    Attributes:
        step: Output name of the step, None where the failure is not one step's.
    """

    exit_code = 6

    def __init__(self, message: str, *, step: str | None = None, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.step = step


class BudgetError(PearlError):
    """A limit of a run is reached; what is done is kept.

    Attributes:
        limit: What may be spent, in the unit of the limit: US dollars, tokens, seconds or calls.
        spent: What is spent, in the same unit.
    """

    exit_code = 7

    def __init__(
        self, message: str, *, limit: float, spent: float, help: str | None = None
    ) -> None:
        super().__init__(message, help=help)
        self.limit = limit
        self.spent = spent


class StoreError(PearlError):
    """The store of runs cannot be read or written; what was committed to it stays.

    Attributes:
        path: The file or folder it is about.
    """

    exit_code = 8

    def __init__(
        self, message: str, *, path: str | Path | None = None, help: str | None = None
    ) -> None:
        super().__init__(message if path is None else f"{path}: {message}", help=help)
        self.path = path


class PausedError(PearlError):
    """The run has to wait longer than it may; it is to be resumed later."""

    exit_code = 75
