"""GGUF files of random weights: real models for llama.cpp, which write noise.

The vocabulary is that of a byte-level BPE: every byte, the merges of common English words, and the
marks of ChatML, which is their chat template.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

BOS, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
LINE_END = "Ċ"
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)

BLANKS = ("Ġ", "ĉ", LINE_END, "ċ", "Č", "č")
"""A reply of these alone is none."""

WORDS = (
    "the", "of", "and", "to", "in", "that", "was", "his", "he", "it", "with", "for", "as", "had",
    "you", "not", "be", "her", "is", "on", "at", "she", "by", "which", "have", "from", "this",
    "him", "but", "all", "they", "were", "captain", "harbour", "letter", "story", "text", "CTX",
)  # fmt: skip


def write_random_model(
    path: Path,
    *,
    n_layers: int = 2,
    n_hidden: int = 64,
    n_context: int = 8_192,
    seed: int = 0,
    ending: float = 0.9,
    has_template: bool = True,
    architecture: str = "llama",
) -> Path:
    """Write a model of the llama architecture whose weights are drawn at random.

    Args:
        path: Where to.
        n_layers: Layers of the transformer.
        n_hidden: Size of the hidden state; a multiple of 64.
        n_context: Tokens that the file says it was trained on.
        seed: Of the weights.
        ending: Share of the tokens after which the reply is over, so that replies are a few tokens
            long; with 0, they never end.
        has_template: Whether the file has a chat template.
        architecture: What the file says that it is; it is always a llama.
    """
    tokens, merges = _vocabulary()
    n_feed, head = 3 * n_hidden, 32
    n_heads = n_hidden // head
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("random")
    writer.add_context_length(n_context)
    writer.add_embedding_length(n_hidden)
    writer.add_block_count(n_layers)
    writer.add_feed_forward_length(n_feed)
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(n_heads)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [
            gguf.TokenType.CONTROL if token in (BOS, START, END) else gguf.TokenType.NORMAL
            for token in tokens
        ]
    )
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokens.index(BOS))
    writer.add_eos_token_id(tokens.index(END))
    writer.add_add_bos_token(False)
    if has_template:
        writer.add_chat_template(CHATML)

    draw = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return draw.standard_normal(shape, np.float32) / np.sqrt(np.float32(shape[-1]))

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, drawn(*shape).astype("<f2"))

    def add_norm(name: str) -> None:
        writer.add_tensor(name, np.ones(n_hidden, "<f4"))

    # Tokens after which the reply is over point where its end looks, the others away from there.
    is_ending = draw.random(len(tokens)) < ending
    is_ending[[tokens.index(LINE_END), tokens.index(":")]] = False  # the last of every prompt
    embeddings = drawn(len(tokens), n_hidden)
    embeddings[:, 0] = np.where(is_ending, 2, -2) * np.sqrt(n_hidden)
    writer.add_tensor("token_embd.weight", embeddings.astype("<f2"))
    for i in range(n_layers):
        add_norm(f"blk.{i}.attn_norm.weight")
        for part in ("q", "k", "v", "output"):
            add(f"blk.{i}.attn_{part}.weight", n_hidden, n_hidden)
        add_norm(f"blk.{i}.ffn_norm.weight")
        add(f"blk.{i}.ffn_gate.weight", n_feed, n_hidden)
        add(f"blk.{i}.ffn_up.weight", n_feed, n_hidden)
        add(f"blk.{i}.ffn_down.weight", n_hidden, n_feed)
    add_norm("output_norm.weight")
    output = drawn(len(tokens), n_hidden)
    output[:, 0] = 0
    output[[tokens.index(token) for token in (*BLANKS, BOS, START, END)]] = 0
    output[tokens.index(END), 0] = 3 if ending else 0
    writer.add_tensor("output.weight", output.astype("<f2"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _vocabulary() -> tuple[list[str], list[str]]:
    """The tokens, and the merges that make the longer ones of the shorter ones."""
    tokens = list(_byte_letters())
    merges: list[str] = []
    for word in WORDS:
        for spelling in (word, f"Ġ{word}"):
            left = spelling[0]
            for right in spelling[1:]:
                if left + right not in tokens:
                    merges.append(f"{left} {right}")
                    tokens.append(left + right)
                left += right
    return [*tokens, BOS, START, END], merges


def _byte_letters() -> list[str]:
    """The letter by which vocabularies like that of GPT-2 write each byte, 0 to 255."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters, n_other = [], 0
    for byte in range(256):
        letters.append(chr(byte if byte in printable else 0x100 + n_other))
        n_other += byte not in printable
    return letters
