"""Name → its skeleton: names that look alike have the same one (Unicode UTS #39).

The prototypes are those of its `confusables.txt` for single letters and digits of the Latin, Greek,
Cyrillic and Armenian scripts; forms of one letter (full-width, mathematical, ligatures) are taken
together by Unicode's own compatibility decomposition. Pairs that look alike only in print and are
common in ordinary names (`rn` and `m`, `vv` and `w`) are left out.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_ALIKE = {
    "A": "ΑА", "B": "ΒВꞴ", "C": "С", "E": "ΕЕ", "F": "ϜꞘ", "G": "Ԍ", "H": "ΗН", "J": "ͿЈꞲ",
    "K": "ΚК", "M": "ΜϺМ", "N": "Ν", "O": "ΟОՕ", "P": "ΡР", "R": "Ʀ", "S": "ЅՏ", "T": "ΤТ",
    "U": "Ս", "V": "Ѵ", "W": "Ԝ", "X": "ΧХꞳ", "Y": "ΥУҮ", "Z": "Ζ", "a": "ɑαа", "b": "ƄЬ",
    "c": "сᴄ", "d": "ԁ", "e": "еҽꬲ", "f": "քẝꞙꬵ", "g": "ƍɡցᶃ", "h": "һհ", "i": "ıɩɪιіӏꙇ",
    "j": "ϳј", "l": "IƖǀΙІӀ", "n": "ոռ", "o": "οσоօᴏᴑꬽ", "p": "ρр", "q": "ԛգզ", "r": "гᴦꭇꭈ",
    "s": "ƽѕꜱ", "u": "ʋυսᴜꞟꭎꭒ", "v": "νѵᴠ", "w": "ɯѡԝաᴡ", "x": "х", "y": "ɣʏγуүᶌỿꭚ", "z": "ᴢ",
    "2": "ƧꙄꝚ", "3": "ƷȜЗӠꝪꞫ", "5": "Ƽ", "6": "б", "8": "Ȣȣ", "9": "Ꝯ",
}  # fmt: skip
"""What looks like a letter of ASCII; after confusables.txt, Unicode 15.1, under the Unicode License."""

_PROTOTYPES = str.maketrans(
    {letter: shown for shown, letters in _ALIKE.items() for letter in letters}
    | {"I": "l", "1": "l", "0": "O"}
)


@lru_cache(maxsize=10_000)
def skeleton(name: str) -> str:
    r"""The skeleton of a name: equal for names that look alike.

    Example:
        >>> skeleton("\N{CYRILLIC CAPITAL LETTER ES}TX") == skeleton("CTX")
        True
        >>> skeleton("key1") == skeleton("key2")
        False
    """
    return unicodedata.normalize("NFKD", name).translate(_PROTOTYPES)


def unlike(name: str, other: str) -> str:
    r"""The first character in which a name departs from another that looks the same, in words.

    Example:
        >>> unlike("\N{CYRILLIC CAPITAL LETTER ES}TX", "CTX")
        'CYRILLIC CAPITAL LETTER ES'
    """
    pairs = zip(name, other, strict=False)
    found = next((a for a, b in pairs if a != b), name[len(other) : len(other) + 1] or name[-1])
    return unicodedata.name(found, f"U+{ord(found):04X}")
