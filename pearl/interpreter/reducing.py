"""All rows, or each group of rows → one text, by a model that reads them in a tree of requests."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from math import inf
from typing import NamedTuple

from pearl.actions.by_row import reading, shown_text
from pearl.actions.groups import are_groups
from pearl.actions.values import Value, as_rows, as_text
from pearl.documents.evidence import Evidence, Quote, Unverified, normalise
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.evidence.finding import is_passage
from pearl.documents.rows import EMPTY, Row, Rows
from pearl.dsl.nodes import Step, is_data
from pearl.dsl.signatures import NOTHING
from pearl.errors import Span
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

Proof = tuple[object, Evidence]
"""The key of a row, and the passage of it that bears a text out."""


class _Said(NamedTuple):
    """What a reply says: None if it is undecided, "" if nothing; its quotes that stand in rows, and what it rests on."""

    text: str | None
    quotes: tuple[str, ...] = ()
    proofs: Mapping[str, Proof] = {}

    @property
    def plain(self) -> str:
        """The reply as a request to merge shows it."""
        return "\n".join([self.text or "", *(f"> {quote}" for quote in self.quotes)])


def is_grouped(rows: Rows) -> bool:
    """Whether rows are groups; pairs have members, too, but no key."""
    return are_groups(rows) and rows.column in rows.names


class Reducer:
    """Carries out a step that reduces rows."""

    def __init__(self, step: Step, earlier: Mapping[str, Value], calls: RequestBuilder) -> None:
        checked = calls.graph.checked
        rows, x = calls.values(step, earlier)
        self.rows, self.x = as_rows(rows), as_text(x)
        self.task = ActionTask(
            step.output, reading(checked.action(step), checked.actions), (("X", self.x),), "",
            step.explanation, checked.plan.question or "",
            frozenset({"X"} if is_data(step.arguments[1]) else ()),
        )  # fmt: skip
        self._step, self._calls = step, calls
        self._left = calls.limits.max_prompt_tokens  # of a budget, for all requests together
        self._n_calls, self._usage = 0, Usage()
        self._misquoted, self._flaws, self._notes = set[Unverified](), set[str](), set[str]()

    @property
    def groups(self) -> list[Group]:
        """The groups, or all rows."""
        if is_grouped(self.rows):
            return [(group, group.members) for group in self.rows]
        own = [row for row in self.rows if row.value is not None]
        return [(None, own)] if own else []

    def _shown(self, group: Group) -> dict[str, list[Row]]:
        """The different texts of the rows of a group and the rows that have each, in the order of the document."""
        found: dict[str, list[Row]] = {}
        for row in sorted(group[1], key=_place):
            is_whole = bool(row.text) and (group[0] is not None or self.rows.is_answered)
            text = self._line(row.valued(row.text) if is_whole else row)
            if is_whole and row.value and row.value not in row.text:
                text = f"{text}: {' '.join(row.value.split())}"
            found.setdefault(text, []).append(row)
        return found

    def _line(self, row: Row) -> str:
        """The text of a row on one line, of a record with the names of its fields."""
        text = shown_text(row, self.x) or ""
        return " ".join((text if text == row.value else text.replace("\n", "; ")).split())

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
        for text, own in self._shown(group).items():
            line = f"- ({len(own):,} times) {text}" if len(own) > 1 else f"- {text}"
            pieces = [line] if count(line) <= room else self._calls.cut(line, chunk_size(int(room)))
            for piece in pieces if text else ():
                n = count(piece) + ITEM_TOKENS
                if n > left and parts[-1]:
                    parts.append([])
                    left = room
                parts[-1].append(piece)
                left -= n
        return [replace(self.task, document="\n".join(part)) for part in parts if part]

    async def run(self, asker: Asker) -> StepResult:
        """Request a text for each group, or one for all rows."""
        rows, output, groups = self.rows, self._step.output, self.groups
        every = [row for _, own in groups for row in own]
        parted = await off_loop(100 * len(every), lambda: list(map(self.parts, groups)))
        self._reserve(part for parts in parted for part in parts)
        found = await gather([
            self._text(asker, group, parts) for group, parts in zip(groups, parted, strict=True)
        ])  # fmt: skip
        texts = [said.text for said in found]
        value: str | Rows = (texts[0] or "") if texts else ""
        if is_grouped(rows):
            made = (
                row.with_column(output, text)._replace(
                    text=row.text or row.value or EMPTY, possible=()
                )
                for row, text in zip(rows, texts, strict=True)
            )
            doubtful = tuple(row.with_column(output, None) for row in rows.doubtful)
            value = replace(
                rows, rows=tuple(made), doubtful=doubtful, column=output, is_answered=True, shows_possible=False,
                columns=(), totals=(), stated=None,
            )  # fmt: skip
        n_open = rows_undecided(rows)
        flaw = f"{n_open} and not in it" if n_open else min(self._flaws, default="")
        is_open = None in texts or (isinstance(value, Rows) and bool(value.doubtful))
        deciding: dict[object, Evidence] = {}
        for key, passage in (proof for said in found for proof in said.proofs.values()):
            deciding[(key, passage.span) if key in deciding else key] = passage
        return StepResult(
            output, self._step.action, value or (f"undecided: {flaw}" if is_open else NOTHING), False, "rows",
            self._calls.coverage(Rows(tuple(row.valued(row.text) for row in every))), self._n_calls, self._usage,
            reply=value if isinstance(value, str) else "",
            state="undecided" if is_open else "found" if value else "nothing",
            why=flaw if is_open else "", truncated=flaw, deciding=deciding,
            misquoted=tuple(sorted(self._misquoted, key=lambda each: each.text)),
            notes=(*rows.notes, *sorted(self._notes)),
        )  # fmt: skip

    async def _text(self, asker: Asker, group: Group, parts: Sequence[ActionTask]) -> _Said:
        """The text of one group, merged level by level."""
        purpose: Purpose = "part" if len(parts) > 1 else "step"
        own = sorted((leaf for leaf, _ in leaves(Rows(tuple(group[1]))) if leaf.spans), key=_place)
        lines = cache(lambda: [normalise(self._line(row.valued(row.text))) for row in own])
        replies = await gather([self._leaf(asker, purpose, part, own, lines) for part in parts])
        n_levels = 0
        while len(said := [each for each in replies if each.text]) > 1:
            rest = iter(said)
            groups = self._calls.groups(self.task, [each.plain for each in said])
            below = [list(islice(rest, len(texts))) for texts in groups]
            tasks = [replace(self.task, parts=tuple(texts)) for texts in groups]
            self._reserve(task for task in tasks if len(task.parts or ()) > 1)
            replies = await gather([
                self._merged(asker, task, those) for task, those in zip(tasks, below, strict=True)
            ])  # fmt: skip
            n_levels += 1
        if n_levels:
            levels = f"{len(parts):,} parts, merged in {counted(n_levels, 'level')}"
            self._notes.add(f"{self._step.output}: rows in {levels}")
        return said[0] if said else next((each for each in replies if each.text is None), _Said(""))

    async def _leaf(
        self, asker: Asker, purpose: Purpose, task: ActionTask, rows: Sequence[Row],
        lines: Callable[[], Sequence[str]],
    ) -> _Said:  # fmt: skip
        """The reply about some rows, whose quotes are looked up in these."""
        reply = await self._read(asker, purpose, task)
        document = self._calls.document

        def place_of(quote: str) -> tuple[Row, Quote] | None:
            for found in self._calls.verifier.every(quote):
                start = found.spans[0].start if found.is_verified else -1
                at = bisect_right(rows, start, key=lambda row: row.spans[0].start) - 1
                if at >= 0 and found.spans[-1].end <= rows[at].spans[-1].end:
                    return rows[at], found
            if not is_passage(quote):
                return None
            pairs = zip(
                rows, lines(), strict=True
            )  # of a record, a line has the names of its fields, too
            row = next((row for row, line in pairs if normalise(quote) in line), None)
            return row and (
                row,
                Quote(quote, (Span(row.spans[0].start, row.spans[-1].end),), "normalised"),
            )

        def find() -> dict[str, Proof]:
            proofs = {}
            for said in reply.quotes:
                quote = said.rpartition(" times) ")[2]  # what stands before a row is not of it
                if place := place_of(quote):
                    passage = passage_at(place[1], self._step.output, document)
                    proofs[quote] = place[0].key, passage
                else:
                    self._misquoted.add(Unverified(self._step.output, quote, "missing"))
            return proofs

        return self._said(reply, await off_loop(len(document.text), find), {})

    async def _merged(self, asker: Asker, task: ActionTask, below: Sequence[_Said]) -> _Said:
        """The reply merged from several, with those of their quotes that it repeats; a single one as it is."""
        if len(below) == 1:
            return below[0]
        reply = await self._read(asker, "combine", task)
        known = {quote: proof for said in below for quote, proof in said.proofs.items()}
        proofs = {}
        for quote in reply.quotes:
            wholes = (whole for whole in known if normalise(quote) in normalise(whole))
            if whole := next(wholes, None):
                proofs[quote] = known[whole]
            else:
                self._misquoted.add(Unverified(self._step.output, quote, "missing"))
        return self._said(reply, proofs, known)

    def _said(self, reply: Reply, proofs: Mapping[str, Proof], below: Mapping[str, Proof]) -> _Said:
        """What a reply says; without quotes of its own, it rests on those of the replies that it merges."""
        if reply.state != "found":
            self._flaws |= {reply.why} - {""}
            return _Said("" if reply.state == "nothing" else None)
        self._flaws |= set() if proofs or below else {UNQUOTED}
        return _Said(str(reply.value), tuple(proofs), proofs or below)

    async def _read(self, asker: Asker, purpose: Purpose, task: ActionTask) -> Reply:
        read = await asker.read(self._step, purpose, task)
        self._n_calls += read.n_calls
        self._usage += read.usage
        self._flaws |= {read.truncated} - {"", UNQUOTED}
        return read.reply

    def _reserve(self, tasks: Iterable[ActionTask]) -> None:
        """Set tokens of a budget aside for these requests."""
        if self._left is None:
            return
        count, request = self._calls.limits.counter.count, self._calls.request
        self._left -= sum(count(request(task).prompt) for task in tasks)
        if self._left < 0:
            raise ContextOverflowError(
                f"its rows need {-self._left:,} tokens more than its requests may use",
                help="raise --token-budget, or let the plan select fewer rows first",
            )


def _place(row: Row) -> tuple[float, str]:
    spans = [span.start for leaf, _ in leaves(Rows((row,))) for span in leaf.spans]
    return min(spans, default=inf), row.text or row.value or ""
