"""Text + query → ranked sentences, by their words and, with an embedder, by vectors too.

The score by words is the IDF-weighted coverage of the query, with that of the sentences around it for
its pronouns, plus density (BM25) and signs of the kind of answer. With vectors, both scores of all sentences are
standardised and added; the sum is in the unit of the score by words, so that shares of the best score
mean the same with vectors and without.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pearl.actions.thesaurus import synonyms
from pearl.documents.passages import sentences, terms
from pearl.embedded.cues import Kind, sign
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern
from pearl.llm.concurrency import SingleFlight
from pearl.llm.progress import CallProgress, report
from pearl.retrieval import Embedder
from pearl.retrieval.weighting import TermRanker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SYNONYM = 0.7
_RELATED = 0.6
"""Weights of a match by a synonym, and by a word with the same prefix."""
_MIN_PREFIX = 4
"""Minimum characters of that prefix."""

_NEARBY = ((0, 1.0), (-1, 0.3), (1, 0.25), (-2, 0.2), (2, 0.15), (-3, 0.15))
_LEANING = ((0, 1.0), (-1, 0.5), (1, 0.25), (-2, 0.35), (2, 0.15), (-3, 0.25))
"""Offset and weight of a match in the sentences around; `_LEANING` for a sentence with a pronoun."""
_ANSWERING = 0.7
_REPLYING = 0.3
_SPEAKING = 0.4
"""Weights of a match in the preceding question, in the sentence that the turn replies to, in the
name of the speaker."""

_DENSITY = 0.07
_KIND = 0.4
_NEWS = 0.15
_QUOTED_NEARBY = 0.1
"""Weights of the other features; coverage is at most 1."""
_NO_ANSWER = 0.6
_QUOTED = 0.8
"""Factors for a question or a repetition of the query, and for a sentence that was quoted before."""

N_CANDIDATES = 200
"""Sentences with the best coverage that are scored."""

_VECTOR_WEIGHT = 0.75
"""Weight of the standardised likeness of vectors; that of the words is 1."""
_NEIGHBOUR = 0.5
"""Share of the sentences before and after in the vector of a sentence."""
_MAX_INDEXES = 8
"""Maximum cached indexes of texts."""
_BATCH = 256
"""Sentences that are embedded between two reports of progress."""

_ANAPHOR = lazy_pattern(
    r"[\W_]*(?:\w+ ){0,2}?(?:he|she|it|they|him|her|his|hers|its|them|their|this|that|these|those|there|such)\b",
    re.I,
)
_TURN = lazy_pattern(
    r"\[[^\]\n]{1,30}\]|[A-Z][\w.'’-]{0,24}(?:[ \t][A-Z][\w.'’-]{0,24}){0,3}:(?=\s)"
)
_LOWER_WORD = lazy_pattern(r"(?<![\w'’-])[a-z][\w'’-]*")
_MARKS = lazy_pattern(r"(?:[>*•‣▪+-]\s+|>)+")


@dataclass(frozen=True, slots=True)
class SentenceQuery:
    """A query: weights of terms; what is counted; sentences that were quoted before."""

    weights: Mapping[str, float]
    kind: Kind = "thing"
    counted: frozenset[str] = frozenset()
    is_claim: bool = False
    quoted: frozenset[int] = frozenset()
    text: str = ""


@dataclass(frozen=True, slots=True)
class SentenceHit:
    """A sentence with its score; `coverage` is of the query by its own words."""

    number: int
    score: float
    coverage: float
    n_terms: int
    likeness: float | None = None


@dataclass(slots=True)
class _Matches:
    """Matches of a query: `own` is sentence → term → quality of the match, 0 to 1."""

    gains: dict[str, float] = field(default_factory=dict)
    own: dict[int, dict[str, float]] = field(default_factory=dict)
    expanded: set[str] = field(default_factory=set)
    missing: float = 0.0


class SentenceIndex:
    """The sentences of a text, indexed for many queries."""

    def __init__(self, text: str) -> None:
        spans = sentences(text)
        self.texts = [_on_one_line(text[span.start : span.end]) for span in spans]
        labels = self._labels()
        self._terms = [
            terms(sentence[len(label) :], drop_stop_words=True)
            for sentence, label in zip(self.texts, labels, strict=True)
        ]
        self._bm25 = TermRanker(self._terms, b=0.5)
        self._postings: dict[str, list[int]] = {}
        for number, words in enumerate(self._terms):
            for term in set(words):
                self._postings.setdefault(term, []).append(number)
        self._vocabulary = sorted(self._postings)
        self._speakers, self._prompts = _read_turns(text, spans, labels)
        self._lower_words = frozenset(
            word for sentence in self.texts for word in _LOWER_WORD.findall(sentence)
        )

    def _labels(self) -> list[str]:
        """The speaker's label at the start of each sentence, or ""."""
        labels = [match[0] if (match := _TURN.match(text)) else "" for text in self.texts]
        counts = Counter(labels)
        # A rare label is a heading: `Founder: Ann Lee`.
        return [label if counts[label] > 2 else "" for label in labels]

    def __len__(self) -> int:
        return len(self.texts)

    def idf(self, term: str) -> float:
        """Inverse sentence frequency of a term, by Lucene's formula."""
        n = len(self._postings.get(term, ()))
        return math.log(1 + (len(self) - n + 0.5) / (n + 0.5))

    def words(self, number: int) -> list[str]:
        """The terms of a sentence, without stop words."""
        return self._terms[number]

    def rank(self, query: SentenceQuery) -> list[SentenceHit]:
        """At most `N_CANDIDATES` matching sentences, best first."""
        matches = self._match(query)
        total = sum(matches.gains.values())
        if not matches.own or total <= 0:
            return []
        # The sentence after a match may refer to it.
        near = {number + 1 for number in matches.own if number + 1 < len(self)}
        covers = {
            number: self._coverage(number, matches) / total
            for number in sorted(near.union(matches.own))
        }
        chosen = sorted(covers, key=lambda number: -covers[number])[:N_CANDIDATES]
        asked = frozenset(matches.expanded) | query.weights.keys()
        dense = self._bm25.scores(sorted(matches.expanded))
        top = max(dense[number] for number in chosen) or 1.0
        hits = [
            SentenceHit(
                number,
                self._score(number, covers[number], query, asked) + _DENSITY * dense[number] / top,
                sum(matches.gains[t] * m for t, m in matches.own.get(number, {}).items())
                / (total + matches.missing),
                len(matches.own.get(number, {})),
            )
            for number in chosen
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.number))

    def _match(self, query: SentenceQuery) -> _Matches:
        matches = _Matches()
        for term, weight in query.weights.items():
            expansion = self._expand(term)
            if not expansion:
                matches.missing += self.idf(term) if weight >= 1 else 0.0
                continue
            matches.expanded.update(expansion)
            most = self.idf(term) if term in expansion else max(map(self.idf, expansion))
            matches.gains[term] = weight * most
            for other, quality in expansion.items():
                quality *= min(1.0, self.idf(other) / most)
                for number in self._postings[other]:
                    row = matches.own.setdefault(number, {})
                    row[term] = max(quality, row.get(term, 0.0))
        return matches

    def _expand(self, term: str) -> dict[str, float]:
        """The terms of the document that match a term, with their weights."""
        weights = {other: _SYNONYM for other in synonyms().get(term, ()) if other in self._postings}
        if len(term) >= _MIN_PREFIX and term.isascii() and term.isalpha():
            prefix = term[: max(_MIN_PREFIX, len(term) - 2)]
            at = bisect_left(self._vocabulary, prefix)
            while at < len(self._vocabulary) and self._vocabulary[at].startswith(prefix):
                other = self._vocabulary[at]
                if len(other) - len(prefix) <= 3:
                    weights[other] = max(_RELATED, weights.get(other, 0.0))
                at += 1
        if term in self._postings:
            weights[term] = 1.0
        return weights

    def _coverage(self, number: int, matches: _Matches) -> float:
        """Weight of the query's terms in a sentence and, discounted, around it."""
        nearby = _LEANING if _ANAPHOR.match(self.texts[number]) else _NEARBY
        around = [(row, share) for away, share in nearby if (row := matches.own.get(number + away))]
        for before, share in ((number - 1, 0.0), (self._prompts[number], _REPLYING)):
            row = matches.own.get(before, {})
            around.append((row, _ANSWERING if self._asks(before) else share))
        total = 0.0
        for term, gain in matches.gains.items():
            share = max((row.get(term, 0.0) * share for row, share in around), default=0.0)
            if term in self._speakers[number]:
                share = max(share, _SPEAKING)
            total += gain * share
        return total

    def _asks(self, number: int) -> bool:
        return number >= 0 and self.texts[number].rstrip("\"'”’» ").endswith(("?", "？"))

    def _score(
        self, number: int, cover: float, query: SentenceQuery, asked: frozenset[str]
    ) -> float:
        words = self._terms[number]
        has = sign(query.kind, self.texts[number], asked, self._lower_words, query.counted)
        score = cover + _KIND * has * min(1.0, 0.3 + cover)
        if number in query.quoted:
            score *= _QUOTED
        elif any(abs(number - other) <= 2 for other in query.quoted):
            score += _QUOTED_NEARBY
        n_new = len({word for word in words if word not in asked})
        score += _NEWS * min(1.0, n_new / 8)
        repeats = n_new == 0 and not query.is_claim
        replies = self._asks(number - 1) or self._asks(self._prompts[number])
        if self._asks(number) or repeats or (len(words) < 3 and not has and not replies):
            score *= _NO_ANSWER
        return score


def _read_turns(
    text: str, spans: Sequence[Span], labels: Sequence[str]
) -> tuple[list[frozenset[str]], list[int]]:
    """For each sentence, the terms of its speaker's label, and the last sentence before its turn or -1.

    Turns end at a blank line.
    """
    speakers: list[frozenset[str]] = []
    prompts: list[int] = []
    speaker: frozenset[str] = frozenset()
    prompt = -1
    end = 0
    for number, (span, label) in enumerate(zip(spans, labels, strict=True)):
        if text.count("\n", end, span.start) > 1:
            speaker, prompt = frozenset(), -1
        if label:
            speaker, prompt = frozenset(terms(label, drop_stop_words=True)), number - 1
        speakers.append(speaker)
        prompts.append(prompt)
        end = span.end
    return speakers, prompts


def _on_one_line(sentence: str) -> str:
    """A sentence without line breaks, and without the marks of a list or quotation at its start."""
    line = re.sub(r"\s+", " ", sentence)
    return line[match.end() :] if (match := _MARKS.match(line)) else line


class SentenceRanker:
    """Ranks the sentences of texts; caches their indexes and vectors."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self.index = lru_cache(_MAX_INDEXES)(SentenceIndex)
        self._vectors: WeakKeyDictionary[SentenceIndex, NDArray[np.float32]] = WeakKeyDictionary()
        self._under_way: SingleFlight[NDArray[np.float32]] = SingleFlight()

    async def rank(self, index: SentenceIndex, query: SentenceQuery) -> list[SentenceHit]:
        """The sentences that match a query by a word or, with vectors, all of them; best first."""
        hits = index.rank(query)
        if self._embedder is None or not query.text.strip() or not len(index):
            return hits
        vectors = await self._vectors_of(index, self._embedder)
        (asked,) = await self._embedder.embed([query.text], "query")
        return _fused(hits, vectors @ asked)

    async def aclose(self) -> None:
        """Clear the cache, and close the embedder."""
        self.index.cache_clear()
        if self._embedder is not None:
            await self._embedder.aclose()

    async def _vectors_of(self, index: SentenceIndex, embedder: Embedder) -> NDArray[np.float32]:
        """A vector for each sentence and those around it, computed once."""
        if index not in self._vectors:

            async def computed() -> NDArray[np.float32]:
                return _with_neighbours(await _embedded(index.texts, embedder))

            self._vectors[index] = await self._under_way.do(index, computed)
        return self._vectors[index]


async def _embedded(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """Vectors of sentences, shape (len(texts), dimension)."""
    import numpy as np

    batches = []
    for start in range(0, len(texts), _BATCH):
        report(CallProgress("embedding", start, len(texts)))
        batches.append(await embedder.embed(texts[start : start + _BATCH], "passage"))
    return np.concatenate(batches)


def _with_neighbours(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each vector with a share of those before and after it, of unit length."""
    import numpy as np

    around = vectors.copy()
    around[1:] += _NEIGHBOUR * vectors[:-1]
    around[:-1] += _NEIGHBOUR * vectors[1:]
    lengths = np.linalg.norm(around, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = around / lengths
    return unit


def _fused(hits: Sequence[SentenceHit], likeness: NDArray[np.float32]) -> list[SentenceHit]:
    """Hits for all sentences, from those that match by words and the likeness of all."""
    import numpy as np

    by_words = np.zeros(len(likeness))
    for hit in hits:
        by_words[hit.number] = hit.score
    cosines = likeness.astype(np.float64)
    # Where no word matches, or all sentences match alike, the likeness stands alone.
    unit = float(by_words.std()) or 1.0
    spread = float(cosines.std()) or 1.0
    scores = by_words + _VECTOR_WEIGHT * unit * (cosines - cosines.mean()) / spread
    known = {hit.number: hit for hit in hits}
    fused = [
        replace(
            known.get(number) or SentenceHit(number, 0.0, 0.0, 0),
            score=float(scores[number]),
            likeness=float(cosines[number]),
        )
        for number in range(len(scores))
    ]
    return sorted(fused, key=lambda hit: (-hit.score, hit.number))
