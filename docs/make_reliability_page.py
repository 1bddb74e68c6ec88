"""Writes docs/reliability.md, and the tables of docs/security_case.md, from the figures in docs/reliability.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("reliability.md")
CASE = Path(__file__).with_name("security_case.md")
FIGURES = Path(__file__).with_name("reliability.json")

HEAD = """\
# Reliability: the rows of the suites

`make docs` makes this page from the figures that the suites recorded. A row is one fault (R) or attack (S), produced for real: a
server on loopback that misbehaves, a killed process, a full disk. "0 (at most 0)" is a figure and its bound; a row without a bound
only reports. What the rows mean for the security of documents: [the security case](security_case.md).

```text
make faults                     # rows R, at the size of the gate
make attacks ROWS=S3            # one row
make faults SIZE=nightly        # or release
make faults ROWS=R15 SEED=7     # the same random numbers again
make faults attacks SIZE=nightly FIGURES=docs/reliability.json && make docs    # this page
```

"""
NOT_TESTED = """\

## Not tested

- Network file systems (R23): a file system without locks is refused, and tested only by a simulated one.
- A soak of 24 hours (R37), macOS, Windows, and loss of power on real disks: R20 replays recorded writes.
- Several machines under Ray: workers are processes of one machine.
"""


def in_order(record: Mapping[str, Any]) -> tuple[str, int, str]:
    """R2 comes before R15."""
    return record["row"][:1], int(record["row"][1:]), record["test"]


def figure(entry: Mapping[str, Any]) -> str:
    """`replies lost: 0 (at most 0)`."""
    bounds = [
        f"{word} {entry[key]:,g}"
        for key, word in (("at_most", "at most"), ("at_least", "at least"))
        if entry[key] is not None
    ]
    return f"{entry['name']}: {entry['value']:,.6g}" + (f" ({', '.join(bounds)})" if bounds else "")


def rows_table(records: Iterable[Mapping[str, Any]]) -> str:
    """A table with a line for each record."""
    lines = ["| row | fault or attack | figures | size, date, seed |", "|---|---|---|---|"]
    for record in records:
        figures = "; ".join(map(figure, record["figures"]))
        run = f"{record['size']}, {record['date']}, {record['seed']}"
        lines.append(f"| {record['row']} | {record['title']} | {figures} | {run} |")
    return "\n".join(lines) + "\n"


def plain_table(rows: list[dict[str, float | str]]) -> str:
    """A recorded table as Markdown."""
    cells = [
        [f"{value:,.6g}" if not isinstance(value, str) else value for value in row.values()]
        for row in rows
    ]
    lines = [list(rows[0]), ["---"] * len(rows[0]), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


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
            made = rows_table(chosen)
        else:
            rows, record = tables[names]
            made = (
                plain_table(rows)
                + f"\nSize {record['size']}, {record['date']}, seed {record['seed']}.\n"
            )
        return f"<!-- {kind}: {names} -->\n\n{made}\n<!-- end -->"

    return re.sub(r"<!-- (rows|table): (.+?) -->\n.*?<!-- end -->", block, text, flags=re.DOTALL)


def main() -> None:
    """Write both pages."""
    records = sorted(json.loads(FIGURES.read_text(encoding="utf-8")).values(), key=in_order)
    faults = [record for record in records if record["row"].startswith("R")]
    attacks = [record for record in records if record["row"].startswith("S")]
    PAGE.write_text(
        HEAD
        + "## Faults\n\n"
        + rows_table(faults)
        + "\n## Attacks\n\n"
        + rows_table(attacks)
        + NOT_TESTED,
        encoding="utf-8",
    )
    CASE.write_text(with_figures(CASE.read_text(encoding="utf-8"), records), encoding="utf-8")


if __name__ == "__main__":
    main()
