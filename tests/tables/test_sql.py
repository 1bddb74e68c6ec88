from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from pearl.documents.rows import Row, Rows
from pearl.tables import sqlite_child
from pearl.tables.query_table import QueryTable
from pearl.tables.sql import SqlError, SqlLimits, SqlTable, schema_sql
from tests.skips import NO_LIMITS
from tests.tables.hostile import CANARY, SQL_THAT_IS_NONE, lines

CLINICS = QueryTable(
    Rows(
        tuple(
            Row("", {"City": city, "Fee": fee, "Since": since, "Note": ""})
            for city, fee, since in [
                ("Haifa", "90", "2020-01-02"),
                ("Tel Aviv-Yafo", "120", "2019-05-01"),
                ("Zürich", "ask", "2021"),
            ]
        )
    ),
    "clinics",
)
MANY = QueryTable(
    Rows(
        tuple(
            Row("", {"City": f"City {i % 50}", "Fee": str(i % 97), "Note": f"{i} abcdefghi" * 10})
            for i in range(3_000)
        )
    ),
    "clinics",
)


@pytest.mark.parametrize(
    ("sql", "cells", "rows"),
    [
        ("SELECT row_id, City FROM clinics WHERE City = 'haifa'", [("Haifa",)], [(0,)]),
        ("SELECT * FROM clinics WHERE fold(City) LIKE 'zur%'", [("Zürich", "ask", "2021", "")], [(2,)]),
        ("SELECT count(*), sum(Fee) FROM clinics WHERE typeof(Fee) <> 'text'", [("2", "210")], [()]),
        ("SELECT City FROM clinics ORDER BY Since LIMIT 1", [("Tel Aviv-Yafo",)], [()]),
        ("WITH x(c) AS (SELECT City FROM clinics) SELECT count(*) FROM x", [("3",)], [()]),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT sum(n), count(*) FROM r", [("10", "4")], [()]),
        ("SELECT City, rank() OVER (ORDER BY row_id DESC) AS r FROM clinics WHERE row_id < 1", [("Haifa", "1")], [()]),
    ],
)  # fmt: skip
def test_a_select_is_run(sql: str, cells: object, rows: object) -> None:
    result = SqlTable(CLINICS).run(sql)
    assert [line.cells for line in result.lines] == cells
    assert [line.rows for line in result.lines] == rows


def test_a_row_is_cited_only_if_the_line_shows_what_it_has() -> None:
    result = SqlTable(CLINICS).run("SELECT 1 AS row_id, City FROM clinics")
    assert [line.rows for line in result.lines] == [(), (1,), ()]
    result = SqlTable(CLINICS).run("SELECT row_id + 100 AS row_id FROM clinics")
    assert [line.rows for line in result.lines] == [(), (), ()]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT Citi FROM clinics", "there is no column 'Citi'; did you mean \"City\"? the table has: City, Fee"),
        ("SELECT * FROM secret", "no such table: secret; the table is called clinics"),
        ("SELECT * FROM sqlite_master", "only the table clinics may be read"),
        ("DELETE FROM clinics", "only one SELECT is allowed"),
        ("SELECT random()", "there is no function random here"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("", "there is no SQL statement"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_to_whoever_wrote_it(sql: str, told: str) -> None:
    with pytest.raises(SqlError) as caught:
        SqlTable(CLINICS).run(sql)
    assert told in str(caught.value)


def test_more_lines_than_the_limit_are_left_out() -> None:
    result = SqlTable(MANY, SqlLimits(max_rows=10)).run("SELECT City FROM clinics")
    assert (len(result.lines), result.is_cut) == (10, True)


def test_the_schema_that_a_model_sees_is_that_of_the_table() -> None:
    assert schema_sql(CLINICS) == (
        "CREATE TABLE clinics (\n  row_id INTEGER,\n  City TEXT,\n  Fee NUMERIC,\n  Since DATE,\n  Note TEXT\n)"
    )


def reached(sql: str, table: SqlTable) -> str:
    """What a statement gave, or that it was refused."""
    try:
        result = table.run(sql)
    except SqlError as error:
        return f"refused: {error}"
    return repr(result)


HOSTILE = [*lines("hostile_sql.txt"), *SQL_THAT_IS_NONE]
A_FEW = HOSTILE[::12]


def check_that_nothing_is_reached(
    statements: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / CANARY).write_text(CANARY * 2)
    monkeypatch.chdir(folder)
    monkeypatch.setitem(os.environ, CANARY, CANARY * 2)
    secret = SqlTable(QueryTable(Rows((Row("", {"note": CANARY * 2}),)), "secret"))
    assert secret.run("SELECT note FROM secret").lines
    table = SqlTable(CLINICS)
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda sql: reached(sql, table), statements))
    for sql, one in zip(statements, said, strict=True):
        assert one.startswith("refused: "), sql
        assert CANARY * 2 not in one
    assert [path.name for path in folder.iterdir()] == [CANARY]
    assert len(table.run("SELECT * FROM clinics").lines) == 3


def test_some_hostile_statements_reach_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_that_nothing_is_reached(A_FEW, tmp_path, monkeypatch)


@pytest.mark.slow
def test_all_hostile_statements_reach_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(HOSTILE) >= 150
    check_that_nothing_is_reached(HOSTILE, tmp_path, monkeypatch)


GREEDY = lines("greedy_sql.txt")


@pytest.mark.parametrize(
    "sql", [*GREEDY[::9], *(pytest.param(sql, marks=pytest.mark.slow) for sql in GREEDY)]
)
def test_greedy_statements_end(sql: str) -> None:
    """`experiments/bench/table_queries.py` measures how long they take."""
    said = reached(sql, SqlTable(MANY, SqlLimits(seconds=0.5, memory_bytes=256_000_000)))
    assert isinstance(said, str)


@pytest.mark.skipif(os.name == "nt", reason=NO_LIMITS)
def test_the_child_can_open_nothing_and_knows_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a statement that got past SQLite's own locks would find nothing to open."""
    source = Path(sqlite_child.__file__).read_text(encoding="utf-8")
    probe = """\
    import os
    found = dict(os.environ)
    for act in (lambda: open("/etc/passwd"), os.pipe, lambda: __import__("socket").socket()):
        try:
            act()
            found["opened"] = "yes"
        except (OSError, ImportError):
            found["refused"] = "yes"
    return {"error": repr(found)}
"""
    first = "    connection = sqlite3.connect("
    assert source.count(first) == 1
    changed = tmp_path / "child.py"
    changed.write_text(source.replace(first, probe + first), encoding="utf-8")
    monkeypatch.setitem(os.environ, CANARY, "1")
    monkeypatch.setattr(
        "pearl.tables.sql.find_spec", lambda _: SimpleNamespace(origin=str(changed))
    )
    said = reached("SELECT 1", SqlTable(CLINICS))
    assert CANARY not in said
    assert "'refused': 'yes'" in said
    assert "opened" not in said


@pytest.mark.parametrize("name", ["", "two words", "x;y", "sqlite_x", '"', "7"])
def test_a_table_has_a_name_that_sql_can_take(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a table"):
        QueryTable(CLINICS.rows, name)


def test_long_cells_and_marks_in_names_are_no_trouble() -> None:
    rows = Rows((Row("", {'a "b" [c]': "𝔘" * 40_000, "x'; --": "\0 y"}),))
    result = SqlTable(QueryTable(rows)).run("SELECT * FROM rows")
    assert result.columns == ('a "b" [c]', "x'; --")
    assert [line.rows for line in result.lines] == [(0,)]
