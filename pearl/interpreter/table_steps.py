"""A step that queries a table → requests for a query, and the rows and figures that it returns."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from math import inf

from msgspec.structs import replace

from pearl.actions.searching import SearchedDocument
from pearl.actions.values import Scalar, Value, as_rows, as_text, number_of
from pearl.documents.dates import part_of_dates
from pearl.documents.rows import Row, Rows
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import Action
from pearl.interpreter.context import ContextLimits, ContextOverflowError, off_loop
from pearl.interpreter.cost_ranges import Range, StepCosts
from pearl.interpreter.model_calls import Asker
from pearl.interpreter.provenance import Sources, heads_of
from pearl.interpreter.requests import PROMPT_MARGIN
from pearl.interpreter.results import Cited, StepResult, computed, void
from pearl.llm import LookupTask, Message, Request
from pearl.llm.messages import inert
from pearl.tables import lookup
from pearl.tables.running import Answer
from pearl.tables.specification import QueryError, UndecidableError, columns_in, conditions
from pearl.trace import LookedUp, Purpose

_SIZES = ((3, 3, 2), (2, 1, 1), (0, 0, 0))
"""Numbers of similar rows, other rows and examples in a prompt; the first triple that fits is used."""

LINE = "line"  # Column name of a result line with several cells


def tables_in(given: Value | SearchedDocument) -> tuple[lookup.FoundTable, ...]:
    """The tables of a document, or the rows of an earlier step as one table."""
    if isinstance(given, SearchedDocument):
        tables = lookup.tables_of_document(given.document)
        return tuple(
            dataclasses.replace(each, rows=each.rows.moved(given.start)) for each in tables
        )
    return lookup.tables_of_rows(as_rows(given))


class TableQuestion:
    """A question about one table, and its requests."""

    def __init__(
        self,
        output: str,
        action: Action,
        question: str,
        table: lookup.FoundTable,
        limits: ContextLimits,
    ) -> None:
        self.table = table
        self.question = question
        self._limits = limits
        self._spent = 0
        self._task = LookupTask(output, action, question)
        for like, unlike, examples in _SIZES:
            self.prompt = table.lookup.prompt(
                question, n_like=like, n_unlike=unlike, n_examples=examples
            )
            if self._fits(self.prompt):
                return
        raise ContextOverflowError(
            "the columns of the table do not fit the model's window",
            help="use a model with a larger window, or select fewer columns",
        )

    @cached_property
    def hint_tokens(self) -> int:
        """Tokens of the JSON hint, if it is sent, plus a margin."""
        form = self.table.lookup.constraint.json_form
        return PROMPT_MARGIN + (self._limits.counter.count(form.hint) if form else 0)

    def _fits(self, prompt: str, spent: int = 0) -> bool:
        most = self._limits.prompt_tokens
        n_tokens = self._limits.counter.count(prompt) + self.hint_tokens
        return most is None or spent + n_tokens <= most

    def request(self, turns: Sequence[lookup.Turn]) -> Request | None:
        """The next request of a conversation; None if it does not fit the window or the budget."""
        messages = tuple(Message(role, inert(text)) for role, text in turns)
        request = Request(
            messages, replace(self._task, round=len(turns) // 2),
            max_output_tokens=self._limits.reply_tokens,
        )  # fmt: skip
        if len(turns) > 1 and not self._fits(request.prompt, self._spent):
            return None
        if self._limits.max_prompt_tokens is not None:
            self._spent += self._limits.counter.count(request.prompt) + self.hint_tokens
        return request


async def read_table(
    step: Step, action: Action, question: str, given: Value | SearchedDocument, asker: Asker
) -> StepResult:
    """Answer a question by a query that a model writes."""
    limits = asker.calls.limits
    length = (
        asker.calls.length(step) if isinstance(given, SearchedDocument) else len(as_text(given))
    )

    def prepared() -> TableQuestion:
        table = lookup.meant(question, tables_in(given))
        return TableQuestion(step.output, action, question, table, limits)

    async def reply(turns: Sequence[lookup.Turn]) -> str | None:
        request = asked.request(turns)
        if request is None:
            return None
        purpose: Purpose = "step" if len(turns) == 1 else "again"
        completion = await asker.ask(step, purpose, request, asked.table.lookup.constraint, flaw)
        return completion.text

    def flaw(text: str) -> str | None:
        try:
            if not lookup.declined(text):
                lookup.read_reply(text)
        except UndecidableError:
            return None
        except QueryError as error:
            return str(error)
        return None

    try:
        asked = await off_loop(length, prepared)
        answer = await lookup.look_up(question, asked.table.lookup, reply, prompt=asked.prompt)
    except (lookup.SeveralTablesError, lookup.UnansweredError) as error:
        return void(step, action, str(error))
    value = await asyncio.to_thread(_value, answer, asked.table)
    heads = heads_of(asker.calls.document, asked.table.rows)
    event = LookedUp(
        step=step.output, table=asked.table.label,
        query=answer.query.model_dump_json(exclude_defaults=True),
        n_lines=answer.n_lines, n_undecided=len(answer.undecided), n_repairs=answer.n_repairs,
    )  # fmt: skip
    asker.trace.append(event)
    return replace(
        computed(step, action, value), cited=_cited(answer, asked.table),
        sources=Sources(heads=heads, is_by_row=True),
    )  # fmt: skip


def _value(answer: Answer, table: lookup.FoundTable) -> Value:
    """Convert the lines of a query result to rows; a single figure becomes a number with its source rows."""
    rows = (*table.rows.rows, *table.rows.totals)
    doubtful = (*(rows[i] for i in answer.undecided), *answer.doubtful)
    notes = [*table.rows.notes, f"query of the table: {answer.query.words}"]
    if answer.n_lines > len(answer.lines):
        notes.append(f"{len(answer.lines):,} of {answer.n_lines:,} lines, as the query limits them")
    said = tuple(dict.fromkeys((*notes, *answer.notes)))
    result = Rows((), doubtful=doubtful, notes=said, columns=answer.columns)
    is_figures = bool(answer.query.aggregate)
    if is_figures and len(answer.columns) == 1:
        (cell,), (unit,), numbers = answer.lines[0].cells, answer.units, answer.lines[0].rows
        behind = replace(result, rows=tuple(rows[i] for i in numbers), columns=())
        if not cell:
            return replace(result, columns=())
        amount: str | int | float = _with_unit(cell, unit) if unit else cell
        if not unit:
            with suppress(ValueError):  # It is a date
                amount = number_of(cell)
        figure = Scalar(amount, behind)
        is_of = answer.stated is not None and figure.value == answer.stated.value
        return replace(figure, stated=answer.stated) if is_of else figure
    lines = []
    for line in answer.lines:
        cells_by_name = dict(zip(answer.columns, line.cells, strict=True))
        if len(cells_by_name) == 1:
            (cell,), (unit,) = line.cells, answer.units
            value = _with_unit(cell, unit) if cell and unit else cell
        else:
            cells = (
                (name, "undecided" if cell is None else cell)
                for name, cell in cells_by_name.items()
            )
            value = "; ".join(f"{name}: {cell}" for name, cell in cells)
        if len(line.rows) == 1 and not is_figures:
            row = rows[line.rows[0]]
            lines.append(row.with_fields(cells_by_name).valued(value))
        else:
            members = tuple(rows[i] for i in line.rows)
            lines.append(Row(value, cells_by_name, text=value or "", members=members))
    column = answer.columns[0] if len(answer.columns) == 1 else LINE
    columns = answer.columns if len(answer.columns) > 1 else ()
    return replace(result, rows=tuple(lines), column=column, columns=columns)


def _with_unit(cell: str, unit: str) -> str:
    """A number as text, with its unit and scale: `€30 in thousands`."""
    if unit[:1] in "$€£¥₪₹" and not unit[1:].startswith("/"):
        sign = "-" if cell.startswith("-") else ""
        return f"{sign}{unit[:1]}{cell.removeprefix('-')}{unit[1:]}"
    return f"{cell} {unit}"


def _cited(answer: Answer, table: lookup.FoundTable) -> Cited:
    query = answer.query
    used = [*query.select, *(one.column for one in conditions(query.where))]
    used += [one.column for one in query.aggregate if one.column]
    named = [*answer.columns, *query.group, *(name for one in used for name in columns_in(one))]
    names = set(table.rows.names)
    parts = {name: part_of_dates(name) for name in named if name not in names}
    own = (part[0] if (part := parts.get(name)) else name for name in named)
    columns = tuple(dict.fromkeys(name for name in own if name in names))
    places = {
        row.spans[0].start: number
        for row, number in zip((*table.rows, *table.rows.totals), table.numbers, strict=True)
        if row.spans
    }
    return Cited(places, columns)


FRAME_CHARACTERS = 1_000  # Maximum characters around a flaw in a repair prompt


def query_costs(
    output: str,
    action: Action,
    question: str | None,
    given: Value | SearchedDocument,
    n_rows: int,
    limits: ContextLimits,
) -> tuple[StepCosts, int]:
    """Bounds of the costs of a question about a table, and the maximum rows of its answer."""
    counter, cap = limits.counter, limits.prompt_tokens
    first = Range(1, inf)
    hint = 0
    if isinstance(given, SearchedDocument | Rows):
        tables = tables_in(given)
        n_rows = max(len(table.rows) for table in tables)
        if question is not None:
            try:
                table = lookup.meant(question, tables)
            except lookup.SeveralTablesError:  # No request is sent
                return StepCosts(), 0
            asked = TableQuestion(output, action, question, table, limits)
            first, hint = Range(*counter.bounds_with(asked.prompt, "")), asked.hint_tokens
    n_calls = lookup.MAX_REPAIRS + 1
    # Each repair adds the previous reply and its flaw to the prompt.
    flaws = counter.at_most("é" * (2 * lookup.MAX_FLAW + FRAME_CHARACTERS))
    added = counter.most(limits.reply_tokens) + flaws
    prompts = [
        Range(first.least, first.upper + hint + i * added).up_to(cap) for i in range(n_calls)
    ]
    tokens = Range(prompts[0].least, sum(prompt.upper for prompt in prompts))
    return StepCosts(Range(1, n_calls), tokens, Range(1, n_calls * limits.reply_tokens)), n_rows
