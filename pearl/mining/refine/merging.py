"""Entries → fewer entries by rule: the same text, the same name, nearly the same definition.

No chains: an entry joins the best one that it is itself alike, so what is merged is alike one
action, not alike something that is alike it.
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
from pearl.mining.refine.entries import Entry, Stage, StageName, best, merged

__all__ = ["Rules", "merge_by_rule"]

_AGREEMENT = 0.5
"""Share of telling terms from which alike names mean the same.

FIND_INTEREST (why others are interested in X) and FIND_INTERESTS (what X is interested in) come to
0.4, names that differ by chance alone to 0.7 and more.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """How alike definitions must be.

    Attributes:
        likeness: Measures it.
        same: From here on two actions of one shape are the same. Of the 143 published drafts the
            first pair that differs (an outcome and a hypothetical outcome) comes to 0.54 by words,
            so 0.6 leaves some room; what lies between is for the model to say.
        close: From here on an action may stand for another where there is no room for both.
            Pairs below 0.25 share a word, hardly a purpose.
    """

    likeness: Likeness = by_words
    same: float = 0.6
    close: float = 0.25

    @classmethod
    def for_embedder(cls, embed: Embedder) -> Rules:
        """By embeddings. Their cosines run higher; these bounds are cautious, not measured."""
        return cls(by_embedding(embed), same=0.9, close=0.5)


def merge_by_rule(entries: Sequence[Entry], rules: Rules) -> list[Entry]:
    """Merge what is the same; opposites, negations and other shapes stay apart."""
    found = _grouped(entries, "exact", lambda entry: _plain(entry.action), lambda a, b: True)
    found = _grouped(found, "name", lambda entry: _name_key(entry.action), _same_name)
    return _by_definition(found, rules)


def _grouped(
    entries: Sequence[Entry],
    stage: StageName,
    key: Callable[[Entry], object],
    are_same: Callable[[Action, Action], bool],
) -> list[Entry]:
    """Merge entries that have the same key and are the same, each into the best one."""
    leaders: dict[object, list[list[Entry]]] = {}
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
    """What is the same in two actions that differ in blanks, case and names of parameters only."""
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


def _by_definition(entries: Sequence[Entry], rules: Rules) -> list[Entry]:
    ordered = sorted(entries, key=best)
    likeness = rules.likeness([entry.action for entry in ordered])
    groups: dict[int, list[Entry]] = {}
    for i, entry in enumerate(ordered):
        leader = max(
            (
                j
                for j in groups
                if likeness[i, j] >= rules.same
                and not entry.action.is_native
                and not have_same_name(ordered[j].action, entry.action)  # these were judged before
                and may_merge(ordered[j].action, entry.action)
            ),
            key=lambda j: (likeness[i, j], -j),
            default=i,
        )
        groups.setdefault(leader, []).append(entry)
    return sorted((merged(group, Stage("definition")) for group in groups.values()), key=best)
