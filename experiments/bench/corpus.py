"""Made-up paragraphs and queries for the benches of retrieval and of long texts.

Paragraphs of 80 words by Zipf's and Mandelbrot's law, from 120,000 made-up words. Queries of 6 words of one paragraph,
without the 100 commonest, and of 10: with 4 of these.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

N_WORDS, N_COMMON, VOCABULARY = 80, 100, 120_000


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
