"""Static embeddings: a real model of three words, saved and loaded by model2vec."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from pearl.errors import DataError
from pearl.llm.embedders import create_embedder


def embed(path: Path, *texts: str) -> np.ndarray:
    return asyncio.run(create_embedder(f"model2vec:{path}").embed(texts, "passage"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from model2vec import StaticModel
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {"[UNK]": 0, "[PAD]": 1, "lamp": 2, "ship": 3, "storm": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.array([[0, 0], [0, 0], [3, 0], [0, 2], [4, 4]], dtype=np.float32)
    StaticModel(vectors, tokenizer).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_vectors_are_those_of_the_model_at_unit_length(folder: Path) -> None:
    vectors = embed(folder, "lamp", "storm", "ship ship")
    np.testing.assert_allclose(vectors, [[1, 0], [0.5**0.5] * 2, [0, 1]], atol=1e-6)
    assert vectors.dtype == np.float32


def test_a_text_without_known_words_matches_nothing(folder: Path) -> None:
    assert not embed(folder, "xyzzy", "").any()


def test_a_folder_without_a_model_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="no embeddings: "):
        embed(tmp_path, "lamp")
