"""Queries of small tables: their lines, the rows behind them, and what is undecided (`queries.toml`)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pearl.actions import native
from pearl.documents.rows import Row, Rows, Stated
from pearl.tables.columns import QueryTable
from pearl.tables.lookup import Lookup
from pearl.tables.running import run
from pearl.tables.specification import read_query

CASES = tomllib.loads(Path(__file__).with_name("queries.toml").read_text("utf-8"))


def table(columns: dict[str, list[str]]) -> QueryTable:
    cells = [[None if c == "?" else c for c in column] for column in columns.values()]
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True))
    return QueryTable(Rows(tuple(Row("", row) for row in rows)))


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in CASES["cases"].items() for case in cases]
)
def test_a_query_gives_its_lines(name: str, case: dict[str, Any]) -> None:
    of = table(CASES["tables"][name])
    if error := case.get("error"):
        with pytest.raises(ValueError, match=re.escape(error)):
            run(read_query(case["query"]), of)
        return
    result = run(read_query(case["query"]), of)
    told = {
        "headings": list(result.columns),
        "lines": [["?" if cell is None else cell for cell in line.cells] for line in result.lines],
        "rows": [list(line.rows) for line in result.lines],
        "undecided": list(result.undecided),
    }
    assert told == told | {key: value for key, value in case.items() if key in told}
    assert case.get("note", "") in "\n".join(result.notes)


@pytest.mark.parametrize("case", CASES["columns"]["sum"], ids=lambda case: "|".join(case["cells"]))
def test_a_figure_is_undecided_where_a_value_is_left_out(case: dict[str, Any]) -> None:
    query = read_query({"aggregate": {"function": "sum", "column": "x"}})
    result = run(query, table({"x": case["cells"]}))
    assert result.lines[0].cells == (case["sum"],)
    assert list(result.undecided) == case.get("undecided", [])


@pytest.mark.parametrize(
    ("op", "case"), [(op, case) for op in ("is", "at_least") for case in CASES["columns"][op]]
)
def test_a_value_is_found_as_its_column_is_read(op: str, case: dict[str, Any]) -> None:
    where = {"column": "x", "op": op.replace("_", " "), "value": case["value"]}
    result = run(read_query({"where": where}), table({"x": case["cells"]}))
    assert [line.rows[0] for line in result.lines] == case["rows"]
    assert list(result.undecided) == case.get("undecided", [])


@pytest.mark.parametrize("case", CASES["columns"]["at_least"])
def test_a_plan_reads_a_cell_as_a_query_does(case: dict[str, Any]) -> None:
    rows = Rows(tuple(Row(f"{i}", {"x": cell}) for i, cell in enumerate(case["cells"])))
    where = native.known()["WHERE"]
    found = native.compute(where, [rows, "x", "at least", case["value"]])
    assert isinstance(found, Rows)
    assert found.values == list(map(str, case["rows"]))
    assert [row.value for row in found.doubtful] == list(map(str, case.get("undecided", [])))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Pharmacies", "no row meets: Kind is 'Pharmacies' (Kind has: Pharmacy"),
        ("Clinic", "rows that meet each: City is 'Haifa': 1, Kind is 'Clinic': 1. Without City is 'Haifa' there are 1"),
    ],
)  # fmt: skip
def test_an_empty_result_names_the_condition_that_no_row_meets(kind: str, words: str) -> None:
    small = table({"City": ["Haifa", "Eilat"], "Kind": ["Pharmacy", "Clinic"]})
    wanted = {"City": "Haifa", "Kind": kind}
    where = [{"column": name, "op": "is", "value": value} for name, value in wanted.items()]
    result = run(read_query({"where": where}), small)
    assert not result.lines
    assert words in str(Lookup(small).why_empty(result))


def test_doubtful_rows_that_may_meet_a_condition_are_undecided_whatever_their_cells_are() -> None:
    sure = [Row(n, {"Fee": n, "City": "Lod"}) for n in ("10", "20")]
    doubtful = [
        Row(n, {"Fee": n, "City": "Lod"})
        for n in ("30", "5", "$5", "-2 thousand", "ask", "no", "free", "")
    ]
    rows = QueryTable(Rows(tuple(sure), doubtful=tuple(doubtful)))
    result = run(read_query({"where": {"column": "Fee", "op": "after", "value": "15"}}), rows)
    assert [line.rows for line in result.lines] == [(1,)]
    assert [row.value for row in result.doubtful] == ["30", "$5", "ask", "no", "free"]
    assert "5 doubtful rows left out" in result.notes


def test_a_count_says_how_many_rows_state_what_is_compared() -> None:
    where = {"column": "Age", "op": "at least", "value": "65"}
    query = read_query({"where": where, "aggregate": {"function": "count"}})
    assert run(query, table(CASES["tables"]["ages"])).stated == Stated(2, 3, 1, "Age")


def test_a_total_is_not_among_the_rows_whose_name_contains_its_word() -> None:
    wine, salt, total = (Row(name, {"Shop": name}) for name in ("Total Wine", "Salt", "Total"))
    shops = QueryTable(Rows((wine, salt), totals=(total,)))
    for op, rows in (("contains", [(0,)]), ("is", [(2,)])):
        where = {"column": "Shop", "op": op, "value": "total"}
        assert [line.rows for line in run(read_query({"where": where}), shops).lines] == rows
