"""Language models of a few hundred kilobytes, made on the spot: no weights are fetched."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.root import ROOT

END = "<|end|>"


def save_tokenizer(folder: Path, *, n_tokens: int = 400, chat_template: str | None = None) -> Any:
    """A byte-level BPE tokenizer trained on the shipped plans, saved to a folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(plans(), trainer)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END)
    wrapped.chat_template = chat_template
    wrapped.save_pretrained(folder)
    return wrapped


def plans() -> list[str]:
    """The shipped plans."""
    folder = ROOT / "fewshot"
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*/*.plan"))]


def save_model(
    folder: Path, *, seed: int = 0, window: int = 4_096, chat_template: str | None = None
) -> Any:
    """A Llama of two layers and random weights, saved to a folder with its tokenizer.

    Returns:
        The tokenizer.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = save_tokenizer(folder, chat_template=chat_template)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            # Padded, as the models of the real world are.
            vocab_size=len(tokenizer) + 24,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=window,
            initializer_range=0.3,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=None,
        )
    )
    model.save_pretrained(folder)
    return tokenizer


def save_saying(folder: Path, text: str, *pieces: str) -> None:
    """A Llama that replies one text to every prompt that ends with a line break.

    Its layers pass on what they are given, so the last token alone says what comes next.

    Args:
        folder: Where to save it.
        text: No token of it comes twice, none is a line break.
        pieces: Tokens that follow the text, as the vocabulary has them.
    """
    import torch
    from transformers import LlamaForCausalLM

    tokenizer = save_model(folder)
    chain = [*tokenizer("\n" + text)["input_ids"], *tokenizer.convert_tokens_to_ids(list(pieces))]
    chain.append(tokenizer.eos_token_id)
    assert len(set(chain)) == len(chain) <= 64
    model = LlamaForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.zero_()
        model.lm_head.weight.zero_()
        for i, (token, following) in enumerate(pairwise(chain)):
            model.model.embed_tokens.weight[token, i] = 1.0
            model.lm_head.weight[following, i] = 1.0
    model.save_pretrained(folder)


def rewrite(path: Path, **changes: Any) -> None:
    """Change values of a file of JSON."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
