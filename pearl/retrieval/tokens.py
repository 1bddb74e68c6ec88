"""Texts → tokens between blanks, numbered, so that each different one is analysed once.

Python would spend most of the time that an index takes on looking up words one by one. Here tokens
are compared as numbers: those of up to 16 bytes fit two of 64 bits, and longer ones, which are rare,
are numbered by a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_BYTES = 16


class Tokens(NamedTuple):
    """The tokens of some passages."""

    names: list[str]
    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]


def number_terms(passages: Sequence[Sequence[str]]) -> Tokens:
    """The tokens of passages that are given by them."""
    import numpy as np

    places: dict[str, int] = {}
    codes = [places.setdefault(term, len(places)) for terms in passages for term in terms]
    sizes = [len(terms) for terms in passages]
    return Tokens(list(places), np.array(codes, np.int64), np.array(sizes, np.int64))


def number_tokens(texts: Sequence[str]) -> Tokens:
    """The tokens of texts, between blanks and control characters of ASCII.

    Memory: about 30 bytes for each character.

    Example:
        >>> names, codes, sizes = number_tokens(["a key, a key,", "", "no key,"])
        >>> [names[code] for code in codes], sizes.tolist()
        (['a', 'key,', 'a', 'key,', 'no', 'key,'], [4, 0, 2])
    """
    import numpy as np

    lines = [text.encode("utf-8", "surrogatepass") for text in texts]
    # Blanks at the end, so that 8 bytes can be read anywhere, twice; one at the beginning.
    data = b"".join((b" ", b" ".join(lines), b" " * (_MAX_BYTES + 8)))
    is_letter = np.frombuffer(data, np.uint8) > ord(" ")
    edges = np.flatnonzero(is_letter[1:] != is_letter[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    n_bytes = ends - starts

    windows = np.ndarray((len(data) - 8,), "<u8", data, strides=(1,))
    masks = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
    first = windows[starts] & masks[np.minimum(n_bytes, 8)]
    second = windows[starts + 8] & masks[np.clip(n_bytes - 8, 0, 8)]
    long = np.flatnonzero(n_bytes > _MAX_BYTES)
    places: dict[bytes, int] = {}
    for i in long.tolist():
        first[i] = places.setdefault(data[starts[i] : ends[i]], len(places))
    second[long] = masks[8]  # in UTF-8 no byte has all its bits set

    # Sorted by a hash, equal tokens are neighbours. Others with the same hash may stand between
    # them; then there are several groups of one token, which does no harm.
    odd = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
    order = np.argsort(first * odd[0] ^ second * odd[1])
    first, second = first[order], second[order]
    is_new = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    groups = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), np.bool_), is_new]))
    codes = np.empty(len(order), np.int64)
    codes[order] = np.repeat(np.arange(len(groups)), np.diff(groups, append=len(order)))

    shown = order[groups]
    pairs = zip(starts[shown].tolist(), ends[shown].tolist(), strict=True)
    names = [data[start:end].decode("utf-8", "surrogatepass") for start, end in pairs]
    line_ends = np.cumsum([len(line) + 1 for line in lines], dtype=np.int64)
    return Tokens(names, codes, np.diff(np.searchsorted(starts, line_ends + 1), prepend=0))
