"""Rows + an action → rows with a model's reply about each.

Equal values are asked about once, in batches; each reply is verified item by item, and what is
missing of a batch is asked again on its own. What still cannot be read is undecided.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pearl.actions.estimates import wilson
from pearl.actions.item_reply import form_flaw, items_constraint, read_items
from pearl.actions.reply import Reply
from pearl.documents.digest import text_sha256
from pearl.documents.rows import Rows
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import NOTHING
from pearl.errors import ExecutionError, ModelError, ModelErrorKind
from pearl.interpreter.gathering import gather
from pearl.interpreter.requests import ContextLimits
from pearl.interpreter.row_requests import RowRequests, RowStep
from pearl.llm import ActionTask, Completion, ItemsTask, Request, Usage
from pearl.llm.item_cache import ItemCache

__all__ = ["MAX_ROUNDS", "RowReader", "RowsRead"]

MAX_ROUNDS = 6
"""Requests for the items of one batch at most, the first included."""

UNREADABLE: frozenset[ModelErrorKind] = frozenset(
    {"truncated", "repetition", "empty", "refused", "filtered"}
)
"""Why a batch has no whole reply, although the next one may: its rows are asked about again."""

AskItems = Callable[[Request, Constraint, Callable[[str], str | None]], Awaitable[Completion]]
"""Sends a request with a constraint and a check of what it is held to."""

ReadText = Callable[[ActionTask], Awaitable["TextRead"]]
"""Reads one text as a document of its own."""


@dataclass(frozen=True, slots=True)
class TextRead:
    """The result of reading one row as a document of its own."""

    text: str
    reply: Reply
    usage: Usage
    n_calls: int


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The result of a step that was carried out row by row.

    Attributes:
        rows: Its value.
        n_calls: Model calls.
        usage: Their tokens.
        replies: The full replies about rows that were read on their own, with their quotes.
    """

    rows: Rows
    n_calls: int
    usage: Usage
    replies: tuple[str, ...] = ()


class RowReader:
    """Carries out one step row by row.

    Args:
        step: The step.
        row_step: Its rows and its task.
        requests: Builds its requests.
        limits: Items of a call and rounds of a batch.
        ask: Sends a batch.
        read: Reads one text on its own.
        cache: Replies about single items; None for none.
    """

    def __init__(
        self,
        step: Step,
        row_step: RowStep,
        requests: RowRequests,
        limits: ContextLimits,
        ask: AskItems,
        read: ReadText,
        cache: ItemCache | None,
    ) -> None:
        self._step = step
        self._row_step = row_step
        self._requests = requests
        self._limits = limits
        self._ask = ask
        self._read = read
        self._cache = cache
        self._n_calls = 0
        self._usage = Usage()
        self._replies: list[str] = []
        self._failure: ModelError | None = None

    async def run(self) -> RowsRead:
        """Ask about all rows.

        Raises:
            ExecutionError: A row is undecided, and the limits say that none may be.
            ModelError: No reply about any row is usable.
        """
        rows, task = self._row_step.rows, self._row_step.task
        if task.kind == "pick":
            found = await self._pick()
        else:
            found = await self._each()
        if self._failure is not None and all(value is None for value in found.values()):
            raise self._failure
        replies = [None if row.value is None else found.get(row.value, "") for row in rows]
        if task.kind in ("yes_no", "label", "rating"):  # a blank row says nothing of these
            replies = [reply or None for reply in replies]
        result = self._row_step.how.collect(rows, replies, self._step.output)
        if self._limits.recheck and task.kind in ("yes_no", "label"):
            note = await self._recheck({text: said for text, said in found.items() if said})
            result = result.noting(note) if note else result
        if self._limits.is_strict and result.undecided:
            n = len(result.undecided)
            raise ExecutionError(
                f"{n:,} of {len(rows):,} rows are undecided", step=self._step.output,
                help="--items-per-call 1 asks about each row on its own; leave out --strict-items to go on without them",
            )  # fmt: skip
        return RowsRead(result, self._n_calls, self._usage, tuple(self._replies))

    async def _each(self) -> dict[str, str | None]:
        """The reply about each different value; None where it is undecided."""
        texts = self._row_step.texts
        found: dict[str, str | None] = {}
        if self._cache is not None:
            found.update(await self._cache.find(self._row_step.task, texts))
        left = [text for text in texts if text not in found]
        batches, long = self._requests.batches(self._row_step, left)
        for replies in await gather([*map(self._batch, batches), *map(self._alone, long)]):
            found.update(replies)
        return found

    async def _batch(self, task: ItemsTask) -> dict[str, str | None]:
        """The replies about the items of one batch."""
        found: dict[str, str | None] = dict.fromkeys(task.items)
        missing, idle, round = task.items, 0, 0
        while missing and idle <= self._limits.max_reasks and round < MAX_ROUNDS:
            values = await self._values(replace(task, items=missing, round=round))
            read = {
                text: value
                for text, value in zip(missing, values, strict=True)
                if value is not None
            }
            found.update(read)
            missing = tuple(text for text in missing if text not in read)
            idle += not read
            round += 1
        return found

    async def _values(self, task: ItemsTask, *, is_kept: bool = True) -> Sequence[str | None]:
        """One request: the reply about each of its items, None where there is none."""
        n, kind, labels = len(task.items), task.kind, task.labels
        constraint = items_constraint(
            n, kind, labels, n_picks=task.n_picks, max_item_tokens=self._limits.max_item_tokens
        )

        def flaw(text: str) -> str | None:
            return form_flaw(text, n, kind, labels, n_picks=task.n_picks)

        self._n_calls += 1
        completion: Completion | None = None
        try:
            completion = await self._ask(self._requests.request(task), constraint, flaw)
        except ModelError as error:
            if error.kind not in UNREADABLE:
                raise
            self._failure = error
            self._usage += error.usage or Usage()
            text = error.reply.rpartition("\n")[0]  # the last line may end anywhere
        else:
            self._usage += completion.usage
            text = completion.text
        values = read_items(text, n, kind, labels, n_picks=task.n_picks).values
        values = tuple("" if value == NOTHING else value for value in values)
        if completion is not None and self._cache is not None and is_kept and kind != "pick":
            read = {text: v for text, v in zip(task.items, values, strict=True) if v is not None}
            await self._cache.keep(task, read, completion.model)
        return values

    async def _recheck(self, found: Mapping[str, str]) -> str:
        """Ask about some values again, each in a call of its own, and say how many agree."""
        draw = random.Random(text_sha256("\n".join(found)))
        texts = draw.sample(sorted(found), min(self._limits.recheck, len(found)))
        if not texts:
            return ""
        task = self._row_step.task
        # Another request than any before: one that is known would agree with itself.
        task = replace(task, round=MAX_ROUNDS)
        said = await gather(
            [self._values(replace(task, items=(text,)), is_kept=False) for text in texts]
        )
        n = sum(values[0] == found[text] for text, values in zip(texts, said, strict=True))
        low, high = (round(100 * end) for end in wilson(n, len(texts)))
        return f"{n} of {len(texts)} rows that were asked about again, one a call, got the same reply (95 % interval: {low} to {high} %)"

    async def _alone(self, text: str) -> dict[str, str | None]:
        """The reply about a value that is read on its own."""
        read = await self._read(self._requests.alone(self._row_step, self._step, text))
        self._n_calls += read.n_calls
        self._usage += read.usage
        self._replies.append(read.text)
        return {text: self._value(read.reply)}

    def _value(self, reply: Reply) -> str | None:
        """The reply to a text that was read on its own, as one to an item."""
        task = self._row_step.task
        if reply.state == "undecided":
            return None
        if reply.state == "nothing":
            return "" if task.kind == "line" else None
        match reply.value:
            case bool():
                said = "yes" if reply.value else "no"
            case _:
                said = str(reply.value)
        if self._row_step.is_each:
            return said
        return read_items(f"1: {said}", 1, task.kind, task.labels).values[0]

    async def _pick(self) -> dict[str, str | None]:
        """The places of the best values: groups are asked for their best until one group is left.

        At most ceil((n - 1) / (g - k)) + 1 calls for n values in groups of g, of which k are kept.
        """
        k = self._row_step.task.n_picks
        size = max(self._limits.items_per_call, k + 1)
        left, undecided = self._row_step.texts, set[str]()
        ordered: list[str] = left
        while left:
            batches, long = self._requests.batches(self._row_step, left, size)
            undecided.update(long)
            groups = [list(batch.items) for batch in batches]
            is_last = len(groups) == 1
            picked = await gather([self._picked(group, min(k, len(group))) for group in groups])
            ordered = []
            for group, best in zip(groups, picked, strict=True):
                if best is None:
                    undecided.update(group)
                else:
                    ordered += best
            if is_last or len(ordered) >= len(left):
                break
            left = ordered
        places = {text: str(i) for i, text in enumerate(ordered[:k], start=1)}
        unsure = dict.fromkeys(undecided - set(places))
        return {**dict.fromkeys(self._row_step.texts, ""), **unsure, **places}

    async def _picked(self, group: list[str], k: int) -> list[str] | None:
        """The k best of a group, best first; None where the replies do not say."""
        task = replace(self._row_step.task, items=tuple(group), n_picks=k)
        for round in range(1 + self._limits.max_reasks):
            values = await self._values(replace(task, round=round))
            if None not in values:
                places = {
                    int(value): text for value, text in zip(values, group, strict=True) if value
                }
                return [text for _, text in sorted(places.items())]
        return None
