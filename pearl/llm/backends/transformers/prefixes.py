"""Prefix cache: the keys and values of a common prefix of prompts, such as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_CACHED = 4
"""Maximum cached prompts."""


@dataclass
class Prefix:
    """A cached prompt."""

    cache: Any
    tokens: list[int] = field(default_factory=list)

    def crop(self, n: int) -> None:
        """Remove all but the first n tokens."""
        if n < len(self.tokens):
            # A negative argument is the number to remove, in every release.
            self.cache.crop(n - len(self.tokens))
            del self.tokens[n:]


class Prefixes:
    """The last `MAX_CACHED` prompts of a model with the configuration `config` of transformers."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._cached: list[Prefix] = []

    def take(self, prompt: Sequence[int]) -> Prefix:
        """Take the longest cached prefix of a prompt, without its last token; `give` it back."""
        best = max(self._cached, key=lambda cached: n_common(cached.tokens, prompt), default=None)
        n = min(n_common(best.tokens, prompt), len(prompt) - 1) if best else 0
        if best is None or n <= 0:
            return Prefix(self._empty())
        if 2 * n >= len(best.tokens):
            self._cached.remove(best)
            best.crop(n)
            return best
        # The rest may be another document, which is needed again.
        return self._copied(best, n)

    def give(self, prefix: Prefix) -> None:
        """Cache a prompt; the least recently used one is evicted."""
        if self.can_be_cropped(prefix):
            self._cached = [*self._cached, prefix][max(0, len(self._cached) + 1 - MAX_CACHED) :]

    def can_be_cropped(self, prefix: Prefix) -> bool:
        """Whether a prefix stores every token, so that its last ones can be removed."""
        return all(_can_be_cropped(layer) for layer in prefix.cache.layers)

    def _empty(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self._config)

    def _copied(self, prefix: Prefix, n: int) -> Prefix:
        cache = self._empty()
        for i, layer in enumerate(prefix.cache.layers):
            cache.update(layer.keys[..., :n, :].clone(), layer.values[..., :n, :].clone(), i)
        return Prefix(cache, prefix.tokens[:n])


def n_common(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the common prefix of two token sequences.

    Example:
        >>> n_common([1, 2, 3], [1, 2, 4, 5])
        2
    """
    n = min(len(left), len(right))
    return next((i for i in range(n) if left[i] != right[i]), n)


def _can_be_cropped(layer: Any) -> bool:
    """Whether a layer stores every token, unlike a sliding window or a recurrent state."""
    from transformers.cache_utils import DynamicLayer

    return type(layer) is DynamicLayer
