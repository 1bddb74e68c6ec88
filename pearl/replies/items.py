"""Replies about numbered items: their form, its constraint, and the only reader of it.

Under a constraint the form is one JSON object, `{"1":"yes","2":"no"}`. Without one, it is a line for each item, `482 yes`, or the
same as an object if values are free texts. Models skip items and repeat them, which shifts all later values. So the numbers are
random, which no model can count on from, and the rows of a few *checked* items repeat words of theirs: `301 Buy no`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from pearl.dsl.decoding.constraint import (
    Constraint,
    JsonForm,
    closed_object,
    require,
)
from pearl.dsl.nodes import one_line
from pearl.dsl.signatures import NOTHING
from pearl.errors.patterns import lazy_pattern
from pearl.replies.raw import OBJECT, says_not_stated, unique_json, whole_part
from pearl.replies.step_replies import without_fences

ItemKind = Literal["yes_no", "label", "line", "pick"]
"""The kind of value asked for each item; `pick` chooses among the items."""

MAX_QUOTE_WORDS = 6
"""Maximum words of an item that a reply should copy as the deciding quote."""
_MAX_FIGURES = 7  # Maximum digits of an item number
MAX_ITEM_TOKENS = 64  # Maximum tokens of a free line about one item
NOT_STATED = "not stated"  # Third verdict on a condition: the item does not say

_START = lazy_pattern(r'^[ \t]*([0-9]{1,7})(?:([ \t]*[:|])|[ \t])|\{\s*"', re.M)
"""The beginning of the first row of a reply (`1: yes`, `2 | no`, `482 yes`, `{"1`); text before it is an introduction."""
# A key or a line with a number: `1`, `1 Buy`, `2: yes`, `2 | yes`, `2 yes`
_ROW = lazy_pattern(r"\s*([0-9]{1,7})(?:[\s|:.]+(.*))?", re.S)
_EDGES = " \t*_`\"'“”‘’«»„.,;:!()[]{}"  # Meaningless marks around a value
MAX_WORDS = 4  # Maximum words of an item that a row of a reply repeats
_NEAR_END = 40 * MAX_WORDS  # Characters of an item in which these words are looked for
_MAX_WORD = 16  # Maximum average characters of a word: scripts without blanks have no short words
_CHECK_EVERY: Mapping[ItemKind, int] = {"yes_no": 16, "label": 2, "line": 2}
"""Of this number of items, one is checked by its words; more would cost: a word is as long as a verdict."""
_N_PER_ITEM = 8  # Numbers per item to draw from, so that a wrong figure rarely makes the number of another item
_ODD = "<>{}[]|…\ufffd"
"""Marks of placeholders, tags, errors and lost characters; allowed only if the item contains them."""
_NO_VALUES = frozenset({
    "same", "identical", "ditto", "idem", "as above", "see above", "both", "either", "all of the above", "none of the above",
})  # fmt: skip
_REFERENCES = (["see"], ["item"], ["row"], ["see", "item"], ["see", "row"])  # see 3, Item 1
_NO_VALUE_BEGINS = (
    "same as ", "same to ", "identical to ", "identical as ", "sorry", "i'm sorry", "i am sorry", "i cannot", "i can't", "i don't",
    "i am unable",
)  # fmt: skip
"""Phrases that are no value. An item with one is asked about again: unlike other kinds, a free line is not proved by a quote."""


class ItemReplies(Struct, frozen=True):
    """The values of items in a reply; `why` says why some are missing, `quotes` are the deciding words."""

    values: tuple[str | None, ...]
    why: str = ""
    quotes: tuple[str, ...] = ()


class _OutOfFormError(Exception):
    """The reply does not have the form; the message says why."""


class _Row(NamedTuple):
    """The contents of a reply for one number; `words` is None if it repeats no words."""

    id: int
    words: str
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
    names: ItemNames | None = None,
    is_cut: bool = False,
) -> ItemReplies:
    """Parse the reply about `n` items, which are called by `names`, or else by the numbers 1 to `n`."""
    body = "\n".join(line for line in without_fences(text) if line.strip())
    try:
        if kind == "pick":
            return _picked(body, n, n_picks)
        allowed = tuple(labels) if kind == "label" else _allowed(n, kind, labels)
        rows, said = _rows(body, n, kind, allowed, names, is_cut=is_cut)
        numbers = names.numbers if names else tuple(range(1, n + 1))
        why = ""
        if names:
            rows, why = _confirmed(rows, names, is_cut=is_cut)
        else:
            # Only a complete set of such numbers shows that no row is shifted.
            ids = {row.id for row in rows}
            if wrong := sorted(ids - {*numbers}):
                raise _OutOfFormError(f"there is no item {wrong[0]}")
            if not is_cut and (lost := sorted({*numbers} - ids)):
                raise _OutOfFormError(f"item {lost[0]} is missing, so the others may be shifted")
    except _OutOfFormError as broken:
        return ItemReplies((None,) * n, str(broken))
    found: dict[int, str | None] = {}
    several: set[int] = set()
    own = dict(zip(numbers, items, strict=True)) if items else {}
    for row in rows:
        value = None
        # Cut by a constraint
        if not (isinstance(row.value, str) and len(row.value) == max_length):
            value = _read(row.value, kind, allowed, own.get(row.id, ""))
        if value is None:
            why = why or f"item {row.id}: its value is not of the form"
        if row.id in found and found[row.id] != value:
            several.add(row.id)
        found[row.id] = value
    values: list[str | None] = []
    for i in numbers:
        if i in several or i not in found:
            why = why or f"item {i} {'has several values' if i in several else 'is missing'}"
        values.append(None if i in several else found.get(i))
    quotes = tuple(said.get(i, "") for i in numbers) if said else ()
    return ItemReplies(tuple(values), why if None in values else "", quotes)


# ---------------------------------------------------------------------------------------------
# The rows of a reply


def _rows(
    body: str,
    n: int,
    kind: ItemKind,
    allowed: Sequence[str],
    names: ItemNames | None,
    *,
    is_cut: bool,
) -> tuple[list[_Row], dict[int, str]]:
    """The rows of a reply: the members of its object, with their quotes, or its lines; or a single value without a number if there is one item."""
    # A number in an introduction is hardly that of an item
    known = {str(number) for number in names.numbers} if names else set()
    starts = (
        each for each in _START.finditer(body)
        if each[1] is None or (each[1] in known if names else each[2])
    )  # fmt: skip
    start = next(starts, None)
    if start is None and n == 1 and kind != "line":
        return [_Row(1, "", body)], {}
    if start is None:
        form = "line with the number of an item" if names else "JSON object"
        raise _OutOfFormError(f"there is no {form} in it")
    body = body[start.start() :]
    rows: list[_Row] = []
    if body.startswith("{"):
        quotes: dict[int, str] = {}
        for key, value in _members(body, is_cut=is_cut or names is not None):
            if key.startswith("q") and _is_number(key[1:]):
                if isinstance(value, str) and value.strip():
                    quotes[int(key[1:])] = value
            elif match := _ROW.fullmatch(key):
                rows.append(_Row(int(match[1]), match[2] or "", value))
            else:
                raise _OutOfFormError("it has a key without a number")
        return rows, quotes
    places = {number: place for place, number in enumerate(names.numbers)} if names else {}
    for line in body.split("\n"):
        match = _ROW.fullmatch(line)
        if match is None or match[2] is None:
            raise _OutOfFormError("there is a line in it that is no row")
        id, value = int(match[1]), match[2]
        words = names.words_in(places.get(id, -1), value) if names else ""
        value = value[len(words) :].lstrip(" \t|:")
        if kind == "line" and not any(mark in line.removesuffix(value) for mark in ":|"):
            raise _OutOfFormError("there is a line in it without a colon")
        rows.append(_Row(id, words, value.rstrip()))
    *whole, last = rows
    is_last = last.id == (names.numbers[-1] if names else n) or len({row.id for row in rows}) >= n
    # The last line may be cut off: "no" may have become "not stated".
    may_go_on = not allowed or any(
        each != last.value and each.startswith(last.value) for each in allowed
    )
    return whole if is_cut or (may_go_on and not is_last) else rows, {}


def _confirmed(rows: Sequence[_Row], names: ItemNames, *, is_cut: bool) -> tuple[list[_Row], str]:
    """The rows up to the last one whose words confirm that no row is shifted, and what is wrong after it."""
    n_times = Counter(row.id for row in rows)
    sure: list[_Row] = []
    unsure: list[_Row] = []
    places = {number: place for place, number in enumerate(names.numbers)}
    last = -1
    for row in rows:
        place = places.get(row.id, -1)
        if place < 0:
            return sure, f"there is no item {row.id}"
        if place <= last:
            return sure, f"item {row.id} is not in its place"
        if flaw := names.flaw(place, row.words):
            return sure, f"item {row.id}: {flaw}"
        last = place
        if n_times[row.id] == 1:  # Else it may have two values
            unsure.append(row)
        if place in names.checked:
            sure += unsure
            unsure = []
    n, left = len(names.numbers), [place for place in names.checked if place > last]
    n_whole = last + 1 if is_cut else n  # Of names without words
    is_sure = not left if names.checked else len(rows) == n_whole
    if unsure and not is_sure:
        lost = next(number for number in names.numbers if number not in {row.id for row in rows})
        return sure, f"item {lost} is missing, so the others may be shifted"
    return sure + unsure, ""


def _members(body: str, *, is_cut: bool) -> list[tuple[str, Any]]:
    """The keys and values of an object, repeated keys included; if it is cut off, only complete ones."""
    decoder = json.JSONDecoder(object_pairs_hook=tuple, strict=False)
    for text in (body, whole_part(body)) if is_cut else (body,):
        try:
            members, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if text[end:].strip():
            raise _OutOfFormError("there is text after the JSON object")
        return list(members)
    raise _OutOfFormError("its JSON is broken")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_FIGURES


def _picked(body: str, n: int, n_picks: int) -> ItemReplies:
    """The ranks of the chosen items: all or none, because only their order ranks them."""
    said: Any = []
    if start := OBJECT.search(body):
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
# Names


class ItemNames(Struct, frozen=True):
    """How the items of a request are called: by numbers, and those at the places `asked` by first or last words, too.

    The words of those at the places `checked` tell them from the items beside them.
    """

    ends: _Ends
    numbers: tuple[int, ...]
    asked: tuple[int, ...] = ()
    checked: tuple[int, ...] = ()
    n_words: int = 0

    def flaw(self, place: int, words: str) -> str:
        """Why words do not show that they belong to an item; "" if they do, or none were asked for."""
        if place not in self.asked and not words:
            return ""
        if not words:
            return "its words are missing"
        if place in self.checked and words.strip() == self.words_of(place):
            return ""  # They were found to tell it from those beside it
        return _words_flaw(self.ends, place, words, is_alone=place not in self.checked)

    def words_of(self, place: int) -> str:
        """The words by which an item is checked."""
        return end_words(self.ends.items[place], self.n_words, is_last=self.ends.which == "last")

    def words_in(self, place: int, line: str) -> str:
        """The words at the beginning of a line about an item."""
        if place not in self.asked:
            return ""
        whole = " ".join(self.ends.items[place].split())
        if line.startswith(f"{whole} "):  # A small reader repeats all of it
            return whole
        n_words = len(self.words_of(place).split())
        value = line.split(None, n_words)
        return line[: -len(value[-1])] if len(value) > n_words else line


@lru_cache(maxsize=1_024)  # Requests are made at once, and their replies are read much later
def item_names(items: tuple[str, ...], kind: ItemKind, round: int = 0) -> ItemNames:
    """Names that depend on the items alone; some are called by their words, too, from the second request on all.

    Small readers follow one form of all lines rather than two.
    """
    n = len(items)
    if n == 1:
        return ItemNames(_Ends(items, "first"), (1,))
    low = 100
    while 9 * low < _N_PER_ITEM * n:
        low *= 10
    numbers = Random(f"{round} {items}").sample(range(low, 10 * low), n)
    every = 1 if round else _CHECK_EVERY[kind]
    both = [_Ends(items, which) for which in ("first", "last")]
    best, most = ItemNames(both[0], tuple(numbers)), (False, 0)
    for n_words in range(1, MAX_WORDS + 1):
        for ends in both:
            checked = _checked(ends, every, n_words)
            reach = (checked[-2:] == (n - 2, n - 1), len(checked))
            if reach > most:
                asked = tuple(range(n)) if round else checked
                best = ItemNames(ends, tuple(numbers), asked, checked, n_words)
                most = reach
        if most[0] and 2 * most[1] * every > n:
            break
    return best


def _checked(ends: _Ends, every: int, n_words: int) -> tuple[int, ...]:
    """Places of the checked items: the last two, and one in `every`; their words differ from those of the items next to them."""
    places: list[int] = []
    last = len(ends.items)
    for place in reversed(range(len(ends.items))):
        # If one is left out, all after it are shifted; if the last is said twice instead, all but the last.
        if len(places) < 2 or last - place >= every:
            words = end_words(ends.items[place], n_words, is_last=ends.which == "last")
            if not _words_flaw(ends, place, words):
                places.append(place)
                last = place
    return tuple(reversed(places))


def end_words(item: str, n: int, *, is_last: bool = False) -> str:
    """The first or last words of an item, as a row of a reply repeats them."""
    if is_last:
        return " ".join(item[-40 * n :].split()[-n:])[-_MAX_WORD * n :]
    return " ".join(item[: 40 * n].split()[:n])[: _MAX_WORD * n]


class _Ends:
    """The letters and digits of items, read from their beginning or from their end; each is made once."""

    def __init__(self, items: tuple[str, ...], which: str) -> None:
        self.items = items
        self.which = which
        self._known: dict[int, str] = {}

    def key(self, text: str) -> str:
        """The letters and digits of a text from this end."""
        return _key(text) if self.which == "first" else _key(text)[::-1]

    def of(self, place: int) -> str:
        """Those of an item."""
        if (known := self._known.get(place)) is None:
            item = self.items[place]
            near = item[:_NEAR_END] if self.which == "first" else item[-_NEAR_END:]
            known = self._known[place] = self.key(near)
        return known


def _words_flaw(ends: _Ends, place: int, words: str, *, is_alone: bool = False) -> str:
    """Why words are not those of an item, or do not tell it from those beside it; "" if they do."""
    said = ends.key(words)
    if not said or not ends.of(place).startswith(said):
        return f"its {ends.which} words are missing"
    if is_alone:
        return ""
    for each in range(max(0, place - 2), min(place + 3, len(ends.items))):
        if each != place and ends.of(each).startswith(said):
            return "other items have its words, too"
    return ""


def _key(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


# ---------------------------------------------------------------------------------------------
# Values


def _read(said: object, kind: ItemKind, allowed: tuple[str, ...], item: str) -> str | None:
    """Read a value in the form of its kind; None if it has another form."""
    if said is None and kind == "line":
        return NOTHING
    if isinstance(said, bool):
        said = ("no", "yes")[said]
    if not isinstance(said, str | int):
        return None
    if kind != "line":
        return _same_label(str(said), allowed)
    text = label_line(str(said))
    bare = _bare(text)
    if bare in (_bare(NOTHING), NOT_STATED):
        return NOTHING
    *rest, number = bare.split() or [""]
    # A placeholder, a remark, or a reference to another line is no value
    is_odd = any(mark in text and mark not in item for mark in (*_ODD, "..."))
    is_remark = (
        bare in _NO_VALUES
        or bare.startswith(_NO_VALUE_BEGINS)
        or "no wait" in bare.replace(",", "")  # red, no wait, blue
        or (number.lstrip("#").isdecimal() and rest in _REFERENCES)
        or says_not_stated(text)
    )
    if not bare or is_odd or (is_remark and bare not in item.casefold()):
        return None
    return text.strip("*` ")


def label_line(label: str) -> str:
    """A label as prompts and constraints show it: on one line."""
    return " ".join(one_line(label).split())


@lru_cache(maxsize=1_024)
def _same_label(text: str, labels: tuple[str, ...]) -> str | None:
    """The label that equals a text, ignoring case, blanks and marks around it; None if none or several do."""
    text = label_line(text)
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
