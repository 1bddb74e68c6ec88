"""Texts for an editor to show: what a file says is text in it, never markup.

Editors load pictures and follow links in what they are given as Markdown, and the words of an action
file or a plan may be a stranger's.
"""

from __future__ import annotations

import re

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_ENTITY = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def plain(text: str) -> str:
    r"""A text as Markdown that shows it as it is (CommonMark 2.4: any ASCII punctuation may be escaped).

    Example:
        >>> print(plain("![x](http://a.example) <b>"))
        \!\[x\]\(http\:\/\/a\.example\) &lt;b&gt;
    """
    return _PUNCTUATION.sub(lambda found: _ENTITY.get(found[1], f"\\{found[1]}"), text)


def fenced(code: str, language: str) -> str:
    """A code block that no text in it can end.

    Example:
        >>> fenced("a", "plan").splitlines()
        ['```plan', 'a', '```']
    """
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"
