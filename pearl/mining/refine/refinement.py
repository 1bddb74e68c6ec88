"""`Refinement`: the refined library and the fate of every draft. Round-trips as JSON."""

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
    """One draft and its fate."""

    number: int
    text: str
    name: str | None = None
    """Signature of its action; None if malformed."""
    question: str | None = None
    """Id of the question it was proposed for; None for seeds and plain action files."""
    is_seed: bool = False
    fate: Literal["kept", "merged", "dropped"]
    into: str | None = None
    """Name of the action it was merged into; None if it was dropped."""
    stage: StageName | Literal["malformed"] | None = None
    """The stage at which it was merged or dropped; None if it was kept. For a draft merged into an
    entry that was dropped later, the stage of the drop."""
    round: int = 0
    """Round of the model, from 1; 0 for the other stages."""
    why: str | None = None
    """Why it was dropped."""


class RefinedAction(Frozen):
    """One action of the library and its drafts."""

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
    """`unusable`: the reply was prose or named unknown drafts; `failed`: no reply. In both cases
    the shard stays unchanged."""
    reply: str = ""
    problems: tuple[str, ...] = ()
    usage: Usage = Usage()


class Round(Frozen):
    """All shards of one round."""

    number: int
    n_before: int
    n_after: int
    """Entries after the replies and the subsequent rules."""
    shards: tuple[ShardRecord, ...]


class Neighbour(Frozen):
    """An action of the other library, and the most similar one of ours."""

    name: str
    nearest: str
    likeness: float


class LibraryComparison(Frozen):
    """The comparison with another library."""

    library: str
    in_both: tuple[str, ...]
    only_ours: tuple[str, ...]
    only_theirs: tuple[Neighbour, ...]


class Refinement(Frozen):
    """The result of refining."""

    kind: Literal["pearl-refinement"] = "pearl-refinement"
    v: Literal[1] = REFINEMENT_VERSION
    pearl_version: str
    source: str
    model: str
    max_actions: int
    max_tokens: int | None
    n_tokens: int
    """Tokens of the library in a planner's prompt."""
    token_count: str
    """How the tokens were counted."""
    actions: tuple[RefinedAction, ...]
    drafts: tuple[DraftFate, ...]
    unread: tuple[str, ...] = ()
    """Messages about input that could not be parsed as drafts."""
    rounds: tuple[Round, ...] = ()
    comparison: LibraryComparison | None = None

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return sum((s.usage for round in self.rounds for s in round.shards), Usage())

    def count(self, fate: str, stage: str | None = None) -> int:
        """Number of drafts with a fate, optionally at one stage."""
        return sum(
            draft.fate == fate and stage in (None, draft.stage) for draft in self.drafts
        )  # fmt: skip

    def calls(self, status: str | None = None) -> int:
        """Number of model calls, optionally with one status."""
        return sum(
            status in (None, shard.status) for round in self.rounds for shard in round.shards
        )  # fmt: skip
