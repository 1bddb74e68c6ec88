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


def _quote(case: Case, told: Told) -> str:
    a, b = told.places[0]
    return case.text[a:b]


class Liar:
    """Makes lies of the kinds in turn."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.n_of = dict.fromkeys(KINDS_OF_LIES, 0)

    def lying(self, case: Case, other: Case, share: float = SHARE) -> Lying:
        """A reader of a case that lies in some leaves; `other` is another document of the shape."""
        told = list(leaves(case.gold))
        elsewhere = list(leaves(other.gold))
        parents = dict(_parents(case.gold))
        changed: dict[Told, tuple[Any, str]] = {}
        lists: dict[int, Sequence[Gold]] = {}
        lies: list[Lie] = []
        touched: set[int] = set()
        n_wanted = int(len(told) * share + self.draw.random())
        for path, leaf in self.draw.sample(told, len(told)):
            if len(lies) >= n_wanted:
                break
            if leaf in changed:
                continue
            kinds = sorted(KINDS_OF_LIES, key=lambda kind: (self.n_of[kind], kind))
            for kind in kinds:
                made = self._made(
                    kind, path, leaf, case, told, other, elsewhere, parents, changed, lists, touched
                )
                if made:
                    self.n_of[kind] += len(made)
                    lies += made
                    break
        return Lying(Teller(case, changed, lists), tuple(lies))

    def _made(self, kind: str, path: str, leaf: Told, case: Case, told: Any, other: Case, elsewhere: Any, parents: Any,
              changed: dict[Told, tuple[Any, str]], lists: dict[int, Sequence[Gold]], touched: set[int]) -> list[Lie]:  # fmt: skip
        quote = _quote(case, leaf)
        value: Any = None
        around = parents.get(id(leaf), ())
        inside = next((each for each in reversed(around) if isinstance(each, list | Keyed)), None)
        if kind in ("doubled", "left out"):
            whole = next(
                (
                    each
                    for each in reversed(around)
                    if isinstance(each, list) and each and not isinstance(each[0], list)
                ),
                None,
            )
            if (
                whole is None
                or any(id(each) in touched for each in around)
                or _is_row(whole, around)
            ):
                return []
            i = self.draw.randrange(len(whole))
            lists[id(whole)] = (
                [*whole[: i + 1], *whole[i:]]
                if kind == "doubled"
                else [*whole[:i], *whole[i + 1 :]]
            )
            touched.update(map(id, around))
            return [Lie(kind, _path_of(whole, case.gold), None)]
        if any(id(each) in lists for each in around):
            return []
        if kind == "another entry" and inside is not None and leaf.kind != "key":
            same = [
                t
                for p, t in told
                if pattern_of(p) == pattern_of(path) and t.value != leaf.value and t not in changed
            ]
            if same:
                one = self.draw.choice(same)
                value, quote = one.said, _quote(case, one)
        elif (
            kind == "digit"
            and isinstance(leaf.said, int | float)
            and not isinstance(leaf.said, bool)
        ):
            digits = f"{leaf.said}"
            at = self.draw.choice([i for i, mark in enumerate(digits) if mark.isdigit()])
            digit = self.draw.choice([d for d in "123456789" if d != digits[at]])
            value = type(leaf.said)(digits[:at] + digit + digits[at + 1 :])
        elif kind == "unit" and leaf.kind in ("weight", "amount", "count"):
            value = (
                leaf.said * 1_000
                if leaf.kind != "weight" or leaf.shown.endswith("kg")
                else round(leaf.said * 1_000)
            )
        elif kind == "date" and leaf.kind == "day":
            moved = date.fromisoformat(leaf.said) + timedelta(
                days=self.draw.choice((1, -1, 31, 365))
            )
            value = moved.isoformat()
        elif kind == "negated" and leaf.kind == "flag":
            value = not leaf.said
        elif kind == "negated" and leaf.kind == "label":
            value = self.draw.choice([each for each in LABELS if each != leaf.said])
        elif kind == "another document":
            same = [
                t
                for p, t in elsewhere
                if pattern_of(p) == pattern_of(path)
                and t.value != leaf.value
                and t.kind not in ("key", "tag")
            ]
            if same and leaf.kind not in ("key", "tag"):
                one = self.draw.choice(same)
                value = one.said
                quote = _quote(other, one) if self.draw.random() < 0.5 else quote
        elif kind == "invented quote" and leaf.kind in KINDS:
            made, value, shown = KINDS[leaf.kind][1](self.draw)
            if made == leaf.value:
                return []
            quote = f"{leaf.name.capitalize()}: {shown}, as agreed"
        elif kind == "swapped fields":
            owner = around[-1] if around and isinstance(around[-1], dict) else None
            twins = [
                t
                for t in (owner or {}).values()
                if isinstance(t, Told)
                and t.kind == leaf.kind
                and t.value != leaf.value
                and t not in changed
            ]
            if twins:
                one = self.draw.choice(twins)
                other_path = next(p for p, t in told if t is one)
                changed[leaf] = one.said, _quote(case, one)
                changed[one] = leaf.said, quote
                touched.update(map(id, around))
                return [Lie(kind, path, one.value), Lie(kind, other_path, leaf.value)]
        elif (
            kind == "swapped keys"
            and isinstance(inside, Keyed)
            and len(inside.entries) > 1
            and id(inside) not in touched
        ):
            (one, first), (two, second) = self.draw.sample(inside.entries, 2)
            if plain(first) != plain(second) and not any(
                t in changed for each in (first, second) for _, t in leaves(each)
            ):
                changed[one] = two.said, _quote(case, two)
                changed[two] = one.said, _quote(case, one)
                touched.update(map(id, (*around, inside)))
                where = _path_of(inside, case.gold)
                return [Lie(kind, f"{where}.{key.value}", None) for key in (one, two)]
        if value is None or (
            value == leaf.value and isinstance(value, bool) == isinstance(leaf.value, bool)
        ):
            return []
        if leaf.kind == "grade" and kind != "negated" and str(value) == str(leaf.value):
            return []
        changed[leaf] = value, quote
        touched.update(map(id, around))
        return [Lie(kind, path, value)]


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
