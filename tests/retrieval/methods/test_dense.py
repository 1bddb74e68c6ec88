"""Dense ranking is exact: the order of float64 cosines, whatever the mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, dense


@dataclass
class OfVectors:
    """An index as far as this method reads it."""

    vectors: Any
    terms: Any = None


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    made: NDArray[np.float32] = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return made


def ranked(vectors: Any, vector: NDArray[np.float32], k: int, mask: Any = None) -> Ranking:
    return dense.rank(Query({}, vector, mask), OfVectors(vectors), SearchSettings("dense"), k)


def written_out(vectors: NDArray[np.float32], vector: NDArray[np.float32], mask: Any) -> list[int]:
    scores = [sum(float(a) * float(b) for a, b in zip(row, vector, strict=True)) for row in vectors]
    wanted = [n for n in range(len(vectors)) if vectors[n].any() and (mask is None or mask[n])]
    return sorted(wanted, key=lambda n: (-round(scores[n], 12), n))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(0, 70),
    st.sampled_from([None, 0.1, 0.9]),
)
def test_it_is_the_order_of_exact_cosines(seed: int, n: int, k: int, share: float | None) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit(rng.integers(-2, 3, (n, 5)).astype(float))  # with ties, and some that are 0
    vector = unit(rng.standard_normal(5))
    mask = None if share is None else rng.random(n) < share
    found = ranked(vectors, vector, k, mask)
    assert found.passages.tolist() == written_out(vectors, vector, mask)[:k]
    exact = vectors[found.passages].astype(float) @ vector.astype(float)
    np.testing.assert_allclose(found.scores, exact, atol=1e-12)


def test_a_blank_passage_is_never_found() -> None:
    vectors = np.array([[0, 0], [-1, 0], [0, 0], [0.6, 0.8]], dtype=np.float32)
    vector = np.array([1, 0], dtype=np.float32)
    assert ranked(vectors, vector, 2).passages.tolist() == [3, 1]
    assert ranked(vectors, vector, 9).passages.tolist() == [3, 1]
    assert ranked(vectors, vector, 9, np.array([True, False, True, False])).passages.tolist() == []


@pytest.mark.parametrize(
    ("vectors", "vector", "said"),
    [
        (np.eye(3, dtype=np.float32), np.ones(4, np.float32), "has 4 dimensions, those of the index 3"),
        (None, np.ones(4, np.float32), "the index has none"),
        (np.eye(3, dtype=np.float32), None, "the index has none"),
    ],
)  # fmt: skip
def test_missing_or_mismatched_vectors_are_an_error(vectors: Any, vector: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ranked(vectors, vector, 3)
