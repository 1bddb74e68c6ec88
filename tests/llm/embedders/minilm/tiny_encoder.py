"""A sentence encoder of random weights, with all files that one has; two layers of 32 numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

N_HIDDEN, N_LAYERS, N_HEADS, N_INNER, N_POSITIONS = 32, 2, 4, 64, 24

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "the",
    "captain",
    "turned",
    "back",
    "lamp",
    "##s",
    "sea",
]

CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": N_HIDDEN,
    "num_hidden_layers": N_LAYERS,
    "num_attention_heads": N_HEADS,
    "intermediate_size": N_INNER,
    "max_position_embeddings": N_POSITIONS,
    "layer_norm_eps": 1e-12,
    "type_vocab_size": 2,
    "vocab_size": len(WORDS),
}


def write_encoder(folder: Path) -> None:
    """Write a model's files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file(weights(), folder / "model.safetensors")
    tokenizer = Tokenizer(
        models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=N_POSITIONS)  # as that of MiniLM does: it has to be undone
    tokenizer.save(str(folder / "tokenizer.json"))


def weights() -> dict[str, np.ndarray]:
    """Weights so large that every part of the network matters."""
    rng = np.random.default_rng(7)
    made: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int, mean: float = 0.0) -> None:
        made[name] = (mean + 0.5 * rng.standard_normal(shape)).astype(np.float32)

    def norm(name: str) -> None:
        add(f"{name}.weight", N_HIDDEN, mean=1.0)
        add(f"{name}.bias", N_HIDDEN)

    def dense(name: str, n_in: int, n_out: int) -> None:
        add(f"{name}.weight", n_out, n_in)
        add(f"{name}.bias", n_out)

    add("embeddings.word_embeddings.weight", len(WORDS), N_HIDDEN)
    add("embeddings.position_embeddings.weight", N_POSITIONS, N_HIDDEN)
    add("embeddings.token_type_embeddings.weight", 2, N_HIDDEN)
    norm("embeddings.LayerNorm")
    for layer in (f"encoder.layer.{i}" for i in range(N_LAYERS)):
        for part in ("query", "key", "value"):
            dense(f"{layer}.attention.self.{part}", N_HIDDEN, N_HIDDEN)
        dense(f"{layer}.attention.output.dense", N_HIDDEN, N_HIDDEN)
        norm(f"{layer}.attention.output.LayerNorm")
        dense(f"{layer}.intermediate.dense", N_HIDDEN, N_INNER)
        dense(f"{layer}.output.dense", N_INNER, N_HIDDEN)
        norm(f"{layer}.output.LayerNorm")
    return made
