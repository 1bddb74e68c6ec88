"""States of a plan under construction: the number of outputs of each kind (v1, ..., n1, ...).

The grammar and the JSON Schema of valid plans are both generated from these states, so they accept
the same plans. Outputs that cannot replace a text argument (a number is no document) are counted
separately, each kind under its own letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from pearl.dsl.signatures import Action, ActionLibrary, ValueType, outputs_for
from pearl.errors import LibraryError

MAX_COUNTED = (3, 2)
"""Outputs of one kind that is not text, where there is one such kind, or two; 1 where there are
more. The states multiply with every kind, and what is made from them gets longer."""

Counts = tuple[int, ...]
"""How many outputs there are, for each letter of the states."""

_LETTERS: Mapping[ValueType, str] = {
    ValueType.TEXT: "v",
    ValueType.NUMBER: "n",
    ValueType.BOOL: "b",
    ValueType.LIST: "l",
    ValueType.TABLE: "t",
    ValueType.PASSAGES: "p",
}
"""What outputs are called, by their type."""

_WRITTEN = (ValueType.CONTEXT, ValueType.TEXT, ValueType.NUMBER, ValueType.LIST)
"""Types for which an argument is always available: the document or a literal."""


class Slot(NamedTuple):
    """What an argument has to be."""

    type: ValueType
    choices: tuple[str, ...] = ()
    is_labels: bool = False

    @property
    def name(self) -> str:
        """Tells it from other slots in the names of rules; short, since each state names it."""
        if self.choices:
            return f"c{crc32(repr(self.choices).encode()) & 0xFFFFF:05x}"
        return "labels" if self.is_labels else self.type.lower()


@dataclass(frozen=True, slots=True)
class Shape:
    """The common signature of several actions."""

    needed: tuple[Slot, ...]
    more: Slot | None
    kind: str = ""


def by_shape(
    actions: Iterable[Action], kind: Callable[[Action], str] = lambda action: ""
) -> dict[Shape, list[Action]]:
    """Actions in groups of one shape, in the order of the first of each."""
    groups: dict[Shape, list[Action]] = {}
    for action in actions:
        slots = tuple(Slot(p.type, p.choices, p.reads == "labels") for p in action.parameters)
        more = slots[-1] if action.is_variadic else None
        shape = Shape(slots[: action.min_arity], more, kind(action))
        groups.setdefault(shape, []).append(action)
    return groups


@dataclass(frozen=True, slots=True)
class NextStep:
    """One kind of step that can be written next."""

    letter: str
    output: str
    after: Counts | None


class States:
    """The outputs that may exist before each step; the step's number is their count plus one."""

    def __init__(self, actions: Iterable[Action], max_steps: int) -> None:
        actions = list(actions)
        self._kinds = _kinds(actions)
        self._letters = tuple(dict.fromkeys(["v", *self._kinds.values()]))
        self._max_steps = max_steps
        self._accepted = {
            type: {self._kinds[given] for given in outputs_for(type) if given in self._kinds}
            for type in ValueType
        }
        n_kinds = len(self._letters) - 1
        self.max_counted = MAX_COUNTED[n_kinds - 1] if 1 <= n_kinds <= len(MAX_COUNTED) else 1
        self._known: dict[Counts, list[int]] = {}
        self.groups = by_shape(actions, lambda action: self._kinds[action.returns])
        self.start: Counts = (0,) * len(self._letters)

    def reachable(self) -> Iterator[Counts]:
        """Every state in which a step can be written, nearer ones first; none if nothing can."""
        states = {self.start: None} if self._writable(self.start) else {}
        while states:
            yield from states
            states = {
                step.after: None for counts in states for step in self.steps(counts) if step.after
            }

    def steps(self, counts: Counts) -> list[NextStep]:
        """The steps that can be written in a state."""
        found = []
        for i in self._writable(counts):
            after = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            letter = self._letters[i]
            is_last = not self._writable(after)
            found.append(NextStep(letter, f"{letter}{after[i]}", None if is_last else after))
        return found

    def shapes(self, counts: Counts, letter: str) -> list[Shape]:
        """The calls with an output of this kind for which there is enough to pass."""
        return [
            shape
            for shape in self.groups
            if shape.kind == letter
            and all(
                slot.type in _WRITTEN or self.fitting(counts, slot.type) for slot in shape.needed
            )
        ]

    def fitting(self, counts: Counts, type: ValueType) -> list[tuple[str, int]]:
        """The letters of the outputs that may go where a type stands, with how many there are."""
        accepted = self._accepted[type]
        return [(letter, count) for letter, count in self.present(counts) if letter in accepted]

    def present(self, counts: Counts) -> list[tuple[str, int]]:
        """The letters of all outputs there are, with how many."""
        return [pair for pair in zip(self._letters, counts, strict=True) if pair[1]]

    def _writable(self, counts: Counts) -> list[int]:
        """The places of those letters that the next output may have."""
        if counts not in self._known:
            self._known[counts] = [
                i
                for i, letter in enumerate(self._letters)
                if (i == 0 or counts[i] < self.max_counted) and self.shapes(counts, letter)
            ]
        return self._known[counts] if sum(counts) < self._max_steps else []


def _kinds(actions: list[Action]) -> dict[ValueType, str]:
    """The letter of every type that is returned: one letter for those that go the same places."""
    wanted = {parameter.type for action in actions for parameter in action.parameters}
    letters: dict[frozenset[ValueType], str] = {}
    kinds: dict[ValueType, str] = {}
    for type in (ValueType.TEXT, *(action.returns for action in actions)):
        goes = frozenset(w for w in wanted if type in outputs_for(w))
        kinds[type] = letters.setdefault(goes, _LETTERS[type])
    return kinds


def nothing_to_call(library: ActionLibrary) -> LibraryError:
    """The error for a library that has no callable action."""
    return LibraryError(
        "there is no action that a plan could begin with",
        path=library.name,
        help="the library is empty, or its actions all take what only others return",
    )
