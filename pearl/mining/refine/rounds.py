"""Merge rounds by the model: shards are sent concurrently, replies applied in shard order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pearl.errors import ModelError
from pearl.llm import Model, RefineTask, Request
from pearl.llm.reply_limits import reply_limit
from pearl.mining.refine.entries import Dropped, LibraryEntry, Stage, best, merged
from pearl.mining.refine.merging import Rules, merge_by_rule
from pearl.mining.refine.prompt import refine_messages
from pearl.mining.refine.pruning import LibraryBudget
from pearl.mining.refine.refinement import Round, ShardRecord
from pearl.mining.refine.replies import MergeReply, read_reply
from pearl.mining.refine.sharding import shards

_MOST_FOLDED = 2
"""Maximum reduction factor of a round: models lose important actions beyond it."""


@dataclass(frozen=True, slots=True)
class _Shard:
    """The result of one call."""

    entries: list[LibraryEntry]
    dropped: list[Dropped]
    record: ShardRecord
    error: ModelError | None = None


async def run_rounds(
    entries: Sequence[LibraryEntry],
    model: Model,
    budget: LibraryBudget,
    rules: Rules,
    *,
    max_rounds: int,
    shard_size: int,
    max_output_tokens: int | None = None,
) -> tuple[list[LibraryEntry], list[Dropped], list[Round]]:
    """Merge entries by model calls until they fit, a round merges none, or `max_rounds` is reached.

    Native actions are kept and not shown.
    """
    current, dropped, rounds = list(entries), [], []
    for number in range(1, max_rounds + 1):
        if budget.fits(current):
            break
        native = [entry for entry in current if entry.action.is_native]
        drafts = sorted((e for e in current if not e.action.is_native), key=best)
        if len(drafts) < 2:
            break
        wanted = max(budget.capacity(current) - len(native), -(-len(drafts) // _MOST_FOLDED))
        parts = shards(drafts, shard_size, rules.likeness)
        ask = partial(
            _refine, model=model, stage=Stage("model", number),
            max_output_tokens=max_output_tokens,
        )  # fmt: skip
        done = await asyncio.gather(
            *(ask(part, max(1, len(part) * wanted // len(drafts))) for part in parts)
        )
        if number == 1 and all(shard.error for shard in done):
            error = next(shard.error for shard in done if shard.error)
            raise ModelError(
                f"none of the calls got a reply; the first: {error.message}",
                kind=error.kind,
                help=error.help or "--rounds 0 merges by rule alone, without a model",
            ) from error
        left = merge_by_rule([*native, *(e for shard in done for e in shard.entries)], rules)
        dropped += [item for shard in done for item in shard.dropped]
        records = tuple(shard.record for shard in done)
        rounds.append(
            Round(number=number, n_before=len(current), n_after=len(left), shards=records)
        )
        is_stuck = len(left) == len(current)
        current = left
        if is_stuck:
            break
    return current, dropped, rounds


async def _refine(
    shard: list[LibraryEntry],
    max_actions: int,
    *,
    model: Model,
    stage: Stage,
    max_output_tokens: int | None,
) -> _Shard:
    drafts = tuple(entry.action for entry in shard)
    task = RefineTask(drafts, max_actions)
    limit = reply_limit(task, model.window, max_output_tokens)
    record = partial(ShardRecord, n_before=len(shard), max_actions=max_actions)
    try:
        completion = await model.complete(Request(refine_messages(task), task, limit))
    except ModelError as error:
        failed = record(n_after=len(shard), status="failed", problems=(error.message,))
        return _Shard(shard, [], failed, error)
    reply = read_reply(completion.text, drafts)
    entries, dropped = _follow(reply, shard, stage)
    done = record(
        n_after=len(entries),
        status="merged" if reply.is_usable else "unusable",
        reply=completion.text,
        problems=reply.problems,
        usage=completion.usage,
    )
    return _Shard(entries, dropped, done)


def _follow(
    reply: MergeReply, shard: Sequence[LibraryEntry], stage: Stage
) -> tuple[list[LibraryEntry], list[Dropped]]:
    """Apply a reply; drafts that it does not mention are kept."""
    dropped = [Dropped(shard[number - 1], why, stage) for number, why in reply.drops]
    named = {number for number, _ in reply.drops}
    entries: list[LibraryEntry] = []
    for action, numbers in reply.merges:
        named.update(numbers)
        # A draft identical to the action is its representative.
        group = sorted(
            (shard[number - 1] for number in numbers), key=lambda e: (e.action != action, best(e))
        )
        entries.append(merged(group, stage, action))
    entries += [entry for number, entry in enumerate(shard, start=1) if number not in named]
    return entries, dropped
