"""Tokens → vectors by a BERT encoder in numpy: post-norm, exact GELU, mean pooling.

Texts are not padded: the dense layers take the tokens of all texts of a batch as one matrix, and
attention handles texts with the same number of tokens together. So the batch affects a text's
vector only through the order of float32 sums (about 1e-7).

Source: Devlin et al., BERT (2019); Reimers and Gurevych, Sentence-BERT (2019).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from numpy.typing import NDArray


Floats: TypeAlias = "NDArray[np.float32]"

# Elements that `_gelu` processes at once, so that they stay in the processor's cache.
_BLOCK = 1 << 15

# erf(x) = x P(x²) / Q(x²) within 4e-7 for |x| ≤ 4, beyond which it is ±1 in float32. Highest power
# first. Source: the function `erf` of Eigen 3.
_P = np.array((
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
), np.float32)  # fmt: skip
_Q = np.array((
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
), np.float32)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Dense:
    weight: Floats
    """Shape (inputs, outputs)."""
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        y: Floats = x @ self.weight
        y += self.bias
        return y


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: Floats
    bias: Floats
    epsilon: float

    def __call__(self, x: Floats) -> Floats:
        """Normalise each row, in place."""
        x -= x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1]
        x /= np.sqrt(variance + np.float32(self.epsilon))
        x *= self.weight
        x += self.bias
        return x


@dataclass(frozen=True, slots=True)
class _Layer:
    attention: _Dense
    """Queries, keys and values in one; queries are scaled already."""
    attention_output: _Dense
    attention_norm: _Norm
    inner: _Dense
    outer: _Dense
    norm: _Norm


class Encoder:
    """A BERT encoder."""

    def __init__(self, folder: Path) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        try:
            tensors = load_file(folder / "model.safetensors")
            self._build(config, tensors)
        except SafetensorError as error:
            raise ValueError(f"model.safetensors cannot be read: {error}") from None
        except KeyError as error:
            raise ValueError(f"{error.args[0]} is missing") from None

    def _build(self, config: Mapping[str, object], tensors: Mapping[str, Floats]) -> None:
        if config["hidden_act"] != "gelu" or config["model_type"] != "bert":
            raise ValueError("the model is not a BERT with GELU")
        epsilon = float(str(config["layer_norm_eps"]))
        self._n_heads = int(str(config["num_attention_heads"]))

        def norm(name: str) -> _Norm:
            return _Norm(tensors[f"{name}.weight"], tensors[f"{name}.bias"], epsilon)

        def dense(*names: str, first_scaled_by: float = 1.0) -> _Dense:
            """Several layers with the same input as one."""
            weights = [tensors[f"{name}.weight"].T for name in names]
            biases = [tensors[f"{name}.bias"] for name in names]
            scale = np.float32(first_scaled_by)
            weights[0], biases[0] = weights[0] * scale, biases[0] * scale
            return _Dense(
                np.ascontiguousarray(np.concatenate(weights, axis=1)), np.concatenate(biases)
            )

        self._words = tensors["embeddings.word_embeddings.weight"]
        # Every token is of the first of two types.
        types = tensors["embeddings.token_type_embeddings.weight"]
        self._positions = tensors["embeddings.position_embeddings.weight"] + types[0]
        self._norm = norm("embeddings.LayerNorm")
        self.n_positions, self.dimension = self._positions.shape
        scale = (self.dimension // self._n_heads) ** -0.5
        self._layers = [
            _Layer(
                dense(
                    *(f"{at}.attention.self.{part}" for part in ("query", "key", "value")),
                    first_scaled_by=scale,
                ),
                dense(f"{at}.attention.output.dense"),
                norm(f"{at}.attention.output.LayerNorm"),
                dense(f"{at}.intermediate.dense"),
                dense(f"{at}.output.dense"),
                norm(f"{at}.output.LayerNorm"),
            )
            for at in (f"encoder.layer.{i}" for i in range(int(str(config["num_hidden_layers"]))))
        ]

    def __call__(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Vectors of unit length, shape (len(texts), dimension)."""
        lengths = [len(text) for text in texts]
        starts = np.cumsum([0, *lengths])
        tokens = np.concatenate([np.asarray(text, dtype=np.int64) for text in texts])
        positions = np.concatenate([np.arange(length) for length in lengths])
        x = self._norm(self._words[tokens] + self._positions[positions])
        runs = list(_runs(lengths))
        for layer in self._layers:
            mixed = self._attended(layer.attention(x), runs)
            mixed = layer.attention_output(mixed)
            mixed += x
            x = layer.attention_norm(mixed)
            y = layer.outer(_gelu(layer.inner(x)))
            y += x
            x = layer.norm(y)
        sums = np.add.reduceat(x, starts[:-1], axis=0, dtype=np.float64)
        # Scaled to length 1, the sum equals the mean.
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        vectors: Floats = sums.astype(np.float32)
        return vectors

    def _attended(self, qkv: Floats, runs: Sequence[tuple[int, int, int]]) -> Floats:
        """Values mixed by attention within each text; input (tokens, 3 dimensions)."""
        mixed = np.empty((len(qkv), self.dimension), dtype=np.float32)
        for start, n_texts, length in runs:
            end = start + n_texts * length
            parts = qkv[start:end].reshape(n_texts, length, 3, self._n_heads, -1)
            query, key, value = parts.transpose(2, 0, 3, 1, 4)  # (texts, heads, tokens, part)
            scores = query @ key.swapaxes(2, 3)
            scores -= scores.max(axis=3, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=3, keepdims=True)
            heads = (scores @ value).transpose(0, 2, 1, 3)
            mixed[start:end] = heads.reshape(n_texts * length, self.dimension)
        return mixed


def _runs(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Neighbouring texts of one length: first token, number of texts, length."""
    start = 0
    for length, group in groupby(lengths):
        n_texts = sum(1 for _ in group)
        yield start, n_texts, length
        start += n_texts * length


def _gelu(x: Floats) -> Floats:
    """Each x becomes x (1 + erf(x / √2)) / 2, in place."""
    flat = x.reshape(-1)
    for start in range(0, len(flat), _BLOCK):
        part = flat[start : start + _BLOCK]
        y = np.clip(part * np.float32(0.5**0.5), -4, 4)
        square = y * y
        y *= np.polyval(_P, square)
        y /= np.polyval(_Q, square)
        y += 1
        y *= 0.5
        part *= y
    return x


_lock = threading.Lock()
_n_users = 0
_limited = ExitStack()


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_thread_a_product() -> Iterator[None]:
    """Limit the threads of matrix products of this process, until the last of several users leaves."""
    global _n_users
    with _lock:
        if not _n_users:
            _limited.enter_context(ThreadpoolController().limit(limits=1, user_api="blas"))
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if not _n_users:
                _limited.close()
