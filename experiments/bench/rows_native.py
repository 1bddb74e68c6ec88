"""How long the operators on rows take that are computed in Python, and how much memory.

    python experiments/bench/rows_native.py [--rows 100000]

Prints the processor time of one plan over generated records, then a line for each of all steps, their
total and the peak of memory. Labels stand for what a model would have said: they are made here.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import time
from dataclasses import replace
from datetime import date, timedelta

from pearl.actions.native import compute, known
from pearl.actions.values import Value
from pearl.documents.document import Document
from pearl.documents.rows import Rows, document_rows

LABELS = ("abbreviation", "entity", "description", "human being", "location", "numeric value")


def document(n: int, seed: int = 0) -> Document:
    """Records of a date, a user and a text; 80 % of them by 20 % of the users."""
    rng = random.Random(seed)
    users = [str(rng.randrange(10_000, 99_999)) for _ in range(max(5, int(n / 3.4)))]
    few = users[: len(users) // 5]
    lines = []
    for i in range(n):
        day = date(2021, 1, 1) + timedelta(days=rng.randrange(1_200))
        user = rng.choice(few if rng.random() < 0.8 else users)
        lines.append(
            f"Date: {day:%b %d, %Y} || User: {user} || Instance: what is thing {i} called?"
        )
    return Document("\n".join(lines), "generated")


def labelled(rows: Rows, column: str, seed: int = 0) -> Rows:
    """Rows as a model's step gives them back."""
    rng = random.Random(seed)
    said = tuple(row.with_column(column, rng.choice(LABELS)) for row in rows)
    return replace(rows, rows=said, column=column, is_answered=True)


def steps(
    values: dict[str, Value], *, with_pairs: bool
) -> list[tuple[str, str, list[Value | str]]]:
    """Output, action and arguments; names of outputs stand for their values."""
    found: list[tuple[str, str, list[Value | str]]] = [
        ("texts", "FIELD", ["entries", '"Instance"']),
        ("counts", "COUNT_BY", ["label", '"label"']),
        ("least", "LEAST", ["counts"]),
        ("second", "NTH", ["counts", "2"]),
        ("n", "COUNT_OF", ["counts", '"entity"']),
        ("before", "WHERE", ["label", '"Date"', '"before"', '"2023-06-01"']),
        ("after", "WHERE", ["label", '"Date"', '"after"', '"2023-06-01"']),
        ("a", "SHARE_OF", ["before", '"label"', '"entity"']),
        ("b", "SHARE_OF", ["after", '"label"', '"entity"']),
        ("relation", "RELATION", ["a", "b"]),
        ("months", "COUNT_BY", ["label", '"Date by month"']),
        ("wanted", "WHERE", ["label", '"label"', '"in"', '"human being; location"']),
        ("users", "GROUP", ["wanted", '"User"']),
        ("early", "WHERE", ["wanted", '"Date"', '"at most"', '"2021-03-06"']),
        ("barred", "GROUP", ["early", '"User"']),
        ("left", "DIFFERENCE", ["users", "barred"]),
        ("often", "HAVING", ["users", '"at least"', "20"]),
        ("ranked", "RANKED", ["often"]),
        ("table", "SHOW", ["texts", "label"]),
    ]
    if with_pairs:
        found.append(("pairs", "PAIRS", ["some", "some"]))
    return found


PLAN: tuple[tuple[str, list[str]], ...] = (
    ("SPLIT", ["entry"]),
    ("WHERE", ["Date", "before", "2023-06-01"]),
    ("FIELD", ["User"]),
    ("COUNT_BY", ["User"]),
    ("LEAST", []),
)
"""Actions of one plan, each of what the one before gives, and their other arguments."""


def plan(read: Document) -> float:
    """Seconds of one plan, with every garbage collection that falls between its steps."""
    library = known()
    began = time.process_time()
    value: Value = document_rows(read)
    for action, arguments in PLAN:
        value = compute(library[action], [value, *arguments])
    return time.process_time() - began


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    n = parser.parse_args().rows
    read = document(n)
    values: dict[str, Value] = {}
    library = known()
    started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    of_plan = plan(read)

    def run(output: str, action: str, arguments: list[Value]) -> float:
        gc.collect()
        began = time.process_time()
        values[output] = compute(library[action], arguments)
        took = time.process_time() - began
        print(f"{output:>10} = {action:<10} {took:7.3f} s")
        return took

    split = run("entries", "SPLIT", [document_rows(read), "entry"])
    values["label"] = labelled(values["entries"], "label")
    users = compute(library["GROUP"], [values["label"], "User"])
    values["some"] = replace(users, rows=users.rows[:231])
    total = sum(
        run(output, action, [a.strip('"') if a not in values else values[a] for a in arguments])
        for output, action, arguments in steps(values, with_pairs=True)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{n:,} rows, one plan of {', '.join(name for name, _ in PLAN)}: {of_plan:.2f} s")
    print(f"{n:,} rows: SPLIT {split:.2f} s, all other steps {total:.2f} s")
    print(f"memory at the start {started / 1024:.0f} MB, at its peak {peak / 1024:.0f} MB")


if __name__ == "__main__":
    main()
