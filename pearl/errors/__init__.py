"""The exception hierarchy, source positions and diagnostics.

The tree (every class carries its process exit code; `cli` shows the message without a traceback):

    PearlError                     expected failure, exit 1
    ├── UsageError                 an argument or a setting is wrong, exit 2
    ├── DataError                  an input cannot be read: `.path`, `.line`, exit 3
    │   └── LibraryError           an action library cannot be used: `.diagnostics`
    ├── PlanError                  a plan is broken: `.diagnostics`, exit 4
    │   ├── PlanSyntaxError        it does not follow the grammar
    │   └── PlanCheckError         it does, and is invalid: unknown action, wrong arity, ...
    ├── PlanningError              the repair budget is spent: `.attempts`, exit 4
    ├── ModelError                 a model gave no usable reply: `.kind`, `.is_retryable`, exit 5
    ├── ExecutionError             a step of a plan failed: `.step`, `__cause__`, exit 6
    ├── BudgetError                a limit of a run is reached: `.limit`, `.spent`, exit 7
    ├── StoreError                 the store cannot be read or written: `.path`, exit 8
    └── PausedError                the run has to wait: resume it later, exit 75

This package imports the standard library only; every other package may import it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pearl.errors.callers import ShownInNotebooks, for_caller
from pearl.errors.escaping import redacted
from pearl.errors.patterns import lazy_pattern
from pearl.errors.privacy import HIDDEN, is_private

if TYPE_CHECKING:
    from pearl.errors.diagnostics import Diagnostic as Diagnostic
    from pearl.errors.diagnostics import Fix as Fix
    from pearl.errors.diagnostics import Span as Span
    from pearl.errors.diagnostics import apply_fixes as apply_fixes
    from pearl.errors.diagnostics import render_diagnostics as render_diagnostics

_DIAGNOSTICS = ("Diagnostic", "Fix", "Span", "apply_fixes", "render_diagnostics")


def __getattr__(name: str) -> Any:
    """Import what `pearl --version` does not need, msgspec above all, when it is first used."""
    if name not in _DIAGNOSTICS:
        raise AttributeError(f"module 'pearl.errors' has no attribute {name!r}")
    from pearl.errors import diagnostics

    return getattr(diagnostics, name)


class PearlError(ShownInNotebooks, Exception):
    """An expected failure. The message says what happened, where, and what to do, in ≤ 3 lines.

    In a private run, `without_content` replaces a message that may quote documents, questions or replies.
    """

    exit_code: int = 1
    without_content: str | None = "the work failed"

    def __init__(self, message: str, *, help: str | None = None) -> None:
        if self.without_content is not None and is_private():
            message, help = self.without_content, HIDDEN
        # Errors are written to rows, traces and stores, so credentials in addresses are removed.
        message, help = redacted(message), help and redacted(help)
        super().__init__(message if help is None else f"{message}\n  help: {help}")
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return for_caller(super().__str__())

    def to_dict(self) -> dict[str, Any]:
        """The error as JSON data: in rows of results, and on stdout with `--json`."""
        return {
            "type": type(self).__name__,
            "message": self.message,
            "help": self.help,
            "exit_code": self.exit_code,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> PearlError:
        """Make the error from data of `to_dict`, with common attributes only; an unknown class gives `PearlError`."""
        kinds = [PearlError]
        for each in kinds:  # and those that are appended
            kinds += each.__subclasses__()
        kind = next((each for each in kinds if each.__name__ == data["type"]), PearlError)
        message, help = data["message"], data.get("help")
        text = message if help is None else f"{message}\n  help: {help}"
        return _restored(kind, (text,), {"message": message, "help": help})

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by the constructor: each class has other parameters, and the message is complete already.
        return _restored, (type(self), self.args, vars(self))


def error_to_dict(error: Exception) -> dict[str, Any]:
    """Any error as JSON data."""
    if isinstance(error, PearlError):
        return error.to_dict()
    return {"type": type(error).__name__, "message": str(error)}


def _restored(
    kind: type[PearlError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> PearlError:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes)
    return error


class UsageError(PearlError, ValueError):
    """An argument or a setting is wrong."""

    exit_code = 2
    without_content = None


class DataError(PearlError, ValueError):
    """An input cannot be read."""

    exit_code = 3

    def __init__(
        self, message: str, *, path: object = None, line: int | None = None, help: str | None = None
    ) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        is_file = path is not None and os.path.exists(str(path))  # noqa: PTH110 - it may be a text
        self.without_content = f"{where if is_file else ''}the input cannot be read"
        super().__init__(f"{where}{message}", help=help)
        self.path = path
        self.line = line


class LibraryError(DataError):
    """An action library cannot be used."""

    def __init__(self, message: str, *, diagnostics: Sequence[Diagnostic] = (), **at: Any) -> None:
        super().__init__(message, **at)
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
        self.without_content = f"{name}:{line}:{column}: [{first.code}]{more}"
        super().__init__(
            f"{name}:{line}:{column}: {first.message} [{first.code}]{more}", help=first.help
        )
        self.text = text
        self.diagnostics = tuple(diagnostics)

    def render(self, name: str = "plan") -> str:
        """Every diagnostic with its source line."""
        from pearl.errors.diagnostics import render_diagnostics

        return render_diagnostics(self.diagnostics, self.text, name)


class PlanSyntaxError(PlanError):
    """The text does not follow the grammar of plans."""


class PlanCheckError(PlanError):
    """The plan follows the grammar but is invalid: an unknown action, a wrong arity, ..."""


class PlanningError(PearlError):
    """The repair loop ended without a valid plan.

    Attributes:
        attempts: Every reply of the model with its diagnostics, first to last:
            `pearl.planner.writer.Attempt`.
    """

    exit_code = 4
    without_content = "no valid plan was written"

    def __init__(
        self, message: str, *, attempts: Sequence[Any] = (), help: str | None = None
    ) -> None:
        super().__init__(message, help=help)
        self.attempts = tuple(attempts)


ModelErrorKind = Literal[
    "truncated", "repetition", "filtered", "refused", "empty", "malformed",
    "transport", "rate_limited", "quota", "auth", "bad_request", "deadline", "unconstrained",
]  # fmt: skip
"""Why there is no usable reply:

- `truncated`, `filtered`, `refused`, `empty`, `malformed`: an unusable reply; a request that is
  `refused` is sent again once;
- `repetition`: a reply that degenerated into a loop; a retry mostly does the same;
- `transport`: the connection or the server (5xx) failed; `deadline`: the time limit passed;
- `rate_limited`, `quota`, `auth`, `bad_request`: the server rejected the request, for now or for
  good;
- `unconstrained`: the server does not support the request's constraint, and might reply without it.
"""

RETRYABLE_KINDS: frozenset[ModelErrorKind] = frozenset(
    {"rate_limited", "deadline", "transport", "malformed", "empty"}
)

UNUSABLE_KINDS: frozenset[ModelErrorKind] = frozenset(
    {"truncated", "repetition", "filtered", "refused", "empty", "malformed"}
)
"""Kinds that concern one reply only; after other errors, further calls would fail as well."""


class ModelError(PearlError):
    """A model gave no usable reply.

    Attributes:
        kind: Why there is no usable reply.
        retry_after_s: Seconds the server asked to wait, if it did.
        usage: Tokens billed for the unusable reply, a `pearl.llm.Usage`; None if unknown.
        reply: The text received so far; "" if no text arrived.
        is_sent: Whether the request was sent; False if it was rejected locally, or there is no connection.
        is_unwritten: Whether the server failed before it wrote a reply: it bills the prompt at most.
    """

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind,
        help: str | None = None,
        retry_after_s: float | None = None,
        usage: Any = None,
        reply: str = "",
        is_sent: bool = True,
        is_unwritten: bool = False,
    ) -> None:
        self.without_content = f"the model gave no usable reply ({kind})"
        super().__init__(message, help=help)
        self.reply = reply
        self.is_sent = is_sent
        self.is_unwritten = is_unwritten
        self.kind: ModelErrorKind = kind
        self.retry_after_s = retry_after_s
        self.usage = usage

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE_KINDS

    def copy(self) -> ModelError:
        """A copy without `usage` for another task that awaits the same call, so that tracebacks do not accumulate."""
        from copy import copy  # late: errors are imported by every command

        other = copy(self)
        other.usage = None
        return other


class ExecutionError(PearlError):
    """A step of a plan failed; `__cause__` says why.

    Attributes:
        step: Output name of the step; None if no single step failed.
        finished: The steps that have a result, in plan order: `pearl.interpreter.answer.StepResult`.
    """

    exit_code = 6
    without_content = "a step failed"

    def __init__(self, message: str, *, step: str | None = None, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.step = step
        self.finished: tuple[Any, ...] = ()


class BudgetError(PearlError):
    """A limit of a run is reached; finished work is kept.

    Attributes:
        limit: The limit in its unit: US dollars, tokens, seconds or calls.
        spent: The amount spent, in the same unit.
    """

    exit_code = 7
    without_content = None

    def __init__(
        self, message: str, *, limit: float, spent: float, help: str | None = None
    ) -> None:
        super().__init__(message, help=help)
        self.limit = limit
        self.spent = spent


class StoreError(PearlError):
    """The store of runs cannot be read or written; committed data is not affected.

    Attributes:
        path: The file or folder of the store.
    """

    exit_code = 8
    without_content = None

    def __init__(
        self, message: str, *, path: str | Path | None = None, help: str | None = None
    ) -> None:
        super().__init__(message if path is None else f"{path}: {message}", help=help)
        self.path = path


class PausedError(PearlError):
    """The run would have to wait longer than allowed; resume it later."""

    exit_code = 75
    without_content = None


MAX_SUGGESTED_LENGTH = 80
"""Longer names get no suggestion: edit distance is quadratic in the length of a name."""

_YEARS = lazy_pattern(r"(?<!\d)(?:19|20)\d\d(?!\d)")  # sales 2015


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that was probably meant, or None; `cutoff` is that of `difflib`.

    Example:
        >>> did_you_mean("FIND_EVNT", ["FIND_EVENT", "CONCAT"])
        'FIND_EVENT'
        >>> did_you_mean("sales 2015", ["sales 2014"])
    """
    if len(name) > MAX_SUGGESTED_LENGTH:
        return None
    import difflib  # late: needed for errors only

    years = _YEARS.findall(name)  # nobody who writes 2015 means 2014
    folded = {other.casefold(): other for other in known if _YEARS.findall(other) == years}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


def suggest(name: str, known: Iterable[str], kind: str) -> str:
    """Help for an unknown name: the closest known name, or else all of them.

    Example:
        >>> suggest("medicl", ["generic", "medical"], "domains")
        "did you mean 'medical'?"
        >>> suggest("law", ["generic", "medical"], "domains")
        'domains: generic, medical'
    """
    names = list(known)
    close = did_you_mean(name, names)
    return f"did you mean '{close}'?" if close else f"{kind}: {', '.join(names) or 'none'}"
