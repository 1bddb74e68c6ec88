"""Prints what PEARL costs beside its peers as one table, then as one JSON line.

    [QUICK=1] python experiments/bench/table.py [BENCH...]

Runs the benches that it names in their quick form, or those that are named, and takes the figures from their
JSON. `asked` is the limit that the project sets itself. What is not installed, valgrind and peers, is left out.
With QUICK in the environment nothing is counted by valgrind and texts are short: whether every bench runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from instructions import QUICK, VALGRIND

HERE = Path(__file__).parent

BENCHES = {
    "startup": ["1" if QUICK else "3"],
    "slope": [],
    "extraction": ["--quick"],
    "extraction_peers": [],
    "rows": [],
    "makespan": ["--quick"],
    "prefix": ["--quick"],
    "index": ["--rows", "20000"],
    "long_text": ["--megabytes", "5"] if QUICK else [],
    "million": ["--quick"],
}
"""Benches with their arguments."""


class Row(NamedTuple):
    """A figure and a peer's, each by its bench and the names that lead to it there."""

    figure: str
    unit: str
    pearl: str
    peer: str = ""
    who: str = ""
    asked: str = ""


COMMANDS = {
    "`pearl --version`": ("version", "≤ 5"),
    "`pearl --help`": ("help", "≤ 12"),
    "`pearl check`": ("check", "≤ 12"),
    "`pearl execute`, one call": ("execute", "≤ 30"),
    "`pearl execute`, its reply stored": ("stored", "≤ 22"),
    "the official client, one call": ("official", ""),
}
CALL_UNIT = "M" if VALGRIND else "ms"
ROW_UNIT = "k" if VALGRIND else "µs"
A_CALL = "slope/{}/a_call"
EXTRACTION = "extraction/processor ms per document, median"
ROWS = [
    *(
        Row(figure, "ms", f"startup/{name}/ms", "startup/python/ms", "python -c pass", asked)
        for figure, (name, asked) in COMMANDS.items()
    ),
    *(
        Row(f"{figure}: instructions", "M", f"startup/{name}/M", "startup/python/M", "python -c pass")
        for figure, (name, _) in COMMANDS.items()
    ),
    Row("a call of `pearl execute`", CALL_UNIT, A_CALL.format("pearl_command"), A_CALL.format("official"), "official client", "≤ 0.5"),
    Row("a call of `pearl execute`, bare", CALL_UNIT, A_CALL.format("pearl_command"), A_CALL.format("aiohttp"), "aiohttp"),
    Row("a call of `Pearl`, nothing kept", CALL_UNIT, A_CALL.format("pearl_library"), A_CALL.format("official"), "official client"),
    Row("extraction, a document", "ms", EXTRACTION, "", "", "≤ 5 ms"),
    Row("extraction, a document: instructions", "M", "extraction/million instructions per document"),
    Row("extraction, beside instructor", "ms", EXTRACTION, "extraction_peers/instructor", "instructor"),
    Row("extraction, beside langextract", "ms", EXTRACTION, "extraction_peers/langextract", "langextract"),
    Row("a row of CLASSIFY", ROW_UNIT, "rows/a row/pearl_classify", "rows/a row/loop_classify", "a loop that counts", "≤ 2"),
    Row("a row of FILTER", ROW_UNIT, "rows/a row/pearl_filter", "rows/a row/loop_filter", "a loop that counts", "≤ 2"),
    Row("makespan of single plans", "s", "makespan/within/ours_s", "makespan/within/sequential_s", "calls in turn"),
    Row("makespan of many plans", "s", "makespan/across/ours_s", "makespan/across/allowed_s", "places kept busy"),
    Row("uncached tokens of prompts", "", "prefix/prefill for each call/auto/uncached", "prefix/prefill for each call/off/uncached", "no waiting"),
    Row("an index of 20,000 passages", "s", "index/made/cpu_s", "index/bm25s/cpu_s", "bm25s", "≤ 1"),
    Row("memory of that index", "MB", "index/made/peak_mb", "index/bm25s/peak_mb", "bm25s", "≤ 1.5"),
    Row("`pearl ask`, a MB of text", "s", "long_text/ask_cpu_s", "", "", "≤ 0.2 s"),
    Row("memory of `pearl ask`, a MB of text", "MB", "long_text/ask_mb", "", "", "≤ 6 MB"),
    Row("`--context retrieve`, a MB of text", "s", "long_text/retrieve_cpu_s", "", "", "≤ 0.2 s"),
    Row("memory of `--context retrieve`, a MB of text", "MB", "long_text/retrieve_mb", "", "", "≤ 6 MB"),
    Row("a document of many", "ms", "million/cpu_ms_per_document", "", "", "≤ 1 ms"),
]  # fmt: skip


def figures_of(bench: str) -> dict[str, Any]:
    """The JSON line of a bench."""
    command = [sys.executable, str(HERE / f"{bench}.py"), *BENCHES[bench]]
    print(f"running {bench}", file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def figure(found: Mapping[str, Any], path: str) -> float | None:
    """A figure by its path; None where its bench did not measure it."""
    at: Any = found
    for name in path.split("/"):
        if name not in at:
            return None
        at = at[name]
    return float(at)


def main() -> None:
    benches = sys.argv[1:] or [*BENCHES]
    found = {bench: figures_of(bench) for bench in benches}
    lines = [("figure", "PEARL", "peer", "", "ratio", "asked")]
    rows = []
    for row in ROWS:
        pearl, peer = figure(found, row.pearl), figure(found, row.peer) if row.peer else None
        if pearl is None or (row.peer and peer is None):
            continue
        ratio = round(pearl / peer, 3) if peer else None
        rows.append({"figure": row.figure, "pearl": pearl, "peer": peer, "ratio": ratio})
        beside = f"{peer:,g} {row.unit}" if peer else ""
        lines.append(
            (
                row.figure,
                f"{pearl:,g} {row.unit}",
                beside,
                row.who,
                "" if ratio is None else f"{ratio:.3g}",
                row.asked,
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(map(str.ljust, line, widths)).rstrip())
    print(json.dumps({"bench": "table", "rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    main()
