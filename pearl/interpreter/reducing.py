"""All rows, or each group of rows → one text, which a model writes in a tree of requests."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from math import inf

from msgspec.structs import replace

from pearl.actions.by_row import reading, shown_text, with_column
from pearl.actions.values import Value, as_rows, as_text
from pearl.documents.evidence import Evidence, Quote, Unverified, normalise
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.evidence.finding import is_passage
from pearl.documents.rows import EMPTY, Row, Rows
from pearl.dsl.nodes import Step, is_data
from pearl.dsl.signatures import NOTHING
from pearl.errors import Span
from pearl.errors.escaping import counted
from pearl.interpreter.context import ContextOverflowError, full_window, off_loop
from pearl.interpreter.model_calls import UNQUOTED, Asker, TextReply
from pearl.interpreter.provenance import leaves
from pearl.interpreter.requests import MERGING_TOKENS, RequestBuilder, chunk_size, packed
from pearl.interpreter.results import StepResult, rows_undecided
from pearl.interpreter.row_steps import ITEM_TOKENS
from pearl.llm import ActionTask
from pearl.llm.concurrency import gather

Group = tuple[Row | None, Sequence[Row]]
"""A group and its rows; None and all rows if the rows are not grouped."""


def is_grouped(rows: Rows) -> bool:
    """Whether rows are groups: they have members and a key. Pairs have members, but no key."""
    has_members = any(row.members or row.possible for row in rows.every)
    return has_members and rows.column in rows.names


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
        self._deciding: dict[object, Evidence] = {}
        self._misquoted, self._flaws, self._notes = set[Unverified](), set[str](), set[str]()

    @property
    def groups(self) -> list[Group]:
        """The groups of the rows; one group of all rows if they are not grouped."""
        if is_grouped(self.rows):
            return [(group, group.members) for group in self.rows]
        own = [row for row in self.rows if row.value is not None]
        return [(None, own)] if own else []

    def _line(self, row: Row) -> str:
        """The text of a row on one line; a record shows the names of its fields."""
        text = shown_text(row, self.x) or ""
        return " ".join((text if text == row.value else text.replace("\n", "; ")).split())

    def parts(self, group: Group) -> list[ActionTask]:
        """Divide the rows of a group into requests that fit; a row that is too long is cut."""
        available, count = self._calls.available_tokens(self.task), self._calls.limits.counter.count
        room = inf if available is None else available - ITEM_TOKENS
        if room <= ITEM_TOKENS:
            raise full_window()
        by_text: dict[str, list[Row]] = {}  # The rows of each different text, in document order
        for row in sorted(group[1], key=_place):
            is_whole = bool(row.text) and (group[0] is not None or self.rows.is_answered)
            text = self._line(row.valued(row.text) if is_whole else row)
            if is_whole and row.value and row.value not in row.text:
                text = f"{text}: {' '.join(row.value.split())}"
            by_text.setdefault(text, []).append(row)
        sized = list[tuple[str, int]]()
        for text, own in by_text.items():
            line = f"- ({len(own):,} times) {text}" if len(own) > 1 else f"- {text}"
            pieces = [line] if count(line) <= room else self._calls.cut(line, chunk_size(int(room)))
            sized += ((piece, count(piece) + ITEM_TOKENS) for piece in pieces if text)
        return [replace(self.task, document="\n".join(part)) for part in packed(sized, room)]

    async def run(self, asker: Asker) -> StepResult:
        """Request a text for each group, or one for all rows."""
        rows, output, groups = self.rows, self._step.output, self.groups
        every = [row for _, own in groups for row in own]
        parted = await off_loop(100 * len(every), lambda: list(map(self.parts, groups)))
        self._check_budget(parted)
        texts = await gather([
            self._text(asker, group, parts) for group, parts in zip(groups, parted, strict=True)
        ])  # fmt: skip
        value: str | Rows = (texts[0] or "") if texts else ""
        if is_grouped(rows):
            made = (row._replace(text=row.text or row.value or EMPTY, possible=()) for row in rows)
            named = replace(rows, rows=tuple(made), columns=(), stated=None)
            of_groups = [NOTHING if text == "" else text for text in texts]
            value = with_column(named, of_groups, output)
        n_open = rows_undecided(rows)
        flaw = f"{n_open} and not in it" if n_open else min(self._flaws, default="")
        is_open = None in texts or (isinstance(value, Rows) and bool(value.doubtful))
        return StepResult(
            output, self._step.action, value or (f"undecided: {flaw}" if is_open else NOTHING), False, "rows",
            self._calls.coverage(Rows(tuple(row.valued(row.text) for row in every))),
            reply=value if isinstance(value, str) else "",
            state="undecided" if is_open else "found" if any(texts) else "nothing",
            why=flaw if is_open else "", truncated=flaw,
            deciding=dict(sorted(self._deciding.items(), key=lambda item: item[1].span)),
            misquoted=tuple(sorted(self._misquoted, key=lambda each: each.text)),
            notes=(*rows.notes, *sorted(self._notes)),
        )  # fmt: skip

    async def _text(self, asker: Asker, group: Group, parts: Sequence[ActionTask]) -> str | None:
        """The text for a group: None if it is undecided, "" if its rows say nothing on the subject."""
        if not parts:
            return ""
        output, document = self._step.output, self._calls.document
        own = sorted((leaf for leaf, _ in leaves(Rows(tuple(group[1]))) if leaf.spans), key=_place)
        lines = cache(lambda: [normalise(self._line(row.valued(row.text))) for row in own])
        proofs: dict[str, tuple[Row, Evidence]] = {}

        def place_of(quote: str) -> tuple[Row, Quote] | None:
            for found in self._calls.verifier.every(quote):
                start = found.spans[0].start if found.is_verified else -1
                at = bisect_right(own, start, key=lambda row: row.spans[0].start) - 1
                if at >= 0 and found.spans[-1].end <= own[at].spans[-1].end:
                    return own[at], found
            if not is_passage(quote):
                return None
            # The line of a record also has the names of its fields.
            pairs = zip(own, lines(), strict=True)
            row = next((row for row, line in pairs if normalise(quote) in line), None)
            if row is None:
                return None
            whole = Span(row.spans[0].start, row.spans[-1].end)
            return row, Quote(quote, (whole,), "normalised")

        async def kept(read: TextReply) -> TextReply:
            """The reply with only the quotes that are in the rows."""
            # Text that the line adds before a row is not part of the row.
            quoted = dict.fromkeys(quote.rpartition(" times) ")[2] for quote in read.reply.quotes)
            places = await off_loop(len(document.text), lambda: list(map(place_of, quoted)))
            for quote, place in zip(quoted, places, strict=True):
                if place is None:
                    self._misquoted.add(Unverified(output, quote, "missing"))
                else:
                    proofs[quote] = place[0], passage_at(place[1], output, document)
            quotes = tuple(quote for quote in quoted if quote in proofs)
            text = str(read.reply.value) if read.reply.state != "undecided" else ""
            plain = "\n".join([text, *(f"> {quote}" for quote in quotes)])
            return replace(read, reply=dataclasses.replace(read.reply, quotes=quotes, plain=plain))

        read = await asker.over_pieces(self._step, self.task, parts, kept)
        if read.n_levels:
            levels = counted(read.n_levels, "level")
            self._notes.add(f"{output}: rows in {len(parts):,} parts, merged in {levels}")
        state = read.reply.state
        for quote in read.reply.quotes or proofs if state == "found" else ():
            row, passage = proofs[quote]
            key = (row.key, passage.span) if row.key in self._deciding else row.key
            self._deciding[key] = passage
        self._flaws |= {read.truncated, read.reply.why} - {"", UNQUOTED}
        self._flaws |= {UNQUOTED} if state == "found" and not proofs else set()
        return str(read.reply.value) if state == "found" else "" if state == "nothing" else None

    def _check_budget(self, parted: Sequence[Sequence[ActionTask]]) -> None:
        """Raise an error if the requests, including those that merge replies, exceed the token budget."""
        limits = self._calls.limits
        if limits.max_prompt_tokens is None:
            return
        tasks = [task for parts in parted for task in parts]
        n_tokens = sum(limits.counter.count(self._calls.request(task).prompt) for task in tasks)
        n_merged = sum(2 * len(parts) for parts in parted if len(parts) > 1)
        n_tokens += n_merged * (limits.reply_tokens + MERGING_TOKENS)
        if n_tokens > limits.max_prompt_tokens:
            raise ContextOverflowError(
                f"its {counted(len(tasks), 'request')} about rows may need {n_tokens:,} tokens, but may only use {limits.max_prompt_tokens:,}",
                help="raise --token-budget, or let the plan select fewer rows first",
            )


def _place(row: Row) -> tuple[float, str]:
    spans = [span.start for leaf, _ in leaves(Rows((row,))) for span in leaf.spans]
    return min(spans, default=inf), row.text or row.value or ""
