"""Measures of retrieval, next to values worked out by hand."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from pearl.errors import DataError, UsageError
from pearl.evals.retrieval import (
    ORACLE,
    Judgments,
    RetrievalComparison,
    RetrievalEvaluation,
    Topic,
    default_measures,
    evaluate_retrieval,
    measure_rankings,
)
from pearl.retrieval import SearchSettings, TextKind
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

TEXTS = {
    "boat": "Nils sold the boat.\n\nThe harbour was cold, and the boat was rotten.",
    "clock": "The buyer paid with a clock.\n\nNobody had seen such a clock.",
    "oars": "Ada kept the oars in the barn.",
    "barn": "The barn had a red door.",
}
JUDGED = Judgments({"sale": {"boat": 2, "clock": 1, "oars": 0}, "barn": {"barn": 1, "oars": 1}})
TOPICS = (Topic("sale", "Who sold the boat to the buyer?"), Topic("barn", "the red barn"))


def index(texts: dict[str, str] = TEXTS, unit: str = "paragraph") -> Index:
    return Index.build([CorpusDocument(*one) for one in texts.items()], Cutting(unit))


def evaluated(
    topics: Sequence[Topic] = TOPICS,
    judgments: Judgments = JUDGED,
    methods: Sequence[str] = ("bm25",),
    **options: object,
) -> RetrievalEvaluation:
    searchers = {name: Searcher(SearchSettings(name)) for name in methods}
    return asyncio.run(evaluate_retrieval(index(), topics, judgments, searchers, **options))  # type: ignore[arg-type]


def values(
    rankings: dict[str, list[str]], grades: dict[str, dict[str, int]], *measures: str
) -> list[float]:
    """The values of the only topic."""
    (topic,) = grades
    found = measure_rankings("m", rankings, [Topic(topic, "")], Judgments(grades), measures)
    return [found.values[name][topic] for name in measures]


def test_measures_equal_values_worked_out_by_hand() -> None:
    """Relevant are a (2), c (1) and e (1); a is third, c fourth, e not found."""
    got = values(
        {"q": ["x", "y", "a", "c", "z"]},
        {"q": {"a": 2, "c": 1, "e": 1, "x": 0, "y": -1}},
        "P@3", "P@10", "R@3", "R@4", "RR", "AP", "nDCG@3", "nDCG@10",
    )  # fmt: skip
    best = 2 + 1 / math.log2(3) + 1 / math.log2(4)
    assert got == pytest.approx(
        [
            1 / 3,
            2 / 10,
            1 / 3,
            2 / 3,
            1 / 3,
            (1 / 3 + 2 / 4) / 3,
            (2 / math.log2(4)) / best,
            (2 / math.log2(4) + 1 / math.log2(5)) / best,
        ]
    )


def test_the_order_of_equal_names_is_that_of_the_ranking() -> None:
    """trec_eval orders equal scores by name: ranks must count, whichever way the names go."""
    for names in (["a", "b"], ["b", "a"]):
        assert values({"q": names}, {"q": {names[1]: 1}}, "RR") == [0.5]


def test_a_document_is_judged_by_its_best_passage() -> None:
    """Both passages of `boat` and of `clock` match: each document counts once."""
    (scores,) = evaluated(measures=("P@2", "R@2", "nDCG@2")).scores
    assert scores.values["P@2"] == {"sale": 1.0, "barn": 1.0}
    assert scores.values["R@2"] == {"sale": 1.0, "barn": 1.0}
    assert scores.values["nDCG@2"]["sale"] == pytest.approx(1.0)
    assert len(scores.seconds) == 2
    assert scores.latency_ms(50) > 0  # type: ignore[operator]


def test_history_and_filters_of_a_topic_are_searched_with() -> None:
    rows = [
        CorpusDocument(f"{name} {year}", f"{name} were high", {"year": year})
        for name in ("sales", "costs")
        for year in ("2008", "2009")
    ]
    topic = Topic("q", "and the year after?", ("What were the sales?",), ("year=2009",))
    judged = Judgments({"q": {"sales 2009": 1}})

    def found(asked: Topic) -> float:
        made = Index.build(rows, Cutting("document"))
        done = evaluate_retrieval(made, [asked], judged, {"bm25": Searcher()}, measures=["RR"])
        return asyncio.run(done).scores[0].values["RR"]["q"]

    assert found(topic) == 1.0
    assert found(replace(topic, filters=())) == 0.5
    assert found(replace(topic, history=())) == 0.0


def test_a_query_without_results_scores_zero() -> None:
    topics = (*TOPICS, Topic("odd", "xylophone"))
    judged = Judgments({**JUDGED.grades, "odd": {"oars": 1}})
    (scores,) = evaluated(topics, judged).scores
    assert scores.n_found_nothing == 1
    assert {name: of["odd"] for name, of in scores.values.items()} == dict.fromkeys(
        default_measures(), 0.0
    )
    assert scores.mean("R@10").estimate == pytest.approx(2 / 3)


def test_topics_that_cannot_be_evaluated_are_counted() -> None:
    topics = (*TOPICS, Topic("unjudged", "oars"), Topic("none", "door"))
    grades = {**JUDGED.grades, "none": {"oars": 0}, "elsewhere": {"boat": 1}}
    grades["barn"] = {"barn": 1, "cellar": 1}
    found = evaluated(topics, Judgments(grades, n_repeated=2, n_conflicting=1), measures=("R@10",))
    it = found.coverage
    assert (it.n_topics, it.n_without_judgments, it.n_without_relevant) == (2, 1, 1)
    assert (it.n_unknown_topics, it.n_unknown_documents) == (1, 1)
    assert it.remarks() == [
        "queries without judgments, left out: 1",
        "queries without a relevant document, left out: 1",
        "judged queries that are not among the queries: 1",
        "relevant documents missing from the corpus: 1",
        "repeated judgments: 2",
        "conflicting judgments, of which the highest counts: 1",
    ]
    # What the corpus does not have stays in the denominator.
    assert found.scores[0].values["R@10"] == {"sale": 1.0, "barn": 0.5}


def test_the_oracle_is_the_most_that_can_be_had() -> None:
    grades = {"sale": {"boat": 1, "clock": 2, "oars": 1, "cellar": 3}}
    found = evaluated(
        TOPICS[:1], Judgments(grades), measures=("nDCG@1", "R@1", "R@10", "RR"), with_oracle=True
    )
    oracle = found.scores[-1]
    assert oracle.method == ORACLE
    assert [of["sale"] for of in oracle.values.values()] == pytest.approx([2 / 3, 1 / 4, 3 / 4, 1])
    assert oracle.latency_ms(50) is None
    assert found.comparisons() == []


def test_methods_are_compared_in_pairs_over_the_same_topics() -> None:
    topics = [Topic(f"q{i}", "", group=f"g{i // 2}") for i in range(40)]
    judged = Judgments({topic.id: {"a": 1} for topic in topics})
    ranks = {topic.id: ["x"] * (i % 4 == 0) + ["a"] for i, topic in enumerate(topics)}
    one = measure_rankings("one", {topic.id: ["a"] for topic in topics}, topics, judged, ["RR"])
    two = measure_rankings("two", ranks, topics, judged, ["RR"])
    found = RetrievalComparison.of(one, two, "RR")
    assert (found.n_better, found.n_worse) == (10, 0)
    assert found.difference.estimate == pytest.approx(0.125)
    assert found.difference.low > 0
    assert found.bootstrap_p is not None
    assert found.bootstrap_p < 0.01
    few = [
        measure_rankings(name, ranks, topics[:38], judged, ["RR"]) for name in ("one", "two")
    ]  # 19 groups: intervals of so few are too narrow for a test
    assert RetrievalComparison.of(few[0], few[1], "RR").bootstrap_p is None


def test_a_note_of_a_search_is_counted() -> None:
    """A leg that was left out makes the figure another method's: it must not be silent."""

    class HalfDown(Searcher):
        async def search(self, *args: object, **options: object) -> object:  # type: ignore[override]
            found = await super().search(*args, **options)  # type: ignore[arg-type]
            return type(found)(found.hits, ("dense leg left out",))

    found = asyncio.run(evaluate_retrieval(index(), TOPICS, JUDGED, {"hybrid": HalfDown()}))
    assert found.scores[0].notes == {"dense leg left out": 2}


def test_no_method_is_timed_with_the_embedding_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: set[str] = set()

    class Keeping:
        """Keeps vectors, as those that are made by servers are kept."""

        name = "keeping"

        async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
            kept.update(texts)
            return np.ones((len(texts), 1), np.float32)

        async def aclose(self) -> None: ...

    monkeypatch.setattr("pearl.evals.retrieval.perf_counter", lambda: float(len(kept)))
    topics = [Topic("q1", "iron"), Topic("q2", "salt")]
    searchers = {"dense": Searcher(SearchSettings("dense"), Keeping())}
    judged = Judgments({topic.id: {next(iter(TEXTS)): 1} for topic in topics})
    found = asyncio.run(evaluate_retrieval(index(), topics, judged, searchers))
    assert found.scores[0].seconds == (0.0, 0.0)


def test_measures_that_do_not_exist() -> None:
    for name in ("nDCX@3", "import os", "nDCG@"):
        with pytest.raises(UsageError, match="measure"):
            evaluated(measures=(name,))
    with pytest.raises(UsageError, match="at least 1"):
        default_measures([0, 10])


def test_unknown_ids_are_an_error_not_a_score_of_zero() -> None:
    with pytest.raises(DataError, match="no query has a relevant document"):
        evaluated((Topic("1", "boat"),))
    with pytest.raises(DataError, match=r"none of the 1 relevant documents.*'boat.txt'"):
        evaluated((Topic("1", "boat"),), Judgments({"1": {"boat.txt": 1}}))
