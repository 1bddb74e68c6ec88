"""An answer, a row of results or a trace → `ResultRecord`: what pages are made of, whatever of it is at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pearl.documents.document import Document
from pearl.interpreter.answer import Answer
from pearl.trace import Event, RunFinished, RunStarted, StepFailed, StepFinished


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """The result of one task."""

    id: str
    row: Mapping[str, Any]
    events: tuple[Event, ...] = ()
    document: Document | None = None
    problems: tuple[str, ...] = ()


def id_of(row: Mapping[str, Any]) -> str:
    """What a row is called: the id of its task; of a record of an evaluation its sample, method and seed.

    Example:
        >>> id_of({"id": "a.txt"}), id_of({"sample": "q1", "method": "mcq", "seed": 2}), id_of({})
        ('a.txt', 'q1 mcq 2', '')
    """
    id = row.get("id")
    if id is None:
        parts = (row.get(name) for name in ("sample", "method", "seed"))
        return " ".join(str(part) for part in parts if isinstance(part, str | int))
    return id if isinstance(id, str) else str(id)


def record_of_answer(answer: Answer, document: Document | None = None) -> ResultRecord:
    """The record of an answer that is at hand, with its trace."""
    row = {"id": answer.trace.id, **answer.to_json()}
    return ResultRecord(answer.trace.id, row, tuple(answer.trace), document)


def row_of_trace(id: str, events: Iterable[Event]) -> dict[str, Any]:
    """What a trace says of a result, as the fields of a row that it knows.

    A run that has no end is `unfinished`. Rows that an answer is computed from stand in no trace.

    Example:
        >>> from pearl.llm import Usage
        >>> row_of_trace("a", [RunFinished(status="answered", answer="Ada", usage=Usage(), duration_s=1)])
        {'id': 'a', 'status': 'answered', 'question': None, 'answer': 'Ada', 'usage': {'input_tokens': 0, 'output_tokens': 0, 'cached_tokens': 0}, 'duration_s': 1.0}
    """
    row: dict[str, Any] = {"id": id, "status": "unfinished", "question": None}
    steps: list[dict[str, Any]] = []
    for event in events:
        match event:
            case RunStarted():
                row |= {
                    "question": event.question,
                    "document": event.document,
                    "method": event.method,
                    "model": event.model,
                    "plan": event.plan,
                }
            case StepFinished():
                steps.append(
                    {
                        "output": event.step,
                        "action": event.action,
                        "value": event.value,
                        "state": event.state,
                        "native": event.is_native,
                        "context": event.context,
                        "coverage": event.coverage,
                        "calls": event.n_calls,
                    }
                )
            case StepFailed():
                row["error"] = {"type": "StepFailed", "message": event.error}
            case RunFinished():
                row["status"] = event.status
                if event.status != "failed":
                    row["answer"] = event.answer
                if event.evidence is not None:
                    row["evidence"] = list(event.evidence)
                    row["unverified_quotes"] = list(event.unverified_quotes)
                row["usage"] = {
                    "input_tokens": event.usage.n_input_tokens,
                    "output_tokens": event.usage.n_output_tokens,
                    "cached_tokens": event.usage.n_cached_tokens,
                }
                row["duration_s"] = event.duration_s
            case _:
                pass
    return {**row, "steps": steps} if steps else row
