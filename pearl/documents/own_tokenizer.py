"""A model's own tokenizer, checked: what it says of a text is used only as far as it can be true.

It may be a process or a server, which may be slow, broken, or answer whatever it likes. The first
answer that cannot be true, and the first that does not come, ends its use.
"""

from __future__ import annotations

import threading
from typing import Protocol

SLICE = 10_000
"""Maximum characters per call: few enough that no window cuts them off."""

_PROBE = (
    "The harbour was still asleep when she untied the boat. She had told nobody that she was leaving, "
    "and behind her the lamps of the village went out one after another."
)
"""Tokenized first. Every word of it is one token at least, every letter one at most."""

_WORDS_A_TOKEN = 2
"""Maximum words per token on average; a few vocabularies have pairs of words."""

_BYTES_A_CHARACTER = 4


class TokenizerError(Exception):
    """No count comes; the message says why, in a few words."""


class NoTokenizerError(TokenizerError):
    """There is none, which is no fault."""


class Tokenizer(Protocol):
    """Counts tokens as a model does."""

    @property
    def name(self) -> str:
        """What users are told, as `the tokenizer of model.gguf`."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text of at most `SLICE` characters, without marks around it."""
        ...

    def frame_tokens(self) -> int:
        """Tokens that the model's chat template puts around a prompt of one message; 0 if unknown."""
        ...


class OwnTokenizer:
    """A tokenizer that is given up for good once it fails."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.key = object()
        self.failure = ""
        self.is_missing = False
        self.frame_tokens = 0
        self._tokenizer = tokenizer
        self._is_tried = False
        self._trying = threading.Lock()

    @property
    def name(self) -> str:
        """What users are told."""
        return self._tokenizer.name

    def works(self) -> bool:
        """Whether it counts, which the first call finds out."""
        if not self._is_tried:
            with self._trying:
                if not self._is_tried:
                    self._try()
        return not self.failure

    def count(self, text: str) -> int | None:
        """The tokens of a text; None if the tokenizer is given up."""
        if not self.works():
            return None
        try:
            pieces = (text[at : at + SLICE] for at in range(0, len(text), SLICE))
            return sum(map(self._counted, pieces))
        except TokenizerError as error:
            self.failure = str(error)
            return None

    def _try(self) -> None:
        try:
            n = self._counted(_PROBE)
            if n < len(_PROBE.split()):
                raise TokenizerError(f"it says that {len(_PROBE.split())} words are {n} tokens")
            self.frame_tokens = max(0, self._tokenizer.frame_tokens())
        except TokenizerError as error:
            self.failure = str(error)
            self.is_missing = isinstance(error, NoTokenizerError)
        self._is_tried = True

    def _counted(self, text: str) -> int:
        n = self._tokenizer.count(text)
        least = len(text.split()) // _WORDS_A_TOKEN
        if not least <= n <= _BYTES_A_CHARACTER * len(text) + 1:
            raise TokenizerError(f"it says that {len(text):,} characters are {n:,} tokens")
        return n
