"""The result of the product and the gold record, leaf by leaf."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from pearl import Answer, Document, Pearl
from pearl.data.schemas import Schema, load_schema
from tests.extraction.documents import Case, leaves
from tests.extraction.replies import Checker, Teller, model_of, pairs
from tests.extraction.shapes import SHAPES, schema_of


@dataclass
class Figures:
    """What became of the leaves of some documents."""

    n: int = 0
    n_right: int = 0
    placeless: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Other values than the document states, and not undecided."""
    undecided: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Stated, and neither in the result nor undecided."""
    invalid: list[str] = field(default_factory=list)
    n_documents: int = 0
    n_whole: int = 0
    """Documents with a value."""
    by_shape: Counter[str] = field(default_factory=Counter)

    refused: list[tuple[str, str]] = field(default_factory=list)
    """True claims that the checker does not find in their passages."""

    @property
    def flaws(self) -> list[str]:
        """Everything that is not right, the worst first."""
        return [
            f"{kind}: {each}" for kind in ("wrong", "lost", "invalid", "placeless", "undecided")
            for each in getattr(self, kind)
        ]  # fmt: skip

    @property
    def told(self) -> str:
        """The figures in words."""
        return (
            f"{self.n:,} leaves of {self.n_documents:,} documents: {self.n_right:,} right ({self.n_right / max(self.n, 1):.2%}), "
            f"{len(self.wrong)} wrong, {len(self.undecided)} undecided, {len(self.lost)} lost, {len(self.placeless)} "
            f"without their place; {len(self.invalid)} invalid, {self.n_whole:,} with a value"
        )


def flat(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested data by their paths; null is none."""
    if isinstance(data, dict):
        for name, each in data.items():
            yield from flat(each, f"{path}.{name}" if path else name)
    elif isinstance(data, list | tuple):
        for i, each in enumerate(data):
            yield from flat(each, f"{path}[{i}]")
    elif data is not None:
        yield path, data


def is_covered(path: str, undecided: Sequence[str]) -> bool:
    """Whether a path, or something around it, is undecided."""
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in undecided)


def run(
    case: Case, *, teller: Teller | None = None, window: int | None = None, **settings: Any
) -> tuple[Answer, Checker]:
    """The answer about a document, and the checker that was asked."""
    schema = schema_named(case.name)
    checker = Checker(case, schema.fields)
    model = model_of(teller or Teller(case), checker, window=window)
    document = Document(case.text, "file.txt")
    return asyncio.run(Pearl(model, **settings).extract(schema, document)), checker


def compare(case: Case, answer: Answer, figures: Figures) -> None:
    """Count the leaves of a document."""
    data, undecided = answer.partial, answer.undecided
    figures.n_documents += 1
    figures.n_whole += answer.value is not None
    whole, part = validators(case.name)
    for data_of, validator in ((answer.value, whole), (data, part)):
        if data_of is not None and (flaw := next(validator.iter_errors(data_of), None)):
            figures.invalid.append(f"{case.name}: {flaw.json_path}: {flaw.message[:200]}")
    schema = schema_named(case.name)
    gold = dict(leaves(case.gold))
    got = dict(flat(data))
    assert answer.record is not None
    of_leaf = {
        id(told): result
        for _, told, result in pairs(schema.fields, answer.record.fields, case.gold)
    }
    for path, told in gold.items():
        figures.n += 1
        where = f"{case.name}: {path}"
        value = got.pop(path, None)
        if is_covered(path, undecided):
            why = getattr(of_leaf.get(id(told)), "why", "")
            figures.undecided.append(f"{where} = {told.value!r} ({told.shown}): {why}")
        elif value is None:
            figures.lost.append(f"{where} = {told.value!r}")
        elif value != told.value or isinstance(value, bool) != isinstance(told.value, bool):
            figures.wrong.append(f"{where} = {told.value!r}, not {value!r}")
        else:
            result = of_leaf.get(id(told))
            spans = [each.span for each in result.evidence] if result else []
            is_there = any(
                span.start < b and a < span.end for span in spans for a, b in told.places
            )
            if is_there:
                figures.n_right += 1
                figures.by_shape[case.name] += 1
            else:
                figures.placeless.append(f"{where} = {value!r}")
    figures.wrong += [
        f"{case.name}: {path} = {value!r} is not stated"
        for path, value in got.items()
        if not is_covered(path, undecided)
    ]


def without_need(schema: Any) -> Any:
    """A schema in which everything may be missing or null: that of a part of a record."""
    if isinstance(schema, bool):
        return schema
    inner = dict(schema)
    inner.pop("required", None)
    for key in ("properties", "patternProperties", "$defs"):
        if key in inner:
            inner[key] = {name: without_need(each) for name, each in inner[key].items()}
    for key in ("items", "additionalProperties"):
        if key in inner:
            inner[key] = without_need(inner[key])
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if key in inner:
            inner[key] = [without_need(each) for each in inner[key]]
    if "oneOf" in inner:
        inner["anyOf"] = inner.pop("oneOf")  # without what tells them, several may fit
    return {"anyOf": [{"type": "null"}, inner]}


@cache
def schema_named(name: str) -> Schema:
    """The schema of a shape."""
    return load_schema(schema_of(SHAPES[name]))


@cache
def validators(name: str) -> tuple[Draft202012Validator, Draft202012Validator]:
    """For a whole record of a shape, and for a part of one."""
    schema = schema_of(SHAPES[name])
    defs = {name: without_need(each) for name, each in schema.get("$defs", {}).items()}
    loose = {**without_need({k: v for k, v in schema.items() if k != "$defs"}), "$defs": defs}
    checked = FormatChecker(["date", "email"])
    return Draft202012Validator(schema, format_checker=checked), Draft202012Validator(
        loose, format_checker=checked
    )
