"""Serialises outcomes between worker and driver; errors are sent as plain data.

Units are not sent back: the driver uses its own. Errors are not pickled, because their constructors
take other arguments than their text.
"""

from __future__ import annotations

import builtins
from typing import Any, TypeVar

from pearl import errors
from pearl.errors import PearlError
from pearl.runs.executors import Outcome, Unit

U = TypeVar("U", bound=Unit)


def packed_outcome(outcome: Outcome[Any]) -> dict[str, Any]:
    """An outcome without its unit: `result`, `error` as packed, and `trace`."""
    return {
        "result": outcome.result,
        "error": None if outcome.error is None else packed_error(outcome.error),
        "trace": outcome.trace,
    }


def unpacked_outcome(unit: U, data: dict[str, Any]) -> Outcome[U]:
    """The outcome of a unit; it gives the same row, and the same events with the same times."""
    error = data["error"] and unpacked_error(data["error"])
    return Outcome(unit, data["result"], error, data["trace"])


def packed_error(error: Exception) -> dict[str, Any]:
    """An error: its class by name, its text, and those attributes that are texts or numbers."""
    plain = {
        name: value
        for name, value in vars(error).items()
        if value is None or isinstance(value, str | int | float)
    }
    # Of a plan the diagnostics are in its text and in the trace, which holds every attempt.
    empty = [name for name, value in vars(error).items() if isinstance(value, tuple)]
    return {"type": type(error).__name__, "text": str(error), "plain": plain, "empty": empty}


def unpacked_error(data: dict[str, Any]) -> Exception:
    """An error of the same name and text; of a class that is known here, if it is one of pearl's."""
    name = data["type"]
    known: Any = getattr(errors, name, None) or getattr(builtins, name, None)
    if not (isinstance(known, type) and issubclass(known, Exception)):
        known = type(name, (PearlError,), {})
    # Not by its constructor: every class has its own, and the text is made already.
    error: Exception = known.__new__(known, data["text"])
    error.args = (data["text"],)
    if isinstance(error, PearlError):
        vars(error).update({"message": data["text"], "help": None, **data["plain"]})
        vars(error).update(dict.fromkeys(data["empty"], ()))
    return error
