"""Queries give what plain Python gives, over generated records."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pearl.documents.rows import Row, Rows
from pearl.tables.columns import QueryTable
from pearl.tables.lookup import Lookup
from pearl.tables.running import Answer
from pearl.tables.specification import AllOf, AnyOf, Condition, Not, Where

Record = Mapping[str, str]


def plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(kept.casefold().split())


def meets(record: Record, where: Where | None, numeric: Sequence[str] = ()) -> bool | None:
    """Whether a record meets a condition; None if that is undecided."""
    match where:
        case None:
            return True
        case AllOf():
            said = [meets(record, one, numeric) for one in where.all]
            return False if False in said else None if None in said else True
        case AnyOf():
            said = [meets(record, one, numeric) for one in where.any]
            return True if True in said else None if None in said else False
        case Not():
            inner = meets(record, where.no, numeric)
            return None if inner is None else not inner
        case Condition():
            return _meets(record[where.column], where, where.column in numeric)


def _meets(cell: str, one: Condition, is_numeric: bool) -> bool | None:
    match one.op:
        case "is empty":
            return plain(cell) == ""
        case "is not empty":
            return plain(cell) != ""
        case "contains":
            return _contains(cell, one.value[0])
        case "does not contain":
            return not _contains(cell, one.value[0])
        case "is" | "in" | "is not" | "not in":
            same = _same(cell, one.value, is_numeric)
            return same if one.op in ("is", "in") or same is None else not same
    if not cell.strip():
        return False
    number = _number(cell)
    if number is None:
        return None
    wanted = float(one.value[0])
    return {
        "before": number < wanted,
        "after": number > wanted,
        "at least": number >= wanted,
        "at most": number <= wanted,
    }[one.op]


def _same(cell: str, values: Sequence[str], is_numeric: bool) -> bool | None:
    if not is_numeric:
        return plain(cell) in map(plain, values)
    if not cell.strip():
        return False
    number = _number(cell)
    return None if number is None else number in map(float, values)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _contains(cell: str, value: str) -> bool:
    """Whether the words stand in the cell one after another, the last one at least in part."""
    text, wanted = plain(cell), plain(value)
    words = re.findall(r"[a-z0-9]+", wanted.replace("'", ""))
    if not wanted.isascii() or not words:
        return wanted in text
    if set(wanted) & set("%()+") and wanted not in text:
        return False
    pattern = r"(?<![^\W_])" + r"[\W_]+".join(words)
    return re.search(pattern, re.sub(r"(?<=\w)'(?=\w)", "", text)) is not None


NUMBERS = ["120", "90", "90.5", "0", "-3", "1000", "7"]
NONE = ["", "n/a", "—"]
UNREAD = ["ask", "<5", "50%", "#DIV/0!"]

CITIES = [
    "Haifa", "Eilat", "Tel Aviv", "O'Hare", "", "HAIFA ", "Tel Aviv-Yafo", "tel  aviv-yafo", "Zürich", "Zurich",
    "İzmir", "%", "_", "a'b",
]  # fmt: skip
PARTS = [
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
TEXTS = [*CITIES, *PARTS]
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
