"""Text → the form in which texts are compared: without case, accents and repeated blanks."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−־"), "-")
_QUOTES = dict.fromkeys(map(ord, "‘’ʼ′`´"), "'") | dict.fromkeys(map(ord, "“”„″"), '"')


@lru_cache(maxsize=1 << 16)
def fold(text: str) -> str:
    """Texts that people take for the same have the same form.

    Example:
        >>> fold("  Café  TEL‑AVIV ") == fold("cafe tel-aviv")
        True
    """
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.translate(_DASHES | _QUOTES))
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(text.casefold().split())


def word_form(folded: str) -> str:
    """A folded text as its words with one blank before each and one at the end.

    An apostrophe within a word is no end of it: `Modi'in` is one word.

    Example:
        >>> word_form("h&c, modi'in-re'ut")
        ' h c modiin reut '
    """
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=\w)'(?=\w)", "", folded))
    return f" {' '.join(words)} "
