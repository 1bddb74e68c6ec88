"""Tokens of a prompt → tokens of a reply, one after the other."""

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
"""Tokens of a prompt between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How the next token is chosen.

    Attributes:
        temperature: 0 for the most likely one.
        seed: The same one draws the same reply on the same machine; None for another every time.
    """

    temperature: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A reply.

    Attributes:
        tokens: Without the one that ended it.
        has_ended: Whether the model ended it; else the limit did.
    """

    tokens: list[int]
    has_ended: bool

    @property
    def n_tokens(self) -> int:
        """Tokens that were computed, the one that ended it included."""
        return len(self.tokens) + self.has_ended


def write(
    weights: Weights,
    prefix: Prefix,
    prompt: Sequence[int],
    limit: int,
    draw: Draw,
    held: Held | None,
    look_up: Callable[[], None],
    look_at: Callable[[Sequence[int]], None],
) -> Written:
    """Write a reply.

    Args:
        weights: The model.
        prefix: What it has read of the prompt already; grows by all that is read here.
        prompt: Tokens, more than the prefix.
        limit: Tokens of the reply at most, 1 or more.
        draw: How tokens are chosen.
        held: What the reply is held by, if anything.
        look_up: Called before every call of the model; raises to have it stop.
        look_at: Shown what is written after every token; raises to have it stop.

    Raises:
        ModelError: The model computes no numbers, or the constraint allows nothing.
    """
    import torch

    generator = torch.Generator()
    if draw.seed is None:
        generator.seed()
    else:
        generator.manual_seed(draw.seed % 2**63)
    tokens: list[int] = []
    with torch.inference_mode():
        logits = _read(weights, prefix, prompt[len(prefix.tokens) :], look_up)
        while True:
            token = _chosen(logits, weights, draw, generator, held)
            if token in weights.ends:
                return Written(tokens, True)
            tokens.append(token)
            look_at(tokens)
            if held is not None:
                held.take(token)
            if len(tokens) == limit:
                return Written(tokens, False)
            logits = _read(weights, prefix, [token], look_up)


def _read(
    weights: Weights, prefix: Prefix, tokens: Sequence[int], look_up: Callable[[], None]
) -> Tensor:
    """Read tokens after a prefix; the logits of the token after them, of shape `[n_tokens]`."""
    import torch

    model = weights.model
    # Of a prompt's logits only the last are of use, and there may be gigabytes of the others.
    last_only: dict[str, Any] = (
        {"logits_to_keep": 1} if "logits_to_keep" in signature(model.forward).parameters else {}
    )
    logits: Tensor | None = None
    for start in range(0, len(tokens), N_READ_AT_ONCE):
        look_up()
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
        # Where a text is forced that reads like a special token, llguidance would have the token.
        bits[[t for t in weights.special if not (held.may_end and t in weights.ends)]] = 0
        if not bits.any():
            raise ModelError("the constraint allows no token here", kind="unconstrained")
        logits = logits.masked_fill(torch.from_numpy(bits == 0), -torch.inf)
    if draw.temperature <= 0:
        return int(logits.argmax())
    chances = torch.softmax(logits / draw.temperature, dim=-1)
    return int(torch.multinomial(chances, 1, generator=generator))
