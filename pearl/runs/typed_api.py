"""`pearl.extract`: documents → instances of a schema, with evidence."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack, overload

from msgspec import Struct

from pearl.arguments import Arguments
from pearl.data.samples import loader_of
from pearl.data.schemas import load_schema
from pearl.documents.document import Document
from pearl.documents.record import FieldResult
from pearl.errors import BudgetError, DataError, PausedError, PearlError, UsageError, error_to_dict
from pearl.errors.escaping import to_json
from pearl.interpreter.answer import Answer
from pearl.interpreter.parts import PartValue
from pearl.interpreter.row import Cell
from pearl.llm.prices import Price
from pearl.pipeline import FieldsGiven, Pearl
from pearl.runs.executors import Outcome, Task
from pearl.runs.extraction import unused_name
from pearl.runs.session import Session

T = TypeVar("T")


class Extraction(Struct, Generic[T], frozen=True, eq=False):
    """The fields of a schema as stated by one document.

    Attributes:
        document: Its name.
        answer: The answer with its evidence; None if the document failed.
        error: Why the document failed; None if it has an answer.
    """

    document: str
    answer: Answer[T] | None = None
    error: Exception | None = None

    @property
    def status(self) -> str:
        """The status of the answer, or `failed`.

        `answered` means that the value is complete. Without a value the status is `undecided`, with an incomplete
        value `degraded` (or `nothing_found`, if the document states nothing).
        """
        return "failed" if self.answer is None else self.answer.status

    @property
    def value(self) -> T | None:
        """The instance of the model, or the data; None if a required part has no value.

        Optional parts without a value are None, entries of lists without one are left out.
        """
        return None if self.answer is None else self.answer.value

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the value, or a part of it, is missing."""
        return (str(self.error),) if self.answer is None else self.answer.reasons

    @property
    def fields(self) -> Mapping[str, FieldResult]:
        """Every field by its path: `age`, `drugs[0].dose_mg`."""
        return {} if self.answer is None else self.answer.fields

    @property
    def partial(self) -> Any:
        """The values found, nested as in the schema; None for each missing value."""
        return None if self.answer is None else self.answer.partial

    @property
    def undecided(self) -> tuple[str, ...]:
        """The paths of undecided values, with the names of the schema: `drugs[0].dose`."""
        return () if self.answer is None else self.answer.undecided

    @property
    def rows(self) -> list[dict[str, Cell]]:
        """Flat rows for a data frame: the rows of the answer, each with the document and the status."""
        rows = self.answer.rows if self.answer is not None else [{"error": str(self.error)}]
        own: dict[str, Cell] = {"document": self.document, "status": self.status}
        return [{**own, **{unused_name(n, own): cell for n, cell in row.items()}} for row in rows]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extraction) and self.to_dict() == other.to_dict()

    def to_json(self, *, indent: int | None = None) -> str:
        """The extraction as the text of a JSON object."""
        return to_json(self.to_dict(), indent=indent)

    @classmethod
    def from_json(cls, text: str, *, schema: Any = None) -> Extraction[Any]:
        """Read an extraction from the text that `to_json` returned."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as wrong:
            raise DataError(f"not an extraction: {wrong!r:.200}") from None
        return cls.from_dict(data, schema=schema)

    def to_dict(self) -> dict[str, Any]:
        """The extraction as JSON data."""
        answer = None if self.answer is None else self.answer.to_dict()
        error = None if self.error is None else error_to_dict(self.error)
        return {"document": self.document, "status": self.status, "answer": answer, "error": error}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, schema: Any = None) -> Extraction[Any]:
        """Read an extraction from the data of `to_dict`; an error keeps its class, message and help.

        Args:
            data: Untrusted.
            schema: The schema of the extraction, whose value is then an instance instead of a dictionary.

        Raises:
            DataError: The data is no extraction.
        """
        try:
            name, error, answer = data["document"], data["error"], data["answer"]
            if answer is None:
                return Extraction(name, error=PearlError.from_dict(error))
        except (KeyError, TypeError) as wrong:
            raise DataError(f"not an extraction: {wrong!r:.200}") from None
        return Extraction(name, Answer.from_json(json.dumps(answer), schema=schema))


@overload
async def extract(
    schema: type[T], documents: Iterable[str | Path | Document], *, store: str | Path | None = None,
    max_cost_usd: float | None = None, price: str | Price | None = None, **settings: Unpack[Arguments],
) -> list[Extraction[T]]: ...  # fmt: skip
@overload
async def extract(
    schema: FieldsGiven, documents: Iterable[str | Path | Document], *,
    store: str | Path | None = None, max_cost_usd: float | None = None, price: str | Price | None = None,
    **settings: Unpack[Arguments],
) -> list[Extraction[dict[str, PartValue]]]: ...  # fmt: skip
async def extract(
    schema: Any,
    documents: Iterable[str | Path | Document],
    *,
    store: str | Path | None = None,
    max_cost_usd: float | None = None,
    price: str | Price | None = None,
    **settings: Unpack[Arguments],
) -> list[Extraction[Any]]:
    r"""Take the fields of a schema from documents.

    Args:
        schema: A pydantic model, a dataclass, a `TypedDict` or another type that pydantic knows; or, for plain data, a
            JSON Schema (a dictionary or a file), or the short form `"patient: str, age: int?"`.
        documents: Paths, or documents.
        store: A folder for the replies, so that the same call repeats none of them.
        max_cost_usd: No call starts that could raise the cost above this.
        price: Price of tokens, as `input=2,output=10` or a `Price`; None for that of the shipped table.
        settings: As in `Pearl`: `model`, `concurrency`, ...

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

        A required part without a value leaves no `value`, but `partial`:

        >>> torn = pearl.Document("Patient: Maria Keller\nAge: 54 or 45", name="torn")
        >>> [result] = pearl.run(pearl.extract("patient: str, age: int", [torn]))
        >>> result.value, result.partial, result.undecided
        (None, {'patient': 'Maria Keller', 'age': None}, ('age',))
    """
    if isinstance(documents, str | Path | Document):
        raise UsageError("expected several documents", help="pearl.extract(Model, [document])")
    loaded = load_schema(schema)
    async with Pearl(**settings) as asker:
        plan = str(asker.plan_extraction(loaded.fields))
        given = list(documents)
        tasks = [Task(str(i), loader_of(each), plan=plan) for i, each in enumerate(given)]
        run = Session(
            asker, store=store, keeps_rows=False, max_cost_usd=max_cost_usd, price=price
        ).run(tasks)
        outcomes: dict[str, Outcome[Task]] = {}
        async with aclosing(run):
            async for outcome in run:
                outcomes[outcome.unit.id] = outcome
        error = run.summary.error
        if error is not None and not isinstance(error, BudgetError | PausedError):
            raise error
    extractions: list[Extraction[Any]] = []
    for task, document in zip(tasks, given, strict=True):
        name = document.name if isinstance(document, Document) else str(document)
        done = outcomes.get(task.id)
        if done is not None and done.result is not None:
            extractions.append(Extraction(name, dataclasses.replace(done.result, schema=loaded)))
        else:
            why = (error if done is None else done.error) or PearlError("the document was not read")
            extractions.append(Extraction(name, error=why))
    return extractions
