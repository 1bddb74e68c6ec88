"""How many of 140 questions of a made-up directory are answered by gold queries.

    python -m experiments.directory.evaluate [--write FILE.csv]

A question counts if its rows are those of the gold answer, and its figures, where it has some.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from experiments.directory.questions import Question, questions
from experiments.directory.records import Record, records, write
from pearl.documents.rows import Row, Rows
from pearl.tables.columns import QueryTable
from pearl.tables.lookup import Thesaurus
from pearl.tables.running import run
from pearl.tables.specification import Query, read_query


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", type=Path)
    said = parser.parse_args()
    found = records()
    if said.write:
        write(said.write, found)
    table = table_of(found)
    asked = questions(found)
    thesaurus = Thesaurus(table)
    right = {
        "gold": [q for q in asked if is_right(q, read_query(q.query), table)],
        "terms": [q for q in asked if has_its_terms(q, thesaurus)],
    }
    print(f"{len(asked)} questions over {len(found):,} rows")
    print("gold     answered by the gold query")
    print("terms    every text of the gold query is among the terms that a model is shown\n")
    print(f"{'':26}{'gold':>6}{'terms':>7}")
    for kind, n in [*Counter(q.kind for q in asked).items(), ("all", len(asked))]:
        counts = [sum(kind in ("all", q.kind) for q in each) for each in right.values()]
        print(f"{kind:26}{counts[0]:6}{counts[1]:7}  of {n}")


def table_of(found: list[Record]) -> QueryTable:
    """The directory as a table."""
    return QueryTable(Rows(tuple(Row("", record.cells()) for record in found)))


def is_right(question: Question, query: Query, table: QueryTable) -> bool:
    """Whether a query gives the gold answer."""
    result = run(query, table)
    rows = {row for line in result.lines for row in line.rows}
    if not question.figures:
        return not query.aggregate and rows == set(question.rows)
    if not query.aggregate or rows != set(question.rows):
        return False
    return tuple(line.cells for line in result.lines) == question.figures


def has_its_terms(question: Question, thesaurus: Thesaurus) -> bool:
    """Whether the thesaurus suggests every value of the gold query that is a term of its column."""
    terms = thesaurus.nearest(question.text)
    known = ("Clinic name", "Clinic type", "City", "Services", "Languages")
    return all(
        value in terms.get(column, ())
        for column, value in _values(question.query.get("where"))
        if column in known
    )


def _values(where: object) -> list[tuple[str, str]]:
    """Column and text of every condition of a gold query."""
    if isinstance(where, list):
        return [pair for one in where for pair in _values(one)]
    if not isinstance(where, dict):
        return []
    if "column" in where:
        return [(where["column"], where["value"])] if "value" in where else []
    return [pair for one in where.values() for pair in _values(one)]


if __name__ == "__main__":
    main()
