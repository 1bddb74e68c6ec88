"""What is kept of a reply that was cut off, or that fell into a loop."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pearl.errors import ModelError
from pearl.llm import Usage
from pearl.llm.flaws import loop_in

CUT_SHORT = frozenset({"truncated", "repetition"})
"""Kinds of `ModelError` whose reply is the beginning of a usable one."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said, in one call or in two."""

    text: str
    usage: Usage
    n_calls: int = 1
    truncated: str = ""


def why_short(error: ModelError, text: str) -> str:
    """What is told of a reply of which only the beginning is kept."""
    what = "was cut off at its limit" if error.kind == "truncated" else "repeated itself"
    kept = "its beginning is kept" if text else "nothing of it is whole"
    return f"the reply {what}; {kept}"


_END = re.compile(r"""[.!?…。！？]["'”’»)\]]*(?=\s)""")
"""The end of a sentence that another text follows: at the very end a word may be cut off."""

_ABBREVIATED = re.compile(
    r"(?:\b(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|No|Nos|approx|ca|cf|Inc|Ltd|Co|Corp)|\d)\.$"
)
"""A full stop that ends no sentence: of an abbreviation, an initial, the number of a list."""


def kept_text(text: str) -> str:
    r"""The beginning of a cut-off text, to the end of its last whole line or sentence; "" if none is whole.

    A loop at the end is left out, but for the first time it says what it repeats.

    Example:
        >>> kept_text("He left at dawn. She wrote to Dr. Lee. Then the bo")
        'He left at dawn. She wrote to Dr. Lee.'
        >>> kept_text("- the hull\n- the sails\n- the mas")
        '- the hull\n- the sails'
        >>> kept_text("12")
        ''
    """
    loop = loop_in(text)
    if loop is not None:
        at = text.find(loop)
        text = text[: at + len(loop)] + "\n" if at >= 0 else text
    lines, _, last = text.rpartition("\n")
    ends = [
        match.end()
        for match in _END.finditer(last)
        if not _ABBREVIATED.search(last[: match.start() + 1])
    ]
    whole = last[: ends[-1]] if ends else ""
    return "\n".join(part for part in (lines, whole) if part.strip()).rstrip()
