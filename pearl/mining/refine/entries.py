"""Entries: groups of merged drafts. Every draft is in exactly one entry or dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry left out of the library, with the reason."""

    entry: LibraryEntry
    why: str
    stage: Stage


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
    """Sort key of entries, best representative first.

    Seeds first; then by number of questions; then a clear definition, the most general name (fewest
    words), and the shortest text.
    """
    return (
        not entry.is_seed,
        -entry.support,
        len(entry.action.definition.split()) < _CLEAR_WORDS,
        entry.action.name.count("_"),
        len(entry.action.definition),
        entry.action.name,
        entry.text,
    )
