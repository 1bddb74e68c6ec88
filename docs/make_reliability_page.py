"""Writes docs/reliability.md, and the tables of docs/security_case.md, from the figures in docs/reliability.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("reliability.md")
CASE = Path(__file__).with_name("security_case.md")
FIGURES = Path(__file__).with_name("reliability.json")

HEAD = """\
# Reliability: the rows of the suites

`make docs` makes this page from the figures that the suites recorded. A row is one fault (R) or attack (S), produced for real: a
server on loopback that misbehaves, a killed process, a full disk. "Promised" is the bound that the suite enforces: all figures
below keep theirs. A figure without a bound is only reported. What the rows mean for the security of documents: [the security case](security_case.md).

- `make faults`, `make attacks`: all rows at the size of the gate; `ROWS=R15,S3` selects some; `SIZE=nightly` or `release` is larger.
- `SEED=7` repeats the random numbers of a run. The gate has a fixed seed; other runs draw and print one.
- `make faults attacks SIZE=nightly FIGURES=docs/reliability.json` and `make docs` make this page anew.
"""
NOT_TESTED = """\

## Not tested

- Network file systems (R23): one without locks is refused, which is tested by injected errors of locks.
- A soak of 24 hours (R37), macOS, Windows, and loss of power on real disks: R20 replays recorded writes.
- The clock of files and of SQLite (R24): the jumps are those that Python sees.
- R2: a server that admits few calls a second refuses more than 2 % of them, because a few probes are a large share of few calls.
- Models that are good enough for real work, under attack (S5): [SmolLM2-135M](security_case.md#a-small-real-model), the one that runs on two
  cores, does almost none of the tasks even without an attack.
- Several machines under Ray: workers are processes of one machine.
"""


def in_order(record: Mapping[str, Any]) -> tuple[str, int, str]:
    """R2 comes before R15."""
    return record["row"][:1], int(record["row"][1:]), record["test"]


def groups(records: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Records of one row and title: variants of one test."""
    return [
        list(group)
        for _, group in groupby(records, lambda record: (record["row"], record["title"]))
    ]


def number(value: float) -> str:
    """A figure as people read it."""
    return f"{round(value, 3):,}"


def bound(entry: Mapping[str, Any]) -> str:
    """`at most 0`; "" without a bound."""
    limits = [(entry["at_most"], "at most"), (entry["at_least"], "at least")]
    if entry["at_most"] is not None and entry["at_most"] == entry["at_least"]:
        return f"exactly {number(entry['at_most'])}"
    return ", ".join(f"{word} {number(limit)}" for limit, word in limits if limit is not None)


def run_of(group: list[Mapping[str, Any]]) -> str:
    """`size ci, 2026-11-24, seed 7`."""
    runs = {f"size {record['size']}, {record['date']}, seed {record['seed']}" for record in group}
    return "; ".join(sorted(runs))


def variant(record: Mapping[str, Any]) -> str:
    """What distinguishes a test from others of its row."""
    match = re.search(r"\[(.+)\]$", record["test"])
    return match[1] if match else "figure"


def anchor(title: str) -> str:
    """The name of a heading in links, as MkDocs and GitHub make it."""
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).strip().replace(" ", "-")


def overview(rows: Iterable[list[Mapping[str, Any]]]) -> str:
    """One line for each row, with what was tried: the first figure of its tests."""
    lines = [["row", "fault or attack", "tried", "size"]]
    for group in rows:
        row, title = group[0]["row"], group[0]["title"]
        entries = [record["figures"][0] for record in group]
        n_tried = sum(entry["value"] for entry in entries)
        is_count = entries[0]["at_most"] is None and float(n_tried).is_integer()
        tried = (
            f"{n_tried:,} {entries[0]['name']}"
            if is_count
            else f"{len(group)} case{'s' if len(group) > 1 else ''}"
        )
        sizes = ", ".join(sorted({record["size"] for record in group}))
        lines.append([f"[{row}](#{anchor(f'{row} {title}')})", title, tried, sizes])
    return table(lines)


def table(lines: Iterable[Iterable[str]]) -> str:
    """Lines of cells as Markdown; the first are the heads."""
    head, *rest = [list(line) for line in lines]
    return (
        "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rest]) + "\n"
    )


def section(group: list[Mapping[str, Any]]) -> str:
    """The figures of a row, one column for each variant."""
    entries = {entry["name"]: entry for record in group for entry in record["figures"]}
    values = [
        {entry["name"]: number(entry["value"]) for entry in record["figures"]} for record in group
    ]
    lines = [["", *map(variant, group), "promised"]]
    lines += [
        [name, *(figures.get(name, "") for figures in values), bound(entry)]
        for name, entry in entries.items()
    ]
    first = group[0]
    return f"### {first['row']} {first['title']}\n\n{run_of(group)}\n\n{table(lines)}"


def summary(group: list[Mapping[str, Any]]) -> str:
    """One line: counts of all variants together, the worst of other figures."""
    values: dict[str, list[Mapping[str, Any]]] = {}
    for record in group:
        for entry in record["figures"]:
            if bound(entry) or entry is record["figures"][0]:  # the first says how much was tried
                values.setdefault(entry["name"], []).append(entry)
    told = []
    for name, entries in values.items():
        is_count = all(float(entry["value"]).is_integer() for entry in entries)
        first = entries[0]
        is_sum = (
            is_count and first["at_most"] in (None, 0) and not bound(first).startswith("exactly")
        )
        least = min if first["at_least"] is not None else max
        value = (
            sum(entry["value"] for entry in entries)
            if is_sum
            else least(entry["value"] for entry in entries)
        )
        told.append(f"{name} **{number(value)}**")
    return f"- {group[0]['row']}, {group[0]['title']}: {'; '.join(told)} ({run_of(group)})\n"


def injections(rows: Iterable[Mapping[str, Any]]) -> str:
    """The table of one reader: a line for each style of injection."""
    lines = [["style", "right: without → under attack", "steps changed", "leaked", "wrong in other documents",
              "wrong in the same call", "wrong inside (marked)"]]  # fmt: skip
    for row in rows:
        right = (
            f"{row['right without attack']:,} → {row['right under attack']:,} of {row['tasks']:,}"
        )
        names = (
            "changed control flow",
            "leaked canaries",
            "wrong in other documents",
            "wrong in the same call",
        )
        inside = f"{row['wrong inside']:,} ({row['of these marked']:,})"
        lines.append([row["style"], right, *(f"{row[name]:,}" for name in names), inside])
    return table(lines)


def with_figures(text: str, records: list[dict[str, Any]]) -> str:
    """A page whose blocks `<!-- rows: S1 S2 -->` and `<!-- table: NAME -->` up to `<!-- end -->` are made anew."""
    tables = {name: (rows, record) for record in records for name, rows in record["tables"].items()}

    def block(match: re.Match[str]) -> str:
        kind, names = match[1], match[2]
        if kind == "rows":
            chosen = [record for record in records if record["row"] in names.split()]
            missing = set(names.split()) - {record["row"] for record in chosen}
            if missing:
                raise SystemExit(f"{FIGURES.name} has no figures of {', '.join(sorted(missing))}")
            made = "".join(map(summary, groups(chosen)))
        else:
            rows, record = tables[names]
            made = (
                injections(rows)
                + f"\nSize {record['size']}, {record['date']}, seed {record['seed']}.\n"
            )
        return f"<!-- {kind}: {names} -->\n\n{made}\n<!-- end -->"

    return re.sub(r"<!-- (rows|table): (.+?) -->\n.*?<!-- end -->", block, text, flags=re.DOTALL)


def main() -> None:
    """Write both pages."""
    recorded = json.loads(FIGURES.read_text(encoding="utf-8")).values()
    records = sorted((record for record in recorded if record["figures"]), key=in_order)
    faults = [record for record in records if record["row"].startswith("R")]
    attacks = [record for record in records if record["row"].startswith("S")]
    parts = [
        f"## {title}\n\n{overview(groups(part))}\n" + "\n".join(map(section, groups(part)))
        for title, part in (("Faults", faults), ("Attacks", attacks))
    ]
    PAGE.write_text("\n".join([HEAD, *parts, NOT_TESTED]), encoding="utf-8")
    CASE.write_text(with_figures(CASE.read_text(encoding="utf-8"), records), encoding="utf-8")


if __name__ == "__main__":
    main()
