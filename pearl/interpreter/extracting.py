"""Carry out a step that extracts: request its fields and build a record of the values that their quotes support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from pearl.actions.by_row import each_of
from pearl.actions.operators import EXTRACT
from pearl.actions.values import Value
from pearl.documents.evidence import Verifier
from pearl.documents.record import FieldResult, Record, told_entry
from pearl.documents.rows import Row, Rows
from pearl.dsl.fields import Field, print_fields
from pearl.dsl.literals import short
from pearl.dsl.nodes import Step
from pearl.errors import ModelError, Span
from pearl.interpreter.checking import with_checks
from pearl.interpreter.context import ContextOverflowError, off_loop
from pearl.interpreter.field_values import Quotes
from pearl.interpreter.list_entries import FieldReader, has_place
from pearl.interpreter.model_calls import CUT_SHORT, Asker
from pearl.interpreter.naming import named_rows
from pearl.interpreter.provenance import Sources
from pearl.interpreter.record_claims import check_records
from pearl.interpreter.results import StepResult, computed
from pearl.interpreter.row_steps import RowRequests
from pearl.llm import ActionTask, Request
from pearl.llm.concurrency import gather
from pearl.replies.extracted import (
    ROWS,
    Claims,
    Extracted,
    extraction_constraint,
    read_extracted,
    wanted_fields,
)
from pearl.replies.step_replies import State

AGAIN_TOKENS = 2_000
"""Maximum tokens of the fields, with reasons or known entries, in a repeated request about a text."""


async def extract(
    step: Step, earlier: Mapping[str, Value], rows: RowRequests, asker: Asker, row_asker: Asker
) -> StepResult:
    """Extract the fields of a step from the document, or from each row (then `row_asker` asks)."""
    calls = asker.calls
    action = calls.graph.checked.action(step)
    if each_of(action, calls.graph.checked.actions) is not None:
        return await _each_row(step, earlier, rows, row_asker)
    task, shown = calls.task(step, earlier)
    fields = wanted_fields(dict(task.arguments)["FIELDS"], is_all=action.extracts_all)
    read_by = calls.read_by(step) if calls.document.sources else []
    # Like a row, a source is the only text in which quotes are looked up
    row_at = read_by[0].start if read_by else None
    text = _Extraction(step, task, fields, asker, row_at)
    record = await text.record()
    (record,), checked, note = await check_records(step, fields, [record], asker)
    is_all = action.extracts_all
    if is_all:
        result = _of_rows(step, record, fields, asker)
    else:
        told = "\n".join(line for line, _ in record.lines)
        n_undecided, why = len(record.undecided), record.why_undecided
        is_stated = any(each.state != "not_stated" for each in record.fields.values())
        state: State = "found" if is_stated else "nothing"
        if n_undecided and n_undecided >= record.n_values:
            state = "undecided"
        result = StepResult(
            step.output, step.action, told, False, state=state, why=why, record=record
        )
    result = replace(
        result, action=action.name, is_native=False, shown=shown,
        context=text.context.strategy,
        coverage=text.context.coverage if shown is None else None,
        # Quotes are also looked up in text that the prompt does not show.
        sources=Sources(tuple(e.span for f in record.fields.values() for e in f.passages))
        if shown is not None else None,
        truncated=text.truncated if len(text.replies) > 1 or is_all else "",
    )  # fmt: skip
    return with_checks(result, checked, note)


class _Extraction:
    """The extraction of fields from one text: its parts and the replies about them.

    Every reply is read to a record by `_compared`; more replies replace values that break a rule (`_mended`), add
    values and entries (`_further`), or decide what is undecided (`_escalated`).
    """

    def __init__(
        self, step: Step, task: ActionTask, fields: tuple[Field, ...], asker: Asker, row_at: int | None = None
    ) -> None:  # fmt: skip
        self._step, self._task, self._fields, self._asker = step, task, fields, asker
        self._row_at = row_at
        # A token budget covers all prompts of a step.
        self._has_budget = asker.calls.limits.max_prompt_tokens is not None

    @property
    def truncated(self) -> str:
        """Why the reply about a part could not be read completely; "" if all could."""
        whys = [reply.why for reply in self.replies]
        n = next((i for i, why in enumerate(whys, start=1) if why), 0)
        where = f" about part {n} of {len(whys)}" if len(whys) > 1 else ""
        return f"the reply{where} cannot be used: {whys[n - 1]}" if n else ""

    async def record(self) -> Record:
        """Request the fields and return the record of the text."""
        await self._read()
        if not self._has_budget:
            self.replies = await self._mended()
        record = await self._compared(self._fields, [self.replies])
        if self._has_budget:
            return record
        if self._asker.calls.limits.passes > 1:
            record = await self._further(record)
        return await self._escalated(record)

    async def _read(self) -> None:
        """Request the fields, in parts if the text is long."""
        calls = self._asker.calls
        self.context, self._pieces = await calls.pieces(self._task)
        purpose: Literal["step", "part"] = "step" if len(self._pieces) == 1 else "part"
        self.replies = await gather([self._ask(purpose, piece) for piece in self._pieces])
        document = calls.document
        self._spans: list[Span | None] = []
        at = self._row_at or 0
        for piece in self._pieces:
            text = piece.document or ""
            start = document.text.find(text, at)
            at = start + len(text) if start >= 0 else at
            is_part = start >= 0 and text != document.text
            self._spans.append(Span(start, at) if is_part else None)
        quotes = Quotes(self._step.output, document, calls.verifier)
        first, last = self._spans[0], self._spans[-1]
        if self._row_at is not None and first and last:  # Quotes of a row must be in the row
            verifier = Verifier(document.text[first.start : last.end])
            quotes = Quotes(self._step.output, document, verifier, first.start)
        self._reader = FieldReader(quotes)

    async def _compared(
        self, fields: Sequence[Field], rounds: Sequence[Sequence[Extracted]]
    ) -> Record:
        """The record from rounds of replies; each round has one reply for each part."""
        replies = [pair for each in rounds for pair in zip(self._spans, each, strict=True)]

        def compared() -> Record:
            return Record({
                field.name: self._reader.result(
                    field, [(part, reply.fields[field.name]) for part, reply in replies]
                )
                for field in fields
            })  # fmt: skip

        return await off_loop(len(rounds) * len(self._task.document or ""), compared)

    async def _ask(self, purpose: Literal["step", "part"], task: ActionTask) -> Extracted:
        """Ask about a part; repeat the request once if its reply is incomplete."""
        calls = self._asker.calls
        request = calls.request(task)
        text, is_cut = await self._reply(purpose, request, self._fields)
        first = read_extracted(text, self._fields)
        again = None
        if first.why:
            again = (
                calls.roomier(request) if is_cut else calls.again(request, text, first.why, None)
            )
        if again is None:
            return first
        text, _ = await self._reply("again", again, self._fields)
        second = read_extracted(text, self._fields)
        if second.why:  # Take from each reply the fields that it has completely
            second = replace(second, fields={
                name: claims if not claims.why else first.fields[name]
                for name, claims in second.fields.items()
            })  # fmt: skip
        return second

    async def _ask_again(
        self, piece: ActionTask, fields: Sequence[Field], *, is_quoted: bool = False
    ) -> Mapping[str, Claims] | None:
        """Ask again about some fields of a part; None if there are none or the request does not fit."""
        said = {**dict(piece.arguments), "FIELDS": print_fields(fields)}
        task = replace(piece, action=EXTRACT, arguments=tuple(said.items()), is_quoted=is_quoted)
        if not fields or not self._asker.calls.fits(task):
            return None
        wanted = wanted_fields(said["FIELDS"], is_all=False)
        text, _ = await self._reply("again", self._asker.calls.request(task), wanted)
        return read_extracted(text, wanted).fields

    async def _reply(
        self, purpose: Literal["step", "part", "again"], request: Request, fields: tuple[Field, ...]
    ) -> tuple[str, bool]:
        """Send a request; return the text of the reply, and whether it is cut off."""
        is_quoted = isinstance(request.task, ActionTask) and request.task.is_quoted
        most = self._asker.fallback.max_text
        constraint = extraction_constraint(fields, most, is_quoted=is_quoted)
        try:
            completion = await self._asker.ask(
                self._step, purpose, request, constraint,
                lambda text: read_extracted(text, fields).why or None,
            )  # fmt: skip
        except ModelError as error:
            if error.kind not in CUT_SHORT or self._asker.calls.limits.is_strict:
                raise
            return error.reply, True
        return completion.text, False

    async def _mended(self) -> list[Extracted]:
        """Ask once more about values that break a rule or have no certain place; return the replies with the new values."""
        count = self._asker.calls.limits.counter.count

        def broken() -> list[list[Field]]:
            wanted: list[list[Field]] = []
            for part, reply in zip(self._spans, self.replies, strict=True):
                room = AGAIN_TOKENS
                wanted.append([
                    each for each in self._reader.broken(self._fields, reply.fields, part)
                    if (room := room - count(print_fields([each]))) >= 0
                ])  # fmt: skip
            return wanted

        wanted = await off_loop(len(self._task.document or ""), broken)
        others = await gather([
            self._ask_again(piece, again, is_quoted=True)
            for piece, again in zip(self._pieces, wanted, strict=True)
        ])  # fmt: skip
        mended = []
        for reply, claims in zip(self.replies, others, strict=True):
            given = {
                name: each for name, each in (claims or {}).items()
                if any(claim.value is not None for claim in each.values)
            }  # fmt: skip
            mended.append(replace(reply, fields=_replaced(self._fields, reply.fields, given)))
        return mended

    async def _further(self, record: Record) -> Record:
        """Ask again for missing values and more list entries, for the number of passes in the settings."""
        rounds = [self.replies]
        for _ in range(self._asker.calls.limits.passes - 1):
            wanted = list(self._missing(record))
            others = await gather([self._ask_again(piece, wanted) for piece in self._pieces])
            if all(claims is None for claims in others):
                break
            # An incomplete field in such a reply does not make the values of other replies wrong
            more = [
                Extracted({
                    field.name: replace((claims or {}).get(field.name, Claims()), why="")
                    for field in self._fields
                })
                for claims in others
            ]  # fmt: skip
            rounds.append(more)
            names = {field.name for field in wanted}
            scalars = [f for f in self._fields if f.name in names and not f.is_list]
            lists = [f for f in self._fields if f.name in names and f.is_list]
            alone = await self._compared(scalars, [more])
            joined = await self._compared(lists, rounds)
            new = {name: f for name, f in alone.fields.items() if f.state == "found"}
            for name, result in joined.fields.items():
                known = record.fields[name].entries
                entries = (
                    e for e in result.entries if any(map(has_place, e.values())) or e in known
                )
                if kept := tuple(entries):
                    new[name] = replace(result, entries=kept)
            if all(record.fields[name] == result for name, result in new.items()):
                break
            record = Record({**record.fields, **new})
        return record

    def _missing(self, record: Record) -> Iterator[Field]:
        """The fields for a further pass: those without a value or a conflict, and lists with their known entries."""
        count, room = self._asker.calls.limits.counter.count, AGAIN_TOKENS
        for field in self._fields:
            result = record.fields[field.name]
            known: list[str] = []
            for entry in result.entries:
                text = short(told_entry(entry, result.is_plain))
                room -= count(text) + 1
                if room < 0:
                    break
                known.append(text)
            if field.is_list:
                told = (
                    f"known already: {'; '.join(known)}; give only further entries" if known else ""
                )
            elif result.state != "found" and not any(c.evidence for c in result.candidates):
                # A changed description makes a new request; an unchanged one would get the stored
                # reply
                told = "not found by a first reading"
            else:
                continue
            yield replace(field, description="; ".join(filter(None, (field.description, told))))

    async def _escalated(self, record: Record) -> Record:
        """Ask the escalation model about the undecided fields only."""
        left = tuple(
            field for field in self._fields if record.fields[field.name].state == "undecided"
        )
        if self._asker.escalation is None or not left:
            return record
        task = self._task
        if not task.action.extracts_all:
            said = {**dict(task.arguments), "FIELDS": print_fields(left)}
            task = replace(task, arguments=tuple(said.items()))
        other = _Extraction(self._step, task, left, self._asker.escalation, self._row_at)
        try:
            await other._read()
        except (ContextOverflowError, ModelError) as error:  # The former for a smaller window
            if isinstance(error, ModelError) and error.kind not in ("refused", "filtered"):
                raise
            return record
        new = await other._compared(left, [other.replies])
        decided = {name: f for name, f in new.fields.items() if f.state != "undecided"}
        if len(decided) == len(left):
            self.replies = other.replies
        return Record({**record.fields, **decided})


def _replaced(
    fields: Sequence[Field], said: Mapping[str, Claims], new: Mapping[str, Claims], path: str = ""
) -> Mapping[str, Claims]:
    """Replace the claims at the paths in `new`."""
    if not new:
        return said
    claims = {}
    for field in fields:
        name, old = f"{path}{field.name}", said[field.name]
        entries = tuple(
            _replaced(field.inner, entry, new, f"{name}[{i}].") for i, entry in enumerate(old.entries)
        )  # fmt: skip
        claims[field.name] = replace(new.get(name, old), entries=entries)
    return claims


# ---------------------------------------------------------------------------------------------
# Results of steps


def _of_rows(step: Step, record: Record, fields: Sequence[Field], asker: Asker) -> StepResult:
    """The entries of a list as rows, each with the spans of its quotes."""
    result = record.fields[ROWS]
    document = asker.calls.document
    action = asker.calls.graph.checked.action(step)
    rows = []
    for entry in result.entries:
        spans = sorted({e.span for f in entry.values() for e in f.passages})
        text = "\n".join(document.text[span.start : span.end] for span in spans)
        rows.append(Row(told_entry(entry), _cells(entry), tuple(spans), text))
    names = tuple(field.name for field in fields[0].inner)
    # It is uncertain whether such an entry exists, so later steps count with it and without it.
    doubtful = tuple(
        Row(str(each.value), dict.fromkeys(names), tuple(e.span for e in each.evidence[:1]))
        for each in result.candidates
    )
    why = f"the rows may be incomplete: {result.why}" if result.why else ""
    return computed(step, action, Rows(tuple(rows), columns=names, doubtful=doubtful), why)


def _cells(fields: Mapping[str, FieldResult]) -> dict[str, str | None]:
    """The cells of a row: None for an undecided value, "" for one that is not stated."""
    return {
        name: None if f.state == "undecided" else "" if f.state == "not_stated" else f.told
        for name, f in fields.items()
    }


async def _each_row(
    step: Step, earlier: Mapping[str, Value], requests: RowRequests, asker: Asker
) -> StepResult:
    """The rows with a column for each field; one extraction for each different text."""
    row_step = requests.step(step, earlier)
    rows = row_step.rows
    texts = row_step.texts(rows)
    fields = wanted_fields(
        dict(row_step.task.arguments)["FIELDS"], is_all=row_step.reading.extracts_all
    )
    shown = row_step.shown(rows)
    named = named_rows(rows, asker.calls.document, {}, is_brief=False)
    names = {text: each.name for text, each in reversed([*zip(shown, named, strict=True)])}
    starts = {text: row.spans[0].start for text, row in zip(shown, rows, strict=True) if row.spans}
    read = [
        _Extraction(step, requests.alone(row_step, step, text), fields, asker, starts.get(text, 0))
        for text in texts
    ]
    found = await gather([each.record() for each in read])
    records, checked, note = await check_records(
        step, fields, found, asker, [names[text] for text in texts]
    )
    by_text = dict(zip(texts, records, strict=True))
    unread = dict.fromkeys((field.name for field in fields), None)

    def with_cells(row: Row, shown: str | None) -> Row:
        blank = unread if shown is None else dict.fromkeys(unread, "")
        record = by_text.get(shown or "")
        return row.with_fields(blank if record is None else _cells(record.fields))

    answered = tuple(map(with_cells, rows, shown))
    columns = (*rows.columns, *unread)
    result = computed(step, row_step.task.action, replace(rows, rows=answered, columns=columns))
    result = replace(
        result, is_native=False, context="rows", coverage=asker.calls.coverage(rows),
        sources=Sources(is_by_row=True),
    )  # fmt: skip
    return with_checks(result, checked, note)
