"""`pearl.extract`: many documents → instances of a model, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from pearl.data.schemas import Schema, load_schema
from pearl.documents.document import Document, load
from pearl.documents.record import FieldResult
from pearl.dsl.fields import Field
from pearl.errors import BudgetError, UsageError
from pearl.interpreter.answer import Answer
from pearl.llm.prices import Price
from pearl.pipeline import Pearl
from pearl.runs.executors import Outcome, Task
from pearl.runs.session import Session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Extraction(Generic[T]):
    """What one document says about the fields of a schema.

    Attributes:
        document: Its name.
        status: That of the answer, or `failed`. `answered` means that nothing is missing from the value: without a
            value it is `undecided`, with a part of it `degraded` (or `nothing_found`, where nothing is stated).
        value: The instance of the model, or the dictionary; None if a required field has no value. Optional fields
            and objects without a value are None, entries of lists without one are left out.
        reasons: Why the value, or a part of it, is missing.
        fields: Every field by its path: `age`, `drugs[0].dose_mg`.
        answer: The answer with its evidence; None if the document failed.
    """

    document: str
    status: str
    value: T | None = None
    reasons: tuple[str, ...] = ()
    fields: Mapping[str, FieldResult] = field(default_factory=dict)
    answer: Answer | None = None


@overload
async def extract(
    schema: type[T], documents: Iterable[str | Path | Document], *, store: str | Path | None = None,
    max_cost_usd: float | None = None, price: str | Price | None = None, **settings: Any,
) -> list[Extraction[T]]: ...  # fmt: skip
@overload
async def extract(
    schema: str | Mapping[str, Any] | Sequence[Field], documents: Iterable[str | Path | Document], *,
    store: str | Path | None = None, max_cost_usd: float | None = None, price: str | Price | None = None,
    **settings: Any,
) -> list[Extraction[dict[str, Any]]]: ...  # fmt: skip
async def extract(
    schema: Any,
    documents: Iterable[str | Path | Document],
    *,
    store: str | Path | None = None,
    max_cost_usd: float | None = None,
    price: str | Price | None = None,
    **settings: Any,
) -> list[Extraction[Any]]:
    r"""Take the fields of a schema from documents.

    Args:
        schema: A pydantic model; or, for dictionaries, a JSON Schema (a dictionary or a file), or the short form
            `"patient: str, age: int?"`.
        documents: Paths, or documents.
        store: A folder for the replies, so that the same call repeats none of them.
        max_cost_usd: No call starts that could raise the cost above this.
        price: Price of tokens, as `input=2,output=10` or a `Price`; None for that of the shipped table.
        settings: As of `Pearl`: `model`, `concurrency`, ...

    Returns:
        A result for each document, in their order. A document that fails does not stop the others.

    Raises:
        UsageError: `documents` is a single path, or a setting is wrong.
        DataError: The schema cannot be used.
        ModelError: The server refuses all calls, for a wrong key or an unknown model. A document whose calls fail for
            another reason, such as a server that cannot be reached, has the status `failed` and the reason.

    Example:
        >>> import pearl
        >>> letter = pearl.Document("Patient: Maria Keller\nAge: 54\nSeen on the ward.", name="letter")
        >>> [result] = pearl.run(pearl.extract("patient: str, age: int?", [letter]))
        >>> result.value
        {'patient': 'Maria Keller', 'age': 54}
        >>> result.fields["age"].evidence[0].text
        'Age: 54'
    """
    if isinstance(documents, str | Path | Document):
        raise UsageError("expected several documents", help="pearl.extract(Model, [document])")
    loaded = load_schema(schema)
    async with Pearl(**settings) as asker:
        plan = str(asker.plan_extraction(loaded.fields))
        given = list(documents)
        tasks = [Task(str(i), partial(_loaded, each), plan=plan) for i, each in enumerate(given)]
        run = Session(
            asker, store=store, keeps_rows=False, max_cost_usd=max_cost_usd, price=price
        ).run(tasks)
        outcomes: dict[str, Outcome[Task]] = {}
        async with aclosing(run):
            async for outcome in run:
                outcomes[outcome.unit.id] = outcome
        error = run.summary.error
        if error is not None and not isinstance(error, BudgetError):
            raise error
    return [
        _extraction(each, loaded, outcomes.get(task.id), error)
        for task, each in zip(tasks, given, strict=True)
    ]


def _extraction(
    document: str | Path | Document, schema: Schema, outcome: Outcome[Task] | None,
    stopped: Exception | None,
) -> Extraction[Any]:  # fmt: skip
    name = document.name if isinstance(document, Document) else str(document)
    if outcome is None or outcome.result is None:
        error = stopped if outcome is None else outcome.error
        return Extraction(name, "failed", reasons=(str(error),))
    answer = replace(outcome.result, schema=schema)
    return Extraction(name, answer.status, answer.value, answer.reasons, answer.fields, answer)


def _loaded(document: str | Path | Document) -> Document:
    return document if isinstance(document, Document) else load(document)
