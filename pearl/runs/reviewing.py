"""Rows of results → the items that a person reviews, in order; and the precision that the decisions measure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, Literal, get_args

from msgspec import Struct, convert

from pearl.documents.digest import digest
from pearl.documents.record import FieldScalar
from pearl.dsl.fields import Field, broken_rule
from pearl.runs.decisions import Decision, in_force, row_entry, row_path, seen
from pearl.runs.extraction import (
    ANSWER,
    NOT_STATED,
    PERSON,
    UNDECIDED,
    document_of,
    fields_of_plan,
    id_of,
    record_of,
    results_of,
    text_of,
)

Kind = Literal["undecided", "unchecked", "degraded", "decided"]
"""Why a field is reviewed: it has no supported value, the meaning of its quotes was not checked, its row may be incomplete,
or it is drawn from the decided ones."""
KINDS: tuple[Kind, ...] = get_args(Kind)[:-1]


class Item(Struct, frozen=True):
    """A field of a row, or the answer of a row without fields; `at` is the row's key in its source."""

    at: int
    row: str
    document: str
    path: str
    entry: str
    field: Field
    result: Mapping[str, Any]
    kind: Kind
    row_why: str

    @property
    def about(self) -> tuple[str, str]:
        """The row and the path that decisions refer to."""
        return self.row, self.path

    @property
    def key(self) -> str:
        """The key of the item in URLs."""
        return digest([self.row, self.path]).hex()[:20]

    def rank(self, seed: str) -> bytes:
        """The position in a random order, which does not depend on other rows."""
        return digest([seed, self.row, self.path])


def field_at(fields: Mapping[str, Field], path: str) -> Field | None:
    """The field at a path such as `orders[0].items[2].price`; `fields` are those of `by_path`."""
    *around, last = path.split("].")
    return fields.get(path) or fields.get(
        "].".join([*(p.rstrip("0123456789") for p in around), last])
    )


def by_path(fields: Iterable[Field], path: str = "") -> Iterator[tuple[str, Field]]:
    """Fields by their paths, without entry numbers: `orders[].items[].price`."""
    for field in fields:
        yield f"{path}{field.name}", field
        if field.is_list:
            yield from by_path(field.inner, f"{path}{field.name}[].")


def items_of(at: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """The items of a row for a person to decide. A failed row has none; a list has the items of its entries instead of its own."""
    record, why = record_of(row), str(row.get("why") or "")
    is_degraded = row.get("status") == "degraded" and not any(
        result["state"] == UNDECIDED for _, _, result in results_of(record)
    )
    if "record" not in row and isinstance(row.get("answer"), str):
        yield from _rows_behind(at, row)
        yield _answer(at, row, why)
        return
    known = dict(by_path(fields_of_plan(str(row.get("plan")))))
    for path, entry, result in results_of(record):
        field = field_at(known, path) or Field(path.rpartition("].")[2], "text")
        is_list = result["state"] == "found" and bool(result.get("entries"))
        if is_list or result.get("basis") == PERSON:
            continue
        proposed(result)  # Raises an error for a file of another program that cannot be shown
        kind: Kind = "degraded" if is_degraded else "decided"
        if result["state"] == UNDECIDED:
            kind = "undecided"
        elif result.get("basis") == "judged" and kind == "decided":
            kind = "unchecked"
        yield Item(at, id_of(row), document_of(row), path, entry, field, result, kind, why)


def _rows_behind(at: int, row: Mapping[str, Any]) -> Iterator[Item]:
    """The items of the rows behind an answer: undecided columns and, for an undecided row without one, whether the row counts."""
    for number, each in enumerate(row.get("evidence", ()), start=1):
        if each.get("match") != "row" or each.get("state") != UNDECIDED:
            continue
        passage = [each] if each["text"] and "start" in each else []
        result = {"state": UNDECIDED, "value": None, "why": row.get("why"), "evidence": passage}
        counts = Field("counts", "bool", description=str(row.get("question") or ""))
        columns = [Field(name, "text") for name, value in each["fields"].items() if value is None]
        for field in columns or [counts]:
            path = row_path(number, field.name if columns else "")
            own = id_of(row), document_of(row)
            yield Item(at, *own, path, row_entry(each), field, result, "undecided", "")


def _answer(at: int, row: Mapping[str, Any], why: str) -> Item:
    status, evidence = row.get("status"), row.get("evidence", ())
    passages = [each for each in evidence if each.get("match") != "row"]
    result = {"state": "found", "value": row["answer"], "why": why, "evidence": passages}
    kind: Kind = "degraded" if status == "degraded" else "decided"
    if status in ("undecided", "refused"):  # Its text says why, or what is undecided
        kind, result = "undecided", {**result, "state": UNDECIDED, "value": None, "why": row["answer"]}  # fmt: skip
    elif status == "nothing_found":
        result = {**result, "state": "not_stated", "value": None}
    field = Field(ANSWER, "text", description=str(row.get("question") or ""))
    return Item(at, id_of(row), document_of(row), ANSWER, "", field, result, kind, why)


def queue(
    items: Iterable[Item], kinds: Sequence[str], n_sampled: int | None, seed: str
) -> list[Item]:
    """The items to review: those of some kinds in order, or a random sample of decided ones."""
    if n_sampled is None:
        return [item for item in items if item.kind in kinds]
    decided = [item for item in items if item.result["state"] != UNDECIDED]
    return sorted(decided, key=lambda item: item.rank(seed))[:n_sampled]


def wilson(n_found: int, n_drawn: int) -> tuple[float, float]:
    """The Wilson score interval of a proportion, at a confidence of 95 %.

    Source:
        Wilson, Journal of the American Statistical Association 22 (1927).
    """
    from statistics import NormalDist  # Imported on use: takes 10 ms

    z = NormalDist().inv_cdf(0.975)
    share, square = n_found / n_drawn, z**2 / n_drawn
    middle = share + square / 2
    half = z * math.sqrt(share * (1 - share) / n_drawn + square / (4 * n_drawn))
    low = 0.0 if n_found == 0 else (middle - half) / (1 + square)
    high = 1.0 if n_found == n_drawn else (middle + half) / (1 + square)
    return low, high


def report(items: Iterable[Item], decisions: Sequence[Decision]) -> dict[str, Any]:
    """What people decided, and the precision of the sampled decided fields; as JSON data."""
    by_field = {item.about: item for item in items}
    current = in_force(decisions)
    drawn = {each.field: each.sample for each in decisions if each.sample}
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    n_outdated = 0
    for field in drawn.keys() & current.keys() & by_field.keys():
        decision, item = current[field], by_field[field]
        if decision.was != seen(item.result):
            n_outdated += 1
            continue
        is_right = seen(decision.result) == decision.was
        (right if is_right else wrong)[item.field.name] += 1
    n_right, n = right.total(), right.total() + wrong.total()
    precision = None
    if n:
        low, high = wilson(n_right, n)
        precision = {
            "right": n_right, "of": n, "share": n_right / n, "low": low, "high": high,
            "confidence": 0.95, "interval": "Wilson",
            "fields": {name: {"right": right[name], "of": right[name] + wrong[name]} for name in sorted({*right, *wrong})},
        }  # fmt: skip
    n_decided = sum(item.result["state"] != UNDECIDED for item in by_field.values())
    return {
        "fields": len(by_field),
        "decided_by_pearl": n_decided,
        "undecided": len(by_field) - n_decided,
        "decided_by_persons": len(current.keys() & by_field.keys()),
        "persons": dict(sorted(Counter(each.person for each in current.values()).items())),
        "sample": {
            "drawn": len(drawn), "seeds": sorted(set(drawn.values())), "outdated": n_outdated,
            "precision": precision,
        },
    }  # fmt: skip


# --- what a person says of a field ------------------------------------------------------------

COMPLETE = "complete"  # Text by which a person confirms that all entries of a list are there

_TYPES: Mapping[str, tuple[Any, str]] = {
    "int": (int, "a whole number"),
    "number": (int | float, "a number such as 1250.5"),
    "bool": (bool, "true or false"),
    "date": (date, "a date such as 2024-05-31"),
    "decimal": (Decimal, "a number such as 1250.50"),
}
"""The types of a person's value that are no text, and a description."""


def proposed(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The values that a result proposes, each with its evidence: the value found, or the candidates."""
    if result.get("state") == "found":
        return [] if "entries" in result or result.get("value") is None else [result]
    return [each for each in result.get("candidates", ()) if isinstance(each, Mapping)]


def person_result(field: Field, text: str) -> dict[str, Any]:
    """A field result entered by a person; a `ValueError` says what the value must be."""
    if text.casefold() == NOT_STATED and NOT_STATED not in field.labels:
        return {"state": "not_stated", "value": None, "basis": PERSON}
    value, wanted = _typed(field, text)
    if wanted:
        raise ValueError(f"'{field.name}': '{text[:80]}' is not {wanted}")
    judged: Any = Decimal(str(value)) if field.type == "decimal" and value else value
    if not field.is_list and (flaw := broken_rule(field.rules, judged)):
        raise ValueError(f"'{field.name}': {flaw}")
    return {"state": "found", "value": value, "basis": PERSON}


def _typed(field: Field, text: str) -> tuple[FieldScalar, str]:
    """Convert a text to a value; if that fails, also return what it must be."""
    if field.is_list:
        return None, "" if text.casefold() == COMPLETE else f"'{COMPLETE}' or '{NOT_STATED}'"
    if field.type == "label":
        labels = {label.casefold(): label for label in field.labels}
        label = labels.get(text.casefold())
        return label, "" if label else f"one of {', '.join(field.labels)}"
    kind, wanted = _TYPES.get(field.type, (str, ""))
    plain = {"yes": "true", "no": "false"}.get(text.casefold(), text) if kind is bool else text
    with suppress(ValueError):
        value = convert(plain, kind, strict=False)  # Spreadsheets write TRUE and 54.0
        if not isinstance(value, float | Decimal) or math.isfinite(value):
            return text if kind in (date, Decimal) else value, ""
    return None, wanted


def accepted(field: Field | None, proposal: Mapping[str, Any]) -> dict[str, Any]:
    """The result if a person accepts a proposed value; a `ValueError` says what the value must be."""
    value, evidence = proposal.get("value"), proposal.get("evidence")
    if field is not None:  # A reply may have a value of another type
        text = text_of(value)
        value, wanted = _typed(field, text)
        if wanted:
            raise ValueError(f"'{field.name}': '{text[:80]}' is not {wanted}")
    of = {"state": "found", "value": value, "basis": PERSON}
    return {**of, **({"evidence": evidence} if evidence else {})}
