"""Tokens of a prompt and of candidates → log-likelihoods: the prompt is read once, then each candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pearl.errors import ModelError
from pearl.llm.backends.transformers.decoding import N_READ_AT_ONCE
from pearl.llm.backends.transformers.loading import LoadedWeights
from pearl.llm.backends.transformers.prefixes import Prefix, Prefixes


def rate(
    weights: LoadedWeights,
    prefixes: Prefixes,
    prompt: Sequence[int],
    paths: Sequence[Sequence[int]],
    before_call: Callable[[], None],
) -> tuple[list[float], int]:
    """Compute the log-likelihoods of candidates."""
    values: list[float] = []
    n_cached = 0
    for path in paths:
        # The whole prompt but its last token is cached after the first candidate.
        prefix = prefixes.take(prompt)
        n_cached = n_cached if values else len(prefix.tokens)
        values.append(_rated(weights, prefix, [*prompt, *path], len(path), before_call))
        if prefixes.can_be_cropped(prefix):
            prefix.crop(len(prompt))
            prefixes.give(prefix)
    return values, n_cached


def _rated(
    weights: LoadedWeights,
    prefix: Prefix,
    tokens: Sequence[int],
    n: int,
    before_call: Callable[[], None],
) -> float:
    """The log-likelihood of the last `n` of all tokens; extends the prefix."""
    import torch

    model, total = weights.model, 0.0
    first = len(tokens) - n
    with torch.inference_mode():
        while (start := len(prefix.tokens)) < len(tokens) - 1:
            before_call()
            # Logits are kept of the candidate's tokens only: those of a prompt may have gigabytes.
            end = min(start + N_READ_AT_ONCE, first - 1 if start < first - 1 else len(tokens) - 1)
            part = list(tokens[start:end])
            inputs = torch.tensor([part], device=model.device)
            done = model(
                input_ids=inputs, past_key_values=prefix.cache, use_cache=True,
                **weights.keeping(1 if end < first else len(part)),
            )  # fmt: skip
            prefix.tokens += part
            if end < first:
                continue
            logits = done.logits[0, -len(part) :, : weights.n_tokens].float()
            if torch.isnan(logits).any():
                raise ModelError(
                    "the model computes no numbers: its weights are broken", kind="transport"
                )
            written = torch.tensor(tokens[start + 1 : end + 1], device=logits.device)
            chances = torch.log_softmax(logits, dim=-1)
            total += float(chances.gather(1, written[:, None]).sum())
    return total
