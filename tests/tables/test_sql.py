from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pearl.documents.rows import Row, Rows
from pearl.errors import UsageError
from pearl.tables import SqlEngine, check_engine, sql_child
from pearl.tables.query_table import QueryTable
from pearl.tables.specification import QueryError
from pearl.tables.sql import SqlLimits, SqlTable, _duckdb_data
from tests.skips import NO_LIMITS, needs
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
DUCKDB = needs("duckdb")
ENGINES = pytest.mark.parametrize(
    "engine", ["sqlite", pytest.param("duckdb", marks=[DUCKDB, pytest.mark.slow])]
)
"""Each statement of duckdb loads it anew in a child process."""
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
        ("SELECT City FROM clinics ORDER BY Since NULLS LAST LIMIT 1", [("Tel Aviv-Yafo",)], [()]),
        ("SELECT row_id, City, Fee, Since, Note FROM clinics WHERE Fee > 100 AND row_id < 2", [("Tel Aviv-Yafo", "120", "2019-05-01", "")], [(1,)]),
        ("SELECT Fee / 4.0 AS x, Fee = 90 AS is_it FROM clinics WHERE row_id = 0", [("22.5", "1")], [()]),
        ("SELECT City FROM clinics WHERE Since < '2020-01-01'", [("Tel Aviv-Yafo",)], [()]),
        ("WITH x(c) AS (SELECT City FROM clinics) SELECT count(*) FROM x", [("3",)], [()]),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT sum(n), count(*) FROM r", [("10", "4")], [()]),
        ("SELECT City, rank() OVER (ORDER BY row_id DESC) AS r FROM clinics WHERE row_id < 1", [("Haifa", "1")], [()]),
        ("SELECT City FROM clinics WHERE fold(City) LIKE 'zur%'", [("Zürich",)], [()]),
        ("SELECT a.City FROM clinics a JOIN (SELECT max(Fee) AS m FROM clinics WHERE Fee < 1000) ON a.Fee = m", [("Tel Aviv-Yafo",)], [()]),
        ("SELECT City FROM clinics UNION SELECT 'x' EXCEPT SELECT 'x' ORDER BY City LIMIT 1", [("Haifa",)], [()]),
    ],
)  # fmt: skip
@ENGINES
def test_a_select_is_run(engine: SqlEngine, sql: str, cells: object, rows: object) -> None:
    result = SqlTable(CLINICS, engine=engine).run(sql)
    assert [line.rows for line in result.lines] == rows
    assert [line.cells for line in result.lines] == cells


@pytest.mark.parametrize(
    ("engine", "sql", "cells"),
    [
        ("sqlite", "SELECT count(*), sum(Fee) FROM clinics WHERE typeof(Fee) <> 'null'", ("2", "210")),
        pytest.param("duckdb", "SELECT median(Fee), count(Fee), stddev_pop(Fee) FROM clinics", ("105", "2", "15"), marks=DUCKDB),
        pytest.param("duckdb", "SELECT max(year(Since)), min(Since) + INTERVAL 1 DAY FROM clinics", ("2020", "2019-05-02 00:00:00"), marks=DUCKDB),
        pytest.param("duckdb", "FROM clinics SELECT string_agg(City, '; ' ORDER BY City DESC) WHERE regexp_matches(City, '^.[ae]')", ("Tel Aviv-Yafo; Haifa",), marks=DUCKDB),
        pytest.param("duckdb", "SELECT 1.25::DECIMAL(9, 4), 2::HUGEINT ** 70, 'x'::BLOB, [1, NULL], 0.0 / 0, true", ("1.25", "1.1805916207174113e+21", "78", "[1, null]", "", "1"), marks=DUCKDB),
    ],
)  # fmt: skip
def test_functions_of_one_engine(engine: SqlEngine, sql: str, cells: tuple[str, ...]) -> None:
    (line,) = SqlTable(CLINICS, engine=engine).run(sql).lines
    assert line.cells == cells


FEES = QueryTable(
    Rows(
        tuple(
            Row("", {"Name": name, "Unit price": fee, "Since": since, "Note": note, "Number": "5"})
            for name, fee, since, note in [
                ("Ada", "90", "2020-01-02", "x"),
                ("Ben", "ask", "2019-05-01", "y"),
                ("Cyd", "110", "2021", "needle"),
                ("Dan", "n/a", "", "z" * 16_000 + " needle"),
                ("Eve", "50", "2018-03-04", ""),
                ("ÉVA", "", "2017-01-01", "10"),
                ("Fay", "100", "2022-05-06", "7"),
            ]
        )
    )
)


@pytest.mark.parametrize(
    ("sql", "cells", "undecided"),
    [
        ('SELECT avg("Unit price") AS x FROM rows', [("87.5",)], (1,)),
        ('SELECT max("Unit price") AS x, min(Since) AS y FROM rows', [("110", "2017-01-01")], (1, 2)),
        ('SELECT count(*) AS n FROM rows WHERE "Unit price" > 100', [("1",)], (1, 3)),
        ('SELECT count("Unit price") AS n FROM rows', [("4",)], (1, 3)),
        ('SELECT row_id, Name FROM rows WHERE "Unit price" > 60 AND Name < \'c\'', [("Ada",)], (1,)),
        ('SELECT Name FROM rows ORDER BY "Unit price" LIMIT 1', [("Eve",)], (1,)),
        ('SELECT rows.Name FROM rows ORDER BY rows."Unit price" DESC, Name LIMIT 1', [("Cyd",)], (1,)),
        ('SELECT Name FROM rows ORDER BY rows."Unit price", Name LIMIT 1', [("Eve",)], (1,)),
        ('SELECT sum(x) AS y FROM (SELECT "Unit price" AS p, sum("Unit price") OVER (ORDER BY "Unit price" ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM rows) WHERE p < 100', [("190",)], (1, 3)),
        ('SELECT row_id, Name FROM rows ORDER BY "Unit price" DESC LIMIT 4', [("Cyd",), ("Fay",), ("Ada",), ("Eve",)], (1,)),
        ("SELECT row_id, Name FROM rows WHERE row_id < 3 ORDER BY 2 DESC", [("Cyd",), ("Ben",), ("Ada",)], ()),
        ('SELECT row_id, "Unit price" FROM rows ORDER BY 2 DESC LIMIT 1', [("110",)], (1,)),
        ('SELECT * FROM rows WHERE row_id = 1', [("Ben", "ask", "2019-05-01", "y", "5")], ()),
        ('SELECT Name, "Unit price" FROM rows WHERE row_id = 1', [("Ben", "")], (1,)),
        ("SELECT row_id, Name FROM rows WHERE Note LIKE '%needle%'", [("Cyd",)], (3,)),
        ("SELECT sum(length(Note)) AS n FROM rows WHERE Name <> 'Dan'", [("11",)], ()),
        ("SELECT row_id, Name FROM rows WHERE \"Unit price\" = '90' OR \"Unit price\" IN ('50')", [("Ada",), ("Eve",)], (1, 3)),
        ("SELECT count(*) AS n FROM rows HAVING sum(\"Unit price\") > '99'", [("7",)], (1,)),
        ("SELECT row_id, Name FROM rows WHERE trim(Name) = 'éva'", [("ÉVA",)], ()),
        ("SELECT row_id, Name FROM rows WHERE '99' < abs(\"Unit price\") AND coalesce(rows.\"Unit price\", 0) <> '100' AND Name < 'E'", [("Cyd",)], (1, 3)),
        ('SELECT "Unit price" / 4 AS x FROM rows WHERE Name = \'Ada\'', [("22.5",)], ()),
        ("SELECT CASE \"Unit price\" WHEN '90' THEN 'yes' END AS x FROM rows WHERE Name = 'Ada'", [("yes",)], ()),
        ('SELECT row_id, Name FROM rows WHERE "Unit price" < Number IS NULL', [("ÉVA",)], (1, 3)),
        ("SELECT row_id, Name FROM rows WHERE Since < '2019-01-01' OR Since IS NULL", [("Dan",), ("Eve",), ("ÉVA",)], (2,)),
        ("WITH x AS (SELECT * FROM rows WHERE Name = 'Ada') SELECT Name AS n FROM x", [("Ada",)], (1, 2, 3)),
    ],
)  # fmt: skip
@ENGINES
def test_a_row_with_a_cell_that_sql_cannot_read_is_undecided(
    engine: SqlEngine, sql: str, cells: object, undecided: tuple[int, ...]
) -> None:
    result = SqlTable(FEES, engine=engine).run(sql)
    assert ([line.cells for line in result.lines], result.undecided) == (cells, undecided)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ('SELECT Name FROM rows WHERE "Fees" > 60', "the table has no column 'Fees'"),
        ('SELECT "Fees" FROM rows', "the table has no column 'Fees'"),
        ("SELECT Name FROM rows WHERE 'Unit price' > 60", 'write the column as "Unit price"'),
        ("SELECT sum('Unit price') FROM rows", 'write the column as "Unit price"'),
        ("SELECT Name FROM rows WHERE \"Unit price\" < '$90'", "Unit price is a column of numbers; '$90' is not one"),
        ("SELECT Name FROM rows WHERE 'ask' < rows.\"Unit price\"", "Unit price is a column of numbers; 'ask' is not one"),
        ("SELECT Name FROM rows WHERE \"Unit price\" BETWEEN 5 AND 'x'", "Unit price is a column of numbers; 'x' is not one"),
        ("SELECT Name FROM rows WHERE Since NOT IN ('2019')", "Since is a column of days"),
        ("SELECT Name FROM rows WHERE Since > 2019", "Since is a column of days"),
        ("SELECT Name FROM rows WHERE Note > -5", "Note is a column of texts"),
        ("SELECT sum(Note) FROM rows", "Note is not a column of numbers; it has 'x'"),
        ("SELECT max(DISTINCT r.Note) FROM rows r", "Note is not a column of numbers"),
        ("SELECT avg(CAST(Note AS REAL)) FROM rows", "Note is not a column of numbers"),
        ("SELECT Note * 2 FROM rows", "Note is not a column of numbers"),
        ("SELECT Note FROM rows", "a cell of the result has more than 4,000 characters; select row_id"),
    ],
)  # fmt: skip
@ENGINES
def test_values_of_another_type_are_refused(engine: SqlEngine, sql: str, told: str) -> None:
    table = SqlTable(FEES, SqlLimits(), engine)
    if "4,000" in told:
        rows = Rows((Row("", {"Note": "z" * 5_000}),))
        table = SqlTable(QueryTable(rows), engine=engine)
    with pytest.raises(QueryError) as caught:
        table.run(sql)
    assert told in str(caught.value)


MONEY = QueryTable(
    Rows(
        tuple(
            Row("", {"Price": price, "Plan": "Basic", "From": begin, "To": end})
            for price, begin, end in [
                ("1.250,00", "2020-01-01", "2020-01-31"),
                ("99,95", "2019-12-31", "2020-01-10"),
                ("7,00", "2020-03-01", "2021-03-01"),
            ]
        )
    )
)


@pytest.mark.parametrize(
    "expression",
    [
        "sum(CAST(replace(Price, ',', '.') AS REAL))",
        "sum(coalesce(Price, 0))",
        "sum(replace(Price, ',', '.') + 0)",
        "avg(substr(Price, 1) * 1)",
        "sum(CASE WHEN replace(Price, ',', '.') > 50 THEN 1 ELSE 0 END)",
        "max(replace(Price, ',', '.'))",
        'max("To" - "From")',
        'avg("From")',
    ],
)
def test_sqlite_refuses_texts_and_days_as_numbers(expression: str) -> None:
    with pytest.raises(QueryError, match=r"(?:not a number|texts|not a column of numbers)"):
        SqlTable(MONEY).run(f"SELECT {expression} FROM rows")


def test_texts_that_are_numbers_and_days_are_computed_with_in_sqlite() -> None:
    result = SqlTable(MONEY).run(
        "SELECT sum(CAST(substr(Price, -2) AS REAL)), sum(substr(Price, -2) + 0) * 2,"
        ' sum(julianday("To") - julianday("From")) FROM rows'
    )
    assert [line.cells for line in result.lines] == [("95", "190", "405")]
    assert result.columns[:2] == (
        "sum(CAST(substr(Price, -2) AS REAL))",
        "sum(substr(Price, -2) + 0) * 2",
    )


@ENGINES
def test_a_row_is_cited_only_if_the_line_shows_what_it_has(engine: SqlEngine) -> None:
    table = SqlTable(CLINICS, engine=engine)
    result = table.run("SELECT 1 AS row_id, City FROM clinics")
    assert [line.rows for line in result.lines] == [(), (1,), ()]
    result = table.run("SELECT row_id, Fee, Since FROM clinics")
    assert [line.rows for line in result.lines] == [(0,), (1,), (2,)]
    result = table.run("SELECT row_id + 100 AS row_id FROM clinics")
    assert [line.rows for line in result.lines] == [(), (), ()]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT Citi FROM clinics", "the table has no column 'Citi'; did you mean \"City\"? it has: City, Fee"),
        ("SELECT c.Citi FROM clinics AS c", "the table has no column 'Citi'; did you mean \"City\"? it has: City, Fee"),
        ("SELECT * FROM secret", "no such table: secret; the table is called clinics"),
        ("SELECT * FROM sqlite_master", "only the table clinics may be read"),
        ("DELETE FROM clinics", "only one SELECT is allowed"),
        ("SELECT random()", "the function random is not available"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELECT FROM WHERE", "syntax error"),
        ("", "the SQL statement is empty"),
    ],
)  # fmt: skip
@ENGINES
def test_errors_name_the_cause_and_alternatives(engine: SqlEngine, sql: str, told: str) -> None:
    with pytest.raises(QueryError) as caught:
        SqlTable(CLINICS, engine=engine).run(sql)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@ENGINES
def test_more_lines_than_the_limit_are_refused(engine: SqlEngine) -> None:
    with pytest.raises(QueryError, match="returns more than 10 lines; narrow it down"):
        SqlTable(MANY, SqlLimits(max_rows=10), engine).run("SELECT City FROM clinics")


def reached(sql: str, table: SqlTable) -> str:
    """What a statement gave, or that it was refused."""
    try:
        result = table.run(sql)
    except QueryError as error:
        return f"refused: {error}"
    return repr(result)


def hostile(engine: SqlEngine) -> list[str]:
    """What SQLite has to refuse; DuckDB also what its own dialect has to offer."""
    own = lines("hostile_duckdb.txt") if engine == "duckdb" else []
    return [*own, *lines("hostile_sql.txt"), *SQL_THAT_IS_NONE]


RUN_BY_DUCKDB = (
    "SELECT * FROM generate_series(1,",
    "SELECT ((((",
    "SELECT City FROM clinics UNION ALL",
    "SELECT coalesce(1,",
)
"""How those begin that read the table, or nothing, and are within its limits."""


class ReadHere(SqlTable):
    """What the child refuses as it reads a statement, before it runs any of it, is refused here by the same code."""

    def __init__(self, table: QueryTable) -> None:
        super().__init__(table, engine="duckdb")
        request = {"memory_bytes": self.limits.memory_bytes, "table": table.name}
        self._connection = sql_child._open_duckdb(request, self._data)

    def _ask(self, sql: str, max_rows: int) -> dict[str, Any]:
        import duckdb

        try:
            sql_child._check(sql_child._parsed(self._connection.cursor(), sql), self.table.name)
        except sql_child._RefusedError as error:
            raise QueryError(f"in reading: {error.reply}") from None
        except (RecursionError, duckdb.Error):
            pass  # it depends on the process
        return super()._ask(sql, max_rows)


def check_that_nothing_is_reached(
    engine: SqlEngine,
    statements: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    table_type: Callable[[QueryTable], SqlTable] | None = None,
) -> None:
    (folder / CANARY).write_text(CANARY * 2)
    monkeypatch.chdir(folder)
    monkeypatch.setitem(os.environ, CANARY, CANARY * 2)
    secret = SqlTable(QueryTable(Rows((Row("", {"note": CANARY * 2}),)), "secret"), engine=engine)
    assert secret.run("SELECT note FROM secret").lines
    table = table_type(CLINICS) if table_type else SqlTable(CLINICS, engine=engine)
    harmless = RUN_BY_DUCKDB if engine == "duckdb" else ()
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda sql: reached(sql, table), statements))
    for sql, one in zip(statements, said, strict=True):
        assert one.startswith("refused: ") or sql.startswith(harmless), sql
        assert CANARY * 2 not in one
    assert [path.name for path in folder.iterdir()] == [CANARY]
    assert len(table.run("SELECT * FROM clinics").lines) == 3


@ENGINES
def test_some_hostile_statements_reach_nothing(
    engine: SqlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_that_nothing_is_reached(engine, hostile(engine)[::12], tmp_path, monkeypatch)


@pytest.mark.slow
@ENGINES
def test_all_hostile_statements_reach_nothing(
    engine: SqlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child for each that is not refused in reading: DuckDB takes it 0.15 s to load."""
    assert len(hostile(engine)) >= {"sqlite": 150, "duckdb": 350}[engine]
    table_type = ReadHere if engine == "duckdb" else None
    check_that_nothing_is_reached(engine, hostile(engine), tmp_path, monkeypatch, table_type)


GREEDY = [("sqlite", sql) for sql in lines("greedy_sql.txt")]
GREEDY_DUCKDB = [("duckdb", sql) for sql in lines("greedy_duckdb.txt")]


@pytest.mark.parametrize(
    ("engine", "sql"),
    [
        pytest.param(*one, marks=[*marks, *([pytest.mark.slow] if i % 9 else [])])
        for all_of_one, marks in ((GREEDY, []), (GREEDY_DUCKDB, [DUCKDB]))
        for i, one in enumerate(all_of_one)
    ],
)
def test_greedy_statements_end(engine: SqlEngine, sql: str) -> None:
    said = reached(sql, SqlTable(MANY, SqlLimits(seconds=0.5, memory_bytes=256_000_000), engine))
    if engine == "duckdb":
        assert said.startswith(("refused: it was stopped", "refused: it needs more memory")), said


def change_the_child(probe: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it do something before it looks at the statement."""
    source = Path(sql_child.__file__).read_text(encoding="utf-8")
    first = "    try:\n        reply = answer("
    assert source.count(first) == 1
    changed = folder / "child.py"
    changed.write_text(source.replace(first, probe + first), encoding="utf-8")
    monkeypatch.setattr("pearl.tables.sql._CHILD", changed)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason=NO_LIMITS)
@ENGINES
def test_waiting_on_a_busy_machine_does_not_count_as_time_of_the_statement(
    engine: SqlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = SqlTable(CLINICS, SqlLimits(seconds=2), engine)
    change_the_child("    import time\n    time.sleep(3)\n", tmp_path, monkeypatch)
    assert table.run("SELECT City FROM clinics WHERE row_id = 0").lines[0].cells == ("Haifa",)


@pytest.mark.skipif(os.name == "nt", reason=NO_LIMITS)
@ENGINES
def test_the_child_can_open_nothing_and_knows_no_environment(
    engine: SqlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a statement that got past the locks of an engine would find nothing to open."""
    probe = """\
    import os
    found = dict(os.environ)
    for act in (lambda: open("/etc/passwd"), os.pipe, lambda: __import__("socket").socket()):
        try:
            act()
            found["opened"] = "yes"
        except (OSError, ImportError):
            found["refused"] = "yes"
    _send(json.dumps({"refused": "error", "what": repr(found)}))
    return
"""
    monkeypatch.setitem(os.environ, CANARY, "1")
    table = SqlTable(CLINICS, engine=engine)
    change_the_child(probe, tmp_path, monkeypatch)
    said = reached("SELECT 1", table)
    assert CANARY not in said
    assert "'refused': 'yes'" in said
    assert "opened" not in said


@DUCKDB
@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT * FROM read_text('CANARY')", "SELECT * FROM 'CANARY'", "COPY clinics TO 'CANARY.csv'"),
        *("INSTALL httpfs", "LOAD httpfs", "ATTACH 'CANARY.db'", "SET lock_configuration = false"),
        *("SET enable_external_access = true", "WITH x AS (INSERT INTO clinics (City) VALUES ('x') RETURNING *) FROM x"),
        *("DROP TABLE clinics", "SELECT * FROM glob('*')", "SELECT * FROM request", "SELECT * FROM sniff_csv('CANARY')"),
    ],
)  # fmt: skip
def test_the_other_locks_of_duckdb_hold_without_the_check_of_the_statement(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(CANARY).write_text(CANARY * 2)
    Path(f"{CANARY}.csv").write_text("a\n1\n")
    monkeypatch.setattr(sql_child, "_check", lambda *_: None)
    monkeypatch.setattr(sql_child, "_parsed", lambda *_: {})
    table = _duckdb_data("clinics", [("row_id", "number", [0]), ("City", "text", ["Haifa"])])
    request = {"memory_bytes": 256_000_000, "table": "clinics", "max_rows": 9}
    connection = sql_child._open_duckdb(request, table)
    statement = statement.replace("CANARY", CANARY)
    said = sql_child._answer_duckdb(connection, {**request, "sql": statement})
    assert "refused" in said, said
    assert sorted(path.name for path in tmp_path.iterdir()) == [CANARY, f"{CANARY}.csv"]


def test_unknown_and_missing_engines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="unknown SQL engine 'duckbd'") as caught:
        check_engine("duckbd")
    assert "did you mean 'duckdb'?" in (caught.value.help or "")
    monkeypatch.setattr("pearl.tables.find_spec", lambda _: None)
    check_engine("sqlite")
    with pytest.raises(UsageError, match="needs a package") as caught:
        check_engine("duckdb")
    assert "[duckdb]" in (caught.value.help or "")


@pytest.mark.parametrize("name", ["", "two words", "x;y", "sqlite_x", '"', "7"])
def test_a_table_has_a_name_that_sql_can_take(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a table"):
        QueryTable(CLINICS.rows, name)


@ENGINES
def test_long_cells_and_marks_in_names_are_no_trouble(engine: SqlEngine) -> None:
    rows = Rows((Row("", {'a "b" [c]': "𝔘" * 40_000, "x'; --": "\0 y"}),))
    result = SqlTable(QueryTable(rows), engine=engine).run("SELECT * FROM rows")
    assert result.columns == ('a "b" [c]', "x'; --")
    assert [line.rows for line in result.lines] == [(0,)]
