"""`Refinement`: the refined library and the fate of every draft, with its action file."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal

from msgspec import Struct

from pearl.llm import Usage


class DraftFate(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One draft and its fate."""

    number: int
    text: str
    name: str | None = None  # Signature of its action; None if malformed
    question: str | None = None
    """Id of the question it was proposed for; None for seeds and plain action files."""
    is_seed: bool = False
    fate: Literal["kept", "merged", "dropped"]
    into: str | None = None  # Name of the action it was merged into; None if it was dropped
    stage: Literal["malformed", "name", "model", "room"] | None = None
    """The stage at which it was merged or dropped; None if it was kept. For a draft merged into an
    entry that was dropped later, the stage of the drop."""
    round: int = 0  # Round of the model, from 1; 0 for the other stages
    why: str | None = None  # Why it was dropped


class RefinedAction(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One action of the library and its drafts."""

    name: str
    text: str
    drafts: tuple[int, ...]
    questions: tuple[str, ...] = ()
    is_seed: bool = False
    is_native: bool = False


class ShardRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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


class Round(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All shards of one round."""

    number: int
    n_before: int
    n_after: int  # Entries after the replies and the subsequent rules
    shards: tuple[ShardRecord, ...]


class Refinement(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The result of refining drafts into a library."""

    kind: Literal["pearl-refinement"] = "pearl-refinement"
    v: Literal[1] = 1
    pearl_version: str
    source: str
    model: str
    max_actions: int
    max_tokens: int | None
    n_tokens: int  # Tokens of the library in a planner's prompt
    token_count: str  # How the tokens were counted
    actions: tuple[RefinedAction, ...]
    drafts: tuple[DraftFate, ...]
    unread: tuple[str, ...] = ()  # Messages about input that could not be parsed as drafts
    rounds: tuple[Round, ...] = ()

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return sum((s.usage for round in self.rounds for s in round.shards), Usage())

    def count(self, fate: str, stage: str | None = None) -> int:
        """Number of drafts with a fate, optionally at one stage."""
        return sum(draft.fate == fate and stage in (None, draft.stage) for draft in self.drafts)

    def calls(self, status: str | None = None) -> int:
        """Number of model calls, optionally with one status."""
        return sum(
            status in (None, shard.status) for round in self.rounds for shard in round.shards
        )  # fmt: skip

    @property
    def figures(self) -> list[tuple[str, int, str]]:
        """The counts shown to users: label, number and note; the drafts are the sum of the next five."""
        n_seeds, n_rounds = sum(draft.is_seed for draft in self.drafts), len(self.rounds)
        usage, count = self.usage, self.count
        draft_notes = {
            "of them seeds": n_seeds,
            "replies or lines without a draft": len(self.unread),
        }
        call_notes = {
            f"call(s) in {n_rounds} round{'' if n_rounds == 1 else 's'}": self.calls(),
            "with an unusable reply": self.calls("unusable"),
            "without a reply": self.calls("failed"),
            "tokens to the model": usage.n_input_tokens,
            "tokens from the model": usage.n_output_tokens,
        }
        lost = {"by the model": count("dropped", "model"), "no room": count("dropped", "room")}
        most = f" of {self.max_tokens:,} at most" if self.max_tokens else ""
        n_new = len(self.actions) - count("kept")  # none of their drafts is kept as it was
        new = f", {n_new:,} of them worded by the model" if n_new else ""
        return [
            ("drafts", len(self.drafts), _noted(draft_notes)),
            ("malformed", count("dropped", "malformed"), ""),
            ("merged, same name", count("merged", "name"), ""),
            ("merged by the model", count("merged", "model"), _noted(call_notes)),
            ("dropped", sum(lost.values()), _noted(lost)),
            ("kept", count("kept"), ""),
            ("actions", len(self.actions), f"of {self.max_actions} at most{new}"),
            ("tokens", self.n_tokens, f"{self.token_count}{most}"),
        ]


def _noted(counts: Mapping[str, int]) -> str:
    notes = (
        f"{n:,} {what.replace('(s)', '' if n == 1 else 's')}" for what, n in counts.items() if n
    )
    return ", ".join(notes)


_WIDTH = 100  # maximum characters of a comment's line in a library


def library_text(refinement: Refinement) -> str:
    """The library in canonical form, unchanged by `pearl fmt`."""
    n_in, n_left = len(refinement.drafts), sum(len(a.drafts) for a in refinement.actions)
    source = " ".join(PurePath(refinement.source).name.split())
    head = (
        f"Refined by {refinement.model}: {len(refinement.actions)} actions stand for {n_left} of "
        f"{n_in} drafts of {source}."
    )
    blocks = [_comment(head, "# ")]
    for action in refinement.actions:
        stands_for = _comment(f"stands for: {', '.join(lineage(refinement, action))}", "#   ")
        blocks.append(f"{stands_for}\n{action.text}")
    return "\n\n".join(blocks) + "\n"


def lineage(refinement: Refinement, action: RefinedAction) -> list[str]:
    """The names of the drafts of an action: `FIND_REASON`, `FIND_REASONS x3`."""
    names = Counter(refinement.drafts[number].name for number in action.drafts)
    seeds = {refinement.drafts[n].name for n in action.drafts if refinement.drafts[n].is_seed}
    return [
        f"{name}{f' x{n}' if n > 1 else ''}{' (seed)' if name in seeds else ''}"
        for name, n in sorted(names.items(), key=lambda item: str(item[0]))
    ]


def _comment(text: str, further: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent="# ", subsequent_indent=further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
