"""Topics × searchers → measures of retrieval, with intervals, paired differences and latency.

The measures are those of trec_eval, computed by `ir_measures` (extra `eval`). Documents are judged: the rank of a
document is the rank of its best passage.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from operator import gt, lt
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pearl.data.rows import Row, kind, read_file
from pearl.documents.readers.text import decode
from pearl.errors import DataError, UsageError
from pearl.errors.patterns import lazy_pattern
from pearl.evals import stats
from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from pearl.retrieval.index import Index
    from pearl.retrieval.search import Searcher


_ROWS = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")
_TOPIC = ("id", "_id", "query_id", "query-id", "qid")
_TEXT = ("text", "query", "question")
_JUDGED_TOPIC = ("query_id", "query-id", "qid", "topic")
_DOCUMENT = ("doc_id", "corpus-id", "corpus_id", "document", "docid", "docno")
_RELEVANCE = ("relevance", "score", "rel")
_WHOLE = lazy_pattern(r"-?\d{1,9}(\.0+)?")


@dataclass(frozen=True, slots=True)
class Topic:
    """A query of the evaluation."""

    id: str
    text: str
    history: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True)
class Judgments:
    """The relevance of documents, by topic."""

    grades: Mapping[str, Mapping[str, int]]
    n_repeated: int = 0
    n_conflicting: int = 0


def read_topics(path: str | Path) -> tuple[Topic, ...]:
    """The topics of a file, in order."""
    path = Path(path)
    topics: dict[str, Topic] = {}
    for row in _rows(path, _TOPIC, _TEXT):
        topic = Topic(
            _field(row, _TOPIC),
            _field(row, _TEXT),
            _texts(row, "history"),
            _texts(row, "filters"),
            row.name("group") or "",
        )
        if topic.id in topics:
            raise row.error(f"duplicate topic '{topic.id}'", help="give each topic its own id")
        topics[topic.id] = topic
    return tuple(topics.values())


def read_judgments(path: str | Path) -> Judgments:
    """The judgments of a file."""
    path = Path(path)
    grades: dict[str, dict[str, int]] = {}
    n_repeated = n_conflicting = 0
    for row in _rows(path, _JUDGED_TOPIC, _DOCUMENT, _RELEVANCE):
        known = grades.setdefault(_field(row, _JUDGED_TOPIC), {})
        document, relevance = _field(row, _DOCUMENT), _relevance(row)
        if document in known:
            n_repeated += relevance == known[document]
            n_conflicting += relevance != known[document]
            relevance = max(relevance, known[document])
        known[document] = relevance
    return Judgments(grades, n_repeated, n_conflicting)


def _rows(path: Path, *names: tuple[str, ...]) -> Iterator[Row]:
    """The rows of a file; columns of lines without a header get the first of their `names`."""
    is_rows = path.suffix.lower() in _ROWS
    for row in read_file(path) if is_rows else _lines(path, names):
        if isinstance(row, DataError):
            raise row
        yield row


def _lines(path: Path, names: tuple[tuple[str, ...], ...]) -> Iterator[Row]:
    try:
        text = decode(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", path=path, help="check the path"
        ) from None
    columns, n_rows = [kinds[0] for kinds in names], 0
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.strip().split("\t")
        if number == 1 and all(any(name in cells for name in kinds) for kinds in names):
            columns = cells
            continue
        if len(columns) == 2:  # the text of a topic may have tabs
            cells = line.strip().split("\t", 1)
        elif len(cells) == 1:
            cells = line.split()
        if len(columns) == 3 and len(cells) == 4:
            del cells[1]  # TREC's second column is unused
        if len(cells) != len(columns):
            raise DataError(
                f"{len(cells)} columns, not {len(columns)}", path=path, line=number,
                help=f"{', '.join(columns)}, separated by tabs; or rows of JSONL",
            )  # fmt: skip
        n_rows += 1
        yield Row(dict(zip(columns, map(str.strip, cells), strict=True)), str(path), number)
    if not n_rows:
        raise DataError("the file has no rows", path=path, help="give a file with data in it")


def _field(row: Row, names: tuple[str, ...]) -> str:
    """The text or whole number of the first field that the row has."""
    for name in names:
        if (value := row.name(name)) is not None:
            return value
    raise row.error(f"missing '{names[0]}'", help=f"possible names: {', '.join(names)}")


def _texts(row: Row, field: str) -> tuple[str, ...]:
    value = row.fields.get(field)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise row.error(f"'{field}' is {kind(value)}, not a list of texts")
    return tuple(value)


def _relevance(row: Row) -> int:
    value = next((row.fields[name] for name in _RELEVANCE if name in row.fields), None)
    match value:
        case int() | float() if not isinstance(value, bool) and float(value).is_integer():
            return int(value)
        case str() if _WHOLE.fullmatch(value):
            return int(value.partition(".")[0])
        case _:
            raise row.error(
                f"relevance {value!r} is not a whole number",
                help="0: not relevant; 1 or more: relevant",
            )


DEPTH = 1_000
"""Number of ranked passages for each topic, as in TREC; average precision uses all of them."""

ORACLE = "oracle"
"""The method that knows the judgments: the best result that the corpus and `k` allow."""

Rankings = Mapping[str, Sequence[str]]
"""Topic → documents, the best first, each once."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of topics that were evaluated, and of others."""

    n_topics: int
    n_without_judgments: int = 0
    n_without_relevant: int = 0
    n_unknown_topics: int = 0
    n_unknown_documents: int = 0
    n_repeated: int = 0
    n_conflicting: int = 0

    def remarks(self) -> list[str]:
        """What differs from a complete evaluation, one line each."""
        said = (
            ("queries without judgments, left out", self.n_without_judgments),
            ("queries without a relevant document, left out", self.n_without_relevant),
            ("judged queries that are not among the queries", self.n_unknown_topics),
            ("relevant documents missing from the corpus", self.n_unknown_documents),
            ("repeated judgments", self.n_repeated),
            ("conflicting judgments, of which the highest counts", self.n_conflicting),
        )
        return [f"{what}: {n:,}" for what, n in said if n]


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """The scores of one method."""

    method: str
    values: Mapping[str, Mapping[str, float]]
    groups: tuple[str, ...]
    n_found_nothing: int
    seconds: tuple[float, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)

    def mean(self, measure: str) -> stats.Interval:
        """The mean over topics with its bootstrap interval."""
        return stats.accuracy(list(self.values[measure].values()), clusters=self.groups)

    def latency_ms(self, percentile: float) -> float | None:
        """A percentile of the milliseconds of a search; None if nothing was searched."""
        import numpy as np

        return 1_000 * float(np.percentile(self.seconds, percentile)) if self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """Means with intervals, latency and what was left out; values of every topic."""
        return {
            "method": self.method,
            "measures": {name: asdict(self.mean(name)) for name in self.values},
            "n_found_nothing": self.n_found_nothing,
            "latency_ms": {"p50": self.latency_ms(50), "p95": self.latency_ms(95)},
            "notes": dict(self.notes),
            "topics": {name: dict(values) for name, values in self.values.items()},
        }


@dataclass(frozen=True, slots=True)
class RetrievalComparison:
    """Two methods on the same topics."""

    first: str
    second: str
    measure: str
    difference: stats.Interval
    n_better: int
    n_worse: int
    bootstrap_p: float | None

    @classmethod
    def of(
        cls, first: RetrievalScores, second: RetrievalScores, measure: str
    ) -> RetrievalComparison:
        """Compare two methods of one evaluation."""
        ones = list(first.values[measure].values())
        twos = [second.values[measure][topic] for topic in first.values[measure]]
        is_enough = len(set(first.groups)) >= stats.MIN_CLUSTERS
        return cls(
            first.method,
            second.method,
            measure,
            stats.difference(ones, twos, clusters=first.groups),
            sum(map(gt, ones, twos)),
            sum(map(lt, ones, twos)),
            stats.bootstrap_p(ones, twos, clusters=first.groups) if is_enough else None,
        )


@dataclass(frozen=True, slots=True)
class RetrievalEvaluation:
    """Methods over the same topics."""

    measures: tuple[str, ...]
    scores: tuple[RetrievalScores, ...]
    coverage: Coverage

    def comparisons(self) -> list[RetrievalComparison]:
        """Every pair of methods by the first measure, the oracle left out."""
        scores = [score for score in self.scores if score.method != ORACLE]
        return [
            RetrievalComparison.of(first, second, self.measures[0])
            for first, second in combinations(scores, 2)
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        return {
            "coverage": asdict(self.coverage),
            "measures": list(self.measures),
            "rows": [one.to_dict() for one in self.scores],
            "comparisons": [asdict(one) for one in self.comparisons()],
        }


def default_measures(cutoffs: Iterable[int] = (10,)) -> tuple[str, ...]:
    """The names of nDCG, recall and precision at each cutoff, of reciprocal rank and of average precision."""
    sizes = sorted(set(cutoffs))
    if not sizes or sizes[0] < 1:
        raise UsageError("a cutoff must be at least 1", help="-k 10")
    at = [f"{name}@{size}" for name in ("nDCG", "R", "P") for size in sizes]
    return (*at, "RR", "AP")


async def evaluate_retrieval(
    index: Index,
    topics: Sequence[Topic],
    judgments: Judgments,
    searchers: Mapping[str, Searcher],
    *,
    k: int = 10,
    measures: Sequence[str] = (),
    depth: int = DEPTH,
    with_oracle: bool = False,
) -> RetrievalEvaluation:
    """Run every searcher on every topic and measure the rankings.

    Example:
        >>> import asyncio
        >>> from pearl.retrieval.corpus import CorpusDocument
        >>> from pearl.retrieval.index import Index
        >>> from pearl.retrieval.search import Searcher
        >>> index = Index.build([CorpusDocument("a", "Iron."), CorpusDocument("b", "Salt.")])
        >>> judged = Judgments({"q": {"b": 1}})
        >>> found = asyncio.run(
        ...     evaluate_retrieval(index, [Topic("q", "salt?")], judged, {"bm25": Searcher()})
        ... )
        >>> found.scores[0].mean("nDCG@10").estimate
        1.0
    """
    documents = {name.decode() for name in index.contents.names.every()}
    judged, coverage = _judged(topics, judgments, documents)
    measures = measures or default_measures([k])
    scores = []
    for name, searcher in searchers.items():
        rankings: dict[str, list[str]] = {}
        seconds: list[float] = []
        notes: Counter[str] = Counter()
        # Vectors and caches that are made once are not timed.
        await _ranked(index, judged[0], searcher, 1, Counter())
        for topic in judged:
            # Timed with the vector of the query in the cache: the first method would embed it.
            rankings[topic.id] = await _ranked(index, topic, searcher, depth, notes)
            began = perf_counter()
            await _ranked(index, topic, searcher, k, Counter())
            seconds.append(perf_counter() - began)
        scores.append(measure_rankings(name, rankings, judged, judgments, measures, seconds, notes))
    if with_oracle:
        best = {topic.id: _ideal(judgments.grades[topic.id], documents) for topic in judged}
        scores.append(measure_rankings(ORACLE, best, judged, judgments, measures))
    return RetrievalEvaluation(tuple(measures), tuple(scores), coverage)


def measure_rankings(
    method: str,
    rankings: Rankings,
    topics: Sequence[Topic],
    judgments: Judgments,
    measures: Sequence[str],
    seconds: Sequence[float] = (),
    notes: Mapping[str, int] | None = None,
) -> RetrievalScores:
    """Measure rankings of any program."""
    require_extra("eval", "an evaluation", "ir_measures", "scipy")
    try:
        with warnings.catch_warnings():
            # Its parser of measures uses functions that Python 3.12 deprecates.
            warnings.simplefilter("ignore", DeprecationWarning)
            import ir_measures

            parsed = [ir_measures.parse_measure(name) for name in measures]
    except (NameError, ValueError) as error:
        raise UsageError(str(error), help="for example nDCG@10, R@60, P@5, RR, AP") from None
    # Ranks as scores: equal scores would be sorted by the documents' names.
    run = {
        topic.id: {name: float(-rank) for rank, name in enumerate(rankings.get(topic.id, ()))}
        for topic in topics
    }
    grades = {
        topic.id: {name: max(0, grade) for name, grade in judgments.grades[topic.id].items()}
        for topic in topics
    }
    names = dict(zip(parsed, measures, strict=True))
    found: dict[tuple[str, str], float] = {
        (names[one.measure], one.query_id): one.value
        for one in ir_measures.iter_calc(parsed, grades, run)
    }
    return RetrievalScores(
        method,
        {name: {topic.id: found[name, topic.id] for topic in topics} for name in measures},
        tuple(topic.group or f"\0{topic.id}" for topic in topics),
        sum(not rankings.get(topic.id) for topic in topics),
        tuple(seconds),
        dict(notes or {}),
    )


async def _ranked(
    index: Index, topic: Topic, searcher: Searcher, depth: int, notes: Counter[str]
) -> list[str]:
    """The documents of the best passages, each once, at its best passage."""
    found = await searcher.search(
        index, topic.text, depth, filters=topic.filters, history=topic.history
    )
    notes.update(dict.fromkeys(found.notes, 1))
    return list(dict.fromkeys(hit.passage.document for hit in found.hits))


def _ideal(grades: Mapping[str, int], documents: set[str]) -> list[str]:
    """The relevant documents that the corpus has, the most relevant first."""
    there = [name for name, grade in grades.items() if grade > 0 and name in documents]
    return sorted(there, key=lambda name: -grades[name])


def _judged(
    topics: Sequence[Topic], judgments: Judgments, documents: set[str]
) -> tuple[list[Topic], Coverage]:
    """The topics that can be evaluated, and the coverage."""
    grades = judgments.grades
    relevant = {
        topic: [name for name, grade in found.items() if grade > 0]
        for topic, found in grades.items()
    }
    kept = [topic for topic in topics if relevant.get(topic.id)]
    unknown = {name for topic in kept for name in relevant[topic.id]} - documents
    coverage = Coverage(
        n_topics=len(kept),
        n_without_judgments=sum(topic.id not in grades for topic in topics),
        n_without_relevant=sum(topic.id in grades for topic in topics) - len(kept),
        n_unknown_topics=len(grades.keys() - {topic.id for topic in topics}),
        n_unknown_documents=len(unknown),
        n_repeated=judgments.n_repeated,
        n_conflicting=judgments.n_conflicting,
    )
    if not kept:
        raise DataError(
            "no query has a relevant document: " + "; ".join(coverage.remarks()),
            help="the ids of queries and judgments must be the same",
        )
    if not documents & {name for topic in kept for name in relevant[topic.id]}:
        raise DataError(
            f"the corpus has none of the {len(unknown):,} relevant documents, such as "
            f"'{min(unknown)}'; it has for example '{min(documents, default='')}'",
            help="judgments must name documents as the corpus does: the id of a row, or a path",
        )
    return kept, coverage
