"""Replies about numbered items: their form, its constraint, and the only reader of it.

The form is one JSON object, `{"1":"yes","2":"no"}`. If no constraint fixes the numbers, each number is
followed by the first words of its item, as many as distinguish it from the others: `{"1 Buy":"yes","2 Hi Al":"no"}`. Lines
`1: yes` or `1 | Buy: yes` are read as well.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from pearl.dsl.decoding.constraint import (
    Constraint,
    JsonForm,
    closed_object,
    require,
)
from pearl.dsl.nodes import one_line
from pearl.dsl.signatures import NOTHING
from pearl.errors.patterns import lazy_pattern
from pearl.replies.json_objects import unique_json, whole_part
from pearl.replies.not_stated import says_not_stated
from pearl.replies.step_replies import without_fences

ItemKind = Literal["yes_no", "label", "line", "pick"]
"""The kind of value asked for each item; `pick` chooses among the items."""

MAX_QUOTE_WORDS = 6
"""Maximum words of an item that a reply should copy as the deciding quote."""
_MAX_FIGURES = 7  # Maximum digits of an item number
MAX_ITEM_TOKENS = 64  # Maximum tokens of a free line about one item
NOT_STATED = "not stated"  # Third verdict on a condition: the item does not say

_OBJECT = lazy_pattern(r'\{\s*"')  # The beginning of an object: `{"1"`
_START = lazy_pattern(r'^[ \t]*[0-9]{1,7}[ \t]*[:|]|\{\s*"', re.M)
"""The beginning of the first row of a reply (`1: yes`, `2 | no`, `{"1`); text before it is an introduction."""
# A key with a number and perhaps words: `1`, `1 Buy`, `2 | Hi Al`
_KEY = lazy_pattern(r"\s*([0-9]{1,7})(?:[\s|:.]+(.*))?", re.S)
_EDGES = " \t*_`\"'“”‘’«»„.,;:!()[]{}"  # Meaningless marks around a value
MAX_WORDS = 12  # Maximum words of an item that a row of a reply repeats
_MAX_WORD = 16  # Maximum average characters of a word: scripts without blanks have no short words
_ODD = "<>{}[]|…\ufffd"
"""Marks of placeholders, tags, errors and lost characters; allowed only if the item contains them."""
_NO_VALUE = lazy_pattern(
    r"(?:same|identical)(?: (?:as|to) .*)?|(?:as|see) above|ditto|idem"  # same as item 2
    r"|(?:see|item|row) (?:item |row )?#?[0-9]+"  # see 3, Item 1
    r"|both|either|(?:all|none) of the above|.*\bno,? wait\b.*"  # red, no wait, blue
    r"|(?:i'm |i am )?sorry\b.*|i (?:cannot|can't|don't|am unable)\b.*",  # I'm sorry, I cannot tell
    re.S | re.I,
)
"""Phrases in place of a value, which are asked for again, because no quote proves a line."""


@dataclass(frozen=True, slots=True)
class ItemReplies:
    """The values of items in a reply; `why` says why some are missing, `quotes` are the deciding words."""

    values: tuple[str | None, ...]
    why: str = ""
    quotes: tuple[str, ...] = ()


class _OutOfFormError(Exception):
    """The reply does not have the form; the message says why."""


class _Row(NamedTuple):
    """The contents of a reply for one number; `words` is None if it repeats no words."""

    id: int
    words: str | None
    value: Any


def read_items(
    text: str,
    n: int,
    kind: ItemKind,
    labels: Sequence[str] = (),
    n_picks: int = 0,
    max_length: int | None = None,
    *,
    items: Sequence[str] = (),
    is_echoed: bool = False,
    is_cut: bool = False,
) -> ItemReplies:
    r"""Parse the reply about `n` items; if `is_echoed`, the items' first words must confirm their numbers."""
    body = "\n".join(line for line in without_fences(text) if line.strip())
    try:
        if kind == "pick":
            return _picked(body, n, n_picks)
        rows, said = _rows(body, n, kind, is_cut=is_cut, is_echoed=is_echoed)
        owners = echoes(tuple(items))
        ids = {row.id for row in rows}
        # Without words, only a complete set of numbers shows that no row is shifted.
        if not is_echoed and (wrong := sorted(ids - {*range(1, n + 1)})):
            raise _OutOfFormError(f"there is no item {wrong[0]}")
        if not is_echoed and not is_cut and (lost := sorted({*range(1, n + 1)} - ids)):
            raise _OutOfFormError(f"item {lost[0]} is missing, so the others may be shifted")
    except _OutOfFormError as broken:
        return ItemReplies((None,) * n, str(broken))
    allowed = tuple(labels) if kind == "label" else _allowed(n, kind, labels)
    found: dict[int, set[str | None]] = {}
    why = ""
    for row in rows:
        if not 1 <= row.id <= n:
            why = why or f"there is no item {row.id}"
            continue
        value, flaw = None, ""
        if row.words is not None or is_echoed:
            flaw = owners.flaw(row.id - 1, row.words or "")
        # Cut by a constraint
        is_cut_off = isinstance(row.value, str) and len(row.value) == max_length
        if not flaw and not is_cut_off:
            value = _read(row.value, kind, allowed, items[row.id - 1] if items else "")
        if value is None:
            why = why or f"item {row.id}: {flaw or 'its value is not of the form'}"
        found.setdefault(row.id, set()).add(value)
    values: list[str | None] = []
    for i in range(1, n + 1):
        value, *others = found.get(i, {None})
        if others or i not in found:
            why = why or f"item {i} {'has several values' if others else 'is missing'}"
        values.append(None if others else value)
    quotes = tuple(said.get(i, "") for i in range(1, n + 1)) if said else ()
    return ItemReplies(tuple(values), why if None in values else "", quotes)


# ---------------------------------------------------------------------------------------------
# The rows of a reply


def _rows(
    body: str, n: int, kind: ItemKind, *, is_cut: bool, is_echoed: bool
) -> tuple[list[_Row], dict[int, str]]:
    """The rows of a reply: the members of its object, with their quotes, or its lines; or a single value without a number if there is one item."""
    start = _START.search(body)
    if start is None and n == 1 and kind != "line":
        return [_Row(1, None, body)], {}
    if start is None:
        raise _OutOfFormError("there is no JSON object in it")
    body = body[start.start() :]
    if body.startswith("{"):
        # Words confirm each row by itself, even if the reply is cut off.
        members = _members(body, is_cut=is_cut or is_echoed)
        quotes: dict[int, str] = {}
        rows: list[_Row] = []
        for key, value in members:
            if key.startswith("q") and _is_number(key[1:]):
                if isinstance(value, str) and value.strip():
                    quotes[int(key[1:])] = value
            elif match := _KEY.fullmatch(key):
                rows.append(_Row(int(match[1]), match[2] or None, value))
            else:
                raise _OutOfFormError("it has a key without a number")
        return rows, quotes
    rows = []
    for line in body.split("\n"):
        head, colon, value = line.partition(":")
        if "|" in head and colon:  # The words may contain a colon
            head, _, value = line.rpartition(":")
        number, bar, words = head.partition("|")
        if not (colon and _is_number(number.strip(" \t"))):
            raise _OutOfFormError("there is a line in it that is no row")
        rows.append(_Row(int(number), words if bar else None, value.strip()))
    is_short = len({row.id for row in rows}) < n and rows[-1].id < n
    return rows[:-1] if is_cut or is_short else rows, {}  # The last line may be cut off


def _members(body: str, *, is_cut: bool) -> list[tuple[str, Any]]:
    """The keys and values of an object, repeated keys included; if it is cut off, only complete ones."""
    decoder = json.JSONDecoder(object_pairs_hook=tuple, strict=False)
    for text in (body, whole_part(body)) if is_cut else (body,):
        try:
            members, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if text[end:].strip():
            raise _OutOfFormError("there is text behind the JSON object")
        return list(members)
    raise _OutOfFormError("its JSON is broken")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_FIGURES


def _picked(body: str, n: int, n_picks: int) -> ItemReplies:
    """The ranks of the chosen items: all or none, because only their order ranks them."""
    said: Any = []
    if start := _OBJECT.search(body):
        members = dict(_members(body[start.start() :], is_cut=False))
        said = members.pop("quotes", [])
        values = [*members.values()]
        ids = values[0] if len(values) == 1 and isinstance(values[0], list) else []
    else:
        numbers = body.replace(",", " ").split()
        ids = [int(id) for id in numbers] if all(map(_is_number, numbers)) else []
    is_known = all(type(id) is int and 1 <= id <= n for id in ids)
    if not is_known or not len(ids) == len(set(ids)) == n_picks:
        raise _OutOfFormError(f"it is not the numbers of {n_picks} different items")
    places = {id: str(place) for place, id in enumerate(ids, start=1)}
    quotes: tuple[str, ...] = ()
    if isinstance(said, list) and len(said) == n_picks:
        own = {id: quote for id, quote in zip(ids, said, strict=True) if isinstance(quote, str)}
        quotes = tuple(own.get(i, "") for i in range(1, n + 1))
    return ItemReplies(tuple(places.get(i, "") for i in range(1, n + 1)), quotes=quotes)


# ---------------------------------------------------------------------------------------------
# First words


def end_words(item: str, n: int, *, is_last: bool = False) -> str:
    r"""The first or last words of an item, as a row of a reply repeats them."""
    if is_last:
        return " ".join(item[-40 * n :].split()[-n:])[-_MAX_WORD * n :]
    return " ".join(item[: 40 * n].split()[:n])[: _MAX_WORD * n]


def end_keys(item: str) -> tuple[str, str]:
    """Keys of the first and last words; items with equal keys cannot be told apart by these words."""
    return _key(end_words(item, MAX_WORDS)), _key(end_words(item, MAX_WORDS, is_last=True))


class Echoes:
    """The shortest first or last words that tell items apart; they show which item a value belongs to."""

    def __init__(self, items: Sequence[str], *, is_last: bool) -> None:
        self.which = "last" if is_last else "first"
        self._step = -1 if is_last else 1  # Last words are compared from the end
        self._keys = [
            self._key(item[:400] if self._step > 0 else item[-400:])[:200] for item in items
        ]
        self._sorted = sorted(self._keys)
        self.words: list[str] = []
        self.n_alike = 0
        for i, item in enumerate(items):
            tries = (end_words(item, n, is_last=is_last) for n in range(1, MAX_WORDS + 1))
            words = next((words for words in tries if not self.flaw(i, words)), None)
            self.n_alike += words is None
            self.words.append(words or end_words(item, MAX_WORDS, is_last=is_last))

    def _key(self, text: str) -> str:
        return _key(text)[:: self._step]

    def flaw(self, i: int, words: str) -> str:
        """Why words do not show that they belong to an item; "" if they do."""
        if not self._keys:
            return ""
        key, own = self._key(words), self._keys[i]
        if not own.startswith(key) or bool(own) != bool(key):
            return f"the words are not its {self.which} ones" if words else "its words are missing"
        # Words longer than the whole item may belong to another that begins like it.
        after = key if own == key else key + chr(0x10FFFF)
        n_owners = bisect_right(self._sorted, after) - bisect_left(self._sorted, key)
        return "other items have its words, too" if n_owners > 1 else ""


@lru_cache(maxsize=16)
def echoes(items: tuple[str, ...]) -> Echoes:
    """The words that identify items: the first ones, unless the last ones distinguish more items."""
    first = Echoes(items, is_last=False)
    n_first = sum(map(len, first.words))
    if not first.n_alike and n_first <= _MAX_WORD * len(items):
        return first
    last = Echoes(items, is_last=True)
    is_shorter = 2 * sum(map(len, last.words)) < n_first
    return min(first, last, key=lambda each: (each.n_alike, is_shorter == (each is first)))


def _key(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


# ---------------------------------------------------------------------------------------------
# Values


def _read(said: object, kind: ItemKind, allowed: Sequence[str], item: str) -> str | None:
    """Read a value in the form of its kind; None if it has another form."""
    if said is None and kind == "line":
        return NOTHING
    if isinstance(said, bool):
        said = ("no", "yes")[said]
    if not isinstance(said, str | int):
        return None
    text = " ".join(one_line(str(said)).split())
    return _line(text, item) if kind == "line" else _same_label(text, tuple(allowed))


def label_line(label: str) -> str:
    """A label as prompts and constraints show it: on one line."""
    return " ".join(one_line(label).split())


@lru_cache(maxsize=1_024)
def _same_label(text: str, labels: tuple[str, ...]) -> str | None:
    """The label that equals a text, ignoring case and marks around it; None if none or several do."""
    ways: tuple[Callable[[str], str], ...] = (
        str,
        str.casefold,
        lambda line: _bare(line).strip("?"),
    )
    for way, said in zip(ways, (text, text.casefold(), _bare(text)), strict=True):
        found = [label for label in labels if said and way(label_line(label)) == said]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _bare(text: str) -> str:
    return text.strip(_EDGES).casefold()


def _line(text: str, item: str) -> str | None:
    """A free line; None for a placeholder or a reference to another line."""
    bare = _bare(text)
    if bare in (_bare(NOTHING), NOT_STATED):
        return NOTHING
    is_odd = any(mark in text and mark not in item for mark in (*_ODD, "..."))
    is_remark = says_not_stated(text) or bool(_NO_VALUE.fullmatch(bare))
    if not bare or is_odd or (is_remark and bare not in item.casefold()):
        return None
    return text.strip("*` ")


# ---------------------------------------------------------------------------------------------
# The constraint


@lru_cache(maxsize=32)
def items_constraint(
    n: int,
    kind: ItemKind,
    labels: tuple[str, ...] = (),
    *,
    n_picks: int = 0,
    max_text: int | None = None,
    is_quoted: bool = False,
) -> Constraint:
    """The constraint for replies that `read_items` accepts."""
    length = {} if max_text is None else {"maxLength": max_text}
    text = {"anyOf": [{"type": "string", **length}, {"type": "null"}]}
    allowed = _allowed(n, kind, labels)
    one: dict[str, Any] = {"type": "string", "enum": list(allowed)}
    if kind == "pick":
        one = {"type": "integer", "enum": list(map(int, allowed))}
    elif kind == "line":
        one = text
    if kind == "pick":
        size = {"type": "array", "minItems": n_picks, "maxItems": n_picks}
        lists = {"items": {**size, "items": one}}
        schema = closed_object(lists | ({"quotes": {**size, "items": text}} if is_quoted else {}))
    else:
        defs = {"value": one} | ({"quote": text} if is_quoted else {})
        keys = [(f"{'q' * (name == 'quote')}{i}", name) for i in range(1, n + 1) for name in defs]
        # By reference: repeating the labels for each of a hundred items would make the schema long.
        schema = closed_object({key: {"$ref": f"#/$defs/{name}"} for key, name in keys})
        schema["$defs"] = defs
    return Constraint(f"items-{kind}", json_form=JsonForm(schema))


def form_flaw(text: str, constraint: Constraint) -> str | None:
    """How a reply violates the schema of its constraint; None if it conforms."""
    assert constraint.json_form
    try:
        require(unique_json(text), constraint.json_form.schema)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def _allowed(n: int, kind: ItemKind, labels: Sequence[str]) -> tuple[str, ...]:
    """The allowed values, each on one line; () for `line`, which allows any text."""
    numbers = map(str, range(1, n + 1))
    own = {"yes_no": ("yes", "no", NOT_STATED), "pick": tuple(numbers), "line": ()}
    return own.get(kind) or tuple(dict.fromkeys(map(label_line, labels)))
