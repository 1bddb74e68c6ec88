"""A reply as a server sends it → the reply proper, in front of every reader.

`without_reasoning` is applied once, where a reply arrives; `plain` by each reader, to a line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pearl.documents.numbers import plain

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
