"""Entries → fewer entries by rule: the same text, the same name, nearly the same definition.

Merging is not transitive: an entry joins the best entry that it is similar to itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pearl.actions.likeness import (
    Embedder,
    Likeness,
    agreement,
    by_embedding,
    by_words,
    have_same_name,
    may_merge,
    name_words,
    shape,
)
from pearl.dsl.signatures import Action
from pearl.mining.refine.entries import LibraryEntry, Stage, StageName, best, merged

_AGREEMENT = 0.5
"""Minimum fraction of shared distinctive terms for equal names to mean the same.

FIND_INTEREST (why others are interested in X) and FIND_INTERESTS (what X is interested in) come to
0.4, names that differ by chance alone to 0.7 and more.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """Similarity thresholds."""

    likeness: Likeness = by_words
    same: float = 0.6
    close: float = 0.25

    @classmethod
    def for_embedder(cls, embed: Embedder) -> Rules:
        """For embeddings, whose cosines are higher.

        With all-MiniLM-L6-v2 the most similar pair of the published drafts that differs has 0.86, the
        most similar one that does not, 0.89: below 0.9 the model decides.
        """
        return cls(by_embedding(embed), same=0.9, close=0.5)


def merge_by_rule(entries: Sequence[LibraryEntry], rules: Rules) -> list[LibraryEntry]:
    """Merge equivalent entries; opposites, negations and different shapes are never merged."""
    found = _grouped(entries, "exact", lambda entry: _plain(entry.action), lambda a, b: True)
    found = _grouped(found, "name", lambda entry: _name_key(entry.action), _same_name)
    return _by_definition(found, rules)


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
    definition = action.definition
    for i, parameter in enumerate(action.parameters):
        definition = re.sub(rf"\b{re.escape(parameter.name)}\b", f"\0{i}", definition)
    return action.name, shape(action), " ".join(definition.casefold().rstrip(".").split())


def _name_key(action: Action) -> tuple[object, ...]:
    return shape(action), action.is_native, len(name_words(action))


def _same_name(one: Action, other: Action) -> bool:
    if one.name == other.name:
        return True
    return (
        not one.is_native
        and have_same_name(one, other)
        and may_merge(one, other)
        and agreement(one, other) >= _AGREEMENT
    )


def _by_definition(entries: Sequence[LibraryEntry], rules: Rules) -> list[LibraryEntry]:
    ordered = sorted(entries, key=best)
    likeness = rules.likeness([entry.action for entry in ordered])
    groups: dict[int, list[LibraryEntry]] = {}
    for i, entry in enumerate(ordered):
        leader = max(
            (
                j
                for j in groups
                if likeness[i, j] >= rules.same
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
