"""`Refinement`: the library that came out, and what became of every draft. Round-trips as JSON."""

from __future__ import annotations

from typing import Literal

from pearl.data.journal import Frozen
from pearl.llm import Usage
from pearl.mining.refine.entries import StageName

__all__ = [
    "REFINEMENT_VERSION",
    "DraftFate",
    "LibraryComparison",
    "Neighbour",
    "RefinedAction",
    "Refinement",
    "Round",
    "ShardRecord",
]

REFINEMENT_VERSION: Literal[1] = 1


class DraftFate(Frozen):
    """One draft and what became of it."""

    number: int
    text: str
    name: str | None = None
    """Of its action; None where it is malformed."""
    question: str | None = None
    """Id of the question it was proposed for; None for seeds and plain action files."""
    is_seed: bool = False
    fate: Literal["kept", "merged", "dropped"]
    into: str | None = None
    """Name of the action that stands for it; None if it was dropped."""
    stage: StageName | Literal["malformed"] | None = None
    """Where it ceased to stand for itself; None if it was kept. A draft that was merged first and
    dropped with what it was merged into has the stage of the drop."""
    round: int = 0
    """Of the model, from 1; 0 for the other stages."""
    why: str | None = None
    """Why it was dropped."""


class RefinedAction(Frozen):
    """One action of the library and the drafts it stands for."""

    name: str
    text: str
    drafts: tuple[int, ...]
    questions: tuple[str, ...] = ()
    is_seed: bool = False
    is_native: bool = False


class ShardRecord(Frozen):
    """One call to the model."""

    n_before: int
    n_after: int
    max_actions: int
    status: Literal["merged", "unusable", "failed"]
    """`unusable`: the reply was prose or named drafts that there are not; `failed`: no reply. The
    shard went on unchanged in both cases."""
    reply: str = ""
    problems: tuple[str, ...] = ()
    usage: Usage = Usage()


class Round(Frozen):
    """All shards of one round."""

    number: int
    n_before: int
    n_after: int
    """Entries after the replies and the rules that follow them."""
    shards: tuple[ShardRecord, ...]


class Neighbour(Frozen):
    """An action of the other library, and ours that is most alike."""

    name: str
    nearest: str
    likeness: float


class LibraryComparison(Frozen):
    """The library beside another one."""

    library: str
    in_both: tuple[str, ...]
    only_ours: tuple[str, ...]
    only_theirs: tuple[Neighbour, ...]


class Refinement(Frozen):
    """What came out of refining."""

    kind: Literal["pearl-refinement"] = "pearl-refinement"
    v: Literal[1] = REFINEMENT_VERSION
    pearl_version: str
    source: str
    model: str
    max_actions: int
    max_tokens: int | None
    n_tokens: int
    """Of the library as the prompt of a planner holds it."""
    token_count: str
    """How they were counted."""
    actions: tuple[RefinedAction, ...]
    drafts: tuple[DraftFate, ...]
    unread: tuple[str, ...] = ()
    """What could not be read as drafts at all."""
    rounds: tuple[Round, ...] = ()
    comparison: LibraryComparison | None = None

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return sum((s.usage for round in self.rounds for s in round.shards), Usage())

    def count(self, fate: str, stage: str | None = None) -> int:
        """Drafts of that fate, and of that stage if one is named."""
        return sum(
            draft.fate == fate and stage in (None, draft.stage) for draft in self.drafts
        )  # fmt: skip

    def calls(self, status: str | None = None) -> int:
        """Calls to the model, or those of one status."""
        return sum(
            status in (None, shard.status) for round in self.rounds for shard in round.shards
        )  # fmt: skip
