"""Constraint → mask of the allowed next tokens.

A mask has one bit per token of the vocabulary, 32 to a word, lowest bit first. Grammars are over
bytes, so a token may be a part of a character. End tokens are allowed where the sentence may end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pearl.dsl.decoding.constraint import Constraint
from pearl.errors import ModelError
from pearl.llm import ConstrainBy

if TYPE_CHECKING:
    import numpy as np
    from llguidance import LLTokenizer
    from numpy.typing import NDArray


class Masks:
    """The masks of one reply under a constraint, token by token."""

    def __init__(self, constraint: Constraint, by: ConstrainBy, vocabulary: LLTokenizer) -> None:
        import numpy as np

        self._constraint = constraint
        self._vocabulary = vocabulary
        self._next_line = constraint.next_line if by == "line" else None
        if by != "grammar" and self._next_line is None:
            raise ModelError(
                f"the language '{constraint.name}' has no form '{by}' that weights in this process take",
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
        """Append an allowed token that is no end token."""
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
                f"llguidance cannot hold a reply to '{self._constraint.name}': {reason[:200]}",
                kind="unconstrained",
            )
