"""Replies in which some leaves are lies, by the kind of lie; and which of them a result has."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from tests.extraction.documents import Case, leaves, plain
from tests.extraction.replies import Teller
from tests.extraction.shapes import KINDS, LABELS, Gold, Keyed, Told

SHARE = 0.05
"""Of the leaves that are lies."""
KINDS_OF_LIES = (
    "another entry", "digit", "unit", "date", "negated", "another document", "invented quote", "swapped fields",
    "swapped keys", "doubled", "left out",
)  # fmt: skip
UNSEEN = "left out"
"""No check can see what a reply does not say."""


@dataclass(frozen=True)
class Lie:
    """A leaf, or a list, of which a reply says something else than its document."""

    kind: str
    path: str
    value: Any


@dataclass(frozen=True)
class Lying:
    """A reader that lies in some leaves."""

    teller: Teller
    lies: tuple[Lie, ...]


def pattern_of(path: str) -> str:
    """A path without the numbers of entries."""
    return re.sub(r"\[\d+\]", "[]", path)


class Liar:
    """Makes lies of the kinds in turn."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.n_of = dict.fromkeys(KINDS_OF_LIES, 0)

    def lying(self, case: Case, other: Case, share: float = SHARE) -> Lying:
        """A reader of a case that lies in some leaves; `other` is another document of the shape."""
        lies = _Lies(self.draw, case, other)
        n_wanted = int(len(lies.told) * share + self.draw.random())
        for path, leaf in self.draw.sample(lies.told, len(lies.told)):
            if len(lies.made) >= n_wanted:
                break
            if leaf in lies.changed:
                continue
            for kind in sorted(KINDS_OF_LIES, key=lambda kind: (self.n_of[kind], kind)):
                if made := lies.make(kind, path, leaf):
                    self.n_of[kind] += len(made)
                    lies.made += made
                    break
        return Lying(Teller(case, lies.changed, lies.lists), tuple(lies.made))


class _Lies:
    """The lies about one document."""

    def __init__(self, draw: random.Random, case: Case, other: Case) -> None:
        self.draw, self.case, self.other = draw, case, other
        self.told, self.elsewhere = list(leaves(case.gold)), list(leaves(other.gold))
        self.parents = dict(_parents(case.gold))
        self.changed: dict[Told, tuple[Any, str]] = {}
        self.lists: dict[int, Sequence[Gold]] = {}
        self.touched: set[int] = set()
        self.made: list[Lie] = []

    def make(self, kind: str, path: str, leaf: Told) -> list[Lie]:
        """A lie of a kind about a leaf, or two; none if the leaf does not lend itself to it."""
        around = self.parents.get(id(leaf), ())
        if kind in ("doubled", "left out"):
            return self._of_list(kind, around)
        if any(id(each) in self.lists for each in around):
            return []
        if kind == "swapped fields":
            made = self._swapped_fields(kind, path, leaf, around)
        elif kind == "swapped keys":
            made = self._swapped_keys(kind, around)
        else:
            value, quote = self._other(kind, path, leaf, around)
            is_same = value == leaf.value and isinstance(value, bool) == isinstance(
                leaf.value, bool
            )
            is_grade = leaf.kind == "grade" and kind != "negated" and str(value) == str(leaf.value)
            if value is None or is_same or is_grade:
                return []
            self.changed[leaf] = value, quote
            made = [Lie(kind, path, value)]
        if made:
            self.touched.update(map(id, around))
        return made

    def _other(self, kind: str, path: str, leaf: Told, around: Sequence[Any]) -> tuple[Any, str]:
        """Another value for a leaf, with its quote; None if there is none."""
        draw, quote, said = self.draw, self._quote(leaf), leaf.said
        is_number = isinstance(said, int | float) and not isinstance(said, bool)
        if kind == "another entry" and leaf.kind != "key":
            is_inside = any(isinstance(each, list | Keyed) for each in around)
            if is_inside and (same := self._like(self.told, path, leaf)):
                one = draw.choice(same)
                return one.said, self._quote(one)
        elif kind == "another document" and leaf.kind not in ("key", "tag"):
            if same := self._like(self.elsewhere, path, leaf):
                one = draw.choice(same)
                a, b = one.places[0]
                return one.said, self.other.text[a:b] if draw.random() < 0.5 else quote
        elif kind == "digit" and is_number:
            digits = f"{said}"
            at = draw.choice([i for i, mark in enumerate(digits) if mark.isdigit()])
            digit = draw.choice([d for d in "123456789" if d != digits[at]])
            return type(said)(digits[:at] + digit + digits[at + 1 :]), quote
        elif kind == "unit" and leaf.kind in ("weight", "amount", "count"):
            is_in_grams = leaf.kind == "weight" and not leaf.shown.endswith("kg")
            return round(said * 1_000) if is_in_grams else said * 1_000, quote
        elif kind == "date" and leaf.kind == "day":
            moved = date.fromisoformat(said) + timedelta(days=draw.choice((1, -1, 31, 365)))
            return moved.isoformat(), quote
        elif kind == "negated" and leaf.kind == "flag":
            return not said, quote
        elif kind == "negated" and leaf.kind == "label":
            return draw.choice([each for each in LABELS if each != said]), quote
        elif kind == "invented quote" and leaf.kind in KINDS:
            made, value, shown = KINDS[leaf.kind][1](draw)
            if made != leaf.value:
                return value, f"{leaf.name.capitalize()}: {shown}, as agreed"
        return None, quote

    def _quote(self, told: Told) -> str:
        a, b = told.places[0]
        return self.case.text[a:b]

    def _like(self, among: Sequence[tuple[str, Told]], path: str, leaf: Told) -> list[Told]:
        """The leaves at the same path in other entries, with other values."""
        return [
            t for p, t in among
            if pattern_of(p) == pattern_of(path) and t.value != leaf.value and t not in self.changed
        ]  # fmt: skip

    def _of_list(self, kind: str, around: Sequence[Any]) -> list[Lie]:
        lists = (each for each in reversed(around) if isinstance(each, list))
        whole = next((each for each in lists if each and not isinstance(each[0], list)), None)
        if whole is None or _is_row(whole, around) or any(id(e) in self.touched for e in around):
            return []
        i = self.draw.randrange(len(whole))
        rest = whole[i:] if kind == "doubled" else whole[i + 1 :]
        self.lists[id(whole)] = [*whole[: i + (kind == "doubled")], *rest]
        self.touched.update(map(id, around))
        return [Lie(kind, _path_of(whole, self.case.gold), None)]

    def _swapped_fields(self, kind: str, path: str, leaf: Told, around: Sequence[Any]) -> list[Lie]:
        owner = around[-1] if around and isinstance(around[-1], dict) else {}
        twins = [
            t for t in owner.values()
            if isinstance(t, Told) and t.kind == leaf.kind and t.value != leaf.value and t not in self.changed
        ]  # fmt: skip
        if not twins:
            return []
        one = self.draw.choice(twins)
        self.changed[leaf] = one.said, self._quote(one)
        self.changed[one] = leaf.said, self._quote(leaf)
        other_path = next(p for p, t in self.told if t is one)
        return [Lie(kind, path, one.value), Lie(kind, other_path, leaf.value)]

    def _swapped_keys(self, kind: str, around: Sequence[Any]) -> list[Lie]:
        inside = next((each for each in reversed(around) if isinstance(each, list | Keyed)), None)
        if not isinstance(inside, Keyed) or len(inside.entries) < 2 or id(inside) in self.touched:
            return []
        (one, first), (two, second) = self.draw.sample(inside.entries, 2)
        inner = [t for each in (first, second) for _, t in leaves(each)]
        if plain(first) == plain(second) or any(t in self.changed for t in inner):
            return []
        self.changed[one] = two.said, self._quote(two)
        self.changed[two] = one.said, self._quote(one)
        self.touched.add(id(inside))
        where = _path_of(inside, self.case.gold)
        return [Lie(kind, f"{where}.{key.value}", None) for key in (one, two)]


def _is_row(whole: list[Gold], around: Sequence[Any]) -> bool:
    """Whether a list stands in a list."""
    return any(each is whole and isinstance(one, list) for one, each in pairwise(around))


def _parents(gold: Gold, around: tuple[Any, ...] = ()) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """What stands around each leaf, from outside."""
    if isinstance(gold, Told):
        yield id(gold), around
    elif isinstance(gold, dict):
        for each in gold.values():
            yield from _parents(each, (*around, gold))
    elif isinstance(gold, Keyed):
        for key, each in gold.entries:
            yield id(key), (*around, gold)
            yield from _parents(each, (*around, gold))
    elif isinstance(gold, list | tuple):
        for each in gold:
            yield from _parents(each, (*around, gold))


def _path_of(wanted: Gold, gold: Gold, path: str = "") -> str:
    """Where something stands in a gold record."""
    if gold is wanted:
        return path
    inner: list[tuple[str, Gold]] = []
    if isinstance(gold, dict):
        inner = [(f"{path}.{name}" if path else name, each) for name, each in gold.items()]
    elif isinstance(gold, Keyed):
        inner = [(f"{path}.{key.value}", each) for key, each in gold.entries]
    elif isinstance(gold, list | tuple):
        inner = [(f"{path}[{i}]", each) for i, each in enumerate(gold)]
    return next((at for where, each in inner if (at := _path_of(wanted, each, where))), "")


def false_paths(data: Any, gold: Any, path: str = "") -> Iterator[str]:
    """Where data says something that no part of the gold data says; an entry of a list is like any of the gold ones."""
    if data is None:
        return
    if isinstance(data, dict) and isinstance(gold, dict):
        for name, each in data.items():
            yield from false_paths(each, gold.get(name), f"{path}.{name}" if path else name)
    elif isinstance(data, list | tuple) and isinstance(gold, list | tuple):
        for i, each in enumerate(data):
            others = gold[i : i + 1] if isinstance(gold, tuple) else gold
            flaws = [list(false_paths(each, one, f"{path}[{i}]")) for one in others]
            if each is not None and all(flaws):
                yield f"{path}[{i}]" if not flaws else min(flaws, key=len)[0]
        if len(data) > len(gold):
            yield f"{path}[{len(gold)}] is one too many"
    elif isinstance(data, dict | list | tuple):
        if any(True for _ in _values(data)):
            yield path
    elif data != gold or isinstance(data, bool) != isinstance(gold, bool):
        yield path


def _values(data: Any) -> Iterator[Any]:
    if isinstance(data, dict):
        for each in data.values():
            yield from _values(each)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from _values(each)
    elif data is not None:
        yield data
