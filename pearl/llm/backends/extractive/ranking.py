"""Document + query → its sentences, best first.

A sentence is good if it has the query's terms, the rarer ones above all (coverage), densely (BM25)
and together (proximity), and if it holds something of the kind that is asked for and not in the
query. The sentences around it count a little, for its pronouns' sake. Everything that depends on
the document alone is computed once, in `SentenceIndex`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

from pearl.actions.thesaurus import synonyms
from pearl.documents.passages import sentences, terms
from pearl.errors import Span
from pearl.llm.backends.extractive.cues import Kind, sign
from pearl.llm.backends.extractive.questions import Roles
from pearl.retrieval.bm25 import Index

__all__ = ["Hit", "Query", "SentenceIndex"]

_SYNONYM = 0.7
"""What a synonym in place of a term counts; the term itself counts 1."""
_RELATED = 0.6
"""What a word with the same beginning counts: another form that the stemmer keeps apart."""
_NARROWER = 0.5
"""What a narrower word counts: one of sleep, work, meals for lifestyle."""
_MIN_PREFIX = 4

_NEARBY = ((0, 1.0), (-1, 0.3), (1, 0.25), (-2, 0.2), (2, 0.15), (-3, 0.15))
_LEANING = ((0, 1.0), (-1, 0.5), (1, 0.25), (-2, 0.35), (2, 0.15), (-3, 0.25))
"""What a term counts in the sentences around: offset, share; the second for one with a pronoun."""
_ANSWERING = 0.7
_REPLYING = 0.3
_SPEAKING = 0.4
"""The same in the question before a sentence, in what its turn replies to, in the name of its speaker."""

_DENSITY = 0.07
_PROXIMITY = 0.15
_KIND = 0.4
_NEAR = 0.1
_NEWS = 0.15
_ROLES = 0.15
"""What each adds to coverage, which is 1 at most."""
_NO_ANSWER = 0.6
_HEADING = 0.8
_KNOWN = 0.8
"""What a score is multiplied by where the sentence asks, repeats the query or says next to nothing;
where it is a heading, which only names what the text below it says; where it was quoted before."""

N_CANDIDATES = 200
"""Sentences whose wording is looked at closely; the rest have too few of the terms."""

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
class Query:
    """What is looked for.

    Attributes:
        weights: How much each term counts, 1 for those of the step's own arguments.
        kind: What kind of thing would answer it.
        counted: Terms of the things that are counted, for a number.
        is_claim: Whether a sentence that merely says the query again is what is wanted.
        place: Where in the document it is likely to be, 0 (beginning) to 1 (end); None for anywhere.
        roles: Who does what to whom, as far as the question says.
        near: Sentences that earlier findings quote: what stands by them is more likely meant.
    """

    weights: Mapping[str, float]
    kind: Kind = "thing"
    counted: frozenset[str] = frozenset()
    is_claim: bool = False
    roles: Roles | None = None
    near: frozenset[int] = frozenset()
    place: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A sentence with its score.

    Attributes:
        number: Place among the document's sentences, from 0.
        score: Higher is better.
        coverage: Share of the query's weight in the sentence itself, 0 to 1; terms that are nowhere
            in the document count as missing.
        n_terms: How many different terms of the query it has itself.
    """

    number: int
    score: float
    coverage: float
    n_terms: int


@dataclass(slots=True)
class _Matches:
    """Where the terms of a query are: sentence → term → how good the match is, 0 to 1."""

    gains: dict[str, float] = field(default_factory=dict)
    own: dict[int, dict[str, float]] = field(default_factory=dict)
    expansions: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: float = 0.0


class SentenceIndex:
    """A document's sentences, ready to be ranked for many queries.

    Args:
        text: The document, or an earlier result that stands for one.
    """

    def __init__(self, text: str) -> None:
        spans = sentences(text)
        self.texts = [_shown(text[span.start : span.end]) for span in spans]
        labels = self._labels()
        self._terms = [
            terms(sentence[len(label) :], drop_stop_words=True)
            for sentence, label in zip(self.texts, labels, strict=True)
        ]
        self._bm25 = Index(self._terms, b=0.5)
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
        """Of every sentence, the label of a speaker that it begins with, or ""."""
        found = [match[0] if (match := _TURN.match(text)) else "" for text in self.texts]
        counts = Counter(found)
        # A label that stands only once or twice is a heading: `Founder: Ann Lee`.
        return [label if counts[label] > 2 else "" for label in found]

    def __len__(self) -> int:
        return len(self.texts)

    def idf(self, term: str) -> float:
        """How much a term tells, from its rareness among the sentences; Lucene's formula."""
        n = len(self._postings.get(term, ()))
        return math.log(1 + (len(self) - n + 0.5) / (n + 0.5))

    def words(self, number: int) -> list[str]:
        """The terms of a sentence, without stop words."""
        return self._terms[number]

    def rank(self, query: Query) -> list[Hit]:
        """The sentences that have something of the query, best first, at most `N_CANDIDATES`."""
        matches = self._match(query)
        total = sum(matches.gains.values())
        if not matches.own or total <= 0:
            return []
        covers = {number: self._coverage(number, matches) / total for number in matches.own}
        for number in list(covers):  # what follows a match may speak of it
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
            Hit(
                number,
                self._score(number, covers[number], dense[number] / top, query, matches, asked),
                sum(matches.gains[t] * m for t, m in matches.own.get(number, {}).items())
                / (total + matches.missing),
                len(matches.own.get(number, {})),
            )
            for number in chosen
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.number))

    def _match(self, query: Query) -> _Matches:
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
                # A word that stands in for a term is as telling as it is rare itself, at most.
                match *= min(1.0, self.idf(other) / most)
                for number in self._postings[other]:
                    row = found.own.setdefault(number, {})
                    row[term] = max(match, row.get(term, 0.0))
        return found

    def _expand(self, term: str) -> dict[str, float]:
        """The terms of the document that may stand for a term, with what they count."""
        found = {other: _SYNONYM for other in synonyms().get(term, ()) if other in self._postings}
        for other in _topics().get(term, ()):
            if other in self._postings:
                found.setdefault(other, _NARROWER)
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
        """Weight of the query's terms in a sentence and, for less, around it."""
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
        query: Query,
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
        """Share of the query's neighbouring terms that stand within three words of each other."""
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
        """Whether a sentence has the named one in the same role: 1 yes, -1 in the other, 0 open."""
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
            return 0  # "was sold to Ann" says neither
        if not _RELATIVE.isdisjoint(words[min(nearest, at) : max(nearest, at)]):
            return 0
        is_doer = (nearest < at) != is_passive
        return 1 if is_doer == roles.is_doer else -1


def _read_turns(
    text: str, spans: Sequence[Span], labels: Sequence[str]
) -> tuple[list[frozenset[str]], list[int]]:
    """Of every sentence, who says it (terms of the label of its turn), and the prompt.

    The prompt is the last sentence before the turn, or -1: what the turn replies to. Turns end
    at a blank line.
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
    """A sentence as it is quoted: on one line, without the marks of a list or of a quotation."""
    line = _BLANKS.sub(" ", sentence)
    return _MARKS.sub("", line, count=1) if _MARKS.match(line) else line


@cache
def _topics() -> dict[str, tuple[str, ...]]:
    """Broad term → narrower ones, from the list beside this file."""
    rows = Path(__file__).with_name("topics.txt").read_text(encoding="utf-8").splitlines()
    pairs = [row.split(":") for row in rows if row and not row.startswith("#")]
    return {term: tuple(terms(narrow)) for broad, narrow in pairs for term in terms(broad)}
