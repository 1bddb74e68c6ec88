"""Entries: what becomes of drafts while they are refined. Every draft is in one entry or dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pearl.dsl.printer import print_action
from pearl.dsl.signatures import Action

__all__ = ["Draft", "Dropped", "Entry", "Stage", "StageName", "best", "entry_of", "merged"]

StageName = Literal["exact", "name", "definition", "model", "room"]

_CLEAR_WORDS = 4
"""Words from which a definition is clear; `Find X` alone says too little."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a draft ceased to stand for itself.

    Attributes:
        name: `exact`, `name` and `definition` go by rule, `model` by a reply; `room` makes room by
            rule for what is left.
        round: Of the model, from 1; 0 for rules.
    """

    name: StageName
    round: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """One proposed action, as it was read.

    Attributes:
        number: From 0: seeds first, then in the order of the questions.
        text: The action as the file has it.
        action: What it was read as; None where it is malformed.
        question: Id of the question it was proposed for; None for seeds and plain text.
        is_seed: Whether it was in the library that mining began with.
        flaw: Why it is malformed.
    """

    number: int
    text: str
    action: Action | None
    question: str | None = None
    is_seed: bool = False
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An action and the drafts it stands for.

    Attributes:
        drafts: Number of each draft → where it was merged; None for a draft that is the action.
        questions: Ids of the questions that its drafts were proposed for.
    """

    action: Action
    drafts: Mapping[int, Stage | None]
    questions: frozenset[str] = field(default=frozenset())
    is_seed: bool = False

    @property
    def support(self) -> int:
        """Questions it was proposed for; drafts where they are of no question."""
        return len(self.questions) or len(self.drafts)

    @property
    def text(self) -> str:
        """The action as a library has it."""
        return print_action(self.action)


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry that is left out of the library, and why."""

    entry: Entry
    why: str
    stage: Stage


def entry_of(draft: Draft, action: Action) -> Entry:
    """The entry that a draft begins as."""
    questions = frozenset() if draft.question is None else frozenset([draft.question])
    return Entry(action, {draft.number: None}, questions, draft.is_seed)


def merged(entries: Iterable[Entry], stage: Stage, action: Action | None = None) -> Entry:
    """One entry for several.

    Args:
        entries: The one that stands for all first.
        stage: Where they were merged.
        action: What they were merged into; None for the first one's action.
    """
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


def best(entry: Entry) -> tuple[object, ...]:
    """Sorts entries, the one that should stand for others first.

    Seeds have proved themselves; then comes what most questions asked for; then what is said
    clearly under the most general name, the one of the fewest words, and shortest.
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
