"""A query as JSON, and as SQL in each engine, gives what plain Python does, over tables with cells that are no numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pearl.documents.rows import Row, Rows
from pearl.tables import SqlEngine
from pearl.tables.lookup import Lookup
from pearl.tables.query_table import QueryTable
from pearl.tables.running import Answer
from pearl.tables.specification import AllOf, AnyOf, Condition, Not, Where
from tests.examples import examples
from tests.tables.filtering import Record, meets
from tests.tables.test_sql import ENGINES

NUMBERS = ["120", "90", "90.5", "0", "-3", "1000", "7"]
NONE = ["", "n/a", "—"]
UNREAD = ["ask", "<5", "50%", "#DIV/0!"]
CITIES = ["Haifa", "Eilat", "Tel Aviv", "O'Hare", ""]
FEE = "Unit price"
CLEAN = [{"City": "Lod", FEE: str(fee)} for fee in range(11, 17)]
"""More different numbers than there are texts, so that the column is one of numbers."""

records = st.lists(
    st.fixed_dictionaries(
        {
            "City": st.sampled_from(CITIES),
            FEE: st.sampled_from([*NUMBERS, *NUMBERS, *NONE, *UNREAD]),
        }
    ),
    max_size=15,
).map(lambda found: [*found, *CLEAN])
on_text: st.SearchStrategy[Where] = st.builds(
    lambda op, value: Condition(column="City", op=op, value=(value,)),
    st.sampled_from(["is", "is not"]), st.sampled_from([city for city in CITIES if city]),
) | st.just(Condition(column="City", op="is empty"))  # fmt: skip
on_number: st.SearchStrategy[Where] = st.builds(
    lambda op, value: Condition(column=FEE, op=op, value=(value,)),
    st.sampled_from(["is", "before", "after", "at least", "at most"]),
    st.sampled_from(["0", "7", "90", "90.5", "-3", "500"]),
)
wheres = st.none() | st.recursive(
    on_text | on_number | on_text.map(lambda no: Not(no=no)),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda all_: AllOf(all=tuple(all_)))
        | st.lists(inner, min_size=1, max_size=3).map(lambda any_: AnyOf(any=tuple(any_)))
    ),
    max_leaves=4,
)
shapes = st.sampled_from(
    [("rows",), *((name,) for name in ("count", "sum", "mean", "min", "max")),
     ("group", "count"), ("group", "sum"), ("first", "ASC", 2), ("first", "DESC", 4)]
)  # fmt: skip


def sql_of(where: Where) -> str:
    match where:
        case AllOf():
            return "(" + " AND ".join(map(sql_of, where.all)) + ")"
        case AnyOf():
            return "(" + " OR ".join(map(sql_of, where.any)) + ")"
        case Not():
            return f"NOT {sql_of(where.no)}"
        case Condition(column="City", op="is empty"):
            return "(City IS NULL)"
        case Condition(column="City"):
            value = where.value[0].replace("'", "''")
            is_value = f"(City IS NOT NULL AND City = '{value}')"
            return is_value if where.op == "is" else f"(NOT {is_value})"
        case _:
            sign = {"is": "=", "before": "<", "after": ">", "at least": ">=", "at most": "<="}
            value = where.value[0] if where.op == "after" else f"'{where.value[0]}'"
            return f'("{FEE}" {sign[where.op]} {value})'


def asked(shape: Sequence[Any], where: Where | None) -> tuple[dict[str, Any], str]:
    """The query in both notations."""
    condition = f" WHERE {sql_of(where)}" if where else ""
    query: dict[str, Any] = {"where": where and where.model_dump()}
    match shape:
        case ["rows"]:
            return query, f"SELECT * FROM rows{condition}"
        case ["first", order, limit]:
            query |= {"sort": {"by": FEE, "descending": order == "DESC"}, "limit": limit}
            return query, f'SELECT * FROM rows{condition} ORDER BY "{FEE}" {order} LIMIT {limit}'
        case [*groups, function]:
            column = {} if function == "count" else {"column": FEE}
            query["aggregate"] = {"function": function, **column}
            name = f'{function.replace("mean", "avg")}("{FEE}")' if column else "count(*)"
            if not groups:
                return query, f"SELECT {name} AS x FROM rows{condition}"
            query["group"] = ["City"]
            return query, f"SELECT City, {name} AS x FROM rows{condition} GROUP BY City"
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
            cities = {found[i]["City"] for i in kept}
            rows = {city: [found[i] for i in kept if found[i]["City"] == city] for city in cities}
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
            groups = {line.cells[0]: line.cells[1] for line in answer.lines}
            return {city: float(x) if x else None for city, x in groups.items()}
    (line,) = answer.lines
    return float(line.cells[0]) if line.cells[0] else None


def same(one: Any, other: Any) -> bool:
    return (
        bool(one == pytest.approx(other, abs=1e-9, nan_ok=True))
        if other is not None
        else one is None
    )


@pytest.mark.slow
@ENGINES
@given(found=records, where=wheres, shape=shapes)
@examples(100)
def test_json_and_sql_give_what_plain_python_does(
    engine: SqlEngine, found: list[Record], where: Where | None, shape: Sequence[Any]
) -> None:
    assume(sum(record[FEE] == "50%" for record in found) < len(CLEAN))
    lookup = Lookup(QueryTable(Rows(tuple(Row("", dict(record)) for record in found))))
    query, sql = asked(shape, where)
    result, undecided = expected(shape, where, found)
    as_json = lookup.answer(json.dumps(query))
    as_sql = lookup.answer(sql, engine)
    assert same(given_by(shape, as_json), result)
    assert set(as_json.undecided) == undecided
    assert same(given_by(shape, as_sql), result)
    is_exact = shape[0] != "first" or as_json.n_lines > shape[2]
    if is_exact:
        assert (set(as_sql.undecided), set(as_sql.notes)) == (undecided, set(as_json.notes))
    assert set(as_sql.undecided) >= undecided
