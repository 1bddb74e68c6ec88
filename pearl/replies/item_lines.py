"""A reply about numbered items → every pair of number and text in it, in whatever form it stands.

Lines (`3: x`, `- **3.** x`, `Item 3: x`, `<item 3>x</item 3>`), JSON objects of pairs and arrays of objects;
prose around them is passed over. Nothing is checked here: `pearl.replies.items` does.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pearl.documents.evidence import quoted_line

_T = TypeVar("_T")

_FENCE = re.compile(r"\s*```")
_LINE = re.compile(
    r"(?P<indent>[ \t]*+)(?P<bullet>[-*•–+][ \t]++)?+[*_`\[(]{0,4}"
    r"(?P<word><[ \t]*+item[ \t]++|(?:item|entry|row)[ \t]*+(?:\#[ \t]*+)?+|\#[ \t]*+)?(?P<id>[0-9]{1,7})[*_`]{0,4}"
    r"(?P<mark>[ \t]*+>[ \t]*+[:：]?|[\])]?[ \t]*+[:：=|]|[.)\]](?=[ \t]|\Z)|[ \t]++[-–—](?=[ \t]))"
    r"[*_`]{0,4}(?P<value>.*)",
    re.I,
)  # fmt: skip
"""An item's number, in the ways that models write it, and its value."""
_END_TAG = re.compile(r"</\s*+item\s++[0-9]{1,7}\s*+>\Z", re.I)
_ID = re.compile(r"\s*+(?:<?\s*+item\s*+\#?\s*+)?+([0-9]{1,7})\s*+>?\s*+", re.I)
_NESTED = 2
"""Characters of indent from which a line belongs to the item above it."""
_JSON_START = re.compile(r"^[ \t]*+(?=[{\[])", re.M)
_JSON_END = re.compile(r"[ \t]*+(?:,[ \t]*+)?+(?:\n|\Z)")
_MAX_TRIES = 8
"""Texts that look like JSON and are none before the rest is read as lines."""
_ID_KEYS = ("id", "item", "number", "n", "item_id")
_VALUE_KEYS = ("value", "label", "answer", "result", "rating", "score", "category", "reply")
_PICK = re.compile(
    r"(?:[-*•–+]\s++)?+[*_`\[(]*+(?:<?\s*+item\s*+(?:\#\s*+)?+)?+([0-9]{1,7})[*_`\])>.:]*+", re.I
)
_PICKS_ON_A_LINE = re.compile(r"\[?\s*[0-9]{1,7}(?:\s*[,>]\s*[0-9]{1,7})+\s*\]?\.?")


@dataclass(frozen=True, slots=True)
class Claim:
    """The value that one line, or one entry of JSON, gives an item; None if it cannot be read."""

    id: int
    value: str | None
    is_last: bool = False
    is_barred: bool = False


# ---------------------------------------------------------------------------------------------
# Lines


def claims(text: str, *, is_free: bool) -> Iterator[Claim]:
    r"""Everything that a reply says of an item, in JSON or in lines.

    Example:
        >>> [(claim.id, claim.value) for claim in claims("So:\n- **2**: x\n- **1**: y", is_free=True)]
        [(2, 'x'), (1, 'y')]
    """
    found, text = _taken_json(text)
    for value in found:
        yield from _json_claims(value)
    lines = text.split("\n")
    matches = [_numbered(line, is_free) for line in lines]
    styles = Counter(_style(match) for match in matches if match)
    if not styles:
        return
    # Lists within an item have numbers, too, but seldom in the way of the items themselves.
    style = max(styles, key=lambda s: (is_free and _is_as_asked(s), styles[s], _is_as_asked(s)))
    last = max(i for i, line in enumerate(lines) if line.strip())
    for i, match in enumerate(matches):
        if match is None or _style(match) != style:
            continue
        value = _END_TAG.sub("", match["value"].rstrip()).strip()
        if value.endswith("**") and value.count("**") % 2:
            value = value.removesuffix("**").rstrip()
        goes_on = is_free and i < last and _goes_on(lines[i + 1], matches[i + 1], style)
        is_last, is_barred = i == last == len(lines) - 1, match["mark"].endswith("|")
        yield Claim(int(match["id"]), None if goes_on else value, is_last, is_barred)


def _numbered(line: str, is_free: bool) -> re.Match[str] | None:
    """A line that begins with the number of an item; of free text, `12:30` is none."""
    match = _LINE.fullmatch(line)
    if match is None or not is_free or re.search("[>|]", match["mark"]):
        return match
    return match if match["value"][:1] in ("", " ", "\t") else None


_Style = tuple[bool, bool, str, str]


def _style(match: re.Match[str]) -> _Style:
    """How a line writes the number of its item."""
    is_nested = len(match["indent"].expandtabs()) >= _NESTED
    word, mark = (" ".join((match[name] or "").split()) for name in ("word", "mark"))
    return is_nested, bool(match["bullet"]), word.casefold(), mark.replace("：", ":")


def _is_as_asked(style: _Style) -> bool:
    is_nested, _, _, mark = style
    return not is_nested and mark in (":", "|")


def _goes_on(line: str, match: re.Match[str] | None, style: _Style) -> bool:
    """Whether a line belongs to the item above it."""
    if not line.strip() or _FENCE.match(line) or quoted_line(line) is not None:
        return False
    return match is None or _style(match) != style


# ---------------------------------------------------------------------------------------------
# JSON


class _Object(list[tuple[str, Any]]):
    """The pairs of a JSON object, repeated keys included."""


def _taken_json(text: str) -> tuple[list[Any], str]:
    """The JSON values that begin a line, and the text without them."""
    decoder = json.JSONDecoder(object_pairs_hook=_Object)
    found: list[Any] = []
    rest: list[str] = []
    at = n_tries = 0
    for start in _JSON_START.finditer(text):
        if start.end() < at or n_tries == _MAX_TRIES:
            continue
        try:
            value, end = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            n_tries += 1
            continue
        if not _JSON_END.match(text, end):
            n_tries += 1
            continue
        found.append(value)
        rest.append(text[at : start.start()])
        at = end
    return found, "".join([*rest, text[at:]])


def _json_claims(value: Any, depth: int = 0) -> Iterator[Claim]:
    """The pairs of number and value in JSON; entries without a number are passed over."""
    if depth > 2 or not isinstance(value, list):
        return
    if not isinstance(value, _Object):
        for entry in value:
            yield from _json_claims(entry, depth + 1) if isinstance(entry, _Object) else ()
        return
    if (id := _one_of(value, _ID_KEYS, _number)) is not None:
        yield Claim(id, _one_of(value, _VALUE_KEYS, _scalar))
        return
    numbered = [(id, one) for key, one in value if (id := _number(key)) is not None]
    for id, one in numbered:
        read = _one_of(one, _VALUE_KEYS, _scalar) if isinstance(one, _Object) else _scalar(one)
        yield Claim(id, read)
    if len(value) == 1 and not numbered:
        yield from _json_claims(value[0][1], depth + 1)


def _one_of(pairs: _Object, keys: Sequence[str], read: Callable[[Any], _T | None]) -> _T | None:
    """What all of the keys that are there say; None if they say nothing, or different things."""
    found = {read(value) for key, value in pairs if key.casefold() in keys} - {None}
    return found.pop() if len(found) == 1 else None


def _number(value: Any) -> int | None:
    """The number of an item."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _ID.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


def _scalar(value: Any) -> str | None:
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            return None


# ---------------------------------------------------------------------------------------------
# Choices among items


def picks(text: str) -> tuple[list[int], str]:
    r"""The numbers of the items that a reply names, in order, and why they cannot be read, or "".

    Example:
        >>> picks("The best:\n- 7\nItem 3"), picks("[7, 3]"), picks("7 and maybe 3")
        (([7, 3], ''), ([7, 3], ''), ([], "'7 and maybe 3' is not the number of an item"))
    """
    found, rest = _taken_json(text)
    if len(found) == 1:
        value = found[0]
        if isinstance(value, _Object) and len(value) == 1:
            value = value[0][1]
        if isinstance(value, list) and not isinstance(value, _Object):
            ids = [_number(one) for one in value]
            return [id for id in ids if id is not None], "" if None not in ids else "no number"
    picked: list[int] = []
    for line in (rest if not found else text).split("\n"):
        if _FENCE.match(line) or not any(c.isdecimal() for c in line):
            continue
        if _PICKS_ON_A_LINE.fullmatch(line.strip()):
            picked += map(int, re.findall("[0-9]+", line))
        elif match := _PICK.fullmatch(line.strip()):
            picked.append(int(match[1]))
        else:
            return [], f"{' '.join(line.split())[:60]!r} is not the number of an item"
    return picked, ""
