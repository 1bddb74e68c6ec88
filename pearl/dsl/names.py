"""A regular expression of all names except given ones, without lookahead, which decoders lack."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

MAX_NEW_NAME = 40
"""Maximum length of a name that a decoder generates, in characters."""


def names_except(
    taken: Collection[str],
    *,
    first: str = "A-Za-z_",
    rest: str = "0-9A-Za-z_",
    most: int = MAX_NEW_NAME,
) -> str:
    """A regular expression of every name except those taken, without lookahead.

    Example:
        >>> names_except(["ab"], first="a-c", rest="a-c", most=3)
        '[b-c][a-c]{0,2}|a(?:[ac][a-c]{0,1}|b[a-c]{1,1})?'
    """
    root: dict[str, Any] = {}
    for name in taken:
        node = root
        for character in name:
            node = node.setdefault(character, {})
        node[""] = {}
    return _besides(root, 0, _characters(first), _characters(rest), most)


def _besides(node: Mapping[str, Any], depth: int, here: str, rest: str, most: int) -> str:
    """The expression of what may follow a prefix that taken names share."""
    children = {c: child for c, child in node.items() if c and c in here}
    others = "".join(c for c in here if c not in children)
    left = most - depth - 1
    branches = [f"{_ranges(others)}{_ranges(rest)}{{0,{left}}}"] if others else []
    for character, child in children.items():
        inner = _besides(child, depth + 1, rest, rest, most) if left > 0 else ""
        is_name = "" in child
        if not inner:
            branches += [] if is_name else [character]
        elif set(child) == {""}:
            branches.append(f"{character}{_ranges(rest)}{{1,{left}}}")
        else:
            branches.append(f"{character}(?:{inner}){'' if is_name else '?'}")
    return "|".join(branches)


@cache
def _characters(ranges: str) -> str:
    found = re.findall(r"(.)-(.)|(.)", ranges)
    return "".join(
        single or "".join(map(chr, range(ord(low), ord(high) + 1))) for low, high, single in found
    )


@cache
def _ranges(characters: str) -> str:
    """A class of characters, runs of three or more as ranges."""
    parts: list[str] = []
    codes = sorted(map(ord, characters))
    start = 0
    for i, code in enumerate(codes):
        if i + 1 < len(codes) and codes[i + 1] == code + 1:
            continue
        run = codes[start : i + 1]
        parts.append(f"{chr(run[0])}-{chr(run[-1])}" if len(run) > 1 else chr(run[0]))
        start = i + 1
    return f"[{''.join(parts)}]"
