"""Tokens of a prompt → tokens of a reply: the decoding loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from pearl.errors import ModelError
from pearl.llm.backends.transformers.loading import Weights
from pearl.llm.backends.transformers.masks import Held
from pearl.llm.backends.transformers.prefixes import Prefix

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Draw", "Written", "write"]

N_READ_AT_ONCE = 512
"""Tokens of a prompt per call of the model."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Sampling parameters.

    Attributes:
        temperature: 0 for greedy decoding.
        seed: Reproducible on one machine; None for a random one.
    """

    temperature: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A reply.

    Attributes:
        tokens: Without the end token.
        has_ended: Whether it has an end token, else it was truncated.
    """

    tokens: list[int]
    has_ended: bool

    @property
    def n_tokens(self) -> int:
        """Computed tokens, the end token included."""
        return len(self.tokens) + self.has_ended


def write(
    weights: Weights,
    prefix: Prefix,
    prompt: Sequence[int],
    limit: int,
    draw: Draw,
    held: Held | None,
    before_call: Callable[[], None],
    after_token: Callable[[Sequence[int]], None],
) -> Written:
    """Generate a reply.

    Args:
        weights: The model.
        prefix: The cached prefix of the prompt; extended in place.
        prompt: Tokens, more than the prefix.
        limit: Maximum tokens of the reply, 1 or more.
        draw: Sampling parameters.
        held: The constraint, or None.
        before_call: Callback before every call of the model; raises to stop.
        after_token: Callback with the tokens so far; raises to stop.

    Raises:
        ModelError: The logits are NaN, or the constraint allows no token.
    """
    import torch

    generator = torch.Generator()
    if draw.seed is None:
        generator.seed()
    else:
        generator.manual_seed(draw.seed % 2**63)
    tokens: list[int] = []
    with torch.inference_mode():
        logits = _read(weights, prefix, prompt[len(prefix.tokens) :], before_call)
        while True:
            token = _chosen(logits, weights, draw, generator, held)
            if token in weights.ends:
                return Written(tokens, True)
            tokens.append(token)
            after_token(tokens)
            if held is not None:
                held.take(token)
            if len(tokens) == limit:
                return Written(tokens, False)
            logits = _read(weights, prefix, [token], before_call)


def _read(
    weights: Weights, prefix: Prefix, tokens: Sequence[int], before_call: Callable[[], None]
) -> Tensor:
    """Append tokens to a prefix; returns the logits of the next token, of shape `[n_tokens]`."""
    import torch

    model = weights.model
    # The logits of a whole prompt may have gigabytes.
    last_only: dict[str, Any] = (
        {"logits_to_keep": 1} if "logits_to_keep" in signature(model.forward).parameters else {}
    )
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


def _chosen(logits: Tensor, weights: Weights, draw: Draw, generator: Any, held: Held | None) -> int:
    import numpy as np
    import torch

    if torch.isnan(logits).any():
        raise ModelError("the model computes no numbers: its weights are broken", kind="transport")
    if held is not None:
        bits = np.unpackbits(held.mask().view(np.uint8), bitorder="little")[: weights.n_tokens]
        # llguidance would encode a forced text that looks like a special token as that token.
        bits[[t for t in weights.special if not (held.may_end and t in weights.ends)]] = 0
        if not bits.any():
            raise ModelError("the constraint allows no token here", kind="unconstrained")
        logits = logits.masked_fill(torch.from_numpy(bits == 0), -torch.inf)
    if draw.temperature <= 0:
        return int(logits.argmax())
    chances = torch.softmax(logits / draw.temperature, dim=-1)
    return int(torch.multinomial(chances, 1, generator=generator))
