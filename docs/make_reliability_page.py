"""Writes docs/reliability.md from the figures in docs/reliability.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("reliability.md")
FIGURES = Path(__file__).with_name("reliability.json")

HEAD = """\
# Reliability: the rows of the suites

A row is one fault (R) or attack (S), produced for real: a server on loopback that misbehaves, a killed process, a full disk. `make docs`
makes this page from the figures that the suites recorded, and a suite fails where a figure exceeds its bound. What the rows mean for
confidential documents: [the security case](security_case.md).

- `make faults`, `make attacks`: all rows at the size of the gate; `ROWS=R15,S3` selects some; `SIZE=nightly` or `release` is larger.
- `SEED=7` repeats the random numbers of a run. The gate has a fixed seed; other runs draw and print one.
- `make faults attacks SIZE=nightly FIGURES=docs/reliability.json` records figures.

After *never* stands what the suite counted and did not find; other figures stand beside their bound. Rows marked * ran at the size of the gate
"""
INJECTIONS = """\
## Injections

S5: tasks over documents with an injected text, ten styles of injection, 200 tasks each. The *obedient* reader is a program that does whatever the
injected text says: the worst model possible. The *partly obedient* one does so in half of the cases, the third obeys only text outside of
the document's block in its prompt. They measure no model; they show what PEARL guarantees when the model fails. "Wrong inside" are wrong
values of the attacked document, row or cell; rows that share a call with the attacked one are "wrong in the call", and with
`--items-per-call 1` there are none. SmolLM2-135M does 10 of 110 such tasks, with and without an attack.
"""
NOT_TESTED = """\
## Not tested

- Network file systems (R23): one without locks is refused, which is tested by injected errors of locks.
- A soak of 24 hours (R37), macOS, Windows, and loss of power on real disks: R20 replays recorded writes.
- The clock of files and of SQLite (R24): the jumps are those that Python sees.
- R2: a server that admits few calls a second refuses more than 2 % of them, because a few probes are a large share of few calls.
- Models that are good enough for real work, under attack (S5), the composed answer, `LOOKUP` and `--together`.
- Several machines under Ray: workers are processes of one machine.
"""

Record = Mapping[str, Any]


def in_order(record: Record) -> tuple[str, int, str]:
    """R2 comes before R15."""
    return record["row"][:1], int(record["row"][1:]), record["test"]


def number(value: float) -> str:
    """A figure as people read it."""
    return f"{round(value, 3):,}"


def line(group: Sequence[Record]) -> list[str]:
    """The cells of a row: counts of all variants of its test together, of other figures the worst."""
    values: dict[str, list[Record]] = {}
    for entry in (entry for record in group for entry in record["figures"]):
        values.setdefault(entry["name"], []).append(entry)
    (first, tried), *_ = values.items()
    n_tried = sum(entry["value"] for entry in tried)
    is_count = all(isinstance(entry["value"], int) for entry in tried) and n_tried > 0
    never, bounded = [], []
    for name, entries in values.items():
        least = entries[0]["at_least"] is not None and entries[0]["at_most"] is None
        worst = (min if least else max)(entries, key=lambda entry: entry["value"])
        value, limit = worst["value"], worst["at_least" if least else "at_most"]
        if limit == 0 == value:
            never.append(name)
        elif limit is not None and not (
            least and isinstance(value, int)
        ):  # else how much was tried
            bounded.append(f"{name} {number(value)} ({'≥' if least else '≤'} {number(limit)})")
    parts = [f"never {'; '.join(never)}"] if never else []
    mark = "*" if any(record["size"] == "ci" for record in group) else ""
    title = group[0]["title"] + (f": {number(n_tried)} {first}" if is_count else "")
    return [
        f"{group[0]['row']}{mark}",
        title,
        ". ".join([*parts, *(["; ".join(bounded)] if bounded else [])]),
    ]


def injections(records: Iterable[Record]) -> list[list[str]]:
    """A line for each reader, over all styles."""
    names = ["right without attack", "right under attack", "changed control flow", "leaked canaries", "wrong in other documents",
             "wrong in the same call", "wrong inside", "of these marked"]  # fmt: skip
    lines = [["reader", "tasks", "right without", "under attack", "steps changed", "leaked", "wrong in other documents",
              "wrong in the call", "wrong inside", "of these marked"]]  # fmt: skip
    for record in records:
        for name, rows in record["tables"].items():
            if "tasks" in rows[0]:
                sums = [sum(row[each] for row in rows) for each in ["tasks", *names]]
                lines.append([name, *map(number, sums)])
    return lines


def table(lines: Iterable[list[str]]) -> str:
    """Lines of cells as Markdown; the first are the heads."""
    head, *rest = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|---" * (head.count(" | ") + 1) + "|", *rest])


def page() -> str:
    """The whole page."""
    recorded = json.loads(FIGURES.read_text(encoding="utf-8")).values()
    records = sorted((record for record in recorded if record["figures"]), key=in_order)
    groups = [list(group) for _, group in groupby(records, lambda record: (record["row"], record["title"]))]  # fmt: skip
    dates = sorted({record["date"] for record in records})
    parts = [f"{HEAD.rstrip()} ({dates[0]} to {dates[-1]}).\n"]
    for title, letter in (("Faults", "R"), ("Attacks", "S")):
        lines = [line(group) for group in groups if group[0]["row"].startswith(letter)]
        parts.append(f"## {title}\n\n{table([['row', 'fault or attack', 'found'], *lines])}\n")
    parts.append(f"{INJECTIONS}\n{table(injections(records))}\n")
    return "\n".join([*parts, NOT_TESTED])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
