"""Count the tokens of a text, and look up the context window of a model in tokens.

A model's own tokenizer counts if it is available, else tiktoken with the vocabulary for the model's name if
that is on this machine, else an estimate, which tends to overestimate: splitting a document that would just have
fitted is cheaper than a rejected request. No vocabulary is downloaded.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha1
from math import ceil
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_WINDOW = 128_000  # context window in tokens of a model that is not in models.toml

SLICE = 50_000
"""Maximum characters per call: tiktoken panics on longer runs of blanks, and is slow on any run.

A token split at a slice boundary counts twice, about one in ten thousand.
"""

LONG = 100
"""Minimum characters of a text whose count is cached, such as a document or a prompt.

Shorter ones are not sent to a tokenizer in another process either.
"""

_MOST_A_CHARACTER = (1.2, 4.8)
"""Maximum tokens per character, of ASCII and of any text. A token has at least one byte."""

MAX_COUNTED = 10_000  # maximum stored counts of texts

_counted: dict[tuple[object, int, int], int] = {}  # counter, length and hash of a text → its tokens

_COSTS: tuple[tuple[Iterable[int], float], ...] = (
    (range(0x80), 1.0),  # line ends, tabs, control characters
    (b" ", 0.2),  # mostly part of the word that follows
    (b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 0.9),
    (b"0123456789", 1.16),  # many vocabularies have single digits only
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1.1),
    # Only the first UTF-8 byte of a non-ASCII character counts.
    (range(0xC2, 0xCA), 2.2),  # letters with accents: they also split their word
    (range(0xCA, 0xE0), 2.16),  # Armenian, combining accents, ...
    (b"\xce\xcf\xd7", 1.4),  # Greek, Hebrew
    (b"\xd0\xd1", 0.86),  # Cyrillic
    (b"\xd8\xd9\xda\xdb", 1.2),  # Arabic, Persian, Urdu
    (b"\xe0", 2.1),  # the scripts of India, Thai
    (b"\xe1\xe2", 3.0),  # Georgian, Khmer, ..., symbols
    (b"\xe3", 1.5),  # Japanese syllables, punctuation of Chinese and Japanese
    (range(0xE4, 0xEA), 1.8),  # Chinese characters
    (range(0xEA, 0xEE), 1.7),  # Korean
    (range(0xEE, 0xF0), 3.0),  # full-width forms, private use
    (range(0xF0, 0xF8), 4.0),  # emoji, rare Chinese characters: at worst one token per byte
)
"""Tokens per character; later rows override earlier ones."""

_SMALL_LETTERS = b"abcdefghijklmnopqrstuvwxyz"

_ENGLISH = (b" the ", b" of ", b" and ", b" to ")
"""English has 10 to 30 of these in a thousand characters, other languages at most two."""

_UNIT = 50  # costs are summed in fiftieths of a token


_Table = tuple[tuple[int, bytes], ...]
"""Costs in `_UNIT`s with the bytes that have them, the most frequent ones first."""


def _table(small_letter: float) -> _Table:
    costs = {
        byte: round(cost * _UNIT)
        for group, cost in (*_COSTS, (_SMALL_LETTERS, small_letter))
        for byte in group
    }
    order = dict.fromkeys(costs[byte] for byte in (*b"e .A0\n", *costs))
    return tuple((cost, bytes(b for b in costs if costs[b] == cost)) for cost in order if cost)


# Vocabularies are trained mostly on English, whose words are split into fewer tokens.
_IN_ENGLISH, _ELSEWHERE = _table(0.26), _table(0.36)


def _cost(data: bytes, table: _Table) -> int:
    """The sum of the costs of all bytes, in `_UNIT`s."""
    total = 0
    for cost, group in table:
        if not data:
            break
        rest = data.translate(None, group)  # five times as fast as adding byte by byte
        total += cost * (len(data) - len(rest))
        data = rest
    return total


_WIDEST = round(0.36 * _UNIT) / round(0.26 * _UNIT)
"""Maximum ratio of a text's count inside non-English text to its count alone."""

_SEAM = 4  # tokens by which the count of a concatenation may differ from the sum of the counts


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + SLICE] for start in range(0, len(text), SLICE))


def estimate(text: str) -> int:
    """Estimate the tokens of a text for an unknown vocabulary, with a tendency to overestimate.

    Measured as estimate / count of cl100k_base: English prose 1.2 to 1.6, code 1.4 to 2.2, JSON 1.5,
    tables of numbers 1.6 to 2.4, 75 languages 0.97 (Welsh) to 1.9. Vocabularies that spell numbers
    digit by digit come out at 1.0 to 1.2 on tables. It underestimates only random strings.
    """
    cost = 0
    for part in _slices(text):
        data = part.encode("utf-8", errors="replace")
        n_english = sum(map(data.count, _ENGLISH))
        table = _IN_ENGLISH if 1000 * n_english > 6 * len(data) else _ELSEWHERE
        # Typographic quotes and dashes share their first byte with rare symbols, and are common.
        cost += _cost(data if part.isascii() else data.replace(b"\xe2\x80", b"'"), table)
    return -(-cost // _UNIT)


TOKENIZER_SLICE = 10_000
"""Maximum characters per call of a tokenizer: few enough that no window cuts them off."""

_WORDS_A_TOKEN = 2  # maximum words per token on average; a few vocabularies have pairs of words

_BYTES_A_CHARACTER = 4  # maximum of UTF-8; a token has a byte or more


class TokenizerError(Exception):
    """A tokenizer failed; the message gives the reason in a few words."""


class NoTokenizerError(TokenizerError):
    """The model has no tokenizer, which is not an error."""


class Tokenizer(Protocol):
    """Counts tokens as a model does. It may be a process or a server."""

    @property
    def name(self) -> str:
        """The name in messages, such as `the tokenizer of model.gguf`."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text of at most `TOKENIZER_SLICE` characters, without special tokens."""
        ...

    def frame_tokens(self) -> int:
        """Tokens that the model's chat template puts around a prompt of one message; 0 if unknown."""
        ...


class Counter:
    """Counts tokens for one model; its own tokenizer is not called again after a failure or an impossible count."""

    def __init__(
        self,
        method: str = "estimate",
        encoding: Encoding | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.encoding = encoding
        self.has_counted = False
        self._method = method
        self._tokenizer = tokenizer
        self._key: object = method if tokenizer is None else object()
        self._failure = ""
        self._frame_tokens = 0 if tokenizer is None else None
        self._asking = Lock()

    @classmethod
    def for_model(cls, model: str, tokenizer: Tokenizer | None = None) -> Counter:
        """The counter for a model."""
        from tiktoken.model import encoding_name_for_model

        try:
            vocabulary = encoding_name_for_model(_bare(model.partition(":")[2] or model))
        except KeyError:
            return cls(tokenizer=tokenizer)
        encoding = _load(vocabulary)
        if encoding is None:
            return cls(f"estimate: vocabulary {vocabulary} is not on this machine", None, tokenizer)
        return cls(vocabulary, encoding, tokenizer)

    @property
    def method(self) -> str:
        """The method: a tokenizer, the name of a vocabulary, or `estimate` with the reason."""
        return f"{self._method}{self._failure}" if self._tokenizer is None else self._tokenizer.name

    @property
    def frame_tokens(self) -> int:
        """Tokens that the model's chat template adds to a prompt; requested once, by the first thread."""
        with self._asking:
            if self._frame_tokens is None:
                try:
                    assert self._tokenizer
                    self._frame_tokens = max(0, self._tokenizer.frame_tokens())
                except TokenizerError as error:
                    self._give_up(error)
            return self._frame_tokens or 0

    @property
    def _own(self) -> Tokenizer | None:
        """The model's tokenizer, unless it has failed; sends the first request, which may fail."""
        return self._tokenizer if self.frame_tokens >= 0 else None

    def _give_up(self, error: TokenizerError) -> None:
        if self._tokenizer and not isinstance(error, NoTokenizerError):
            self._failure = f" ({self._tokenizer.name} failed: {error})"
        self._tokenizer = None
        self._key = self._method
        self._frame_tokens = 0

    @property
    def _is_estimate(self) -> bool:
        return self.encoding is None and self._own is None

    @property
    def _slice(self) -> int:
        return TOKENIZER_SLICE if self._own else SLICE

    def count(self, text: str) -> int:
        """Count the tokens of a text; special tokens (`<|endoftext|>`) count as plain text."""
        if len(text) < LONG:
            return self._count_here(text)
        self.has_counted = True
        # Strings cache their hash, and a document is counted once per question.
        own, key = self._own, (len(text), hash(text))
        n = _counted.get((self._key, *key))
        if n is None:
            if len(_counted) >= MAX_COUNTED:
                _counted.clear()
            n = self._count_here(text) if own is None else self._count_by(own, text)
            _counted[(self._key, *key)] = n  # the key changes if the tokenizer failed meanwhile
        return n

    def excess(self, text: str, most: int, part: str = "") -> int:
        """Tokens by which a prompt exceeds a limit, or 0; the prompt is counted only if cheaper bounds do not decide."""
        if self.at_most(text) <= most:
            return 0
        if self.bounds_with(text, part)[1] + self.frame_tokens <= most:
            return 0
        return max(0, self.count(text) + self.frame_tokens - most)

    def at_most(self, text: str) -> int:
        """Maximum tokens of any text of this length."""
        return ceil(len(text) * _MOST_A_CHARACTER[not text.isascii()])

    def bounds_with(self, text: str, part: str) -> tuple[int, int]:
        """Minimum and maximum tokens of a text; a `part` counted before, such as the document, saves time."""
        rest = text.replace(part, "", 1) if part else text
        if self._is_estimate or len(rest) == len(text):
            n = self.count(text)
            return n, n
        least, most = map(sum, zip(self.bounds(part), self.bounds(rest), strict=True))
        # The part has a seam at both ends, and its removal joins the rest at one more.
        return max(0, least - _SEAM), most + _SEAM

    def _count_by(self, own: Tokenizer, text: str) -> int:
        total = 0
        try:
            for at in range(0, len(text), TOKENIZER_SLICE):
                part = text[at : at + TOKENIZER_SLICE]
                n = own.count(part)
                least = len(part.split()) // _WORDS_A_TOKEN
                if not least <= n <= _BYTES_A_CHARACTER * len(part) + 1:
                    raise TokenizerError(f"it counts {n:,} tokens in {len(part):,} characters")
                total += n
        except TokenizerError as error:
            self._give_up(error)
            return self._count_here(text)
        return total

    def _count_here(self, text: str) -> int:
        if self.encoding is None:
            return estimate(text)
        return sum(len(self.encoding.encode_ordinary(part)) for part in _slices(text))

    def bounds(self, text: str, part: str = "") -> tuple[int, int]:
        """Minimum and maximum tokens that a text contributes to a longer one: exact for an estimate, with a margin for vocabularies."""
        if self._is_estimate:
            data = text.encode("utf-8", errors="replace").replace(b"\xe2\x80", b"'")
            low, high = (_cost(data, table) for table in (_IN_ENGLISH, _ELSEWHERE))
            return low // _UNIT, -(-high // _UNIT)
        least, most = self.bounds_with(text, part)
        slack = _SEAM * (1 + 4 * (len(text) // self._slice))
        if self._own and len(text) < LONG:
            least //= 2  # counted by a substitute, which tends to overestimate
        return max(0, least - slack), most + slack

    def most(self, n: int) -> int:
        """Maximum tokens that a text of `n` tokens contributes to a longer one."""
        if self._is_estimate:
            return ceil(n * _WIDEST)
        # A token is 128 characters at most, so this is the longest that such a text can be.
        return n + _SEAM * (1 + 4 * (128 * n // self._slice))


@cache
def _load(vocabulary: str) -> Encoding | None:
    """A vocabulary that tiktoken has in memory or in its folder; None if it would have to download it."""
    from tempfile import gettempdir

    from tiktoken import get_encoding
    from tiktoken.registry import ENCODINGS

    same = {"o200k_harmony": "o200k_base", "p50k_edit": "p50k_base"}.get(vocabulary, vocabulary)
    address = f"https://openaipublic.blob.core.windows.net/encodings/{same}.tiktoken"
    named = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    file = Path(named or Path(gettempdir(), "data-gym-cache"), sha1(address.encode()).hexdigest())
    if vocabulary not in ENCODINGS and not file.is_file():
        return None
    with suppress(OSError, ValueError):  # a damaged file, which tiktoken tries to download again
        return get_encoding(vocabulary)
    return None


def known_window(model: str) -> int | None:
    """Context window of a model in tokens, by the longest known prefix of its name; None if unknown."""
    name = _bare(model).casefold().removeprefix("ft:")
    known = known_windows()
    prefix = max((prefix for prefix in known if name.startswith(prefix)), key=len, default=None)
    return None if prefix is None else known[prefix]


@cache
def known_windows() -> dict[str, int]:
    """Context windows in tokens, by the beginning of a model's name (`models.toml`)."""
    text = Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
    windows: dict[str, int] = tomllib.loads(text)["windows"]
    return windows


def _bare(name: str) -> str:
    """A model's name without the vendor's: `openai/gpt-4o` → `gpt-4o`."""
    return name.rpartition("/")[2]
