"""An index of paragraphs and its queries: processor time, memory, milliseconds. Prints a table and JSON.

    python experiments/bench/retrieval.py [--passages N] [--queries N]

Paragraphs of 80 words by Zipf's and Mandelbrot's law, from 120,000 made-up words. Queries of 6 words of one paragraph,
without the 100 commonest, and of 10: with 4 of these. The 60 best are asked for.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np

from pearl.documents.passages import analyzer
from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, find_method
from pearl.retrieval.postings import Postings, flat

N_WORDS, N_COMMON, VOCABULARY = 80, 100, 120_000
K = 60
MIB = 1 << 20


@dataclass(frozen=True)
class Corpus:
    """Made-up paragraphs."""

    words: list[str]
    n: int
    seed: int

    @classmethod
    def of(cls, n: int, seed: int) -> Corpus:
        """So many paragraphs; the words are the same for a seed."""
        rng = random.Random(seed)
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 10)))] = None
        return cls(list(words), n, seed)

    def texts(self) -> Iterator[str]:
        """The paragraphs, the same each time."""
        rng = np.random.default_rng(self.seed)
        shares = np.cumsum(1 / (np.arange(VOCABULARY) + 2.7))
        for begin in range(0, self.n, 10_000):
            size = (min(10_000, self.n - begin), N_WORDS)
            for row in np.searchsorted(shares, rng.random(size) * shares[-1]).tolist():
                yield " ".join([self.words[i] for i in row])

    def queries(self, n: int, n_common: int) -> list[str]:
        """Queries of 6 words of one paragraph that are not among the commonest, and of these."""
        rng = random.Random(self.seed + 1)
        common = self.words[:N_COMMON]
        found = []
        for text in islice(self.texts(), 0, min(self.n, 20_000), 20):
            rare = list(dict.fromkeys(word for word in text.split() if word not in set(common)))
            if len(rare) >= 6 and len(found) < n:
                found.append(" ".join([*rng.sample(rare, 6), *rng.sample(common, n_common)]))
        return found


def measure(corpus: Corpus, n_queries: int) -> dict[str, Any]:
    """Build the index and search it."""
    texts = list(corpus.texts())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    postings = Postings.build(iter(texts))
    row: dict[str, Any] = {
        "index_cpu_s": round(time.process_time() - cpu, 2),
        "index_wall_s": round(time.perf_counter() - began, 2),
        "data_mib": round(sum(a.nbytes for a in flat(postings).values()) / MIB, 1),
        "memory_mib": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    index: Any = SimpleNamespace(terms=postings, vectors=None)
    method, analyse, settings = find_method("bm25"), analyzer("english"), SearchSettings()

    def search(query: str) -> tuple[float, float]:
        began, cpu = time.perf_counter(), time.process_time()
        method.rank(Query(dict.fromkeys(analyse(query), 1.0)), index, settings, K)
        return time.perf_counter() - began, time.process_time() - cpu

    for n_common in (0, 4):
        queries = corpus.queries(n_queries, n_common)
        search(queries[0])  # fills caches
        pairs = [search(query) for query in queries]
        wall, cpu = (round(1_000 * float(median), 3) for median in np.median(pairs, axis=0))
        row |= {f"query_{6 + n_common}_ms": wall, f"query_{6 + n_common}_cpu_ms": cpu}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    row = measure(Corpus.of(args.passages, seed=14), args.queries)
    for name, value in row.items():
        print(f"{name:16}{value:10}")
    print(json.dumps({"passages": args.passages, **row}))


if __name__ == "__main__":
    main()
