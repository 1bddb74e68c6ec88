"""Rows + action → rows with a model's reply about each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import ceil, inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.by_row import ByRow, by_row, each_of, reading, shown_text
from pearl.actions.columns import judge
from pearl.actions.values import (
    AMONG,
    MAY_CHANGE,
    Value,
    as_rows,
    as_text,
    number_of,
    without_repeats,
)
from pearl.documents.comparisons import Verdict
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, Unverified
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.evidence.verifying import Quote, Verifier
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Row, Rows
from pearl.dsl.nodes import Step, String, is_data
from pearl.dsl.signatures import NOTHING, Action
from pearl.errors import ModelError, ModelErrorKind, Span
from pearl.errors.escaping import counted
from pearl.interpreter import checking
from pearl.interpreter.context import ContextOverflowError, fail_step, off_loop
from pearl.interpreter.model_calls import Asker
from pearl.interpreter.naming import MAX_KEYS, MAX_NAME, named_rows
from pearl.interpreter.prompt import items_messages
from pearl.interpreter.provenance import Sources
from pearl.interpreter.requests import RequestBuilder, packed
from pearl.interpreter.results import StepResult, rows_undecided
from pearl.llm import ActionTask, Completion, ItemsTask, Request
from pearl.llm.concurrency import gather
from pearl.llm.reply_limits import reply_limit
from pearl.replies import items
from pearl.replies.items import NOT_STATED

LONG_ROW = 200
"""Minimum characters of a row that is asked for a deciding quote; a shorter row is its own passage."""

ITEM_TOKENS = 24  # Tokens reserved for the tags around an item, and for the joints of its text


def different(shown: Sequence[str | None]) -> list[str]:
    """The different non-blank texts, in order of first occurrence."""
    return [text for text in dict.fromkeys(shown) if text and text.strip()]


class RowStep(Struct, frozen=True):
    """A step that is carried out row by row."""

    rows: Rows
    task: ItemsTask
    how: ByRow
    reading: Action
    is_each: bool
    instruction: str = ""
    is_over: bool = False
    """Whether the model judges pairs that the action makes of the rows, instead of the rows."""
    n_needed: int | None = None
    taken: frozenset[str] = frozenset()  # The replies that count towards `n_needed`

    def shown(self, rows: Rows) -> list[str | None]:
        """The text of each row for a prompt; None for an undecided value."""
        if self.is_each:
            return [row.value for row in rows]
        return [shown_text(row, self.instruction) for row in rows]

    def texts(self, rows: Rows) -> list[str]:
        """The different non-blank texts of the rows."""
        return different(self.shown(rows))

    def over(self) -> RowStep:
        """The same step over pairs of rows if its action judges pairs; else the step unchanged."""
        if not self.is_over:
            return self
        given = (value for _, value in self.task.arguments)
        how = getattr(self.how, "Over")(self.rows, *given)  # noqa: B009
        return replace(self, rows=how.pairs, how=how)


def check_numbers(step: Step, action: Action) -> None:
    """Check numbers that a plan gives as text, before any call; the plan checker only checks number literals."""
    for i, argument in enumerate(step.arguments):
        parameter = action.parameter(i)
        if parameter.reads == "number" and isinstance(argument, String):
            try:
                whole_number(number_of(argument.value), parameter.name, least=parameter.least)
            except ValueError as error:
                fail_step(step, error)


def _verdicts(replies: Sequence[str], name: str, operator: str, x: Value) -> list[Verdict]:
    """For each reply, whether WHERE keeps its row."""
    rows = Rows(tuple(Row(reply, {name: reply}) for reply in replies), name, is_answered=True)
    return judge(rows, name, operator, x)[0]


MAX_SENTENCE = 300
"""Maximum characters of a deciding sentence that is shown whole; of a longer one, the quote is shown."""


def passage_in(document: Document, row: Row, quote: str, output: str) -> Evidence | Unverified:
    """The sentence of a row that contains a quote; the quote alone if the sentence is long."""
    start, end = row.spans[0].start, row.spans[-1].end
    match = Verifier(document.text[start:end]).verify(quote)
    if not match.is_verified:
        reason: Any = match.result
        return Unverified(output, quote, reason)
    first, last = start + match.spans[0].start, start + match.spans[-1].end
    around = checking.sentences_around(document, Span(first, last), (0, 0))
    around = Span(max(start, around.start), min(end, around.end))
    if around.end - around.start > MAX_SENTENCE:
        around = Span(first, last)
    return passage_at(Quote(quote, (around,), "exact"), output, document)


MAX_BESIDE = 2 * checking.MAX_HEAD + (1 + MAX_KEYS) * MAX_NAME
"""Maximum characters that a claim about a row adds to its text: headings above it, and its name."""


def claimed_kinds(check: str) -> tuple[str, ...]:
    """The kinds of decisions about rows that are sent to a checker."""
    return ("yes_no", "label", "line") if check == "all" else ("yes_no",)


class RowRequests:
    """Builds the requests of steps that are carried out row by row."""

    def __init__(self, builder: RequestBuilder) -> None:
        self._builder = builder
        self._limits = builder.limits

    def step(self, step: Step, earlier: Mapping[str, Value]) -> RowStep:
        """The rows and the task of a step."""
        library = self._builder.graph.checked.actions
        action = self._builder.graph.checked.action(step)
        first, *values = self._builder.values(step, earlier)
        how = by_row(action)
        labels: tuple[str, ...] = ()
        n_picks = 0
        arguments: list[tuple[str, str]] = []
        inputs: set[str] = set()
        for i, value in enumerate(values, start=1):
            parameter = action.parameter(i)
            if parameter.reads == "number":
                n_picks = whole_number(number_of(value), parameter.name, least=1)
                continue
            if how.KIND == "label" and parameter.name == "LABELS":
                labels = tuple(without_repeats(as_rows(value).values))
            else:
                arguments.append((parameter.name, as_text(value)))
            if is_data(step.arguments[i]):
                inputs.add(parameter.name)
        labels = labels or getattr(how, "LABELS", ())
        if how.KIND == "label" and not labels:
            raise ValueError("the list of labels is empty")
        task = ItemsTask(
            step.output, getattr(how, "ITEM", action), tuple(arguments), (), how.KIND, labels, n_picks,
            inputs=frozenset(inputs),
            is_named=how.KIND != "pick" and not self._limits.is_constrained,
        )  # fmt: skip
        is_each = each_of(action, library) is not None
        rows = as_rows(first)
        instructions = [value for name, value in arguments if name not in inputs]
        if action != how.ACTION:  # Built-in definitions mention only rows and labels
            instructions.append(action.definition)
        is_over = hasattr(how, "Over")
        needed = self._builder.graph.needed_rows.get(step.output)
        taken = frozenset[str]()
        if needed is not None and not is_over and task.kind in NOT_BLANK:
            taken = self._taken(task, needed.wheres)
        row_step = RowStep(
            rows, task, how, reading(action, library), is_each, " ".join(instructions),
            is_over, needed.n if needed and taken else None, taken,
        )  # fmt: skip
        return self.quoted(row_step, rows)

    def quoted(self, row_step: RowStep, rows: Rows | None, *, is_certain: bool = True) -> RowStep:
        """Ask for a quote with each reply if some rows are long, but not if they are too many; `rows` is None if they are unknown."""
        most = self._limits.row_quotes
        is_asked = most > 0 and not row_step.is_over
        if rows is not None:
            texts = row_step.texts(rows) if all(row.spans for row in rows) else []
            is_few = (row_step.task.n_picks or len(texts)) <= most or not is_certain
            is_asked &= is_few and any(len(text) > LONG_ROW for text in texts)
        return replace(row_step, task=replace(row_step.task, is_quoted=is_asked))

    def _taken(self, task: ItemsTask, wheres: Sequence[Step]) -> frozenset[str]:
        """The replies whose rows count for a later LIMIT; empty if that also depends on other rows."""
        if not wheres:
            return frozenset({"yes"} if task.kind == "yes_no" else ())
        replies = task.labels
        taken = set(replies)
        for where in wheres:
            given = {name.name: Rows(()) for name in where.references()}
            _, name, operator, x = self._builder.values(where, given)
            try:
                verdicts = _verdicts(replies, name, operator, x)
                alone = [_verdicts((reply,), name, operator, x)[0] for reply in replies]
            except ValueError:  # The WHERE step reports it
                return frozenset()
            if verdicts != alone:  # Other replies affect how a reply is read
                return frozenset()
            taken -= {r for r, verdict in zip(replies, verdicts, strict=True) if not verdict}
        return frozenset(taken)

    def batches(
        self, row_step: RowStep, texts: Sequence[str], size: int | None = None
    ) -> tuple[list[ItemsTask], list[str]]:
        """Divide texts into batches that fit a request; also return the texts that are too long for any batch."""
        if row_step.is_each:
            return [], list(texts)
        most, size = self._limits.prompt_tokens, size or self._limits.items_per_call
        room = inf if most is None else most - self.frame_tokens(row_step.task)
        if room < inf and texts:
            # Most rows are so short that a full batch fits, whatever their tokens are.
            longest = max(map(self._limits.counter.at_most, texts))
            room = inf if size * (longest + ITEM_TOKENS) <= room else room
        count = self._limits.counter.count
        sized = [(text, 0 if room == inf else count(text) + ITEM_TOKENS) for text in texts]
        batches = packed((each for each in sized if each[1] <= room), room, size)
        tasks = [replace(row_step.task, items=tuple(batch)) for batch in batches]
        return tasks, [text for text, n in sized if n > room]

    def request(self, task: ItemsTask) -> Request:
        """The request of a batch."""
        limits = self._limits
        most = reply_limit(task, limits.window, limits.max_output_tokens)
        return Request(items_messages(task), task, max_output_tokens=most)

    def alone(self, row_step: RowStep, step: Step, text: str) -> ActionTask:
        """The task that reads one row like a document."""
        action = row_step.reading
        arguments = [*row_step.task.arguments]
        if row_step.task.kind == "label":
            arguments.insert(0, ("LABELS", "; ".join(row_step.task.labels)))
        return ActionTask(
            step.output, action, tuple(arguments), text, step.explanation,
            inputs=row_step.task.inputs, gives=action.returns,
        )  # fmt: skip

    def frame_tokens(self, task: ItemsTask) -> int:
        """Tokens of a batch's prompt without its items, and a margin for the place where they are inserted."""
        prompt = self.request(replace(task, items=("a", "b"))).prompt
        return self._limits.counter.count(prompt) + ITEM_TOKENS


MAX_IDLE = 2  # Consecutive requests without a new reply, after which the rest is undecided
MAX_ROUNDS = 6  # Maximum requests for the items of one batch, including the first

UNREADABLE: frozenset[ModelErrorKind] = frozenset(
    {"truncated", "repetition", "empty", "refused", "filtered"}
)
"""Errors that concern one batch only; its rows are requested again."""


_QUOTE = "\n> "  # Separates a stored reply from its quote; a reply is one line

NOT_BLANK = ("yes_no", "label")  # Kinds of decision for which a blank reply means undecided


class RowReader:
    """Carries out one step row by row."""

    def __init__(self, step: Step, row_step: RowStep, asker: Asker) -> None:
        self._step = step
        self._row_step = row_step
        self._requests = RowRequests(asker.calls)
        self._asker = asker
        self._limits = asker.calls.limits
        self._cache = asker.items
        self._document = asker.calls.document.digest
        self._n_batches = 0  # Batches that are not finished
        self._replies: list[str] = []
        self._why = ""  # Why some replies about rows could not be read completely
        self._flaw = ""  # Why the value of a row may be incomplete or wrong
        self._failure: ModelError | None = None
        self._by_other = set[str]()  # Values decided by the escalation model
        self.quotes: dict[str, str] = {}  # Value → the quote that decided it
        # With a token budget, all prompts of the step share its part of the budget.
        self._left = self._limits.max_prompt_tokens
        self._shown = row_step.shown(row_step.rows)
        self._texts = different(self._shown)

    async def run(self) -> StepResult:
        """Request a reply about every row."""
        task = self._row_step.task
        by_text = await (self._pick() if task.kind == "pick" else self._decided(self._texts))
        is_open = not any(value is not None for value in by_text.values())
        if self._failure is not None and is_open and not self._row_step.is_over:
            raise self._failure
        checked, unchecked = await self._with_meaning(by_text)
        rows, n_read = self._row_step.rows, self._n_read(by_text)
        if n_read < len(rows):  # A LIMIT needs no more
            note = f"{AMONG} first {n_read:,} of {len(rows):,} rows; the others were not read"
            n_unread = rows.n_unread + len(rows) - n_read
            rows = replace(rows, rows=rows.rows[:n_read], n_unread=n_unread).noting(note)
            self._shown = self._shown[:n_read]
        replies = [None if text is None else by_text.get(text, "") for text in self._shown]
        # A blank row contains no value of these kinds
        if task.kind in NOT_BLANK:
            replies = [reply or None for reply in replies]
        is_verdict = task.kind == "yes_no"
        verdicts = Counter(filter(None, replies)) if is_verdict else {}
        unstated = ""
        if self._is_strict:
            if n := replies.count(NOT_STATED):
                unstated = f", {n:,} of them {NOT_STATED}"
            replies = [None if reply == NOT_STATED else reply for reply in replies]
        result = self._row_step.how.collect(rows, replies, self._step.output)
        by: dict[str, str] = {}  # Values decided by another model
        if self._by_other and (other := self._asker.escalation) is not None:
            by = dict.fromkeys(self._by_other, other.name)
            n = sum(text in by for text in self._shown)
            were = f"{n:,} {'row was' if n == 1 else 'rows were'}"
            result = result.noting(
                f"{self._step.output}: {were} undecided and then decided by {other.name}"
            )
        if (n := replies.count(None)) and (unstated or self._why):
            why = f": {self._why}" if self._why else ""
            result = result.noting(f"{self._step.output}: {n:,} undecided{unstated}{why}")
        n_undecided = len(result.undecided)
        flaw = next((note for note in result.notes if note.startswith(MAY_CHANGE)), "")
        deciding, misquoted = await self._deciding(result)
        done = StepResult(
            self._step.output, self._step.action, result, False, "rows",
            self._asker.calls.coverage(rows),
            reply="\n\n".join(self._replies), truncated=self._flaw or flaw,
            state="undecided" if n_undecided else "found" if result else "nothing",
            why=rows_undecided(result, len(rows)), verdicts=verdicts,
            # The line about one row may quote another row of its batch.
            sources=Sources(is_by_row=(task.kind != "line" and not self._row_step.is_over) or self._row_step.is_each),
            decided_by={row.key: by[t] for row, t in zip(rows, self._shown, strict=True) if t in by},
            deciding=deciding, misquoted=misquoted,
        )  # fmt: skip
        is_asked = checked.verdicts or unchecked
        return checking.with_checks(done, checked, unchecked) if is_asked else done

    async def _with_meaning(self, by_text: dict[str, str | None]) -> tuple[checking.Checked, str]:
        """Ask the checker whether the quotes support all replies but "no"; mark unsupported ones undecided. Also return a note on rows that are not checked."""
        kind, limits, rows = self._row_step.task.kind, self._limits, self._row_step.rows
        is_own = self._row_step.is_each or self._row_step.is_over
        if is_own or kind not in claimed_kinds(limits.check):
            return checking.Checked([]), ""
        taken = [
            text for text, reply in by_text.items()
            if (reply == "yes" if kind == "yes_no" else reply)
            and (self.quotes.get(text) or limits.check == "all")
        ]  # fmt: skip
        if self._asker.checker is None:
            return checking.Checked(["not checked"] * bool(taken), why="no model checks it"), ""
        asked = " ".join(value for _, value in self._row_step.task.arguments)
        document = self._asker.calls.document

        def named() -> dict[str | None, tuple[Row, str]]:
            names = named_rows(replace(rows, columns=()), document, {}, is_brief=True)
            those = [(row, each.name) for row, each in zip(rows, names, strict=True)]
            # For equal texts, the first row is checked.
            return dict(zip(self._shown[::-1], those[::-1], strict=True))

        def claims(
            own: Mapping[str | None, tuple[Row, str]], beside: tuple[int, int]
        ) -> dict[str, checking.Claim]:
            made = {}
            for text in taken:
                row, name = own[text]
                of = f"of {name or 'the passage'}"
                is_said = f"is true {of}" if kind == "yes_no" else f"{of} is {by_text[text]}"
                if passage := self._passage(row, text, beside):
                    made[text] = checking.Claim(f'"{asked}" {is_said}', passage)
            return made

        n_characters = sum(map(len, self._texts))
        own = await off_loop(n_characters, named)
        made: dict[str, checking.Claim] = {}
        for beside in ((1, 1), (0, 0)):
            made = await off_loop(n_characters, partial(claims, own, beside))
            if is_few := checking.length_of(made.values()) <= checking.room_of(n_characters):
                break
        if not (is_few or limits.check == "all"):
            note = f"{counted(len(made), 'row')} not checked; --check all checks them"
            return checking.Checked([]), f"{self._step.output}: {note}"
        most, left = limits.max_prompt_tokens, self._left
        n_spent = 0 if most is None or left is None else most - left
        checked = await checking.check_claims(
            self._asker, [*made.values()], step=self._step, n_spent=n_spent
        )
        for text, verdict in zip(made, checked.verdicts, strict=True):
            if why := checking.REFUSED.get(verdict):
                by_text[text], self._why = None, why
        return checked, ""

    def _passage(self, row: Row, text: str, beside: tuple[int, int]) -> str:
        """The passage that decided a row, with neighbouring sentences of the row; a short row is shown whole."""
        document, quote = self._asker.calls.document, self.quotes.get(text, "")
        if not (quote and row.spans):
            return text if len(text) <= LONG_ROW else ""
        passage = passage_in(document, row, quote, self._step.output)
        if isinstance(passage, Unverified):
            return ""
        around = checking.sentences_around(document, passage.span, beside)
        is_within = row.spans[0].start <= around.start and around.end <= row.spans[-1].end
        return checking.passage_of(document, [passage], beside if is_within else (0, 0))

    async def _deciding(
        self, result: Rows
    ) -> tuple[dict[object, Evidence], tuple[Unverified, ...]]:
        """Find the quotes that decided the rows of a result; also return the quotes that are not in their rows."""
        of_result = {row.key for row in result}
        pairs = [
            (row, quote)
            for row, text in zip(self._row_step.rows, self._shown, strict=False)
            if text and (quote := self.quotes.get(text)) and row.spans and row.key in of_result
        ]
        document, output = self._asker.calls.document, self._step.output

        def find() -> list[tuple[object, Evidence | Unverified]]:
            return [(row.key, passage_in(document, row, quote, output)) for row, quote in pairs]

        found = await off_loop(sum(len(row.text) for row, _ in pairs), find)
        misquoted = tuple(each for _, each in found if isinstance(each, Unverified))
        return {key: each for key, each in found if isinstance(each, Evidence)}, misquoted

    @property
    def _is_strict(self) -> bool:
        """Whether the reply "not stated" means undecided."""
        return self._limits.is_strict and self._row_step.task.kind == "yes_no"

    def _is_open(self, reply: str | None) -> bool:
        """Whether a reply leaves the value undecided."""
        is_blank = not reply and self._row_step.task.kind in NOT_BLANK
        return reply is None or is_blank or (self._is_strict and reply == NOT_STATED)

    @asynccontextmanager
    async def _escalating(self) -> AsyncIterator[RowReader | None]:
        """Yield a reader for the escalation model; None if there is no such model."""
        asker = self._asker.escalation
        if asker is None:
            yield None
            return
        reader = RowReader(self._step, self._row_step, asker)
        reader._left = self._left
        try:
            yield reader
        except (ContextOverflowError, ModelError) as error:
            # A small window, a spent budget, or unreadable replies
            if isinstance(error, ModelError) and error.kind not in UNREADABLE:
                raise
            self._why = f"{asker.name}: {error.message}"
        finally:
            self._replies += reader._replies
            self._flaw = self._flaw or reader._flaw

    async def _decided(self, texts: Sequence[str]) -> dict[str, str | None]:
        """Read texts; the escalation model reads those that remain undecided."""
        # The replies, updated by the escalation model where they are undecided
        by_text = await self.read(texts)
        left = [text for text, reply in by_text.items() if self._is_open(reply)]
        async with self._escalating() as reader:
            if reader is not None and left:
                for text, reply in (await reader.read(left)).items():
                    if not self._is_open(reply):
                        by_text[text] = reply
                        self._by_other.add(text)
                        self.quotes[text] = reader.quotes.get(text, "")
        return by_text

    async def read(self, texts: Sequence[str]) -> dict[str, str | None]:
        """The reply about each text; None if it is undecided."""
        if texts:
            self._asker.outputs.add(self._step.output)
        by_text: dict[str, str | None] = {}
        if self._cache is not None:
            kept = await self._cache.find(self._row_step.task, texts, self._document)
            by_text.update(self._without_quotes(kept))
        left = [text for text in texts if text not in by_text]
        batches, long = self._requests.batches(self._row_step, left)
        self._reserve(batches, len(long))
        calls: list[ItemsTask | str] = [*batches, *long]
        places = {text: i for i, text in enumerate(left)}
        calls.sort(key=lambda call: places[call if isinstance(call, str) else call.items[0]])
        n_sent = 0
        while n_sent < len(calls) and (n := self._n_next(by_text, n_sent, len(calls))):
            sent = calls[n_sent : n_sent + n]
            n_sent += n
            self._n_batches = sum(isinstance(each, ItemsTask) for each in sent)
            for replies in await gather(
                [self._alone(each) if isinstance(each, str) else self._batch(each) for each in sent]
            ):
                by_text.update(replies)
        return by_text

    def _n_next(self, by_text: Mapping[str, str | None], n_sent: int, n_calls: int) -> int:
        """The number of calls to send now: all, or the estimated number that a LIMIT still needs."""
        n_needed = self._row_step.n_needed
        if n_needed is None:
            return n_calls
        taken = self._row_step.taken
        read = self._shown[: self._n_read(by_text)]
        n_taken = sum(by_text.get(text) in taken for text in read if text)
        if n_taken >= n_needed:
            return 0
        n_probable = (
            ceil((n_needed - n_taken) * n_sent / n_taken) if n_sent and n_taken else n_calls
        )
        return min(n_probable, max(1, n_sent))

    def _n_read(self, by_text: Mapping[str, str | None]) -> int:
        """The number of rows before the first one that was not sent to the model."""
        unread = (
            i for i, text in enumerate(self._shown) if text and text.strip() and text not in by_text
        )
        return next(unread, len(self._shown))

    def _reserve(self, batches: Sequence[ItemsTask], n_long: int = 0) -> None:
        """Reserve tokens of a budget for all these requests before the first is sent."""
        if self._left is None or not (batches or n_long):
            return
        if (n_long and (batches or n_long > 1)) or not self._is_left(*batches):
            n = sum(len(batch.items) for batch in batches) + n_long
            raise ContextOverflowError(
                f"its {n:,} rows need more than the {self._left:,} tokens that its calls may use",
                help="raise --token-budget, or let the plan select fewer rows first",
            )

    def _is_left(self, *tasks: ItemsTask) -> bool:
        """Reserve tokens of a budget for these requests; False if too few are left."""
        if self._left is None:
            return True
        count = self._limits.counter.count
        n_tokens = sum(count(self._requests.request(task).prompt) for task in tasks)
        if n_tokens > self._left:
            return False
        self._left -= n_tokens
        return True

    async def _batch(self, task: ItemsTask) -> dict[str, str | None]:
        by_text: dict[str, str | None] = dict.fromkeys(task.items)
        if self._cache is not None:
            by_text.update(self._without_quotes(self._cache.of_batch(task)))
        missing = tuple(text for text, value in by_text.items() if value is None)
        idle, round, why, is_free = 0, 0, "", False
        while missing and idle < MAX_IDLE and round < MAX_ROUNDS:
            asked = replace(task, items=missing, round=round, why=why)
            if round and not self._is_left(asked):
                break
            failure = self._failure
            replies = await self._replies_to(asked, is_free=is_free)
            # Under a schema, some models write blanks up to the limit.
            is_free = self._failure is not failure and not self._asker.fallback.is_required
            why = replies.why
            read = {
                text: value
                for text, value in zip(missing, replies.values, strict=True)
                if value is not None
            }
            by_text.update(read)
            missing = tuple(text for text in missing if text not in read)
            idle += not read
            round += 1
        self._why = why if missing else self._why
        self._n_batches -= 1
        return by_text

    async def _replies_to(self, task: ItemsTask, *, is_free: bool = False) -> items.ItemReplies:
        """Send one request, without a constraint if `is_free`; a missing reply to an item is None."""
        n, kind, labels, fallback = len(task.items), task.kind, task.labels, self._asker.fallback
        constraint = items.items_constraint(
            n, kind, labels, n_picks=task.n_picks, max_text=fallback.max_text, is_quoted=task.is_quoted
        )  # fmt: skip
        n_others = self._n_batches - 1

        def request(*, is_held: bool) -> Request:
            asked = replace(task, is_named=kind != "pick" and not is_held)
            made = self._requests.request(asked)
            return replace(made, n_later=lambda: max(0, self._n_batches - 1), n_between=n_others)

        # Only this request may find out whether the server accepts a constraint.
        may_hold = not is_free and fallback.level is not None
        completion: Completion | None = None
        try:
            completion = await self._asker.ask(
                self._step, "items", request(is_held=may_hold), None if is_free else constraint,
                partial(items.form_flaw, constraint=constraint), partial(request, is_held=False) if may_hold else None,
            )  # fmt: skip
            text = completion.text
        except ModelError as error:
            if error.kind not in UNREADABLE:
                raise
            self._failure = error
            text = error.reply
        # Under a constraint, a cut-off line looks complete.
        is_held = fallback.level is not None and not is_free
        is_named = kind != "pick" and not is_held
        replies = items.read_items(
            text, n, kind, labels, task.n_picks, fallback.max_text if is_held else None, items=task.items,
            names=items.item_names(task.items, kind, task.round) if is_named else None, is_cut=completion is None,
        )  # fmt: skip
        values = tuple("" if value == NOTHING else value for value in replies.values)
        quotes = replies.quotes if task.is_quoted else ()
        self.quotes |= {
            text: quote for text, quote in zip(task.items, quotes, strict=False) if quote
        }
        if completion is not None and self._cache is not None and kind != "pick":
            read = {
                text: f"{v}{_QUOTE}{self.quotes[text]}" if text in self.quotes else v
                for text, v in zip(task.items, values, strict=True)
                if v is not None
            }
            await self._cache.keep(task, read, self._document, completion.model)
        return replace(replies, values=values)

    def _without_quotes(self, kept: Mapping[str, str]) -> dict[str, str]:
        """Split stored replies into reply and quote; the quotes are recorded."""
        replies = {}
        for text, reply in kept.items():
            replies[text], _, quote = reply.partition(_QUOTE)
            if quote:
                self.quotes[text] = quote
        return replies

    async def _alone(self, text: str) -> dict[str, str | None]:
        """The reply about a text that is read on its own."""
        task = self._requests.alone(self._row_step, self._step, text)
        _, pieces = await self._asker.calls.pieces(task)
        read = await self._asker.over_pieces(self._step, task, pieces)
        self._replies.append(read.text)
        self._flaw = self._flaw or read.truncated
        if read.reply.quotes:
            self.quotes[text] = read.reply.quotes[0]
        kind, reply, labels = self._row_step.task.kind, read.reply, self._row_step.task.labels
        if reply.state == "undecided":
            return {text: None}
        if reply.state == "nothing":
            return {text: {"line": "", "yes_no": NOT_STATED}.get(kind)}
        value = str(reply.value)
        if isinstance(reply.value, bool):
            value = "yes" if reply.value else "no"
        if self._row_step.is_each:
            return {text: value}
        return {text: items.read_items(json.dumps({"1": value}), 1, kind, labels).values[0]}

    async def _pick(self) -> dict[str, str | None]:
        """Rank the best texts by a tournament: the best of each group advance until one group is left. Return each text's rank."""
        k = self._row_step.task.n_picks
        size = max(self._limits.items_per_call, k + 1)  # A group of k texts would not get smaller
        left, undecided = self._texts, set[str]()
        ordered: list[str] = left
        while left:
            batches, long = self._requests.batches(self._row_step, left, size)
            undecided.update(long)
            groups = [list(batch.items) for batch in batches]
            is_last = len(groups) <= 1
            if not is_last and sum(min(k, len(group)) for group in groups) >= len(left):
                raise ContextOverflowError(
                    f"its rows are too long: no {k + 1:,} of them fit one call to be compared",
                    help="use a model with a larger window, or ask for fewer",
                )
            self._reserve([replace(batch, n_picks=k) for batch in batches])
            picked = await gather(
                [self._picked(group, min(k, len(group)), is_last=is_last) for group in groups]
            )
            ordered = []
            for group, best in zip(groups, picked, strict=True):
                if best is None:
                    undecided.update(group)
                else:
                    ordered += best
            if is_last:
                break
            left = ordered
        n_rows = Counter(self._shown)
        places: dict[str, str] = {}
        n_placed = 0
        for text in ordered[:k]:
            if n_placed < k:  # Rows with the same value share a rank
                places[text] = str(len(places) + 1)
            n_placed += n_rows[text]
        unsure = dict.fromkeys(undecided - set(places))
        return {**dict.fromkeys(self._texts, ""), **unsure, **places}

    async def _picked(self, group: list[str], k: int, *, is_last: bool) -> list[str] | None:
        """The k best texts of a group, best first; None if the replies are unclear. Only the last group is asked for quotes."""
        task = self._row_step.task
        task = replace(task, items=tuple(group), n_picks=k, is_quoted=task.is_quoted and is_last)
        why = ""
        for round in range(MAX_IDLE):
            asked = replace(task, round=round, why=why)
            if round and not self._is_left(asked):
                break
            replies = await self._replies_to(asked)
            values, why = replies.values, replies.why
            if None not in values:
                places = {
                    int(value): text for value, text in zip(values, group, strict=True) if value
                }
                return [text for _, text in sorted(places.items())]
        async with self._escalating() as reader:
            if reader is not None and self._is_left(task):
                best = await reader._picked(group, k, is_last=is_last)
                self.quotes |= reader.quotes
                return best
        return None
