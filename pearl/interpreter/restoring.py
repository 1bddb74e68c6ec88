"""JSON data of answers → answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from pearl.data.composing import Reading
from pearl.data.schemas import load_schema
from pearl.documents.evidence import Evidence, Unverified
from pearl.documents.record import FieldResult, Record
from pearl.documents.rows import Stated
from pearl.errors import DataError, Span
from pearl.interpreter.parts import AnswerPart, ListEntry, Tally
from pearl.interpreter.results import Checks, Look, StepResult
from pearl.interpreter.row_evidence import RowEvidence
from pearl.llm import Usage
from pearl.planner.understanding import Understood
from pearl.trace import AnswerStatus, Trace

Kind = TypeVar("Kind")
Data = Mapping[str, Any]


def restored_answer(kind: Callable[..., Kind], text: str, schema: Any = None) -> Kind:
    """The answer in a text of `Answer.to_json`, as the class; with a schema, its value is an instance. `DataError` for another text."""
    try:
        return _answer(kind, json.loads(text), schema)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DataError(f"not an answer: {reason:.200}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _checked(kind: Any, data: object) -> Any:
    return _adapter(kind).validate_python(data)


def _fields(kind: Any, data: Data) -> dict[str, Any]:
    return {field.name: data[field.name] for field in fields(kind) if field.name in data}


def _made(kind: type[Kind], data: Data, **others: Any) -> Kind:
    """An object of those of its fields that the data has, and of others."""
    made: Kind = _checked(kind, _fields(kind, data) | others)
    return made


def _answer(kind: Callable[..., Kind], data: Data, schema: Any) -> Kind:
    texts = {name: _checked(str, data[name]) for name in ("question", "plan", "document", "model")}
    understood = data.get("understood")
    answer = kind(
        **texts,
        text=_checked(str, data["answer"]),
        outputs=tuple(part["output"] for part in data["parts"]),
        method=data["method"],
        steps=tuple(map(_step, data["steps"])),
        evidence=tuple(_passage(each) for each in data["evidence"] if each["match"] != "row"),
        row_evidence=tuple(_row(each) for each in data["evidence"] if each["match"] == "row"),
        unverified=tuple(_made(Unverified, each) for each in data["unverified_quotes"]),
        usage=Usage(**{f"n_{name}": _checked(int, n) for name, n in data["usage"].items()}),
        duration_s=data["duration_s"],
        trace=Trace(),
        parts=tuple(map(_part, data["parts"])),
        understood=understood and _made(Understood, understood, asked=texts["question"]),
        record=restored_record(data),
        provenance=data["provenance"],
        parameters=_checked(dict[str, str], data.get("parameters", {})),
        schema=None if schema is None else load_schema(schema),
    )
    # What is computed from the values of steps, which data has only as they are shown.
    kept = {
        "markdown": _checked(str, data["markdown"]),
        "notes": _checked(tuple[str, ...], data.get("notes", ())),
        "coverage": _checked(float | None, data["coverage"]),
        "_judged": (_checked(AnswerStatus, data["status"]), _checked(str, data.get("why", ""))),
    }
    if schema is None:
        value, texts_of = data.get("value"), ("undecided", "reasons")
        said = {name: _checked(tuple[str, ...], data.get(name, ())) for name in texts_of}
        built = Reading(value, data.get("partial", value), plain=value, **said)
        kept["_built"], kept["_typed"] = built, built.to_dict() if "value" in data else {}
    vars(answer).update(kept)
    return answer


def _step(data: Data) -> StepResult:
    checks = data.get("checks")
    if checks is not None:
        sentences = tuple((each["text"], each["verdict"]) for each in checks["sentences"])
        checks = _made(Checks, checks, verdicts=sentences)
    record = restored_record(data)
    others = {"checks": checks or Checks(), "record": record}
    return StepResult(
        **{**_fields(StepResult, data), **others, "quotes": tuple(data["quotes"]), "models": tuple(data.get("models", ())),
           "looks": tuple(_checked(Look, each) for each in data.get("looks", ()))},
        is_native=data["native"], n_calls=data["calls"],
    )  # fmt: skip


def _part(data: Data) -> AnswerPart:
    counts = [_checked(int, data.get(name, 0)) for name in ("of", "not_stated", "undecided")]
    n = data["value"] if isinstance(data["value"], int) else 0  # of a share, it stands in the text
    tally = Tally(Stated(n, *counts[:2]), counts[2], "", None) if "of" in data else None
    texts = {name: data.get(name, "") for name in ("output", "label", "text", "state", "why")}
    return AnswerPart(
        **_checked(dict[str, str], texts), value=data["value"], tally=tally,
        evidence=_checked(tuple[int, ...], data["evidence"]), n_undecided=counts[2],
        entries=tuple(_made(ListEntry, each) for each in data.get("entries", ())),
    )  # fmt: skip


def _passage(data: Data) -> Evidence:
    span = Span(data["start"], data["end"])
    omitted = tuple(
        Span(each["start"] - span.start, each["end"] - span.start)
        for each in data.get("omitted", ())
    )
    ranks = tuple(data.get("ranks", {}).items())
    # Where it stands in joined files is not in the data.
    return _made(Evidence, data, span=span, source_span=span, omitted=omitted, ranks=ranks)


def _row(data: Data) -> RowEvidence:
    cells = [{**each, "span": _span(each)} for each in data.get("cells", ())]
    return _made(
        RowEvidence, data, span=_span(data), number=data.get("row"), cells=cells,
        ranks=tuple(data.get("ranks", {}).items()), is_decided=data["state"] == "found",
    )  # fmt: skip


def _span(data: Data) -> Span | None:
    return Span(data["start"], data["end"]) if "start" in data else None


def restored_record(data: Data) -> Record | None:
    """The record of a row of results, if it has one."""
    record = data.get("record")
    return record and Record({name: _field(each) for name, each in record.items()})


def _field(data: Data) -> FieldResult:
    candidates = [
        {"value": each["value"], "evidence": tuple(map(_passage, each["evidence"]))}
        for each in data.get("candidates", ())
    ]
    entries = tuple({k: _field(f) for k, f in each.items()} for each in data.get("entries", ()))
    evidence = tuple(map(_passage, data.get("evidence", ())))
    return _made(FieldResult, data, evidence=evidence, candidates=candidates, entries=entries)
