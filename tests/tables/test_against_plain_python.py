"""A query gives what plain Python does, over tables with cells that are no numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pearl.documents.rows import Row, Rows
from pearl.tables.columns import QueryTable
from pearl.tables.lookup import Lookup
from pearl.tables.running import Answer
from pearl.tables.specification import AllOf, AnyOf, Condition, Not, Where
from tests.tables.filtering import Record, meets, plain

NUMBERS = ["120", "90", "90.5", "0", "-3", "1000", "7"]
NONE = ["", "n/a", "—"]
UNREAD = ["ask", "<5", "50%", "#DIV/0!"]

CITIES = [
    "Haifa",
    "Eilat",
    "Tel Aviv",
    "O'Hare",
    "",
    "HAIFA ",
    "Tel Aviv-Yafo",
    "tel  aviv-yafo",
    "Zürich",
    "Zurich",
    "İzmir",
    "%",
    "_",
    "a'b",
]
TEXTS = [
    *CITIES,
    "aviv",
    "viv",
    "yafo",
    "Aviv Yafo",
    "zur",
    "ha",
    "ab",
    "ü",
    "(+)",
    "'; DROP TABLE rows; --",
]
FEE = "Unit price"
CLEAN = [{"City": "Lod", FEE: str(fee)} for fee in range(11, 17)]
"""More different numbers than there are texts, so that the column is one of numbers."""


def records(cities: list[str]) -> st.SearchStrategy[list[Record]]:
    cells = st.sampled_from([*NUMBERS, *NUMBERS, *NONE, *UNREAD])
    record = st.fixed_dictionaries({"City": st.sampled_from(cities), FEE: cells})
    return st.lists(record, max_size=15).map(lambda found: [*found, *CLEAN])


on_text: st.SearchStrategy[Where] = (
    st.builds(
        lambda op, value: Condition(column="City", op=op, value=(value,)),
        st.sampled_from(["is", "is not", "contains", "does not contain"]),
        st.sampled_from([text for text in TEXTS if text.strip()]),
    )
    | st.sampled_from(["is empty", "is not empty"]).map(lambda op: Condition(column="City", op=op))  # type: ignore[arg-type]
    | st.builds(
        lambda op, values: Condition(column="City", op=op, value=tuple(values)),
        st.sampled_from(["in", "not in"]),
        st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4),
    )
)
on_number: st.SearchStrategy[Where] = st.builds(
    lambda op, value: Condition(column=FEE, op=op, value=(value,)),
    st.sampled_from(["is", "before", "after", "at least", "at most"]),
    st.sampled_from(["0", "7", "90", "90.5", "-3", "500"]),
)


def wheres(on_one: st.SearchStrategy[Where]) -> st.SearchStrategy[Where | None]:
    return st.none() | st.recursive(
        on_one,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(lambda all_: AllOf(all=tuple(all_)))
            | st.lists(inner, min_size=1, max_size=3).map(lambda any_: AnyOf(any=tuple(any_)))
        ),
        max_leaves=4,
    )


def opposite(where: Where) -> Where:
    return Not(no=where)


shapes = st.sampled_from(
    [("rows",), *((name,) for name in ("count", "sum", "mean", "min", "max")),
     ("group", "count"), ("group", "sum"), ("first", "ASC", 2), ("first", "DESC", 4)]
)  # fmt: skip


def asked(shape: Sequence[Any], where: Where | None) -> dict[str, Any]:
    query: dict[str, Any] = {"where": where and where.model_dump()}
    match shape:
        case ["rows"]:
            return query
        case ["first", order, limit]:
            return query | {"sort": {"by": FEE, "descending": order == "DESC"}, "limit": limit}
        case [*groups, function]:
            column = {} if function == "count" else {"column": FEE}
            query["aggregate"] = {"function": function, **column}
            return query | ({"group": ["City"]} if groups else {})
    raise AssertionError


def figure(function: str, rows: Sequence[Record]) -> float | None:
    numbers = [float(row[FEE]) for row in rows if row[FEE] not in {*NONE, *UNREAD}]
    match function:
        case "count":
            return len(rows)
        case _ if not numbers:
            return None
        case "sum":
            return math.fsum(numbers)
        case "mean":
            return math.fsum(numbers) / len(numbers)
    return min(numbers) if function == "min" else max(numbers)


def expected(
    shape: Sequence[Any], where: Where | None, found: list[Record]
) -> tuple[Any, set[int]]:
    verdicts = [meets(record, where, [FEE]) for record in found]
    kept = [i for i, verdict in enumerate(verdicts) if verdict]
    undecided = {i for i, verdict in enumerate(verdicts) if verdict is None}
    unread = {i for i in kept if found[i][FEE] in UNREAD}
    match shape:
        case ["rows"]:
            return kept, undecided
        case ["first", order, limit]:
            numbers = sorted(
                (float(found[i][FEE]) for i in kept if found[i][FEE] not in {*NONE, *UNREAD}),
                reverse=order == "DESC",
            )
            return numbers[:limit], undecided | (unread if limit < len(kept) else set())
        case ["group", function]:
            cities = {plain(found[i]["City"]) for i in kept} - {""}
            rows = {c: [found[i] for i in kept if plain(found[i]["City"]) == c] for c in cities}
            figures = {city: figure(function, of_city) for city, of_city in rows.items()}
            return figures, undecided | (unread if function != "count" else set())
        case [function]:
            of_all = figure(function, [found[i] for i in kept])
            return of_all, undecided | (unread if function != "count" else set())
    raise AssertionError


def given_by(shape: Sequence[Any], answer: Answer) -> Any:
    """What an answer says, in the form of `expected`."""
    cells = [dict(zip(answer.columns, line.cells, strict=True)) for line in answer.lines]
    match shape:
        case ["rows"]:
            return sorted(row for line in answer.lines for row in line.rows)
        case ["first", *_]:
            return [float(line[FEE] or "") for line in cells if line[FEE] not in {*NONE, *UNREAD}]
        case ["group", _]:
            groups = {plain(line.cells[0] or ""): line.cells[1] for line in answer.lines}
            return {city: float(x) if x else None for city, x in groups.items()}
    (line,) = answer.lines
    return float(line.cells[0]) if line.cells[0] else None


def same(one: Any, other: Any) -> bool:
    return (
        bool(one == pytest.approx(other, abs=1e-9, nan_ok=True))
        if other is not None
        else one is None
    )


def lookup_of(found: list[Record]) -> Lookup:
    assume(sum(record[FEE] == "50%" for record in found) < len(CLEAN))
    return Lookup(QueryTable(Rows(tuple(Row("", dict(record)) for record in found))))


@given(
    records(CITIES),
    wheres(on_text | on_number | (on_text | on_number).map(opposite)),
    shapes,
)
def test_json_gives_what_plain_python_does(
    found: list[Record], where: Where | None, shape: Sequence[Any]
) -> None:
    query = asked(shape, where)
    result, undecided = expected(shape, where, found)
    answer = lookup_of(found).answer(json.dumps(query))
    assert same(given_by(shape, answer), result)
    assert set(answer.undecided) == undecided
