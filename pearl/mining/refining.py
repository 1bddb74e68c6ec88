"""Refine drafts to a small library: a model merges actions that do the same, and malformed drafts are dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.library import read_actions
from pearl.data.log_files import read_header
from pearl.documents.tokens import Counter
from pearl.dsl.decoding.constraint import closed_object, require
from pearl.dsl.nodes import print_action
from pearl.dsl.signatures import Action
from pearl.errors import DataError, ModelError
from pearl.errors.validation import decoded, reason
from pearl.llm import Message, Model, RefineTask, Request
from pearl.llm.reply_limits import reply_limit
from pearl.mining import merging
from pearl.mining.miner import MinedHeader, MinedRow
from pearl.mining.refinement import DraftFate, RefinedAction, Refinement, Round, ShardRecord
from pearl.plugins.extras import require_extra
from pearl.plugins.version import __version__
from pearl.replies.raw import json_objects

_BEST_FIRST = ("mined", "unreadable", "failed")
_FORMAT_HELP = "`pearl mine` writes one; or write one action per line: NAME(CTX, X) : definition"


class Drafts(Struct, frozen=True):
    """The contents of a file."""

    source: str
    drafts: tuple[merging.Draft, ...]
    unread: tuple[str, ...] = ()


def read_drafts(text: str, source: str) -> Drafts:
    """Read `mined.jsonl` or an action file; duplicate names and missing definitions are allowed."""
    if text.lstrip().startswith("{"):
        found = _mined(text, source)
    else:
        lines = (line.strip() for line in text.split("\n"))
        drafts = _numbered((line, None, False) for line in lines if line and line[0] != "#")
        found = Drafts(source, drafts)
    if not found.drafts:
        why = f"the file has no drafts{f': {found.unread[0]}' if found.unread else ''}"
        raise DataError(why, path=source, help=_FORMAT_HELP)
    if not any(draft.action for draft in found.drafts):
        why = f"no draft of {len(found.drafts)} can be read; the first: {found.drafts[0].flaw}"
        raise DataError(why, path=source, help=_FORMAT_HELP)
    return found


def _numbered(found: Iterable[tuple[str, str | None, bool]]) -> tuple[merging.Draft, ...]:
    """Number drafts given as tuples (text, question, is_seed)."""
    drafts: list[merging.Draft] = []
    for number, (text, question, is_seed) in enumerate(found):
        action, flaw = _draft_action(text)
        drafts.append(merging.Draft(number, text, action, question, is_seed, flaw or None))
    return tuple(drafts)


def _draft_action(text: str) -> tuple[Action | None, str]:
    """The action of one line, or its error."""
    if "\n" in text:
        return None, "spans several lines"
    actions, found = read_actions(text)
    if found or not actions:
        return None, f"{found[0].message} [{found[0].code}]" if found else "is not an action"
    name = actions[0].name
    if not (name.isascii() and name == name.upper() and name[0].isalpha() and all(name.split("_"))):
        return None, f"'{name}' is not a name of an action: use A-Z, 0-9 and _"
    return actions[0], ""


def _mined(text: str, source: str) -> Drafts:
    header, *lines = text.strip().split("\n")
    seeds = read_header(header, MinedHeader, source).seed_actions
    rows: list[MinedRow] = []
    unread: list[str] = []
    for number, line in enumerate(lines, start=2):
        try:
            if line.strip():
                rows.append(decoded(line, MinedRow))
        except msgspec.DecodeError as error:
            cut = number == len(lines) + 1 and not line.rstrip().endswith("}")
            problem = "the line is truncated" if cut else reason(error)
            unread.append(f"line {number}: {problem}")
    rows.sort(key=lambda row: (row.index, row.id, _BEST_FIRST.index(row.status), row.reply))
    drafts: list[tuple[str, str | None, bool]] = [(seed, None, True) for seed in seeds]
    seen: set[str] = set()
    for row in rows:
        if row.id in seen and row.status == "failed":
            continue  # a later attempt succeeded
        if row.id in seen:
            unread.append(f"question {row.id}: a second row of the same question, left out")
            continue
        seen.add(row.id)
        problems = [diagnostic.partition("\n")[0] for diagnostic in row.diagnostics]
        if row.status == "failed":
            problems.insert(0, f"no reply: {row.error or 'unknown'}")
        unread += (f"question {row.id}: {problem}" for problem in problems)
        drafts += ((action, row.id, False) for action in row.actions)
    return Drafts(source, _numbered(drafts), tuple(unread))


_NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 10**6}}
_SCHEMA = closed_object({
    "actions": {"type": "array", "items": closed_object({"action": {"type": "string"}, "drafts": _NUMBERS})},
    "dropped": {"type": "array", "items": closed_object({"why": {"type": "string"}, "drafts": _NUMBERS})},
})  # fmt: skip
"""The form of a reply."""


class MergeReply(Struct, frozen=True):
    """A parsed reply; drafts are numbered from 1, and each number occurs at most once."""

    merges: tuple[tuple[Action, tuple[int, ...]], ...] = ()
    drops: tuple[tuple[int, str], ...] = ()
    problems: tuple[str, ...] = ()
    is_usable: bool = True


def read_reply(text: str, drafts: Sequence[Action]) -> MergeReply:
    """Parse a reply, one JSON object of `_SCHEMA`; the first draft is number 1."""
    try:
        objects = json_objects(text)
        if len(objects) != 1:
            raise ValueError("it is not one JSON object")
        value = objects[0]
        require(value, _SCHEMA)
    except (ValueError, RecursionError) as error:
        return MergeReply(problems=(f"the reply cannot be read: {error}",), is_usable=False)
    merges: list[tuple[Action, tuple[int, ...]]] = []
    drops: list[tuple[int, str]] = []
    problems: list[str] = []
    taken: set[int] = set()
    invented: set[int] = set()

    def free(numbers: Sequence[int]) -> tuple[int, ...]:
        """Claim the numbers that are still free; return () if any number is unknown."""
        if unknown := [number for number in numbers if not 1 <= number <= len(drafts)]:
            invented.update(unknown)  # the entry is ambiguous
            return ()
        if twice := [number for number in numbers if number in taken]:
            problems.append(f"draft {_listed(twice)} is named twice; the first place counts")
        own = tuple(sorted(set(numbers) - taken))
        taken.update(own)
        return own

    for entry in value["actions"]:
        action, problem = _draft_action(entry["action"].strip())
        if action is None:
            problems.append(f"{problem}: {entry['action'][:120]}")
        elif own := free(entry["drafts"]):
            merges.append((action, own))
        elif not entry["drafts"]:
            problems.append(f"{action.name} does not name a draft")
    for entry in value["dropped"]:
        why = " ".join(entry["why"].split()) or "the model gave no reason"
        drops += ((number, why) for number in free(entry["drafts"]))
    if invented:
        problems.append(f"unknown draft {_listed(sorted(invented))}")
    if not taken:
        nothing = [] if invented else ["the reply does not name a draft"]
        return MergeReply(problems=(*problems, *nothing), is_usable=False)
    return MergeReply(tuple(merges), tuple(drops), tuple(problems))


def _listed(numbers: Sequence[int]) -> str:
    first = ", ".join(map(str, numbers[:10]))
    return first if len(numbers) <= 10 else f"{first} and {len(numbers) - 10} more"


_REFINER = """\
You keep the library of actions that plans over long documents are written with. A plan calls \
actions by name; each is carried out later by a reader who sees the document (CTX) and the \
arguments, nothing else. A good library is small, its actions are general, and no two of them do \
the same."""

_REFINE_RULES = """\
How to refine the drafts:
- Merge drafts that do the same, whatever they are called.
- Fold a draft that is too specific, and one that negates another (FIND_NOT_..., FIND_LEAST_...), \
into a general action that says with its parameters what is wanted.
- Keep opposites apart: a cause is not an effect, the first is not the last.
- Prefer the names and definitions that are there; write a new one only where none fits: an instruction \
that reads well with an argument in place of every parameter.
- Drop a draft only if nobody could carry it out.

How to write the reply:
- One JSON object and nothing else: {"actions": [{"action": "NAME(CTX, X) : definition", "drafts": [1, 4, 7]}], \
"dropped": [{"drafts": [3], "why": "reason"}]}
- "actions" has each action with the numbers of all drafts that it stands for. A draft that stays as \
it is needs no entry.
- "dropped" has the drafts to leave out; it may be empty."""


def refine_messages(task: RefineTask) -> tuple[Message, ...]:
    """Request fewer, more general actions; the rules come first, as a common prefix."""
    drafts = "\n".join(f"{i}. {print_action(draft)}" for i, draft in enumerate(task.drafts, 1))
    wanted = (
        f"Refine these {len(task.drafts)} drafts. At most {task.max_actions} actions shall be left, "
        f"those that stay as they are included.\n\nDrafts:\n{drafts}"
    )
    return Message("system", _REFINER), Message("user", f"{_REFINE_RULES}\n\n{wanted}")


_MOST_FOLDED = 2  # Maximum reduction factor of a round: models lose important actions beyond it

_TOKENS_EACH = 150
"""Tokens reserved in the context window per draft: to read it and to write it again."""


class RefineSettings(Struct, frozen=True):
    """Limits of refining."""

    max_actions: int = 80
    max_tokens: int | None = None
    max_rounds: int = 6
    shard_size: int = 40
    max_output_tokens: int | None = None


async def refine_actions(
    found: Drafts,
    model: Model,
    settings: RefineSettings | None = None,
    *,
    counter: Counter | None = None,
) -> Refinement:
    """Refine drafts into a library."""
    require_extra("eval", "refining", "scipy")  # before any call
    settings = settings or RefineSettings()
    counter = counter or Counter.for_model(model.name)
    budget = merging.LibraryBudget(settings.max_actions, settings.max_tokens, counter.count)
    fates: merging.Fates = {}
    for draft in found.drafts:
        fate = DraftFate(
            number=draft.number, text=draft.text, name=draft.action.name if draft.action else None,
            question=draft.question, is_seed=draft.is_seed, fate="kept",
        )  # fmt: skip
        if draft.action is None:
            fate = replace(fate, fate="dropped", stage="malformed", why=draft.flaw)
        fates[draft.number] = fate
    refiner = _Refiner(model, settings, budget, fates)
    entries = [merging.entry_of(draft, draft.action) for draft in found.drafts if draft.action]
    entries = await refiner.merge(merging.merge_by_rule(entries, fates))
    entries = merging.without_clashes(entries, fates)
    entries = merging.prune_library(entries, budget, fates)
    into = {number: entry.action.name for entry in entries for number in entry.drafts}
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
        actions=tuple(
            RefinedAction(
                name=entry.action.name,
                text=entry.text,
                drafts=tuple(sorted(entry.drafts)),
                questions=tuple(sorted(entry.questions)),
                is_seed=entry.is_seed,
                is_native=entry.action.is_native,
            )
            for entry in merging.by_name(entries)
        ),
        drafts=tuple(replace(fate, into=into.get(number)) for number, fate in fates.items()),
        unread=found.unread,
        rounds=tuple(refiner.rounds),
    )


class _Refiner(Struct):
    """Merges entries by calls to a model; native actions are kept and not shown to it."""

    model: Model
    settings: RefineSettings
    budget: merging.LibraryBudget
    fates: merging.Fates
    rounds: list[Round] = []

    async def merge(self, entries: list[merging.LibraryEntry]) -> list[merging.LibraryEntry]:
        """Merge until the entries fit, a round merges none, or no round is left."""
        size = self.settings.shard_size
        if self.model.window:
            size = min(size, self.model.window // _TOKENS_EACH)
        for number in range(1, self.settings.max_rounds + 1):
            native = [entry for entry in entries if entry.action.is_native]
            drafts = sorted((e for e in entries if not e.action.is_native), key=merging.best)
            if self.budget.fits(entries) or len(drafts) < 2:
                break
            wanted = max(
                self.budget.capacity(entries) - len(native), -(-len(drafts) // _MOST_FOLDED)
            )
            results = await asyncio.gather(
                *(
                    self._shard(shard, max(1, len(shard) * wanted // len(drafts)), number)
                    for shard in merging.shards(drafts, max(2, size))
                )
            )
            if number == 1 and all(error for *_, error in results):
                error = next(error for *_, error in results if error)
                raise ModelError(
                    f"every call failed; the first error: {error.message}",
                    kind=error.kind,
                    help=error.help or "--rounds 0 merges equal names alone, without a model",
                ) from error
            n_before = len(entries)
            merged_entries = (entry for kept, *_ in results for entry in kept)
            entries = merging.merge_by_rule([*native, *merged_entries], self.fates)
            records = tuple(record for _, record, _ in results)
            self.rounds.append(
                Round(number=number, n_before=n_before, n_after=len(entries), shards=records)
            )
            if len(entries) == n_before:
                break
        return entries

    async def _shard(
        self, shard: list[merging.LibraryEntry], max_actions: int, number: int
    ) -> tuple[list[merging.LibraryEntry], ShardRecord, ModelError | None]:
        """Merge the entries of one call; after an error they stay as they are."""
        drafts = tuple(entry.action for entry in shard)
        task = RefineTask(drafts, max_actions)
        limit = reply_limit(task, self.model.window, self.settings.max_output_tokens)
        record = partial(ShardRecord, n_before=len(shard), max_actions=max_actions)
        try:
            completion = await self.model.complete(Request(refine_messages(task), task, limit))
        except ModelError as error:
            failed = record(n_after=len(shard), status="failed", problems=(error.message,))
            return shard, failed, error
        reply = read_reply(completion.text, drafts)
        left = dict(enumerate(shard, start=1))
        for draft, why in reply.drops:
            merging.drop(left.pop(draft), self.fates, "model", why, number)
        entries: list[merging.LibraryEntry] = []
        for action, numbers in reply.merges:
            group = [left.pop(draft) for draft in numbers]
            # A draft identical to the action is its representative.
            group.sort(key=lambda entry: (entry.action != action, merging.best(entry)))
            entries.append(merging.merged(group, self.fates, "model", number, action))
        entries += left.values()
        done = record(
            n_after=len(entries),
            status="merged" if reply.is_usable else "unusable",
            reply=completion.text,
            problems=reply.problems,
            usage=completion.usage,
        )
        return entries, done, None
