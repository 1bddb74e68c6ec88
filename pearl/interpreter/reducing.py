"""All rows, or each group of rows → one text, by a model that reads them in a tree of requests."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

from pearl.actions.by_row import reading, shown_text
from pearl.actions.values import Value, as_rows, as_text
from pearl.documents.evidence import Evidence, Unverified, normalise
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.rows import EMPTY, Row, Rows
from pearl.dsl.nodes import Step, is_data
from pearl.dsl.signatures import NOTHING
from pearl.errors.escaping import counted
from pearl.interpreter.asking import UNQUOTED, Asker
from pearl.interpreter.context import ContextOverflowError, off_loop
from pearl.interpreter.provenance import leaves
from pearl.interpreter.requests import RequestBuilder, chunk_size
from pearl.interpreter.results import StepResult, rows_undecided
from pearl.interpreter.row_steps import ITEM_TOKENS
from pearl.llm import ActionTask, Usage
from pearl.llm.concurrency import gather
from pearl.replies.typed import Reply
from pearl.trace import Purpose

Group = tuple[Row | None, Sequence[Row]]
"""A group and its rows; None and all rows if they are in no groups."""


class Reduction:
    """A step that reduces rows, and its requests before any is sent."""

    def __init__(self, step: Step, earlier: Mapping[str, Value], calls: RequestBuilder) -> None:
        checked = calls.graph.checked
        rows, x = calls.values(step, earlier)
        self.rows, self._calls, self._x = as_rows(rows), calls, as_text(x)
        self.task = ActionTask(
            step.output, reading(checked.action(step), checked.actions), (("X", self._x),), "",
            step.explanation, checked.plan.question or "",
            frozenset({"X"} if is_data(step.arguments[1]) else ()),
        )  # fmt: skip

    def groups(self) -> list[Group]:
        """The groups, or all rows."""
        if is_grouped(self.rows):
            return [(group, group.members) for group in self.rows]
        own = [row for row in self.rows if row.value is not None]
        return [(None, own)] if own else []

    def _texts(self, group: Group) -> Counter[str]:
        """The different texts of the rows of a group and how many have each, in the order of the document."""
        texts = Counter[str]()
        for row in sorted(group[1], key=_place):
            is_whole = bool(row.text) and (group[0] is not None or self.rows.is_answered)
            text = shown_text(row.valued(row.text) if is_whole else row, self._x) or ""
            if is_whole and row.value and row.value not in row.text:
                text = f"{text}: {row.value}"
            texts[" ".join(text.split())] += 1
        return texts

    def parts(self, group: Group) -> list[ActionTask]:
        """The requests about a group: its rows are in one as far as they fit, and a longer row is cut."""
        available, count = self._calls.available_tokens(self.task), self._calls.limits.counter.count
        room = inf if available is None else available - ITEM_TOKENS
        if room <= ITEM_TOKENS:
            raise ContextOverflowError(
                "the step's own inputs fill the model's window",
                help="use a model with a larger window, or shorten what earlier steps return",
            )
        left, parts = room, [list[str]()]
        for text, n_rows in self._texts(group).items():
            line = f"- {_times(n_rows)}{text}"
            pieces = [line] if count(line) <= room else self._calls.cut(line, chunk_size(int(room)))
            for piece in pieces if text else ():
                n = count(piece) + ITEM_TOKENS
                if n > left and parts[-1]:
                    parts.append([])
                    left = room
                parts[-1].append(piece)
                left -= n
        return [replace(self.task, document="\n".join(part)) for part in parts if part]


def is_grouped(rows: Rows) -> bool:
    """Whether rows are groups; pairs have members, too, but no key."""
    has_members = any(row.members or row.possible for row in rows.every)
    return has_members and rows.column in rows.names


def _times(n: int) -> str:
    return f"({n:,} times) " if n > 1 else ""


def _place(row: Row) -> tuple[float, str]:
    spans = [span.start for leaf, _ in leaves(Rows((row,))) for span in leaf.spans]
    return min(spans, default=inf), row.text or row.value or ""


class _Said(NamedTuple):
    """What a reply says: None if it is undecided, "" if nothing; with the quotes that stand in rows, and the passages of each."""

    text: str | None
    quotes: tuple[str, ...] = ()
    proofs: Mapping[str, tuple[object, Evidence]] = {}

    @property
    def plain(self) -> str:
        """The reply as a request to merge shows it."""
        return "\n".join([self.text or "", *(f"> {quote}" for quote in self.quotes)])


class Reducer:
    """Carries out a step that reduces rows."""

    def __init__(self, step: Step, reduction: Reduction, asker: Asker) -> None:
        self._step, self._reduction, self._asker = step, reduction, asker
        self._left = asker.calls.limits.max_prompt_tokens  # of a budget, for all requests together
        self._n_calls, self._usage = 0, Usage()
        self._misquoted: set[Unverified] = set()
        self._flaws: set[str] = set()
        self._notes: set[str] = set()

    async def run(self) -> StepResult:
        """Request a text for each group, or one for all rows."""
        rows, output, groups = self._reduction.rows, self._step.output, self._reduction.groups()
        every = [row for _, own in groups for row in own]
        parted = await off_loop(
            100 * len(every), lambda: [self._reduction.parts(group) for group in groups]
        )
        self._reserve(part for parts in parted for part in parts)
        found = await gather(list(map(self._text, groups, parted)))
        texts = [said.text for said in found]
        value: str | Rows = (texts[0] or "") if texts else ""
        if is_grouped(rows):
            made = tuple(
                Row(
                    text,
                    {**row.fields, output: text},
                    (),
                    row.text or row.value or EMPTY,
                    row.members,
                )
                for row, text in zip(rows, texts, strict=True)
            )
            value = replace(
                rows, rows=made, doubtful=tuple(row.with_column(output, None) for row in rows.doubtful),
                column=output, is_answered=True, shows_possible=False, columns=(), totals=(), stated=None,
            )  # fmt: skip
        n_open = rows_undecided(rows)
        flaw = f"{n_open} and not in it" if n_open else min(self._flaws, default="")
        is_open = None in texts or (isinstance(value, Rows) and bool(value.doubtful))
        deciding: dict[object, Evidence] = {}
        for key, passage in (proof for said in found for proof in said.proofs.values()):
            deciding[(key, passage.span) if key in deciding else key] = passage
        return StepResult(
            self._step.output, self._step.action, value or (f"undecided: {flaw}" if is_open else NOTHING),
            False, "rows", self._asker.calls.coverage(Rows(tuple(row.valued(row.text) for row in every))),
            self._n_calls, self._usage, reply=value if isinstance(value, str) else "",
            state="undecided" if is_open else "found" if value else "nothing",
            why=flaw if is_open else "", truncated=flaw, deciding=deciding,
            misquoted=tuple(sorted(self._misquoted, key=lambda each: each.text)),
            notes=(*rows.notes, *sorted(self._notes)),
        )  # fmt: skip

    async def _text(self, group: Group, parts: Sequence[ActionTask]) -> _Said:
        """The text of one group, merged level by level."""
        own = (leaf for leaf, _ in leaves(Rows(tuple(group[1]))) if leaf.spans)
        places = [(leaf.spans[0].start, leaf.spans[-1].end, leaf.key) for leaf in own]
        places.sort(key=itemgetter(0))
        purpose: Purpose = "part" if len(parts) > 1 else "step"
        replies = await gather([self._leaf(purpose, part, places) for part in parts])
        n_levels = 0
        while len(said := [each for each in replies if each.text]) > 1:
            rest, task = iter(said), self._reduction.task
            groups = self._asker.calls.groups(task, [each.plain for each in said])
            tasks = [replace(task, parts=tuple(texts)) for texts in groups]
            self._reserve(each for each, texts in zip(tasks, groups, strict=True) if texts[1:])
            below = [list(islice(rest, len(texts))) for texts in groups]
            replies = await gather(list(map(self._merged, tasks, below)))
            n_levels += 1
        if n_levels:
            levels = counted(n_levels, "level")
            self._notes.add(
                f"{self._step.output}: rows in {len(parts):,} parts, merged in {levels}"
            )
        return said[0] if said else next((each for each in replies if each.text is None), _Said(""))

    async def _leaf(
        self, purpose: Purpose, task: ActionTask, places: Sequence[tuple[int, int, object]]
    ) -> _Said:
        """The reply about some rows, whose quotes are looked up in these."""
        reply = await self._read(purpose, task)
        document = self._asker.calls.document

        def find() -> dict[str, tuple[object, Evidence]]:
            proofs = {}
            for said in reply.quotes:
                quote = said.rpartition(" times) ")[
                    2
                ]  # what stands before a row is not of the document
                found = self._asker.calls.verifier.every(quote)
                for each in found if found[0].is_verified else ():
                    at = bisect_right(places, each.spans[0].start, key=itemgetter(0)) - 1
                    if at >= 0 and each.spans[-1].end <= places[at][1]:
                        proofs[quote] = places[at][2], passage_at(each, self._step.output, document)
                        break
                else:
                    is_given = normalise(quote) in normalise(task.document or "")
                    reason: Any = "given" if is_given else "missing"
                    self._misquoted.add(Unverified(self._step.output, quote, reason))
            return proofs

        proofs = await off_loop(len(document.text), find)
        return self._said(reply, proofs, {})

    async def _merged(self, task: ActionTask, below: Sequence[_Said]) -> _Said:
        """The reply merged from several, with those of their quotes that it repeats; a single one as it is."""
        if len(below) == 1:
            return below[0]
        reply = await self._read("combine", task)
        known = {normalise(q): (q, proof) for said in below for q, proof in said.proofs.items()}
        proofs = {}
        for quote in reply.quotes:
            wanted = normalise(quote)
            if whole := next((each for each in known if wanted and wanted in each), None):
                proofs[quote] = known[whole][1]
            else:
                self._misquoted.add(Unverified(self._step.output, quote, "missing"))
        return self._said(reply, proofs, dict(known.values()))

    def _said(
        self, reply: Reply, proofs: Mapping[str, tuple[object, Evidence]],
        below: Mapping[str, tuple[object, Evidence]],
    ) -> _Said:  # fmt: skip
        """What a reply says; without quotes of its own, it rests on those of the replies that it merges."""
        if reply.state == "nothing":
            return _Said("")
        if reply.state != "found":
            self._flaws.add(reply.why)
            return _Said(None)
        if not (proofs or below):
            self._flaws.add(UNQUOTED)
        return _Said(str(reply.value), tuple(proofs), proofs or below)

    async def _read(self, purpose: Purpose, task: ActionTask) -> Reply:
        read = await self._asker.read(self._step, purpose, task)
        self._n_calls += read.n_calls
        self._usage += read.usage
        self._flaws |= {read.truncated} - {"", UNQUOTED}
        return read.reply

    def _reserve(self, tasks: Iterable[ActionTask]) -> None:
        """Set tokens of a budget aside for these requests."""
        if self._left is None:
            return
        count, request = self._asker.calls.limits.counter.count, self._asker.calls.request
        self._left -= sum(count(request(task).prompt) for task in tasks)
        if self._left < 0:
            raise ContextOverflowError(
                f"its rows need {-self._left:,} tokens more than its requests may use",
                help="raise --token-budget, or let the plan select fewer rows first",
            )
