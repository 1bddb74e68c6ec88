"""Tokens of a prompt → tokens of a reply or log-likelihoods, with cached prefixes and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pearl.dsl.decoding.constraint import Constraint
from pearl.errors import ModelError
from pearl.llm import ConstrainBy
from pearl.llm.backends.transformers.loading import LoadedWeights

if TYPE_CHECKING:
    import numpy as np
    from llguidance import LLTokenizer
    from numpy.typing import NDArray
    from torch import Tensor


MAX_CACHED = 4  # Maximum cached prompts


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
        # The rest may be another document that a later prompt asks about.
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
    """Length of the common prefix of two token sequences."""
    n = min(len(left), len(right))
    return next((i for i in range(n) if left[i] != right[i]), n)


def _can_be_cropped(layer: Any) -> bool:
    """Whether a layer stores every token, unlike a sliding window or a recurrent state."""
    from transformers.cache_utils import DynamicLayer

    return type(layer) is DynamicLayer


class Masks:
    """The masks of one reply under a constraint, token by token."""

    def __init__(self, constraint: Constraint, by: ConstrainBy, vocabulary: LLTokenizer) -> None:
        import numpy as np

        self._constraint = constraint
        self._vocabulary = vocabulary
        self._next_line = constraint.next_line if by == "line" else None
        if by != "grammar" and self._next_line is None:
            raise ModelError(
                f"the backend transformers cannot constrain '{constraint.name}' in the form '{by}'",
                kind="unconstrained",
            )
        self._written = bytearray()
        n_words = (vocabulary.vocab_size + 31) // 32
        self._mask = np.zeros((1, n_words), dtype=np.int32)
        first = self._next_line("") if self._next_line else constraint.lark
        self._matcher = self._matching(first)

    @property
    def text(self) -> str:
        """The text so far; it consists of whole characters where the sentence may end."""
        return self._written.decode("utf-8")

    @property
    def may_end(self) -> bool:
        """Whether the text so far is a whole sentence."""
        return bool(self._matcher.is_accepting())

    def mask(self) -> NDArray[np.int32]:
        """The allowed next tokens, of shape `[ceil(n_tokens / 32)]`; overwritten by the next call."""
        # llguidance.torch compiles for half a minute on its first use; this does the same.
        from llguidance.numpy import fill_next_token_bitmask

        fill_next_token_bitmask(self._matcher, self._mask)
        self._check(self._matcher)
        words: NDArray[np.int32] = self._mask[0]
        return words

    def take(self, token: int) -> None:
        """Append an allowed token, except an end token."""
        self._matcher.consume_token(token)
        self._check(self._matcher)
        self._written += self._vocabulary.decode_bytes([token])
        if self._next_line is not None and self._written.endswith(b"\n"):
            self._matcher = self._matching(self._next_line(self.text))

    def _matching(self, grammar: str) -> Any:
        from llguidance import LLMatcher

        matcher = LLMatcher(self._vocabulary, LLMatcher.grammar_from_lark(grammar), log_level=0)
        self._check(matcher)
        return matcher

    def _check(self, matcher: Any) -> None:
        if matcher.is_error():
            reason = matcher.get_error().strip().partition("\n")[0]
            raise ModelError(
                f"llguidance cannot enforce the grammar of '{self._constraint.name}': {reason[:200]}",
                kind="unconstrained",
            )


N_READ_AT_ONCE = 512  # Tokens of a prompt per call of the model


def write(
    weights: LoadedWeights,
    prefix: Prefix,
    prompt: Sequence[int],
    temperature: float,
    seed: int | None,
    masks: Masks | None,
    before_call: Callable[[], None],
) -> Iterator[int]:
    """Generate the tokens of a reply, the last of which is an end token."""
    import torch

    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed % 2**63)
    (logits,) = _read(weights, prefix, prompt[len(prefix.tokens) :], before_call)
    while True:
        token = _chosen(logits, weights, temperature, generator, masks)
        yield token
        if token in weights.ends:
            return
        if masks is not None:
            masks.take(token)
        (logits,) = _read(weights, prefix, [token], before_call)


def _read(
    weights: LoadedWeights,
    prefix: Prefix,
    tokens: Sequence[int],
    before_call: Callable[[], None],
    n_kept: int = 1,
) -> Tensor:
    """Append tokens to a prefix.

    Returns:
        The logits after each of the last `n_kept` tokens, of shape `[n_kept, n_tokens]`.
    """
    import torch

    logits: Tensor | None = None
    while tokens:
        before_call()
        is_last = len(tokens) < N_READ_AT_ONCE + n_kept
        part = list(tokens if is_last else tokens[:N_READ_AT_ONCE])
        tokens = tokens[len(part) :]
        inputs = torch.tensor([part], device=weights.model.device)
        with torch.inference_mode():
            # The logits of a whole prompt can take gigabytes.
            done = weights.model(
                input_ids=inputs, past_key_values=prefix.cache, use_cache=True,
                **weights.keeping(n_kept if is_last else 1),
            )  # fmt: skip
        prefix.tokens += part
        logits = done.logits[0, -n_kept:, : weights.n_tokens].float().cpu()
        if torch.isnan(logits).any():
            raise ModelError("the model computes NaN: its weights are damaged", kind="transport")
    assert logits is not None
    return logits


def _chosen(
    logits: Tensor, weights: LoadedWeights, temperature: float, generator: Any, masks: Masks | None
) -> int:
    import numpy as np
    import torch

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


def rate(
    weights: LoadedWeights,
    prefixes: Prefixes,
    prompt: Sequence[int],
    paths: Sequence[Sequence[int]],
    before_call: Callable[[], None],
) -> tuple[list[float], int]:
    """Compute the log-likelihoods of candidates; returns the number of cached tokens, too."""
    import torch

    values: list[float] = []
    n_cached = 0
    for path in paths:
        # The whole prompt but its last token is cached after the first candidate.
        prefix = prefixes.take(prompt)
        n_cached = n_cached if values else len(prefix.tokens)
        rest = [*prompt[len(prefix.tokens) :], *path[:-1]]
        logits = _read(weights, prefix, rest, before_call, len(path))
        chances = torch.log_softmax(logits, dim=-1)
        values.append(float(chances.gather(1, torch.tensor(path)[:, None]).sum()))
        if prefixes.can_be_cropped(prefix):
            prefix.crop(len(prompt))
            prefixes.give(prefix)
    return values, n_cached
