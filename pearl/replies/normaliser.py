"""A reply as a server sends it → the reply proper, in front of every reader.

`without_reasoning` is applied once, where a reply arrives; `plain` by each reader, to a line.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

__all__ = ["Split", "plain", "without_reasoning"]


class Split(NamedTuple):
    """A reply and the reasoning before it.

    Attributes:
        text: The reply without reasoning.
        reasoning: The reasoning; "" if there is none.
        is_unclosed: Whether the reasoning does not end, so that there is no reply.
    """

    text: str
    reasoning: str = ""
    is_unclosed: bool = False


_NAMES = r"think|thinking|thought|reasoning"
_OPEN = re.compile(rf"\s*(?:<(?:{_NAMES})>|\[THINK\])", re.I)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.I)


def without_reasoning(text: str) -> Split:
    r"""Separate the reasoning at the beginning of a reply from the reply.

    Example:
        >>> without_reasoning("<think>Hm, 3?</think>\n\n2")
        Split(text='2', reasoning='Hm, 3?', is_unclosed=False)
    """
    start = _OPEN.match(text)
    ends = list(_CLOSE.finditer(text))
    if ends:
        end = ends[-1]
        return Split(text[end.end() :].strip(), text[start.end() if start else 0 : end.start()])
    return Split("", text[start.end() :], is_unclosed=True) if start else Split(text)


_EMPHASIS = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")


def plain(line: str) -> str:
    """A line without Markdown emphasis, zero-width characters and other forms of digits and blanks.

    Example:
        >>> plain("**１2 mg**")
        '12 mg'
    """
    text = "".join(c for c in line if unicodedata.category(c) != "Cf")
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    text = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    return _EMPHASIS.sub(r"\2", text)
