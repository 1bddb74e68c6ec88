"""Tokens of a prompt → tokens of a reply: the decoding loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pearl.errors import ModelError
from pearl.llm.backends.transformers.loading import LoadedWeights
from pearl.llm.backends.transformers.masks import Masks
from pearl.llm.backends.transformers.prefixes import Prefix

if TYPE_CHECKING:
    from torch import Tensor

N_READ_AT_ONCE = 512
"""Tokens of a prompt per call of the model."""


def write(
    weights: LoadedWeights,
    prefix: Prefix,
    prompt: Sequence[int],
    limit: int,
    temperature: float,
    seed: int | None,
    masks: Masks | None,
    before_call: Callable[[], None],
    after_token: Callable[[Sequence[int]], None],
) -> list[int]:
    """Generate a reply."""
    import torch

    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed % 2**63)
    tokens: list[int] = []
    with torch.inference_mode():
        logits = _read(weights, prefix, prompt[len(prefix.tokens) :], before_call)
        while True:
            token = _chosen(logits, weights, temperature, generator, masks)
            tokens.append(token)
            if token in weights.ends:
                return tokens
            after_token(tokens)
            if masks is not None:
                masks.take(token)
            if len(tokens) == limit:
                return tokens
            logits = _read(weights, prefix, [token], before_call)


def _read(
    weights: LoadedWeights, prefix: Prefix, tokens: Sequence[int], before_call: Callable[[], None]
) -> Tensor:
    """Append tokens to a prefix; returns the logits of the next token, of shape `[n_tokens]`."""
    import torch

    model = weights.model
    last_only = weights.keeping(1)  # the logits of a whole prompt may have gigabytes
    logits: Tensor | None = None
    for start in range(0, len(tokens), N_READ_AT_ONCE):
        before_call()
        part = list(tokens[start : start + N_READ_AT_ONCE])
        inputs = torch.tensor([part], device=model.device)
        done = model(input_ids=inputs, past_key_values=prefix.cache, use_cache=True, **last_only)
        prefix.tokens += part
        logits = done.logits[0, -1]
    assert logits is not None
    return logits[: weights.n_tokens].float().cpu()


def _chosen(
    logits: Tensor, weights: LoadedWeights, temperature: float, generator: Any, masks: Masks | None
) -> int:
    import numpy as np
    import torch

    if torch.isnan(logits).any():
        raise ModelError("the model computes no numbers: its weights are broken", kind="transport")
    if masks is not None:
        bits = np.unpackbits(masks.mask().view(np.uint8), bitorder="little")[: weights.n_tokens]
        # llguidance would encode a forced text that looks like a special token as that token.
        bits[[t for t in weights.special if not (masks.may_end and t in weights.ends)]] = 0
        if not bits.any():
            raise ModelError("the constraint allows no token here", kind="unconstrained")
        logits = logits.masked_fill(torch.from_numpy(bits == 0), -torch.inf)
    if temperature <= 0:
        return int(logits.argmax())
    chances = torch.softmax(logits / temperature, dim=-1)
    return int(torch.multinomial(chances, 1, generator=generator))
