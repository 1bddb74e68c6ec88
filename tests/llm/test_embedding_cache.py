"""Vectors that are kept: sound, whole, and no more than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pearl.errors import ModelError, StoreError
from pearl.llm import embedders
from pearl.llm.embedders import BATCH, CachedEmbedder, EmbeddingCache
from pearl.retrieval import TextKind


def unit(*values: float) -> NDArray[np.float32]:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


class Counting:
    """Embeds a text as its length; notes what it was asked for."""

    name = "counting"

    def __init__(self, n_dimensions: int = 3, fails_at: str = "") -> None:
        self.asked: list[tuple[str, ...]] = []
        self.n_dimensions = n_dimensions
        self.fails_at = fails_at

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        if self.fails_at in texts and self.fails_at:
            raise ModelError("down", kind="transport")
        self.asked.append(tuple(texts))
        return np.stack([unit(*range(1, self.n_dimensions), len(text)) for text in texts])

    async def aclose(self) -> None:
        pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "embeddings.sqlite"


def test_stored_vectors_are_read_by_another_cache(path: Path) -> None:
    vectors = {key(n): unit(n, 1, 2) for n in range(1_500)}
    EmbeddingCache(path).keep(vectors)
    found = EmbeddingCache(path).read([*vectors, key(9_999)])
    assert found.keys() == vectors.keys()
    for each in vectors:
        np.testing.assert_array_equal(found[each], vectors[each])
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("data", [b"", b"no database", b"SQLite format 3\x00" + bytes(500)])
def test_a_damaged_file_is_replaced(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    cache = EmbeddingCache(path)
    assert cache.read([key(1)]) == {}
    cache.keep({key(1): unit(1)})
    assert len(EmbeddingCache(path).read([key(1)])) == 1


def test_the_oldest_vectors_are_removed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "MAX_BYTES", 200_000)
    cache = EmbeddingCache(path)
    wide = np.full(256, 1 / 16, dtype=np.float32)
    for start in range(0, 1_000, 50):
        cache.keep({key(n): wide for n in range(start, start + 50)})
    found = cache.read(map(key, range(1_000)))
    assert path.stat().st_size < 300_000
    assert key(999) in found
    assert key(0) not in found
    assert len(found) > 100


def test_an_unusable_file_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="only a cache"):
        EmbeddingCache(tmp_path).read([key(1)])


def test_an_interrupted_run_resumes(path: Path) -> None:
    texts = [f"text {n}" for n in range(5 * BATCH)]
    failing = CachedEmbedder(Counting(fails_at=texts[3 * BATCH]), EmbeddingCache(path), 1)
    with pytest.raises(ModelError):
        asyncio.run(failing.embed(texts, "passage"))
    inner = Counting()
    asyncio.run(CachedEmbedder(inner, EmbeddingCache(path), 1).embed(texts, "passage"))
    asked = {text for batch in inner.asked for text in batch}
    assert asked & set(texts[: 4 * BATCH]) == set(texts[3 * BATCH : 4 * BATCH])


def test_a_changed_model_computes_all_vectors_again(path: Path) -> None:
    asyncio.run(CachedEmbedder(Counting(3), EmbeddingCache(path), 1).embed(["a", "b"], "passage"))
    inner = Counting(5)
    embedder = CachedEmbedder(inner, EmbeddingCache(path), 1)
    assert asyncio.run(embedder.embed(["a", "b", "c"], "passage")).shape == (3, 5)
    assert inner.asked == [("c",), ("a", "b", "c")]
