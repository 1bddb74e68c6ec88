"""MiniLM in numpy and dense search: equal to torch, and how fast.

    python experiments/bench/embeddings.py [--vectors 100000]

Needs the extra `semantic` and `pearl models get minilm`. `OPENBLAS_NUM_THREADS=1` measures one thread. Exit code 1
if a vector differs from that of torch, or a search from the exact one.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from pearl.llm.embedders import EmbedderSettings, create_embedder
from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, dense

TORCH = {
    "Why did the captain turn back?": (-0.004737, 0.077123, 0.044036, 0.070785),
    "The lamp failed, so the captain turned back before dawn.": (
        0.041919,
        0.076737,
        0.058520,
        0.060330,
    ),
    "Net sales rose 4 % to $1,234 million in 2009.": (0.051724, -0.083289, 0.013371, 0.004294),
    "": (-0.118838, 0.048299, -0.002548, -0.011011),
    "Élan naïve — “quoted” 中文 🙂 text": (-0.082097, 0.120392, 0.035077, 0.011056),
    ("A long passage about ships and lamps. " * 120).strip(): (
        -0.004809,
        -0.009999,
        0.033136,
        0.029991,
    ),
    "x": (-0.097910, -0.064001, -0.023181, -0.046197),
}
"""First values by transformers 5.23 and torch 2.13, the mean in float64; texts cut at 256 tokens."""

WORDS = [
    "the",
    "captain",
    "turned",
    "back",
    "before",
    "dawn",
    "because",
    "his",
    "lamp",
    "had",
    "failed",
    "and",
    "a",
    "storm",
    "came",
    "up",
]


@dataclass
class OfVectors:
    """An index as far as dense search reads it."""

    vectors: Any
    terms: Any = None


async def encode() -> bool:
    """Compare with torch, and time batches and single queries."""
    embedder = create_embedder("minilm", EmbedderSettings(is_cached=False))
    made = await embedder.embed(list(TORCH), "passage")
    error = float(np.abs(made[:, :4] - np.array(list(TORCH.values()))).max())
    print(f"greatest difference from torch: {error:.1e}")
    rng = np.random.default_rng(0)
    for n_words, n_texts in ((12, 512), (40, 256), (100, 96), (200, 48)):
        texts = [" ".join(rng.choice(WORDS, n_words)) for _ in range(n_texts)]
        wall, cpu = time.perf_counter(), time.process_time()
        await embedder.embed(texts, "passage")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{n_words:>4} words: {n_texts / wall:6.0f} texts/s, {n_texts / cpu:6.0f} per CPU s")
    times = []
    for n in range(30):
        start = time.perf_counter()
        await embedder.embed([f"why did captain {n} turn back"], "query")
        times.append(time.perf_counter() - start)
    print(f"query: {1e3 * float(np.median(times)):.1f} ms")
    await embedder.aclose()
    return error < 2e-6


def search(n_vectors: int) -> bool:
    """Time exact search beside the bare product, and check its recall."""
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((n_vectors, 384), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index, mask = OfVectors(vectors), rng.random(n_vectors) < 0.1
    times: dict[str, list[float]] = {"bare product": [], "search": [], "search, 10 % mask": []}
    recall = []
    for query in vectors[rng.choice(n_vectors, 30, replace=False)]:
        asked = {
            "bare product": lambda query=query: vectors @ query,
            "search": lambda query=query: dense.rank(Query({}, query), index, SearchSettings(), 50),
            "search, 10 % mask": lambda query=query: dense.rank(
                Query({}, query, mask), index, SearchSettings(), 50
            ),
        }
        for name, ask in asked.items():
            start = time.perf_counter()
            found = ask()
            times[name].append(time.perf_counter() - start)
            if name == "search":
                exact = np.argsort(-(vectors.astype(np.float64) @ query), kind="stable")[:50]
                recall.append(len(set(exact) & set(found.passages.tolist())) / 50)
    for name, each in times.items():
        print(
            f"{name:<18} p50 {1e3 * float(np.median(each)):6.1f} ms, least {1e3 * min(each):6.1f} ms"
        )
    print(f"recall@50 over {n_vectors:,} vectors: {np.mean(recall):.3f}")
    return float(np.mean(recall)) == 1.0


def main() -> int:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=100_000)
    args = parser.parse_args()
    is_equal = asyncio.run(encode())
    return 0 if search(args.vectors) and is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
