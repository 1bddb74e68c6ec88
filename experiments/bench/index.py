"""The index of a file of rows: made, and brought up to date after 1 % of the rows is new.

    python experiments/bench/index.py [--rows N]

Rows are the paragraphs of `retrieval.py`, as JSON Lines. Processor time is that of `Index.open`, all of
it. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from retrieval import Corpus

from pearl.retrieval.index import Index

MEGABYTE = 1e6


def cpu_s() -> float:
    """Processor time of this process so far."""
    used = os.times()
    return used.user + used.system


def measured(name: str, work: Callable[[], Index]) -> dict[str, Any]:
    """One row of the table."""
    began, began_cpu = time.monotonic(), cpu_s()
    index = work()
    assert index.opened is not None
    return {
        "what": name,
        "rows": len(index.documents),
        "cpu_s": round(cpu_s() - began_cpu, 3),
        "seconds": round(time.monotonic() - began, 3),
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    n_new = options.rows // 100
    corpus = Corpus.of(options.rows + n_new, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path, at = Path(folder) / "rows.jsonl", Path(folder) / "index"
        new: list[str] = []
        with path.open("w", encoding="utf-8") as file:
            for number, text in enumerate(corpus.texts()):
                line = f"{json.dumps({'id': f'r{number}', 'text': text})}\n"
                if number < options.rows:
                    file.write(line)
                else:
                    new.append(line)
        found = [measured("made", lambda: Index.open(path, at=at))]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE
        size = sum(each.stat().st_size for each in at.rglob("*.bin")) / MEGABYTE
        with path.open("a", encoding="utf-8") as file:
            file.writelines(new)
        found.append(measured("1 % added at the end", lambda: Index.open(path, at=at)))
    print(json.dumps({"peak_mb": round(peak), "files_mb": round(size), "rows": found}))


if __name__ == "__main__":
    main()
