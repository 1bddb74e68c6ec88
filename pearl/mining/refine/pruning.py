"""Prunes entries down to a library budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pearl.actions.likeness import Matrix, may_merge
from pearl.dsl.nodes import print_action
from pearl.mining.refine.entries import Dropped, LibraryEntry, Stage, best, merged
from pearl.mining.refine.merging import Rules

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


def without_clashes(entries: Sequence[LibraryEntry]) -> tuple[list[LibraryEntry], list[Dropped]]:
    """Keep the best action of each name; actions of different shapes cannot be merged."""
    kept: dict[str, LibraryEntry] = {}
    dropped: list[Dropped] = []
    for entry in sorted(entries, key=lambda entry: (not entry.action.is_native, *best(entry))):
        holder = kept.setdefault(entry.action.name, entry)
        if holder is not entry:
            why = f"the name is taken by {holder.action.signature}"
            dropped.append(Dropped(entry, why, _ROOM))
    return list(kept.values()), dropped


def prune_library(
    entries: Sequence[LibraryEntry], budget: LibraryBudget, rules: Rules
) -> tuple[list[LibraryEntry], list[Dropped]]:
    """Fold or drop entries until the rest fits.

    The least supported action goes first, among equals the one most similar to another; it is
    folded into that one if they are close enough. Native actions are kept. Similarity is computed
    once, over all entries.
    """
    if budget.fits(entries):
        return list(entries), []
    ordered = sorted(entries, key=best)
    close = _closeness(ordered, rules)
    alive = dict(enumerate(ordered))
    dropped: list[Dropped] = []
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
            dropped.append(Dropped(entry, "no room", _ROOM))
        close[i, :] = close[:, i] = 0
        for j in (nearest == i).nonzero()[0]:
            best_of[j], nearest[j] = close[j].max(), close[j].argmax()
    return list(alive.values()), dropped


def _closeness(entries: Sequence[LibraryEntry], rules: Rules) -> Matrix:
    """Similarity of pairs that may be merged, else 0."""
    import numpy as np

    likeness = rules.likeness([entry.action for entry in entries])
    close = np.zeros_like(likeness)
    for i, j in np.argwhere(np.triu(likeness, 1) >= rules.close):
        one, other = entries[i].action, entries[j].action
        if not one.is_native and not other.is_native and may_merge(one, other):
            close[i, j] = close[j, i] = likeness[i, j]
    return close
