"""TF-IDF equals scikit-learn's `TfidfVectorizer`, plain and sublinear."""

from __future__ import annotations

import random

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from pearl.retrieval import SearchSettings
from tests.retrieval.searching import ranked


@pytest.mark.parametrize("is_sublinear", [False, True])
@pytest.mark.parametrize("query", ["w1", "w3 w9 w20", "w0 w1 w2 zebra", "zebra"])
def test_scores_are_those_of_scikit_learn(query: str, is_sublinear: bool) -> None:
    rng = random.Random(7)
    rows = [
        [f"w{min(int(rng.expovariate(0.1)), 40)}" for _ in range(rng.randint(1, 50))]
        for _ in range(200)
    ]
    vectorizer = TfidfVectorizer(analyzer=str.split, sublinear_tf=is_sublinear)
    matrix = vectorizer.fit_transform([" ".join(row) for row in rows])
    expected = (matrix @ vectorizer.transform([query]).T).toarray().ravel()
    found = ranked(rows, query, settings=SearchSettings(sublinear=is_sublinear), method="tfidf")
    assert found.scores.tolist() == pytest.approx(expected[found.passages].tolist(), rel=1e-12)
    assert sorted(found.passages.tolist()) == [i for i, s in enumerate(expected) if s > 0]


def test_a_passage_that_is_the_query_has_the_score_one() -> None:
    found = ranked([["key", "oar"], ["key"]], "key oar", method="tfidf")
    assert found.passages.tolist() == [0, 1]
    assert found.scores[0] == pytest.approx(1.0, abs=1e-15)
