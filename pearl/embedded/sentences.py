"""Rank the sentences of a text for a query, by words and, with an embedder, by vectors too.

The score by words is the IDF-weighted coverage of the query by a sentence and those around it, plus
signs of the kind of answer. With vectors, both scores of all sentences are standardised and added; the
sum is rescaled to the score by words, so that shares of the best score mean the same with and without
vectors.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.lexicon import MONTH, NUMBER_WORD, WEEKDAY, YEAR
from pearl.documents.passages import MAX_LENGTH, read_synonyms, sentence_ranges, terms
from pearl.errors.patterns import lazy_pattern
from pearl.llm.concurrency import SingleFlight
from pearl.llm.progress import CallProgress, report
from pearl.retrieval import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Kind = Literal["advice", "emotion", "number", "person", "reason", "thing", "time"]

_CUES = {
    kind: lazy_pattern(rf"(?<!\w)(?:{pattern})(?!\w)", re.I)
    for kind, pattern in {
        "advice": r"should\w*|ought|must\w*|need(?:s|ed)? to|ha(?:ve|s|d) to|advis\w+|advice|recommend\w+|suggest\w+|stop"
        r"|try|avoid|make sure|do not|don['’]t|instead|keep|let['’]s|follow[ -]?up|at least",
        "emotion": r"feel|feels|felt|feelings?|afraid|fear\w*|ang(?:er|ry)|happy|happiness|glad|joy\w*|sad\w*|grief|sorry"
        r"|regret\w*|ashamed|guilt\w*|proud|pride|jealous\w*|love[ds]?|hat(?:e|es|ed|red)|(?:dis)?like[ds]?|bitter\w*"
        r"|hop(?:e|ed|es)|despair\w*|surpris\w+|worr(?:y|ied|ies)|anxi\w+|relie(?:f|ved)|upset|cr(?:y|ied)|wept|smil\w+",
        "number": rf"\$?\d[\d,]*(?:\.\d+)?|{NUMBER_WORD}",
        "person": r"(?-i:[A-Z])[\w'’-]*\w",
        "reason": r"because|so that|in order (?:to|that)|so as to|since (?!then|(?:the|last|\d))|reasons?|due to|owing to"
        r"|thanks to|on account of|as a result|result of|for fear|lest|caused?|out of (?!the\b)|led (?:to|him|her|them)"
        r"|therefore|hence|that (?:is|was) why|for the sake|in case|thus|made (?:him|her|them|it)|forced|persuaded|prompted",
        "time": rf"{YEAR}s?|{WEEKDAY}s?|\d{{1,2}}:\d\d|\d{{1,2}} ?[ap]\.?m|o['’]clock|noon|midnight|christmas|easter"
        rf"|{MONTH}\.? (?:the )?\d+|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}"
        rf"|(?:in|since|by|until|during|last|this|next|early|late|of|from)[ -](?:early |late |mid-?)?{MONTH}",
    }.items()
}


def sign(kind: Kind, sentence: str, asked: Set[str], common: Set[str]) -> float:
    """How likely a sentence contains an answer of a kind, 0 to 1.

    Example:
        >>> sign("time", "It opened on 4 May 1911.", frozenset(), frozenset())
        1.0
        >>> sign("person", "Ada sold it.", frozenset({"ada"}), frozenset())
        0.0
    """
    if kind == "thing":
        return 0.0
    matches = list(_CUES[kind].finditer(sentence))
    match kind:
        case "advice" | "emotion":  # one word is weak evidence, two words are strong
            return min(1.0, 0.7 * len({match[0].lower() for match in matches}))
        case "reason":
            return float(bool(matches))
        case "person":  # the first word of a sentence is capitalised anyway
            names = [match for match in matches if match.start() or match[0].lower() not in common]
            return float(any(_is_new(match[0].removesuffix("'s"), asked) for match in names))
        case _:
            return float(any(_is_new(match[0], asked) for match in matches))


def _is_new(text: str, asked: Set[str]) -> bool:
    """Whether a phrase has a term that is not in the question."""
    words = terms(text, drop_stop_words=True)
    return not words or any(term not in asked for term in words)


_SYNONYMS = Path(__file__).with_name("synonyms.txt")
_SYNONYM = 0.7  # Weight of a match by a synonym
_RELATED = 0.6  # Weight of a match by a word with the same prefix
_MIN_PREFIX = 4  # Minimum characters of that prefix

_NEARBY = ((0, 1.0), (-1, 0.5), (1, 0.25), (-2, 0.35), (2, 0.15), (-3, 0.25))
"""Offset and weight of a match in the neighbouring sentences, which pronouns may refer to."""
_ANSWERING = 0.7
_SPEAKING = 0.4
"""Weights of a match in the question that a sentence answers, and in the name of its speaker."""

_KIND = 0.4  # Weight of the sign of an answer; coverage is at most 1
_NO_ANSWER = 0.6  # Factor for a question or a repetition of the query

_N_CANDIDATES = 200  # Maximum number of sentences that are scored, by coverage

_VECTOR_WEIGHT = 0.75
"""Weight of the standardised similarity of vectors; the weight of the words is 1."""
_NEIGHBOUR = 0.5  # Share of the neighbouring sentences in the vector of a sentence
_MAX_INDEXES = 8  # Maximum cached indexes of texts
_ALIKE = 0.8
"""Minimum share of lines with equally many delimiters, for a passage of them to be rows."""
_BATCH = 256  # Sentences that are embedded between two reports of progress

_TURN = lazy_pattern(  # "[doctor]" or "Dr. Ann Lee:" before what is said
    r"\[[^\]\n]{1,30}\]|[A-Z][\w.'’-]{0,24}(?:[ \t][A-Z][\w.'’-]{0,24}){0,3}:(?=\s)"
)
_LOWER_WORD = lazy_pattern(r"(?<![\w'’-])[a-z][\w'’-]*")  # sold, wasn't
_MARKS = lazy_pattern(r"(?:[>*•‣▪+-]\s+|>)+")  # "> - "


class SentenceQuery(Struct, frozen=True):
    """A query (`subject` is its text for messages): weights of terms, the kind of the answer, and whether all answers are requested."""

    weights: Mapping[str, float]
    kind: Kind = "thing"
    is_claim: bool = False
    text: str = ""
    is_many: bool = False
    subject: str = ""


class SentenceHit(Struct, frozen=True):
    """A sentence with its score; `coverage` is the share of the query that its own words cover."""

    number: int
    score: float
    coverage: float
    n_terms: int
    likeness: float | None = None


class _Terms(dict[str, tuple[str, ...]]):
    """Token → its terms without function words; each token is analysed once."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        found = tuple(terms(token, drop_stop_words=True))
        if len(token) <= MAX_LENGTH:
            self[token] = found
        return found


class _Sentences(Sequence[str]):
    """The sentences of a text, each on one line, made on access."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts, self.ends = array("q"), array("q")

    def add(self, start: int, end: int) -> None:
        """Add a sentence by its place in the text."""
        self.starts.append(start)
        self.ends.append(end)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        # Without line breaks, and without the marks of a list or quotation at its start
        line = re.sub(r"\s+", " ", self.raw(index))
        return line[match.end() :] if (match := _MARKS.match(line)) else line

    def raw(self, number: int) -> str:
        """A sentence as it is in the text."""
        return self.text[self.starts[number] : self.ends[number]]


class SentenceIndex:
    """The sentences of a text, indexed for many queries. Of a sentence, only its place and its terms' postings are kept."""

    def __init__(self, text: str) -> None:
        self.texts = _Sentences(text)
        self.rows: set[int] = set()
        for start, end in sentence_ranges(text):
            lines = _rows(text, start, end)
            if len(lines) > 1 or text.startswith("|", start):
                self.rows.update(range(len(self), len(self) + len(lines)))
            for line in lines:
                self.texts.add(*line)
        self._labels = self._read_labels()
        self._speakers = self._read_speakers()
        postings = defaultdict[str, "array[int]"](partial(array, "l"))
        for number, found in enumerate(self.words()):
            for term in set(found):
                postings[term].append(number)
        self._postings: Mapping[str, array[int]] = dict(postings)
        self._vocabulary = sorted(self._postings)

    def __len__(self) -> int:
        return len(self.texts)

    def words(self) -> Iterator[Iterable[str]]:
        """The terms of each sentence, without its label and function words."""
        known, labels = _Terms(), self._labels
        for number in range(len(self)):
            # No term contains a blank, so tokens are analysed separately.
            raw = (
                self.texts[number][len(labels[number]) :]
                if number in labels
                else self.texts.raw(number)
            )
            yield chain.from_iterable(map(known.__getitem__, raw.split()))

    def _read_labels(self) -> dict[int, str]:
        """The labels at the beginning of sentences: `Ann Lee:`. A rare one is a heading: `Founder: Ann Lee`."""
        text, labels = self.texts.text, dict[int, str]()
        for number, (start, end) in enumerate(zip(self.texts.starts, self.texts.ends, strict=True)):
            has_mark = text.find(":", start, end) >= 0 or text.find("[", start, end) >= 0
            if text[start : start + 1].islower() or not has_mark:
                continue
            if match := _TURN.match(self.texts[number]):
                labels[number] = match[0]
        counts = Counter(labels.values())
        return {number: label for number, label in labels.items() if counts[label] > 2}

    def _read_speakers(self) -> Mapping[int, frozenset[str]]:
        """The terms of the label of each sentence's speaker, whose turn ends at a blank line."""
        speakers: dict[int, frozenset[str]] = {}
        speaker: frozenset[str] = frozenset()
        end = 0
        if self._labels:
            for number, start in enumerate(self.texts.starts):
                if label := self._labels.get(number):
                    speaker = frozenset(terms(label, drop_stop_words=True))
                elif speaker and self.texts.text.count("\n", end, start) > 1:
                    speaker = frozenset()
                if speaker:
                    speakers[number] = speaker
                end = self.texts.ends[number]
        return speakers

    @cached_property
    def _lower_words(self) -> frozenset[str]:
        """The words that the text has in small letters."""
        tokens: set[str] = set()
        for number in range(len(self)):
            tokens.update(self.texts.raw(number).split())
        return frozenset(chain.from_iterable(map(_LOWER_WORD.findall, tokens)))

    def idf(self, term: str) -> float:
        """Inverse sentence frequency of a term, by Lucene's formula."""
        n = len(self._postings.get(term, ()))
        return math.log(1 + (len(self) - n + 0.5) / (n + 0.5))

    def _matching(self, term: str) -> dict[str, float]:
        """The terms of the text that match a term, with the weights of the matches."""
        others = chain.from_iterable(map(terms, read_synonyms(_SYNONYMS).get((term,), ())))
        weights = {other: _SYNONYM for other in others if other in self._postings}
        if len(term) >= _MIN_PREFIX and term.isascii() and term.isalpha():
            prefix = term[: max(_MIN_PREFIX, len(term) - 2)]
            ends = (bisect_left(self._vocabulary, each) for each in (prefix, f"{prefix}\U0010ffff"))
            for other in self._vocabulary[slice(*ends)]:
                if len(other) - len(prefix) <= 3:
                    weights[other] = max(_RELATED, weights.get(other, 0.0))
        return weights | {term: 1.0} if term in self._postings else weights

    def rank(self, query: SentenceQuery) -> list[SentenceHit]:
        """The best sentences that match a query by a word, best first."""
        gains: dict[str, float] = {}
        qualities: dict[int, dict[str, float]] = {}  # match by sentence and term, 0 to 1
        asked = set(query.weights)
        missing = 0.0
        for term, weight in query.weights.items():
            expansion = self._matching(term)
            if not expansion:
                missing += self.idf(term) if weight >= 1 else 0.0
                continue
            asked |= expansion.keys()
            most = self.idf(term) if term in expansion else max(map(self.idf, expansion))
            gains[term] = weight * most
            for other, quality in expansion.items():
                quality *= min(1.0, self.idf(other) / most)
                for number in self._postings[other]:
                    row = qualities.setdefault(number, {})
                    row[term] = max(quality, row.get(term, 0.0))
        total = sum(gains.values())
        if total <= 0:
            return []
        # The sentence after a match may refer to it.
        near = {number + 1 for number in qualities if number + 1 < len(self)}
        covers = {n: self._coverage(n, gains, qualities) / total for n in near.union(qualities)}
        chosen = sorted(covers, key=lambda number: (-covers[number], number))[:_N_CANDIDATES]
        hits = []
        for number in chosen:
            row = qualities.get(number, {})
            own = sum(gains[term] * quality for term, quality in row.items()) / (total + missing)
            score = self._score(number, covers[number], query, asked)
            hits.append(SentenceHit(number, score, own, len(row)))
        return sorted(hits, key=lambda hit: (-hit.score, hit.number))

    def _coverage(
        self, number: int, gains: Mapping[str, float], qualities: Mapping[int, dict[str, float]]
    ) -> float:
        """Weight of the query's terms in a sentence and, discounted, around it."""
        around = [(qualities.get(number + away, {}), share) for away, share in _NEARBY]
        if self._asks(number - 1):
            around.append((qualities.get(number - 1, {}), _ANSWERING))
        speaker = self._speakers.get(number, ())
        total = 0.0
        for term, gain in gains.items():
            share = max(row.get(term, 0.0) * share for row, share in around)
            total += gain * max(share, _SPEAKING * (term in speaker))
        return total

    def _score(self, number: int, cover: float, query: SentenceQuery, asked: Set[str]) -> float:
        text = self.texts[number]
        said = text[len(self._labels.get(number, "")) :]
        words = set(terms(said, drop_stop_words=True))
        common = self._lower_words if query.kind == "person" else frozenset[str]()
        has = sign(query.kind, text, asked, common)
        score = cover + _KIND * has * min(1.0, 0.3 + cover)
        repeats = words <= asked and not query.is_claim
        is_scanty = len(words) < 3 and not has and not self._asks(number - 1)
        return score * _NO_ANSWER if self._asks(number) or repeats or is_scanty else score

    def _asks(self, number: int) -> bool:
        return number >= 0 and self.texts[number].rstrip("\"'”’» ").endswith(("?", "？"))


def _rows(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Split a passage of delimited cells, which has no sentences, into lines; keep any other passage whole."""
    if text.count("\n", start, end) < 2:
        return ((start, end),)
    lines = text[start:end].split("\n")
    usual = (Counter(line.count(mark) for line in lines).most_common(1)[0] for mark in ",;\t|")
    if not any(n_cells and n_same >= _ALIKE * len(lines) for n_cells, n_same in usual):
        return ((start, end),)
    starts = accumulate((len(line) + 1 for line in lines), initial=start)
    return [(at, at + len(line)) for at, line in zip(starts, lines, strict=False)]


class SentenceRanker:
    """Ranks the sentences of texts; caches their indexes and vectors."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self.index = lru_cache(_MAX_INDEXES)(SentenceIndex)
        self._vectors: WeakKeyDictionary[SentenceIndex, NDArray[np.float32]] = WeakKeyDictionary()
        self._under_way: SingleFlight[NDArray[np.float32]] = SingleFlight()

    async def rank(self, index: SentenceIndex, query: SentenceQuery) -> list[SentenceHit]:
        """The sentences that match a query by a word or, with vectors, all of them; best first."""
        hits, embedder = index.rank(query), self._embedder
        if embedder is None or not query.text.strip() or not len(index):
            return hits
        if index not in self._vectors:
            make = partial(_vectors, index.texts, embedder)
            self._vectors[index] = await self._under_way.do(index, make)
        (asked,) = await embedder.embed([query.text], "query")
        import numpy as np

        # The scores by words and the cosines combined, for all sentences
        likeness = self._vectors[index] @ asked
        every = [SentenceHit(number, 0.0, 0.0, 0) for number in range(len(likeness))]
        for hit in hits:
            every[hit.number] = hit
        by_words = np.array([hit.score for hit in every])
        cosines = likeness.astype(np.float64)
        # If no word matches, or all sentences match equally, the cosine decides.
        unit = float(by_words.std()) or 1.0
        spread = float(cosines.std()) or 1.0
        scores = by_words + _VECTOR_WEIGHT * unit * (cosines - cosines.mean()) / spread
        fused = [
            replace(hit, score=float(scores[hit.number]), likeness=float(cosines[hit.number]))
            for hit in every
        ]
        return sorted(fused, key=lambda hit: (-hit.score, hit.number))

    async def aclose(self) -> None:
        """Clear the cache, and close the embedder."""
        self.index.cache_clear()
        if self._embedder is not None:
            await self._embedder.aclose()


async def _vectors(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """Vectors of sentences, mixed with those of their neighbours; shape (len(texts), dimension)."""
    import numpy as np

    batches = []
    for start in range(0, len(texts), _BATCH):
        report(CallProgress("embedding", start, len(texts)))
        batches.append(await embedder.embed(texts[start : start + _BATCH], "passage"))
    vectors = np.concatenate(batches)
    around = vectors.copy()
    around[1:] += _NEIGHBOUR * vectors[:-1]
    around[:-1] += _NEIGHBOUR * vectors[1:]
    lengths = np.linalg.norm(around, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = around / lengths
    return unit
