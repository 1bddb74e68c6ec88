"""Text → number of tokens; name of a model → tokens of its window.

Models that tiktoken knows are counted with their own vocabulary, all others by an estimate. The
estimate errs on the safe side: it is cheaper to split a document that would just have fitted than
to have the server refuse it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

__all__ = ["Counter", "estimate", "window_of"]

DEFAULT_WINDOW = 128_000
"""Tokens of the window of a model that is not in models.toml."""

DOWNLOAD_TIMEOUT_S = 10.0
"""Seconds that the download of a vocabulary may take."""

SLICE = 50_000
"""Characters counted at once: tiktoken panics on longer runs of blanks, and is slow on any run.

A token cut in two at the edge of a slice counts twice: one in some ten thousand, to the safe side.
"""

LONG = 500
"""Characters of a text whose count is kept: documents and frames of prompts are counted again."""

_MOST_A_CHARACTER = (1.2, 4.8)
"""Tokens that a character can be, or is taken for: one of ASCII, and any. A token has a byte."""

MAX_COUNTED = 10_000

_counted: dict[tuple[str, int, int], int] = {}

_COSTS: tuple[tuple[Iterable[int], float], ...] = (
    (range(0x80), 1.0),  # line ends, tabs, control characters
    (b" ", 0.2),  # mostly part of the word that follows
    (b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 0.9),
    (b"0123456789", 1.16),  # many vocabularies have single digits only
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1.1),
    # A character outside ASCII is told by its first byte in UTF-8, the others cost nothing.
    (range(0xC2, 0xCA), 2.2),  # letters with accents: they also cut their word in pieces
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
    (range(0xF0, 0xF8), 4.0),  # emoji, rare Chinese characters: a token a byte at worst
)
"""Tokens that a character costs; later rows win."""

_SMALL_LETTERS = b"abcdefghijklmnopqrstuvwxyz"

_ENGLISH = (b" the ", b" of ", b" and ", b" to ")
"""Ten to thirty of these stand in a thousand characters of English, two at most of others."""

_UNIT = 50
"""Costs are added up in fiftieths of a token: the highest one, 4 tokens, still fits a byte."""


def _table(small_letter: float) -> bytes:
    table = bytearray(256)
    for group, cost in (*_COSTS, (_SMALL_LETTERS, small_letter)):
        for byte in group:
            table[byte] = round(cost * _UNIT)
    return bytes(table)


# Vocabularies are made from English above all: its words are cut into fewer pieces.
_IN_ENGLISH, _ELSEWHERE = _table(0.26), _table(0.36)


_WIDEST = round(0.36 * _UNIT) / round(0.26 * _UNIT)
"""How much more the same text counts for, at most, where what stands around it is not English."""

_SEAM = 4
"""Tokens by which a vocabulary may count a text and its neighbour otherwise than each alone."""


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + SLICE] for start in range(0, len(text), SLICE))


def estimate(text: str) -> int:
    """Tokens of a text for a model whose vocabulary is not known, rather too many than too few.

    Measured as estimate / real count of cl100k_base: English prose 1.3 to 1.6 (fiction 1.3 to
    1.4, a doctor's conversations 1.2, medical notes 1.3, abstracts 1.3, licences 1.5 to 1.6), code
    1.4 to 2.2, JSON 1.5, tables of numbers 1.6 to 2.4, base64 1.1, hexadecimal 1.5, Spanish and
    French 1.6, German 1.6, Polish 1.3, Finnish 1.2, Russian 1.9, Greek 1.35, Hebrew 1.25, Arabic
    1.45, Hindi 1.7, Chinese 1.3 to 1.8, Japanese 1.6, Korean 1.55, emoji 1.2 to 1.8; the least of
    75 languages is Welsh with 0.97. Vocabularies that spell numbers digit by digit come out at
    1.0 to 1.2 on tables, the 32,000 tokens of Mistral 7B at 1.1 to 1.3 on English. It falls short
    only on what is hardly text: random small letters 0.7, random Chinese characters 0.8.

    Example:
        >>> estimate("The cat sat on the mat.")
        8
        >>> estimate("")
        0
    """
    cost = 0
    for part in _slices(text):
        data = part.encode("utf-8", errors="replace")
        n_english = sum(map(data.count, _ENGLISH))
        table = _IN_ENGLISH if 1000 * n_english > 6 * len(data) else _ELSEWHERE
        # Typographic quotes and dashes share their first byte with rare symbols, and are common.
        cost += sum(data.replace(b"\xe2\x80", b"'").translate(table))
    return -(-cost // _UNIT)


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts tokens the way one model does.

    Attributes:
        method: How: the name of a vocabulary, or `estimate` with the reason for it.
        encoding: The vocabulary; None to estimate.
    """

    method: str = "estimate"
    encoding: Encoding | None = None

    @classmethod
    def for_model(cls, model: str) -> Counter:
        """The counter for a model.

        The first use of a vocabulary may download it, once, for at most `DOWNLOAD_TIMEOUT_S`.

        Args:
            model: `backend:name` or the bare name of a model.

        Example:
            >>> Counter.for_model("extractive").method
            'estimate'
        """
        from tiktoken.model import encoding_name_for_model

        try:
            vocabulary = encoding_name_for_model(_bare(model.partition(":")[2] or model))
        except KeyError:
            return cls()
        encoding = _load(vocabulary)
        if encoding is None:
            return cls(f"estimate: vocabulary {vocabulary} not available offline")
        return cls(vocabulary, encoding)

    def count(self, text: str) -> int:
        """Tokens of a text; marks that steer a model (`<|endoftext|>`) count as plain text.

        Example:
            >>> Counter().count("The cat sat on the mat.")
            8
        """
        if len(text) < LONG:
            return self._count(text)
        # A string remembers its hash, and a document is counted for every question asked of it.
        key = (self.method, len(text), hash(text))
        found = _counted.get(key)
        if found is None:
            if len(_counted) >= MAX_COUNTED:
                _counted.clear()
            found = _counted[key] = self._count(text)
        return found

    def excess(self, text: str, most: int, part: str = "") -> int:
        """Tokens by which a text is longer than it may be; 0 where it is not.

        It counts no more than it takes to tell: nothing, where a text is short; the rest of it, where
        a part of it is counted already; the text as a whole, where that decides.

        Args:
            text: What is to fit.
            most: Tokens.
            part: A document that stands in it.

        Example:
            >>> Counter().excess("The cat sat on the mat.", 100), Counter().excess("The cat sat.", 3)
            (0, 3)
        """
        if len(text) * _MOST_A_CHARACTER[not text.isascii()] <= most:
            return 0
        rest = text.replace(part, "", 1) if part else text
        if len(rest) < len(
            text
        ):  # two seams with the part, and one more that it leaves in the rest
            n_at_most = self.most(self.count(part)) + self.bounds(rest)[1] + _SEAM
            if n_at_most <= most:
                return 0
        return max(0, self.count(text) - most)

    def _count(self, text: str) -> int:
        if self.encoding is None:
            return estimate(text)
        return sum(len(self.encoding.encode_ordinary(part)) for part in _slices(text))

    def bounds(self, text: str) -> tuple[int, int]:
        """How few and how many tokens a text counts for as a part of a longer one.

        For an estimate these are certain: it adds up, but for the language it is taken to be in.
        Vocabularies do not add up exactly where texts meet, and where long ones are sliced; a few
        tokens are kept for that.

        Example:
            >>> Counter().bounds("Sie schlief.")
            (4, 6)
        """
        if self.encoding is None:
            data = text.encode("utf-8", errors="replace").replace(b"\xe2\x80", b"'")
            low, high = (sum(data.translate(table)) for table in (_IN_ENGLISH, _ELSEWHERE))
            return low // _UNIT, -(-high // _UNIT)
        n = self.count(text)
        slack = _SEAM * (1 + 4 * (len(text) // SLICE))
        return max(0, n - slack), n + slack

    def most(self, n: int) -> int:
        """How many tokens a text that alone has `n` of them counts for as a part of a longer one."""
        if self.encoding is None:
            return ceil(n * _WIDEST)
        # A token is 128 characters at most, so this is the longest that such a text can be.
        return n + _SEAM * (1 + 4 * (128 * n // SLICE))


@cache
def _load(vocabulary: str) -> Encoding | None:
    """A vocabulary of tiktoken; None where it cannot be had, which is not tried again.

    tiktoken downloads without a time limit. A daemon thread keeps a dead network from holding up
    the command, its end included.
    """
    from tiktoken import get_encoding

    loaded: list[Encoding] = []

    def load() -> None:
        with suppress(OSError, ValueError):  # no network, no such file, broken download
            loaded.append(get_encoding(vocabulary))

    thread = Thread(target=load, name=f"load {vocabulary}", daemon=True)
    thread.start()
    thread.join(DOWNLOAD_TIMEOUT_S)
    return loaded[0] if loaded else None


def window_of(model: str) -> int:
    """Tokens that a model reads and writes in one call, by the longest known prefix of its name.

    Args:
        model: As its server calls it, without a backend. What stands before the last `/` does not
            matter, and neither does the case.

    Example:
        >>> window_of("gpt-4o-mini"), window_of("meta-llama/Llama-3.1-8B-Instruct")
        (128000, 131072)
        >>> window_of("my-own-model")
        128000
    """
    name = _bare(model).casefold().removeprefix("ft:")
    known = _windows()
    prefix = max((prefix for prefix in known if name.startswith(prefix)), key=len, default=None)
    return DEFAULT_WINDOW if prefix is None else known[prefix]


@cache
def _windows() -> dict[str, int]:
    text = Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
    windows: dict[str, int] = tomllib.loads(text)["windows"]
    return windows


def _bare(name: str) -> str:
    """A model's name without its maker's: `openai/gpt-4o` → `gpt-4o`."""
    return name.rpartition("/")[2]
