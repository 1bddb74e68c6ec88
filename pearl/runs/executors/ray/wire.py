"""Tasks and outcomes as they travel: dictionaries, lists, texts and numbers.

What the driver has anyway stays with it: a task comes back as the driver's own.
"""

from __future__ import annotations

import builtins
from dataclasses import asdict, fields
from typing import Any

from pearl import errors
from pearl.documents.evidence import Evidence, Unverified
from pearl.errors import PearlError, Span
from pearl.interpreter.answer import Answer
from pearl.interpreter.steps import StepResult
from pearl.llm import Usage
from pearl.runs.executors import Outcome, Task
from pearl.trace import Trace

__all__ = ["packed_error", "packed_outcome", "unpacked_error", "unpacked_outcome"]


def packed_outcome(outcome: Outcome) -> dict[str, Any]:
    """An outcome without its task: `answer` or `error`, and `trace` as JSON lines."""
    return {
        "answer": None if outcome.answer is None else _packed_answer(outcome.answer),
        "error": None if outcome.error is None else packed_error(outcome.error),
        "trace": outcome.trace.to_jsonl(),
    }


def unpacked_outcome(task: Task, data: dict[str, Any]) -> Outcome:
    """The outcome of a task; it gives the same row, and the same events with the same times."""
    trace = Trace.from_jsonl(task.id, data["trace"])
    answer = data["answer"] and _unpacked_answer(data["answer"], trace)
    error = data["error"] and unpacked_error(data["error"])
    return Outcome(task, answer, error, trace)


def _packed_answer(answer: Answer) -> dict[str, Any]:
    data = {field.name: getattr(answer, field.name) for field in fields(answer)}
    del data["trace"]
    return {
        **data,
        "steps": [asdict(step) for step in answer.steps],
        "evidence": [asdict(evidence) for evidence in answer.evidence],
        "unverified": [asdict(quote) for quote in answer.unverified],
        "usage": asdict(answer.usage),
    }


def _unpacked_answer(data: dict[str, Any], trace: Trace) -> Answer:
    steps = [
        {**step, "usage": Usage(**step["usage"]), "quotes": tuple(step["quotes"])}
        for step in data["steps"]
    ]
    evidence = [
        {
            **each,
            "steps": tuple(each["steps"]),
            "span": Span(**each["span"]),
            "source_span": Span(**each["source_span"]),
            "omitted": tuple(Span(**span) for span in each["omitted"]),
        }
        for each in data["evidence"]
    ]
    found = {
        **data,
        "outputs": tuple(data["outputs"]),
        "steps": tuple(StepResult(**step) for step in steps),
        "evidence": tuple(Evidence(**each) for each in evidence),
        "unverified": tuple(Unverified(**each) for each in data["unverified"]),
        "usage": Usage(**data["usage"]),
    }
    return Answer(**found, trace=trace)


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
