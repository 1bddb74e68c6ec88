"""Document + query → ranked sentences.

The score of a sentence is the IDF-weighted coverage of the query, with that of the sentences around
it for its pronouns, plus density (BM25), proximity of the terms, and signs of the kind of answer.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pearl.actions.thesaurus import synonyms
from pearl.documents.passages import sentences, terms
from pearl.errors import Span
from pearl.llm.backends.extractive.cues import Kind, sign
from pearl.llm.backends.extractive.questions import Roles
from pearl.retrieval.weighting import TermRanker

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
_PROXIMITY = 0.15
_KIND = 0.4
_NEAR = 0.1
_NEWS = 0.15
_ROLES = 0.15
"""Weights of the other features; coverage is at most 1."""
_NO_ANSWER = 0.6
_HEADING = 0.8
_KNOWN = 0.8
"""Factors for a question, a repetition of the query or a very short sentence; for a heading; for a
sentence quoted before."""

N_CANDIDATES = 200
"""Sentences with the best coverage that are scored."""

_ANAPHOR = re.compile(
    r"[\W_]*(?:\w+ ){0,2}?(?:he|she|it|they|him|her|his|hers|its|them|their|this|that|these|those|there"
    r"|such|the (?:former|latter|same))\b",
    re.I,
)
_TURN = re.compile(r"\[[^\]\n]{1,30}\]|[A-Z][\w.'’-]{0,24}(?:[ \t][A-Z][\w.'’-]{0,24}){0,3}:(?=\s)")
_LOWER_WORD = re.compile(r"(?<![\w'’-])[a-z][\w'’-]*")
_BE = frozenset({"be", "been", "is", "are", "was", "were", "get", "got"})
_RELATIVE = frozenset({"who", "whom", "which", "that"})
_BLANKS = re.compile(r"\s+")
_MARKS = re.compile(r"(?:[>*•‣▪+-]\s+|>)+")
_TERMINAL = re.compile(r"[.!?…:;。！？।]\W*\Z")


@dataclass(frozen=True, slots=True)
class SentenceQuery:
    """A query."""

    weights: Mapping[str, float]
    kind: Kind = "thing"
    counted: frozenset[str] = frozenset()
    is_claim: bool = False
    roles: Roles | None = None
    near: frozenset[int] = frozenset()
    place: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class SentenceHit:
    """A sentence with its score."""

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
    expansions: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: float = 0.0


class SentenceIndex:
    """The sentences of a text, indexed for many queries."""

    def __init__(self, text: str) -> None:
        spans = sentences(text)
        self.texts = [_shown(text[span.start : span.end]) for span in spans]
        labels = self._labels()
        self._terms = [
            terms(sentence[len(label) :], drop_stop_words=True)
            for sentence, label in zip(self.texts, labels, strict=True)
        ]
        self._bm25 = TermRanker(self._terms, b=0.5)
        self._postings: dict[str, list[int]] = {}
        for number, found in enumerate(self._terms):
            for term in set(found):
                self._postings.setdefault(term, []).append(number)
        self._vocabulary = sorted(self._postings)
        self._speakers, self._prompts = _read_turns(text, spans, labels)
        self._lower_words = frozenset(
            word for sentence in self.texts for word in _LOWER_WORD.findall(sentence)
        )

    def _labels(self) -> list[str]:
        """The speaker's label at the start of each sentence, or ""."""
        found = [match[0] if (match := _TURN.match(text)) else "" for text in self.texts]
        counts = Counter(found)
        # A rare label is a heading: `Founder: Ann Lee`.
        return [label if counts[label] > 2 else "" for label in found]

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
        covers = {number: self._coverage(number, matches) / total for number in matches.own}
        for number in list(covers):  # the sentence after a match may refer to it
            if number + 1 < len(self) and number + 1 not in covers:
                covers[number + 1] = self._coverage(number + 1, matches) / total
        chosen = sorted(covers, key=lambda number: (-covers[number], number))[:N_CANDIDATES]
        wanted = [term for expansion in matches.expansions.values() for term in expansion]
        dense = self._bm25.scores(
            other
            for term, expansion in matches.expansions.items()
            for other in ([term] if term in expansion else expansion)
        )
        top = max((dense[number] for number in chosen), default=0.0) or 1.0
        asked = frozenset(wanted) | query.weights.keys()
        hits = [
            SentenceHit(
                number,
                self._score(number, covers[number], dense[number] / top, query, matches, asked),
                sum(matches.gains[t] * m for t, m in matches.own.get(number, {}).items())
                / (total + matches.missing),
                len(matches.own.get(number, {})),
            )
            for number in chosen
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.number))

    def _match(self, query: SentenceQuery) -> _Matches:
        found = _Matches()
        for term, weight in query.weights.items():
            expansion = self._expand(term)
            if not expansion:
                found.missing += self.idf(term) if weight >= 1 else 0.0
                continue
            found.expansions[term] = expansion
            most = self.idf(term) if term in expansion else max(map(self.idf, expansion))
            found.gains[term] = weight * most
            for other, match in expansion.items():
                match *= min(1.0, self.idf(other) / most)
                for number in self._postings[other]:
                    row = found.own.setdefault(number, {})
                    row[term] = max(match, row.get(term, 0.0))
        return found

    def _expand(self, term: str) -> dict[str, float]:
        """The terms of the document that match a term, with their weights."""
        found = {other: _SYNONYM for other in synonyms().get(term, ()) if other in self._postings}
        if len(term) >= _MIN_PREFIX and term.isascii() and term.isalpha():
            prefix = term[: max(_MIN_PREFIX, len(term) - 2)]
            at = bisect_left(self._vocabulary, prefix)
            while at < len(self._vocabulary) and self._vocabulary[at].startswith(prefix):
                other = self._vocabulary[at]
                if len(other) - len(prefix) <= 3:
                    found[other] = max(_RELATED, found.get(other, 0.0))
                at += 1
        if term in self._postings:
            found[term] = 1.0
        return found

    def _coverage(self, number: int, matches: _Matches) -> float:
        """Weight of the query's terms in a sentence and, discounted, around it."""
        leans = bool(_ANAPHOR.match(self.texts[number]))
        nearby = _LEANING if leans else _NEARBY
        around = [(row, share) for away, share in nearby if (row := matches.own.get(number + away))]
        prompt = self._prompts[number]
        for before, share in ((number - 1, 0.0), (prompt, _REPLYING)):
            row = matches.own.get(before, {})
            around.append((row, _ANSWERING if self._asks(before) else share))
        speaker = self._speakers[number]
        total = 0.0
        for term, gain in matches.gains.items():
            share = max((row.get(term, 0.0) * share for row, share in around), default=0.0)
            if term in speaker:
                share = max(share, _SPEAKING)
            total += gain * share
        return total

    def _asks(self, number: int) -> bool:
        return number >= 0 and self.texts[number].rstrip("\"'”’» ").endswith(("?", "？"))

    def _score(
        self,
        number: int,
        cover: float,
        density: float,
        query: SentenceQuery,
        matches: _Matches,
        asked: frozenset[str],
    ) -> float:
        sentence, words = self.texts[number], self._terms[number]
        score = cover + _DENSITY * density + _PROXIMITY * self._proximity(number, matches)
        has = sign(query.kind, sentence, asked, self._lower_words, query.counted)
        score += _KIND * has * min(1.0, 0.3 + cover)
        if number in query.near:
            score *= _KNOWN
        elif any(abs(number - other) <= 2 for other in query.near):
            score += _NEAR
        if query.roles:
            score += _ROLES * self._roles(number, query.roles, matches)
        if query.place is not None:
            score += _NEAR * (1 - abs(query.place - number / len(self)))
        n_new = len({word for word in words if word not in asked})
        score += _NEWS * min(1.0, n_new / 8)
        repeats = n_new == 0 and not query.is_claim
        replies = self._asks(number - 1) or self._asks(self._prompts[number])
        if self._asks(number) or repeats or (len(words) < 3 and not has and not replies):
            score *= _NO_ANSWER
        if len(words) <= 8 and not _TERMINAL.search(sentence):
            score *= _HEADING
        return score

    def _proximity(self, number: int, matches: _Matches) -> float:
        """Share of the query's adjacent terms that are within three words of each other."""
        order = list(matches.gains)
        if len(order) < 2:
            return 0.0
        places: dict[str, list[int]] = {}
        for at, word in enumerate(self._terms[number]):
            for term in order:
                if word in matches.expansions[term]:
                    places.setdefault(term, []).append(at)
        together = whole = 0.0
        for one, two in pairwise(order):
            weight = min(matches.gains[one], matches.gains[two])
            whole += weight
            pairs = ((a, b) for a in places.get(one, ()) for b in places.get(two, ()))
            together += weight * any(0 < abs(a - b) <= 3 for a, b in pairs)
        return together / whole if whole else 0.0

    def _roles(self, number: int, roles: Roles, matches: _Matches) -> int:
        """1 if the named one has the same role in a sentence, -1 if the opposite one, else 0."""
        deed = matches.expansions.get(roles.deed, {})
        others = [matches.expansions.get(term, {}) for term in roles.others]
        words = terms(self.texts[number])
        at = next((i for i, word in enumerate(words) if word in deed), None)
        places = [i for i, word in enumerate(words) if any(word in one for one in others)]
        if at is None or not places:
            return 0
        nearest = min(places, key=lambda i: abs(i - at))
        is_passive = not _BE.isdisjoint(words[max(0, at - 3) : at])
        if is_passive and nearest > at and "by" not in words[at + 1 : nearest]:
            return 0  # "was sold to Ann"
        if not _RELATIVE.isdisjoint(words[min(nearest, at) : max(nearest, at)]):
            return 0
        is_doer = (nearest < at) != is_passive
        return 1 if is_doer == roles.is_doer else -1


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


def _shown(sentence: str) -> str:
    """A sentence on one line, without the marks of a list or quotation at its start."""
    line = _BLANKS.sub(" ", sentence)
    return line[match.end() :] if (match := _MARKS.match(line)) else line
