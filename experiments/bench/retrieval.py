"""An index of paragraphs and its queries, beside rank_bm25, bm25s and tantivy. Prints a table and JSON.

    python experiments/bench/retrieval.py [--passages N] [--only NAME...] [--queries N] [--seed N]

Paragraphs of 80 words by Zipf's and Mandelbrot's law, from 120,000 made-up words. Queries of 6 words
that stand in one paragraph, the 100 commonest excepted, and of 10: with 4 of these. The 60 best are
asked for. Each library is measured in a process of its own, where it is installed: processor time of
indexing from texts, tokens and stems included (rank_bm25 is given the words), megabytes of the arrays (of
tantivy: of its files) and how far memory rises above that of the texts, median milliseconds of
a query by the clock, and of processor time.

More than 200,000 paragraphs are never held as texts; the peak of memory
is then that of the whole process. Those of the others that need all texts at once are left out then.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from pearl.retrieval import SearchSettings
from pearl.retrieval.queries import analyzer
from pearl.retrieval.methods import Query, find_method
from pearl.retrieval.postings import Postings

N_WORDS, N_COMMON, VOCABULARY = 80, 100, 120_000
K = 60
MANY = 200_000
"""From so many paragraphs on, texts are not kept."""

MIB = 1 << 20

Search = Callable[[str], Sequence[int]]


@dataclass(frozen=True)
class Corpus:
    """Made-up paragraphs.

    Attributes:
        words: The vocabulary, the commonest first.
        n: How many paragraphs.
        seed: What they are drawn with.
    """

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


class Made(NamedTuple):
    """An index: how it is searched, and the megabytes of its data; None if that is not known."""

    search: Search
    mib: float | None


def pearl(texts: Iterator[str], n: int) -> Made:
    """BM25+ of PEARL."""
    terms = Postings.build(texts)
    index: Any = SimpleNamespace(terms=terms, vectors=None)
    method, analyse, settings = find_method("bm25+"), analyzer("english"), SearchSettings()

    def search(query: str) -> Sequence[int]:
        terms = Query(dict.fromkeys(analyse(query), 1.0))
        return method.rank(terms, index, settings, K).passages.tolist()

    return Made(search, sum(a.nbytes for a in terms.arrays().values()) / MIB)


def tantivy(texts: Iterator[str], n: int) -> Made:
    """BM25 of tantivy with English stems: one thread, its index in a folder."""
    import tantivy as library

    builder = library.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    builder.add_unsigned_field("number", fast=True)
    folder = tempfile.mkdtemp()
    index = library.Index(builder.build(), path=folder)
    writer = index.writer(heap_size=100_000_000, num_threads=1)
    for number, text in enumerate(texts):
        document = library.Document(text=text)
        document.add_unsigned("number", number)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> Sequence[int]:
        hits = searcher.search(index.parse_query(query, ["text"]), K).hits
        return [address.doc for _, address in hits]

    size = sum(path.stat().st_size for path in Path(folder).rglob("*"))
    return Made(search, size / MIB)


def bm25s(texts: Iterator[str], n: int, backend: str = "numpy") -> Made:
    """BM25+ of bm25s, as it reads texts, with English stems; `delta` changes no order there."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    tokens = library.tokenize(list(texts), stopwords=[], stemmer=stemmer, show_progress=False)
    ranker = library.BM25(
        method="bm25+", idf_method="lucene", k1=1.2, b=0.5, delta=1, backend=backend
    )
    ranker.index(tokens, show_progress=False)

    def search(query: str) -> Sequence[int]:
        tokens = library.tokenize(
            [query], stopwords=[], stemmer=stemmer, return_ids=False, show_progress=False
        )
        return ranker.retrieve(tokens, k=K, show_progress=False)[0][0].tolist()

    size = sum(a.nbytes for a in ranker.scores.values() if isinstance(a, np.ndarray))
    return Made(search, size / MIB)


def bm25s_numba(texts: Iterator[str], n: int) -> Made:
    """The same, its queries compiled."""
    return bm25s(texts, n, backend="numba")


def rank_bm25(texts: Iterator[str], n: int) -> Made:
    """BM25+ of rank_bm25, which is given the words and does not stem."""
    from rank_bm25 import BM25Plus

    ranker = BM25Plus([text.split() for text in texts], k1=1.2, b=0.5, delta=1)
    return Made(lambda query: np.argsort(-ranker.get_scores(query.split()))[:K].tolist(), None)


LIBRARIES = {
    "pearl": (pearl, "pearl", 1),
    "tantivy": (tantivy, "tantivy", 1),
    "bm25s": (bm25s, "bm25s", 1),
    "bm25s-numba": (bm25s_numba, "numba", 1),
    "rank_bm25": (rank_bm25, "rank_bm25", 10),
}
"""Name → what makes its index, the package it needs, and of how many queries one is asked."""

LARGE = ("pearl", "tantivy")
"""Those that need not have all texts at once."""


def measure(name: str, corpus: Corpus, n_queries: int) -> dict[str, Any]:
    """One library, in this process."""
    make, _, every = LIBRARIES[name]
    is_large = corpus.n > MANY
    texts = corpus.texts() if is_large else iter(list(corpus.texts()))
    made_alone = spent(lambda: sum(1 for _ in corpus.texts())) if is_large else 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    made = make(texts, corpus.n)
    row: dict[str, Any] = {
        "name": name,
        "index_cpu_s": round(time.process_time() - cpu - made_alone, 2),
        "index_wall_s": round(time.perf_counter() - began, 2),
        "data_mib": made.mib and round(made.mib, 1),
        "memory_mib": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    for n_common in (0, 4):
        queries = corpus.queries(n_queries, n_common)[::every]
        made.search(queries[0])  # what is compiled or remembered on use
        pairs = [timed(made.search, query) for query in queries]
        wall, cpu = (round(1_000 * float(median), 3) for median in np.median(pairs, axis=0))
        row |= {f"query_{6 + n_common}_ms": wall, f"query_{6 + n_common}_cpu_ms": cpu}
    return row


def spent(do: Callable[[], Any]) -> float:
    began = time.process_time()
    do()
    return time.process_time() - began


def timed(search: Search, query: str) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    search(query)
    return time.perf_counter() - began, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        corpus = Corpus.of(args.passages, args.seed)
        print(json.dumps(measure(args.only[0], corpus, args.queries)))
        return
    rows = []
    print(
        f"{'':12}{'index CPU s':>12}{'wall s':>9}{'data MiB':>10}{'memory':>8}{'6 words ms':>12}{'CPU':>7}{'10':>9}{'CPU':>7}"
    )
    for name in args.only:
        if find_spec(LIBRARIES[name][1]) is None or (args.passages > MANY and name not in LARGE):
            print(f"{name:12} left out: not installed, or it needs all texts at once")
            continue
        options = ["--passages", args.passages, "--queries", args.queries, "--seed", args.seed]
        command = [sys.executable, __file__, "--here", "--only", name, *map(str, options)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        print(
            f"{name:12}{row['index_cpu_s']:12.1f}{row['index_wall_s']:9.1f}{row['data_mib'] or 0:10.1f}"
            f"{row['memory_mib']:8}{row['query_6_ms']:12.2f}{row['query_6_cpu_ms']:7.2f}"
            f"{row['query_10_ms']:9.2f}{row['query_10_cpu_ms']:7.2f}",
            flush=True,
        )
    print(json.dumps({"passages": args.passages, "rows": rows}))


if __name__ == "__main__":
    main()
