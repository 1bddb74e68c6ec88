"""Topics × searchers → measures of retrieval, with intervals, and their table.

The measures are those of trec_eval, computed by `ir_measures` (extra `eval`). Documents are judged: the rank of a
document is the rank of its best passage.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pearl.errors import DataError
from pearl.evals import stats
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

DEPTH = 1_000
"""Number of ranked passages for each topic, as in TREC; average precision uses all of them."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A query of the evaluation."""

    id: str
    text: str
    history: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    group: str = ""


Judgments = Mapping[str, Mapping[str, int]]
"""Topic → the relevance of its documents."""


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """The scores of one method."""

    method: str
    values: Mapping[str, Mapping[str, float]]
    groups: tuple[str, ...]
    notes: Mapping[str, int] = field(default_factory=dict)

    def mean(self, measure: str) -> stats.Interval:
        """The mean over topics with its bootstrap interval."""
        return stats.accuracy(list(self.values[measure].values()), clusters=self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Means with intervals, and what was left out."""
        return {
            "method": self.method,
            "measures": {name: msgspec.to_builtins(self.mean(name)) for name in self.values},
            "notes": dict(self.notes),
        }


async def evaluate_retrieval(
    index: Index,
    topics: Sequence[Topic],
    judgments: Judgments,
    searchers: Mapping[str, Searcher],
    measures: Sequence[str],
    depth: int = DEPTH,
) -> list[RetrievalScores]:
    """Run every searcher on every topic with a relevant document, and measure the rankings."""
    judged = [one for one in topics if any(grade > 0 for grade in judgments[one.id].values())]
    documents = {name.decode() for name in index.contents.names.every()}
    if not any(documents & judgments[topic.id].keys() for topic in judged):
        raise DataError("the corpus has none of the relevant documents", help="compare their names")
    scores = []
    for name, searcher in searchers.items():
        rankings: dict[str, list[str]] = {}
        notes: Counter[str] = Counter()
        for topic in judged:
            rankings[topic.id] = await _ranked(index, topic, searcher, depth, notes)
        values = measure_rankings(rankings, judgments, measures)
        groups = tuple(topic.group or f"\0{topic.id}" for topic in judged)
        scores.append(RetrievalScores(name, values, groups, dict(notes)))
    return scores


def measure_rankings(
    rankings: Mapping[str, Sequence[str]], judgments: Judgments, measures: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Measures by name and topic of rankings: for each topic its documents, the best first, each once."""
    with warnings.catch_warnings():
        # Its parser of measures uses functions that Python 3.12 deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        import ir_measures

        parsed = [ir_measures.parse_measure(name) for name in measures]
    # Ranks as scores: equal scores would be sorted by the documents' names.
    run = {
        topic: {name: float(-rank) for rank, name in enumerate(found)}
        for topic, found in rankings.items()
    }
    grades = {
        topic: {name: max(0, grade) for name, grade in judgments[topic].items()}
        for topic in rankings
    }
    found = {
        (str(one.measure), one.query_id): one.value
        for one in ir_measures.iter_calc(parsed, grades, run)
    }
    return {
        name: {topic: found[str(measure), topic] for topic in rankings}
        for name, measure in zip(measures, parsed, strict=True)
    }


async def _ranked(
    index: Index, topic: Topic, searcher: Searcher, depth: int, notes: Counter[str]
) -> list[str]:
    """The documents of the best passages, each once, at its best passage."""
    query = "\n".join([*topic.history, topic.text])
    found = await searcher.search(index, query, depth, filters=topic.filters)
    notes.update(dict.fromkeys(found.notes, 1))
    return list(dict.fromkeys(hit.passage.document for hit in found.hits))


def print_scores(scores: Sequence[RetrievalScores]) -> None:
    """A line a method: its means."""
    names = list(scores[0].values)
    print(f"\n| method | {' | '.join(names)} |")
    print("|---" * (len(names) + 1) + "|")
    for one in scores:
        means = [f"{one.mean(name).estimate:.4f}" for name in names]
        print(f"| {one.method} | {' | '.join(means)} |")
        for note, n in one.notes.items():
            print(f"NOTE {one.method}, {n} queries: {note}")
