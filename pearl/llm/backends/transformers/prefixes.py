"""Prompts that share their beginning, such as a document, are read once.

What a model computed for a token depends on the tokens before it only, so the keys and values of
a common beginning are those of any prompt that begins so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Prefix", "Prefixes", "n_common"]

MAX_KEPT = 4
"""Prompts kept: as many documents can be asked about in turn."""


@dataclass
class Prefix:
    """What a model has read.

    Attributes:
        cache: Keys and values, a `DynamicCache`.
        tokens: The tokens they are of.
    """

    cache: Any
    tokens: list[int] = field(default_factory=list)

    def crop(self, n: int) -> None:
        """Forget all but the first n tokens."""
        if n < len(self.tokens):
            # A negative number is how many to remove, in every release that knows this method.
            self.cache.crop(n - len(self.tokens))
            del self.tokens[n:]


class Prefixes:
    """The prompts that were read last.

    Args:
        config: Of the model, as transformers has it.
        most: Prompts kept at most; 0 for none.
    """

    def __init__(self, config: Any, most: int = MAX_KEPT) -> None:
        self._config = config
        self._most = most
        self._kept: list[Prefix] = []

    def take(self, prompt: Sequence[int]) -> Prefix:
        """The longest beginning of a prompt that is known, at least one token short of it all.

        Whoever takes it owns it, and may give it back longer.

        Args:
            prompt: Tokens.
        """
        best = max(self._kept, key=lambda kept: n_common(kept.tokens, prompt), default=None)
        n = min(n_common(best.tokens, prompt), len(prompt) - 1) if best else 0
        if best is None or n <= 0:
            return Prefix(self._empty())
        if 2 * n >= len(best.tokens):
            self._kept.remove(best)
            best.crop(n)
            return best
        # The rest may be another document, which will be asked about again.
        return self._copied(best, n)

    def give(self, prefix: Prefix) -> None:
        """Keep what was read; what was not asked about for longest makes place for it."""
        if self._most and all(_can_be_cropped(layer) for layer in prefix.cache.layers):
            self._kept.append(prefix)
            del self._kept[: -self._most]

    def _empty(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self._config)

    def _copied(self, prefix: Prefix, n: int) -> Prefix:
        cache = self._empty()
        for i, layer in enumerate(prefix.cache.layers):
            cache.update(layer.keys[..., :n, :].clone(), layer.values[..., :n, :].clone(), i)
        return Prefix(cache, prefix.tokens[:n])


def n_common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two texts begin with alike.

    Example:
        >>> n_common([1, 2, 3], [1, 2, 4, 5])
        2
    """
    n = min(len(left), len(right))
    return next((i for i in range(n) if left[i] != right[i]), n)


def _can_be_cropped(layer: Any) -> bool:
    """Whether it keeps every token: a sliding window or a running state knows no way back."""
    from transformers.cache_utils import DynamicLayer

    return type(layer) is DynamicLayer
