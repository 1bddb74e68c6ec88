"""Drafts → fewer entries by rule: the same text, the same name, nearly the same definition; and down to a budget.

Merging is not transitive: an entry joins the best entry that it is similar to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pearl.actions.likeness import (
    Matrix,
    agreement,
    by_words,
    have_same_name,
    may_merge,
    meaning,
    name_words,
    shape,
)
from pearl.dsl.nodes import print_action
from pearl.dsl.signatures import Action

StageName = Literal["exact", "name", "definition", "model", "room"]

_CLEAR_WORDS = 4
"""Minimum words of a clear definition; `Find X` alone is too vague."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage at which a draft was merged or dropped."""

    name: StageName
    round: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """One proposed action."""

    number: int
    text: str
    action: Action | None
    question: str | None = None
    is_seed: bool = False
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """An action and the drafts merged into it."""

    action: Action
    drafts: Mapping[int, Stage | None]
    questions: frozenset[str] = field(default=frozenset())
    is_seed: bool = False

    @property
    def support(self) -> int:
        """Number of questions it was proposed for, or of drafts without questions."""
        return len(self.questions) or len(self.drafts)

    @property
    def text(self) -> str:
        """The action's line in a library."""
        return print_action(self.action)


Losses = dict[int, tuple[Stage, str]]
"""Draft → the stage at which its entry was dropped, and the reason."""


def entry_of(draft: Draft, action: Action) -> LibraryEntry:
    """The initial entry of a draft."""
    questions = frozenset() if draft.question is None else frozenset([draft.question])
    return LibraryEntry(action, {draft.number: None}, questions, draft.is_seed)


def merged(
    entries: Iterable[LibraryEntry], stage: Stage, action: Action | None = None
) -> LibraryEntry:
    """Merge entries into one."""
    first, *others = entries
    if action is not None and print_action(action) != first.text:
        first = replace(first, action=action, drafts=_staged(first.drafts, stage))
    drafts = dict(first.drafts)
    for other in others:
        drafts |= _staged(other.drafts, stage)
    return replace(
        first,
        drafts=drafts,
        questions=first.questions.union(*(other.questions for other in others)),
        is_seed=first.is_seed or any(other.is_seed for other in others),
    )


def _staged(drafts: Mapping[int, Stage | None], stage: Stage) -> dict[int, Stage | None]:
    return {number: at or stage for number, at in drafts.items()}


def best(entry: LibraryEntry) -> tuple[object, ...]:
    """Sort key of entries, best representative first."""
    return (
        not entry.is_seed,
        -entry.support,
        len(entry.action.definition.split()) < _CLEAR_WORDS,
        entry.action.name.count("_"),
        len(entry.action.definition),
        entry.action.name,
        entry.text,
    )


_AGREEMENT = 0.5
"""Minimum fraction of shared distinctive terms for equal names to mean the same.

FIND_INTEREST (why others are interested in X) and FIND_INTERESTS (what X is interested in) come to
0.4, names that differ by chance alone to 0.7 and more.
"""


_SAME, _CLOSE = 0.6, 0.25
"""Minimum likeness of definitions that mean the same, and of those that may be merged to make room."""


def merge_by_rule(entries: Sequence[LibraryEntry]) -> list[LibraryEntry]:
    """Merge equivalent entries; opposites, negations and different shapes are never merged."""
    found = _grouped(entries, "exact", lambda entry: _plain(entry.action), lambda a, b: True)
    found = _grouped(found, "name", _name_key, _same_name)
    return _by_definition(found)


def _grouped(
    entries: Sequence[LibraryEntry],
    stage: StageName,
    key: Callable[[LibraryEntry], object],
    are_same: Callable[[Action, Action], bool],
) -> list[LibraryEntry]:
    """Merge equivalent entries with the same key, each into the best one."""
    leaders: dict[object, list[list[LibraryEntry]]] = {}
    for entry in sorted(entries, key=best):
        groups = leaders.setdefault(key(entry), [])
        for group in groups:
            if are_same(group[0].action, entry.action):
                group.append(entry)
                break
        else:
            groups.append([entry])
    return sorted(
        (merged(group, Stage(stage)) for groups in leaders.values() for group in groups), key=best
    )


def _plain(action: Action) -> tuple[object, ...]:
    """Comparison key of an action, ignoring blanks, case and parameter names."""
    return action.name, *meaning(action)


def _name_key(entry: LibraryEntry) -> tuple[object, ...]:
    return shape(entry.action), entry.action.is_native, len(name_words(entry.action))


def _same_name(one: Action, other: Action) -> bool:
    if one.name == other.name:
        return True
    return (
        not one.is_native
        and have_same_name(one, other)
        and may_merge(one, other)
        and agreement(one, other) >= _AGREEMENT
    )


def _by_definition(entries: Sequence[LibraryEntry]) -> list[LibraryEntry]:
    ordered = sorted(entries, key=best)
    likeness = by_words([entry.action for entry in ordered])
    groups: dict[int, list[LibraryEntry]] = {}
    for i, entry in enumerate(ordered):
        leader = max(
            (
                j
                for j in groups
                if likeness[i, j] >= _SAME
                and not entry.action.is_native
                and not have_same_name(
                    ordered[j].action, entry.action
                )  # handled by an earlier stage
                and may_merge(ordered[j].action, entry.action)
            ),
            key=lambda j: (likeness[i, j], -j),
            default=i,
        )
        groups.setdefault(leader, []).append(entry)
    return sorted((merged(group, Stage("definition")) for group in groups.values()), key=best)


_ROOM = Stage("room")


@dataclass(frozen=True, slots=True)
class LibraryBudget:
    """Size limits of a library."""

    max_actions: int
    max_tokens: int | None
    count: Callable[[str], int]

    def tokens(self, entries: Sequence[LibraryEntry]) -> int:
        """Tokens of the library in a planner's prompt."""
        return self.count("\n".join(f"- {print_action(e.action)}" for e in by_name(entries)))

    def fits(self, entries: Sequence[LibraryEntry]) -> bool:
        """Whether the entries are within the limits."""
        return len(entries) <= self.max_actions and (
            self.max_tokens is None or self.tokens(entries) <= self.max_tokens
        )

    def capacity(self, entries: Sequence[LibraryEntry]) -> int:
        """Approximate number of entries that fit: actions differ in length."""
        if self.max_tokens is None:
            return min(len(entries), self.max_actions)
        share = self.max_tokens / max(1, self.tokens(entries))
        return min(len(entries), self.max_actions, int(len(entries) * share))


def by_name(entries: Sequence[LibraryEntry]) -> list[LibraryEntry]:
    """The order of a library: native actions first."""
    return sorted(entries, key=lambda entry: (not entry.action.is_native, entry.action.name))


def without_clashes(entries: Sequence[LibraryEntry], losses: Losses) -> list[LibraryEntry]:
    """Keep the best action of each name; actions of different shapes cannot be merged."""
    kept: dict[str, LibraryEntry] = {}
    for entry in sorted(entries, key=lambda entry: (not entry.action.is_native, *best(entry))):
        holder = kept.setdefault(entry.action.name, entry)
        if holder is not entry:
            why = f"the name is taken by {holder.action.signature}"
            losses.update(dict.fromkeys(entry.drafts, (_ROOM, why)))
    return list(kept.values())


def prune_library(
    entries: Sequence[LibraryEntry], budget: LibraryBudget, losses: Losses
) -> list[LibraryEntry]:
    """Fold or drop entries until the rest fits."""
    if budget.fits(entries):
        return list(entries)
    ordered = sorted(entries, key=best)
    close = _closeness(ordered)
    alive = dict(enumerate(ordered))
    best_of, nearest = close.max(axis=1, initial=0), close.argmax(axis=1)
    while not budget.fits(list(alive.values())):
        i = min(
            (i for i, entry in alive.items() if not entry.action.is_native),
            key=lambda i: (alive[i].is_seed, alive[i].support, -best_of[i], -i),
            default=None,
        )
        if i is None:
            break
        entry = alive.pop(i)
        if best_of[i] > 0:
            alive[int(nearest[i])] = merged([alive[int(nearest[i])], entry], _ROOM)
        else:
            losses.update(dict.fromkeys(entry.drafts, (_ROOM, "no room")))
        close[i, :] = close[:, i] = 0
        for j in (nearest == i).nonzero()[0]:
            best_of[j], nearest[j] = close[j].max(), close[j].argmax()
    return list(alive.values())


def _closeness(entries: Sequence[LibraryEntry]) -> Matrix:
    """Similarity of pairs that may be merged, else 0."""
    import numpy as np

    likeness = by_words([entry.action for entry in entries])
    close = np.zeros_like(likeness)
    for i, j in np.argwhere(np.triu(likeness, 1) >= _CLOSE):
        one, other = entries[i].action, entries[j].action
        if not one.is_native and not other.is_native and may_merge(one, other):
            close[i, j] = close[j, i] = likeness[i, j]
    return close


def shards(entries: Sequence[LibraryEntry], size: int) -> list[list[LibraryEntry]]:
    """Split a hierarchical clustering in optimal leaf order, at most `size` (from 2) leaves a shard."""
    n_shards = -(-len(entries) // size)
    if n_shards <= 1:
        return [list(entries)]
    # Imported on use: `import pearl` stays light.
    import numpy as np
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    distances = squareform(1 - by_words([entry.action for entry in entries]), checks=False)
    tree = linkage(distances, method="average")
    if len(entries) <= _MOST_ORDERED:
        tree = optimal_leaf_ordering(tree, distances)
    parts = np.array_split(leaves_list(tree), n_shards)
    return [[entries[int(i)] for i in part] for part in parts]


_MOST_ORDERED = 1_000
"""Maximum entries for optimal leaf ordering, which takes more than quadratic time."""
