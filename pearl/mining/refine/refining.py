"""The whole pipeline: drafts → `Refinement`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pearl.documents.tokens import Counter
from pearl.errors import DataError
from pearl.llm import Model
from pearl.mining.refine.entries import Draft, Dropped, LibraryEntry, entry_of
from pearl.mining.refine.merging import Rules, merge_by_rule
from pearl.mining.refine.pruning import LibraryBudget, by_name, prune_library, without_clashes
from pearl.mining.refine.reading import Drafts
from pearl.mining.refine.refinement import DraftFate, RefinedAction, Refinement
from pearl.mining.refine.rounds import run_rounds
from pearl.plugins.extras import require_extra
from pearl.plugins.version import __version__

MAX_ACTIONS = 80
MAX_ROUNDS = 6
SHARD_SIZE = 40

_TOKENS_EACH = 150
"""Tokens reserved in the context window per draft: to read it and to write it again."""


@dataclass(frozen=True, slots=True)
class RefineSettings:
    """Limits of refining."""

    max_actions: int = MAX_ACTIONS
    max_tokens: int | None = None
    max_rounds: int = MAX_ROUNDS
    shard_size: int = SHARD_SIZE
    max_output_tokens: int | None = None


async def refine_actions(
    found: Drafts,
    model: Model,
    settings: RefineSettings | None = None,
    *,
    rules: Rules | None = None,
    counter: Counter | None = None,
) -> Refinement:
    """Refine drafts into a library."""
    require_extra("eval", "refining", "scipy")  # before any call
    settings, rules = settings or RefineSettings(), rules or Rules()
    counter = counter or Counter.for_model(model.name)
    budget = LibraryBudget(settings.max_actions, settings.max_tokens, counter.count)
    size = settings.shard_size
    if model.window:
        size = min(size, model.window // _TOKENS_EACH)
    entries = [entry_of(draft, draft.action) for draft in found.drafts if draft.action]
    entries, dropped, rounds = await run_rounds(
        merge_by_rule(entries, rules), model, budget, rules,
        max_rounds=settings.max_rounds, shard_size=max(2, size),
        max_output_tokens=settings.max_output_tokens,
    )  # fmt: skip
    entries, clashing = without_clashes(entries)
    entries, without_room = prune_library(entries, budget, rules)
    if not entries:
        raise DataError(
            f"nothing remains of {len(found.drafts)} drafts",
            path=found.source,
            help="allow more with --max-actions or --max-tokens",
        )
    return Refinement(
        pearl_version=__version__,
        source=found.source,
        model=model.name,
        max_actions=settings.max_actions,
        max_tokens=settings.max_tokens,
        n_tokens=budget.tokens(entries),
        token_count=counter.method,
        actions=tuple(map(_refined, by_name(entries))),
        drafts=tuple(_fates(found.drafts, entries, [*dropped, *clashing, *without_room])),
        unread=found.unread,
        rounds=tuple(rounds),
    )


def _refined(entry: LibraryEntry) -> RefinedAction:
    return RefinedAction(
        name=entry.action.name,
        text=entry.text,
        drafts=tuple(sorted(entry.drafts)),
        questions=tuple(sorted(entry.questions)),
        is_seed=entry.is_seed,
        is_native=entry.action.is_native,
    )


def _fates(
    drafts: Iterable[Draft], entries: Sequence[LibraryEntry], dropped: Sequence[Dropped]
) -> Iterator[DraftFate]:
    """The fate of every draft: malformed, in an entry, or in a dropped entry."""
    holders = {number: entry for entry in entries for number in entry.drafts}
    losses = {number: loss for loss in dropped for number in loss.entry.drafts}
    for draft in drafts:
        fate = partial(
            DraftFate,
            number=draft.number,
            text=draft.text,
            name=draft.action.name if draft.action else None,
            question=draft.question,
            is_seed=draft.is_seed,
        )
        if draft.action is None:
            yield fate(fate="dropped", stage="malformed", why=draft.flaw)
        elif loss := losses.get(draft.number):
            yield fate(
                fate="dropped", stage=loss.stage.name, round=loss.stage.round, why=loss.why
            )  # fmt: skip
        else:
            holder = holders[draft.number]
            stage = holder.drafts[draft.number]
            yield fate(
                fate="merged" if stage else "kept",
                into=holder.action.name,
                stage=stage.name if stage else None,
                round=stage.round if stage else 0,
            )
