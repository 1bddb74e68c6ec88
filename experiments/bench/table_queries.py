"""How long questions of a table of 23,000 rows take, without the model, and whether greedy SQL ends.

    python -m experiments.bench.table_queries [--rows 23000] [--limit 2.0] [--no-sql]

Prints milliseconds of 150 gold queries, of terms and rows for their questions, of a whole prompt;
then, for each engine and greedy statement, how long it ran beyond its limit and the start of its process.
Engines that are not installed are left out. Exit code 1 if a bar is not met.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles

from experiments.directory.evaluate import table_of
from experiments.directory.questions import questions
from experiments.directory.records import N_RECORDS, Record, records
from pearl.documents.rows import Row, Rows
from pearl.tables import ENGINES, SqlEngine
from pearl.tables.lookup import Lookup
from pearl.tables.query_table import QueryTable
from pearl.tables.running import run
from pearl.tables.specification import Query, read_query
from pearl.tables.sql import SqlError, SqlLimits, SqlTable

MAX_QUERY_MS = 20.0
MAX_TERMS_AND_ROWS_MS = 30.0
MAX_OVER_LIMIT_S = 0.5

TESTS = Path(__file__).parents[2] / "tests/tables"
GREEDY: dict[SqlEngine, Path] = {
    "sqlite": TESTS / "greedy_sql.txt",
    "duckdb": TESTS / "greedy_duckdb.txt",
}
N_STARTS = 8


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=N_RECORDS)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds of a statement")
    parser.add_argument("--no-sql", action="store_true")
    said = parser.parse_args()
    found = records(said.rows)
    asked = questions(found)
    table, lookup = built(found)
    queries = [read_query(question.query) for question in asked]
    texts = [question.text for question in asked]
    query_ms = measured("query", run_each(queries, table))
    aids_ms = measured(
        "terms and rows",
        [
            lambda text=text: (
                lookup.thesaurus.nearest(text),
                lookup.rows.like(text),
                lookup.rows.unlike(text),
            )
            for text in texts
        ],
    )
    measured("whole prompt", [lambda text=text: lookup.prompt(text) for text in texts])
    longest = max(len(lookup.prompt(text)) for text in texts)
    print(f"longest prompt: {longest:,} characters")
    is_met = query_ms <= MAX_QUERY_MS and aids_ms <= MAX_TERMS_AND_ROWS_MS
    if not said.no_sql:
        for engine in ENGINES:
            if engine == "duckdb" and find_spec("duckdb") is None:
                print("duckdb is not installed: left out")
                continue
            sql = lookup.sql(engine)
            measured(f"{engine}, a process each", [lambda sql=sql: sql.run(COUNT)] * N_STARTS)
            is_met &= worst_over_limit(said.rows, said.limit, engine) <= MAX_OVER_LIMIT_S
    return 0 if is_met else 1


COUNT = "SELECT City, count(*) FROM clinics GROUP BY City ORDER BY 2 DESC LIMIT 5"


def built(found: list[Record]) -> tuple[QueryTable, Lookup]:
    """The table with all that is made once, and the processor time of that."""
    start = time.process_time()
    table = QueryTable(table_of(found).rows, "clinics")
    assert table.database
    print(f"table: {time.process_time() - start:.2f} s, {len(table):,} rows", flush=True)
    start = time.process_time()
    lookup = Lookup(table)
    lookup.thesaurus.nearest("x")
    print(f"terms: {time.process_time() - start:.2f} s, {len(lookup.thesaurus):,}", flush=True)
    start = time.process_time()
    assert lookup.rows
    print(f"rows: {time.process_time() - start:.2f} s", flush=True)
    return table, lookup


def run_each(queries: Sequence[Query], table: QueryTable) -> list[Callable[[], object]]:
    """What runs each query."""
    return [lambda query=query: run(query, table) for query in queries]


def measured(name: str, calls: Sequence[Callable[[], object]]) -> float:
    """Print how long calls take in milliseconds; returns the median of the processor time."""
    clock, processor = [], []
    for call in calls:
        start, begun = time.perf_counter(), time.process_time()
        call()
        processor.append(1_000 * (time.process_time() - begun))
        clock.append(1_000 * (time.perf_counter() - start))
    print(
        f"{name}: processor time median {median(processor):.1f} ms, 95 % {quantiles(processor, n=20)[-1]:.1f} ms; "
        f"clock median {median(clock):.1f} ms, 95 % {quantiles(clock, n=20)[-1]:.1f} ms",
        flush=True,
    )
    return median(processor)


def worst_over_limit(n: int, seconds: float, engine: SqlEngine) -> float:
    """Run greedy statements; returns by how much the worst ran over its limit, in seconds.

    The limit begins when the process has the table, so what that takes, a median, is not counted.
    """
    cells = (
        {"City": f"City {i % 50}", "Fee": str(i % 97), "Note": f"{i} abcdefghi" * 10}
        for i in range(n)
    )
    table = QueryTable(Rows(tuple(Row("", one) for one in cells)), "clinics")
    sql = SqlTable(table, SqlLimits(seconds=seconds), engine)
    statements = [line for line in GREEDY[engine].read_text(encoding="utf-8").splitlines() if line]
    starts = []
    for _ in range(N_STARTS):
        start = time.perf_counter()
        sql.run("SELECT City FROM clinics LIMIT 1")
        starts.append(time.perf_counter() - start)
    print(f"{engine}: a process with the table starts in {median(starts):.2f} s")
    worst = 0.0
    for statement in statements:
        start = time.perf_counter()
        try:
            sql.run(statement)
            said = "answered"
        except SqlError as error:
            said = str(error)
        over = time.perf_counter() - start - median(starts) - seconds
        worst = max(worst, over)
        print(f"  {over + seconds:5.2f} s  {said[:50]:50}  {statement[:70]}", flush=True)
    print(
        f"greedy SQL, {engine}, {len(statements)} statements: at most {worst:+.2f} s beyond the limit"
    )
    return worst


if __name__ == "__main__":
    sys.exit(main())
