"""An encoder in numpy gives the vectors that transformers and torch give."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from pearl.errors import DataError, UsageError
from pearl.llm.embedders import create_embedder
from pearl.llm.embedders.minilm import MiniLM
from pearl.llm.embedders.minilm.network import Encoder, _gelu
from pearl.llm.weights import find_weights
from tests.llm.embedders.minilm.tiny_encoder import N_POSITIONS, write_encoder

TORCH = {
    "The captain turned back": [-0.138721, 0.529153, -0.024286, 0.035828, 0.000853, 0.046861],
    "lamps": [-0.142785, 0.558037, -0.027104, 0.010714, -0.001537, 0.060457],
    "": [-0.144305, 0.51854, 0.08463, 0.058606, -0.032285, 0.034056],
    "sea " * 40: [-0.094697, 0.522341, 0.045367, 0.077015, -0.010677, 0.061006],
    "the unknown Sea, the lamps": [-0.105406, 0.514699, 0.030116, 0.046436, -0.015733, 0.047173],
}
"""First values of the mean of `BertModel`'s last states in float64, scaled to length 1 (transformers
5.23, torch 2.13), for the weights of `tiny_encoder`. The fourth text is cut at the last position."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models") / "tiny"
    write_encoder(made)
    return made


def embed(folder: Path, *texts: str) -> np.ndarray:
    async def run() -> np.ndarray:
        embedder = MiniLM(folder, "tiny")
        try:
            return await embedder.embed(texts, "passage")
        finally:
            await embedder.aclose()

    return asyncio.run(run())


def test_its_vectors_are_those_of_torch(folder: Path) -> None:
    vectors = embed(folder, *TORCH)
    np.testing.assert_allclose(vectors[:, :6], list(TORCH.values()), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors.dtype == np.float32


def test_no_texts_have_no_vectors(folder: Path) -> None:
    assert embed(folder).shape == (0, 32)


def test_lone_surrogates_are_read(folder: Path) -> None:
    np.testing.assert_array_equal(embed(folder, "lamp \ud800"), embed(folder, "lamp \ufffd"))


@given(st.lists(st.lists(st.integers(4, 10), min_size=1, max_size=N_POSITIONS), min_size=1))
def test_a_vector_does_not_depend_on_its_batch(folder: Path, texts: list[list[int]]) -> None:
    encoder = Encoder(folder)
    alone = np.concatenate([encoder([text]) for text in texts])
    np.testing.assert_allclose(encoder(texts), alone, atol=1e-6)


def test_many_texts_keep_their_order(folder: Path) -> None:
    texts = ["sea " * (n % 17) + "lamp" for n in range(900)]  # several batches
    vectors = embed(folder, *texts)
    for n in (0, 1, 16, 450, 899):
        np.testing.assert_allclose(vectors[n], embed(folder, texts[n])[0], atol=1e-6)


def test_gelu_is_exact_to_float32() -> None:
    x = np.linspace(-12, 12, 70_001, dtype=np.float32)
    exact = [v * (1 + math.erf(v / 2**0.5)) / 2 for v in x.astype(float)]
    np.testing.assert_allclose(_gelu(x.copy()), exact, atol=2e-6, rtol=2e-6)


def test_damaged_model_files_are_data_errors(folder: Path, tmp_path: Path) -> None:
    for name, data in (
        ("model.safetensors", b"\xff" * 64),
        ("tokenizer.json", b"{"),
        ("config.json", b'{"model_type": "gpt2", "hidden_act": "gelu"}'),
    ):
        write_encoder(tmp_path / name)
        (tmp_path / name / name).write_bytes(data)
        with pytest.raises(DataError, match="cannot be read"):
            embed(tmp_path / name, "lamp")


def test_without_its_files_it_says_how_to_get_them() -> None:
    with pytest.raises(DataError, match="pearl models get minilm"):
        create_embedder("minilm")


def test_it_takes_no_name() -> None:
    with pytest.raises(UsageError, match="takes no name"):
        create_embedder("minilm:large")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match=r"\[semantic\]"):
        create_embedder("minilm")


def test_another_file_of_weights_is_not_used() -> None:
    weights = find_weights("minilm")
    for name, file in weights.files.items():
        weights.folder.mkdir(parents=True, exist_ok=True)
        with (weights.folder / name).open("wb") as out:
            out.truncate(file.bytes)
    with pytest.raises(DataError, match="SHA-256 differs"):
        create_embedder("minilm")


def test_thread_limits_are_restored_after_the_last_call(folder: Path) -> None:
    def threads() -> set[int]:
        # Of NumPy's own: that of another package may count threads by thread, and is not used.
        return {pool["num_threads"] for pool in threadpool_info()
                if pool["user_api"] == "blas" and "numpy" in pool["filepath"]}  # fmt: skip

    seen: list[set[int]] = []

    class Watched(Encoder):
        def __call__(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
            seen.append(threads())
            return super().__call__(texts)

    async def run() -> None:
        embedder = MiniLM(folder, "tiny")
        await asyncio.gather(*(embedder.embed(["sea"] * 900, "query") for _ in range(3)))
        await embedder.aclose()

    with threadpool_limits(2, user_api="blas"), pytest.MonkeyPatch.context() as patched:
        patched.setattr("pearl.llm.embedders.minilm.network.Encoder", Watched)
        asyncio.run(run())
        assert threads() == {2}
    assert len(seen) >= 6
    assert set().union(*seen) == {1}
