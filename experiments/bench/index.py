"""The index of a file of rows: made, asked, and brought up to date after 1 % of the rows is new; and that of bm25s, if it is installed.

    python experiments/bench/index.py [--rows N]

Rows are the paragraphs of `corpus.py`, as JSON Lines. Each is measured in a process of its own, which reads the rows and
stores the index: processor time without imports, most memory with them. bm25s stems as we do. The 60 best passages are
asked for, by 200 queries of either kind: the median. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from corpus import Corpus

MEGABYTE = 1e6
N_QUERIES, K = 200, 60


def cpu_s() -> float:
    """Processor time of this process so far."""
    used = os.times()
    return used.user + used.system


def by_pearl(path: Path, at: Path) -> float:
    """Open our index; return the processor seconds."""
    from pearl.retrieval.index import Index

    began = cpu_s()
    Index.open(path, at=at)
    return cpu_s() - began


def by_bm25s(path: Path, at: Path) -> float:
    """Make and save an index of bm25s; return the processor seconds."""
    import bm25s
    from Stemmer import Stemmer

    began = cpu_s()
    with path.open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    tokens = bm25s.tokenize(texts, stopwords=None, stemmer=Stemmer("english"), show_progress=False)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    index.save(at)
    return cpu_s() - began


INDEXERS = {"pearl": by_pearl, "bm25s": by_bm25s}


def asked(path: Path, at: Path, corpus: Corpus) -> dict[str, float]:
    """Milliseconds of the processor of the queries of 6 words, and of those of 10."""
    from pearl.documents.passages import analyzer
    from pearl.retrieval import SearchSettings
    from pearl.retrieval.index import Index
    from pearl.retrieval.methods import Query, find_method

    index: Any = Index.open(path, at=at)
    method, analyse, settings = find_method("bm25"), analyzer("english"), SearchSettings()

    def cpu_ms(query: str) -> float:
        began = time.process_time()
        method.rank(Query(dict.fromkeys(analyse(query), 1.0)), index, settings, K)
        return 1_000 * (time.process_time() - began)

    row = {}
    for n_common in (0, 4):
        queries = corpus.queries(N_QUERIES, n_common)
        cpu_ms(queries[0])  # fills caches
        row[f"query_{6 + n_common}_cpu_ms"] = round(median(map(cpu_ms, queries)), 3)
    return row


def measured(name: str, by: str, path: Path, at: Path) -> dict[str, Any]:
    """One row of the table, from a process of its own."""
    command = [sys.executable, __file__, "--by", by, str(path), str(at)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {"what": name, **json.loads(printed)}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--by", choices=INDEXERS, help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.by:
        seconds = INDEXERS[options.by](*options.paths)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE
        print(json.dumps({"cpu_s": round(seconds, 3), "peak_mb": round(peak)}))
        return
    n_new = options.rows // 100
    corpus = Corpus.of(options.rows + n_new, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path, at = Path(folder) / "rows.jsonl", Path(folder) / "index"
        lines = (
            f"{json.dumps({'id': f'r{number}', 'text': text})}\n"
            for number, text in enumerate(corpus.texts())
        )
        with path.open("w", encoding="utf-8") as file:
            file.writelines(next(lines) for _ in range(options.rows))
        found = [measured("made", "pearl", path, at)]
        queries = asked(path, at, corpus)
        size = sum(each.stat().st_size for each in at.rglob("*.bin")) / MEGABYTE
        if find_spec("bm25s") is not None:
            found.append(measured("bm25s", "bm25s", path, Path(folder) / "bm25s"))
        with path.open("a", encoding="utf-8") as file:
            file.writelines(lines)
        found.append(measured("1 % added at the end", "pearl", path, at))
    made = found[0]
    peers = {each["what"]: each for each in found if each["what"] == "bm25s"}
    ratios = {
        f"{key}_to_{name}": round(made[key] / peer[key], 3)
        for name, peer in peers.items()
        for key in ("cpu_s", "peak_mb")
    }
    print(
        json.dumps(
            {"files_mb": round(size), **queries, **ratios, **{each["what"]: each for each in found}}
        )
    )


if __name__ == "__main__":
    main()
