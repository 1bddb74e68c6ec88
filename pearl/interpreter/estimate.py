"""The steps of a plan → lower and upper bounds of their calls and tokens, before a run.

Prompts are built and counted as in a run. Text that an earlier step still has to write is a placeholder in them
(`Placeholders`), with the maximum of its tokens; rows that it still has to select are `PossibleRows`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from heapq import nlargest
from math import ceil, inf, prod

from pearl.actions import by_search, native
from pearl.actions.by_row import shown_text
from pearl.actions.columns import read_column
from pearl.actions.groups import size_field
from pearl.actions.resolving import MAX_PAIRS, MAX_PARTNERS
from pearl.actions.searching import SearchedDocument
from pearl.actions.values import EmptyListError, Value, as_rows, as_text, number_of
from pearl.documents.numbers import UnclearNumberError, whole_number
from pearl.documents.passages import chunks
from pearl.documents.rows import Rows
from pearl.documents.tokens import Counter
from pearl.dsl.fields import Field
from pearl.dsl.nodes import Argument, Reference, Step, String
from pearl.dsl.signatures import Action, ValueType
from pearl.errors import ExecutionError
from pearl.interpreter import context, requests, row_steps
from pearl.interpreter.context import ContextLimits, ContextOverflowError, awaited, fail_step
from pearl.interpreter.cost_ranges import ANY, NONE, ONE, Range, StepCosts
from pearl.interpreter.requests import PROMPT_MARGIN, RequestBuilder, chunk_size
from pearl.interpreter.row_steps import RowRequests, RowStep, check_numbers
from pearl.llm import ActionTask


class Placeholders:
    """Placeholders of one plan; their tokens are counted separately from the text around them."""

    def __init__(self, counter: Counter, texts: Sequence[str]) -> None:
        self._counter = counter
        self._most: dict[str, float] = {}  # placeholder → maximum tokens
        self._seam = counter.most(0)
        self._tag = "\ue000"  # a character that occurs in no known text
        while any(self._tag in text for text in texts):
            self._tag += "\ue000"
        self._marks = re.compile(f"({self._tag}\\d+\ue001)")

    def new(self, most: float) -> str:
        """A placeholder for a text of at most this many tokens in any context; may be infinite."""
        mark = f"{self._tag}{len(self._most)}\ue001"
        self._most[mark] = most
        return mark

    def are_in(self, *texts: str) -> bool:
        """Whether a text has placeholders."""
        return any(self._marks.search(text) for text in texts)

    def tokens(self, text: str, part: str = "") -> Range:
        """Count a text, of which `part` may be counted already; exact if it has no placeholders."""
        pieces = self._marks.split(text)
        if len(pieces) == 1:
            return Range(*self._counter.bounds_with(text, part))
        least, most = self._counter.bounds("".join(pieces[::2]), part)
        # `bounds` does not account for the seams on both sides, and a list leaves out entries that are nothing.
        return Range(
            max(0, least - BULLET_TOKENS * (len(pieces) // 2)),
            most + sum(self._most[m] + 2 * self._seam for m in pieces[1::2]),
        )

    def widest(self, text: str) -> float:
        """Maximum tokens of a text in any context."""
        return self.tokens(text).upper if self.are_in(text) else self._counter.bounds(text)[1]


@dataclass(frozen=True)
class PossibleRows:
    """The rows that a value may have."""

    n: int
    tokens: float  # maximum; may be infinite
    rows: Rows | None = None
    is_certain: bool = False
    unknown: frozenset[str] = frozenset()  # the columns that a model will write
    answer_tokens: float = 0.0

    def texts(self, row_step: RowStep) -> list[str] | None:
        """The different texts that a model may have to read; None if they are unknown."""
        if self.rows is None or self.rows.column in self.unknown:
            return None
        return row_step.texts(self.rows)


# Maximum tokens: of an entry without its text, of the separators in a computed text, of a number (300 digits, each at
# least one token), of the text in place of an undecided value
BULLET_TOKENS, SEAM_TOKENS, NUMBER_TOKENS, UNDECIDED_TOKENS = 3, 8, 400, 128

# Maximum tokens added to a prompt: for a JSON reply, to repeat a reply in the right form
HELD_TOKENS, AGAIN_TOKENS = 64, 288

SMALL_PART = 48  # Minimum chunk size in tokens for which a document is split in order to be counted

PARTS = 24
"""Upper bound of the number of chunks, relative to perfectly filled chunks.

Of two adjacent chunks one is at least half full, except before a paragraph, a sentence or a word
that is too long for one chunk, which is rare. The rest is a margin for words that are counted one
by one, which rounds up.
"""


class CostEstimator:
    """Estimates the cost of the steps of a plan, in order."""

    def __init__(
        self, calls: RequestBuilder, rows: ContextLimits | None = None,
        escalate: ContextLimits | None = None, *, checker: ContextLimits | None = None,
    ) -> None:  # fmt: skip
        self.escalated = StepCosts()  # of the last step, by the escalation model
        self.checked = StepCosts()  # of the last step, by the checker
        self._calls, self._limits = calls, calls.limits
        self._counter = calls.limits.counter
        self._values: dict[str, Value] = {}
        self._texts: dict[str, Value] = {}
        self._possible: dict[str, PossibleRows] = {}
        self._always = {calls.graph.steps[i].output for i in calls.graph.always}
        self._row_requests = RowRequests(calls)
        self._unknown = Placeholders(calls.limits.counter, calls.texts)
        self._reply_tokens = calls.limits.reply_tokens
        self._seam = self._counter.most(0)
        self._checker = checker or calls.limits
        self._by_rows = self._within(rows) if rows else self
        self._escalation = self._within(escalate) if escalate else None

    def _within(self, limits: ContextLimits) -> CostEstimator:
        """An estimator of the same plan with the limits of another model."""
        other = copy(self)
        other._calls, other._limits = self._calls.within(limits), limits
        other._row_requests = RowRequests(other._calls)
        other._counter, other._seam = limits.counter, limits.counter.most(0)
        other._reply_tokens = limits.reply_tokens
        return other

    def step(self, step: Step) -> StepCosts:
        """Estimate the next step."""
        action = self._calls.graph.checked.action(step)
        check_numbers(step, action)
        self.escalated = self.checked = StepCosts()
        is_by_row = action.cost == "rows"
        by = self._by_rows if is_by_row else self
        try:
            if self._escalation and (is_by_row or action.extracts):
                with suppress(ContextOverflowError):
                    self.escalated = self._escalation._of_step(step, action).or_nothing
            costs = by._of_step(step, action)
            self.checked = by.checked if is_by_row else self._of_checks(step, action, costs)
        except (ValueError, ExecutionError) as error:
            fail_step(step, error)
        return costs if step.output in self._always else costs.or_nothing

    def _of_step(self, step: Step, action: Action) -> StepCosts:
        if action.composes:
            return self._of_composer(step)
        if action.searches:
            self._search(step, action)
        elif action.is_native:
            self._compute(step, action)
        elif "reduces" in action.traits:
            return self._of_reduction(step)
        elif action.reads_rows:
            return self._by_row(step)
        elif action.asks_table:
            return self._of_table(step, action)
        else:
            return self._of_text(step, action)
        return StepCosts()

    # -----------------------------------------------------------------------------------------
    # What a step gives to later ones

    def _possible_rows(self, argument: Argument, rows: Rows) -> PossibleRows:
        """The rows that an argument may have."""
        if isinstance(argument, Reference) and argument.name in self._possible:
            return self._possible[argument.name]
        marks = [value for value in rows.values if self._unknown.are_in(value)]
        if not marks:
            return PossibleRows(len(rows), self._tokens(rows), rows, is_certain=True)
        most = self._unknown.tokens("\n".join(marks)).upper
        # Every entry of a text has at least one token.
        return PossibleRows(len(rows) + (0 if most == inf else int(most)), most)

    def _hold(self, output: str, possible: PossibleRows) -> None:
        """Create a placeholder for rows that are unknown or have unknown values."""
        self._possible[output] = possible
        mark = self._unknown.new(possible.tokens + UNDECIDED_TOKENS)
        self._values[output] = self._texts[output] = mark

    def _tokens(self, rows: Rows) -> float:
        """Maximum tokens of the text of rows."""
        text = "\n".join(row.text or row.value or "" for row in rows)
        values = "\n".join(shown_text(row) or "" for row in rows)
        gap = self._counter.bounds("\n[...]\n- undecided: ")[1] + 4 * self._seam
        return self._counter.bounds(text)[1] + self._counter.bounds(values)[1] + len(rows) * gap

    def _search(self, step: Step, action: Action) -> None:
        """Keep the rows of a search, or their bounds if the search cannot run now."""
        values = self._calls.values(step, self._values)
        queries = [value for value in values if not isinstance(value, SearchedDocument | Rows)]
        is_known = not self._unknown.are_in(*map(as_text, queries))
        if is_known and not self._calls.may_wait:
            search = awaited(by_search.search(action, self._calls.searcher, values))
            self._values[step.output] = self._texts[step.output] = search.rows
            return
        n: int | None = None
        with suppress(ValueError):  # the value depends on an earlier step
            n = whole_number(number_of(queries[-1]), "K", least=1)
        first = values[0]
        if isinstance(first, SearchedDocument):
            # Any `n` passages of a document; None for all
            tokens = [self._counter.at_most(passage.text) for passage in first.index.passages]
            tokens = tokens if n is None else nlargest(n, tokens)
            possible = PossibleRows(len(tokens), sum(tokens) + 4 * self._seam * len(tokens))
        else:
            possible = self._possible_rows(step.arguments[0], as_rows(first))
            least = possible.n if n is None else min(n, possible.n)
            possible = replace(possible, n=least, is_certain=False)
        self._hold(step.output, possible)

    def _compute(self, step: Step, action: Action) -> None:
        """Keep the value of a native action, or its bounds if it depends on an earlier step."""
        values = self._calls.values(step, self._values)
        # Known rows have no placeholders, and their text may be long.
        texts = ["" if isinstance(value, Rows) else as_text(value) for value in values]
        if not self._unknown.are_in(*texts):
            try:
                value = native.compute(action, values)
            except EmptyListError:
                value = []
            except UnclearNumberError as error:
                if not list(step.references()):
                    raise
                value = f"undecided: {error}"
            self._values[step.output] = value
            self._texts[step.output] = value if isinstance(value, Rows) else as_text(value)
            return
        takes_rows = [getattr(each, "name", None) in self._possible for each in step.arguments]
        is_list = action.returns is action.parameter(0).type is ValueType.LIST
        tries = "tries" in action.traits
        if any(takes_rows) and (is_list or tries or "figures" in action.traits):
            given = [
                self._possible_rows(argument, as_rows(value))
                for i, (argument, value) in enumerate(zip(step.arguments, values, strict=True))
                if tries or takes_rows[i] or action.parameter(i).type is ValueType.LIST
            ]
            is_open = self._unknown.are_in(*texts[1:])
            self._hold(step.output, self._selected(action, given, values, is_open=is_open))
            return
        n: float = sum(self._unknown.widest(as_text(value)) + SEAM_TOKENS for value in values)
        if action.returns in (ValueType.NUMBER, ValueType.BOOL):
            n = NUMBER_TOKENS
        elif action.returns is ValueType.LIST:
            n *= 4  # items of at least one token become lines: "- item"
        mark = self._unknown.new(n + UNDECIDED_TOKENS)
        self._values[step.output] = self._texts[step.output] = mark

    def _selected(
        self, action: Action, given: Sequence[PossibleRows], values: Sequence[Value], *, is_open: bool
    ) -> PossibleRows:  # fmt: skip
        """Bound the rows that a native action returns; `is_open` if an argument other than the rows is unknown."""
        first, traits = given[0], action.traits
        if "tries" in traits:
            return PossibleRows(max(each.n for each in given), max(each.tokens for each in given))
        by_columns = not traits.isdisjoint(("by_field", "condition"))
        if by_columns and not is_open and first.rows is not None:
            with suppress(ValueError):
                column = read_column(first.rows, as_text(values[1])).name
                if column not in first.unknown:
                    result = native.compute(action, [first.rows, *values[1:]])
                    if isinstance(result, Rows):
                        return self._computed(action, first, result)
                elif traits.isdisjoint(("groups", "condition")):
                    return replace(first, rows=replace(first.rows, column=column))
        if "selects" in traits:
            if "first" in traits and not is_open and first.rows is not None:
                n = min(first.n, whole_number(number_of(values[1]), "N", least=1))
                of_rows = (self._tokens(replace(first.rows, rows=(row,))) for row in first.rows)
                tokens = sum(nlargest(n, of_rows)) + n * (first.answer_tokens + 4 * self._seam)
                return PossibleRows(n, tokens, answer_tokens=first.answer_tokens)
            return replace(first, is_certain=False)
        n, tokens = sum(each.n for each in given), sum(each.tokens for each in given)
        if "multiplies" in traits:
            n = prod(each.n for each in given)
            tokens *= n + 1
        if "figures" in traits:
            tokens += NUMBER_TOKENS * n
        return PossibleRows(n, tokens + (4 * self._seam + first.answer_tokens) * n)

    def _computed(self, action: Action, first: PossibleRows, result: Rows) -> PossibleRows:
        """Bound the result of an action that reads known columns only, computed over all possible rows."""
        tokens, unknown = self._tokens(result), first.unknown
        if result.column in unknown:  # a model will write these values
            tokens += len(result) * (first.answer_tokens + 4 * self._seam)
        if "groups" in action.traits and not first.is_certain:
            unknown |= {size_field(result.column)}
        return replace(first, rows=result, n=len(result), tokens=tokens, unknown=unknown)

    # -----------------------------------------------------------------------------------------
    # Composed answers, and what the checker is asked

    def _of_composer(self, step: Step) -> StepCosts:
        """Costs of composing the answer: at most one call, none if fewer than two results are decided."""
        if self._limits.compose == "off" or len({each.name for each in step.references()}) < 2:
            return StepCosts()
        from pearl.interpreter.composing import max_prompt_tokens

        most = max_prompt_tokens(_question(step), self._counter)
        tokens = Range(0, most).up_to(self._limits.prompt_tokens)
        return self._costs(Range(0, 1), tokens)

    def _of_checks(self, step: Step, action: Action, costs: StepCosts) -> StepCosts:
        """Costs of checking a composed answer, or the values of fields."""
        if self._checker.check == "off":
            return StepCosts()
        if action.composes and costs != StepCosts():
            from pearl.interpreter import composing

            most, reply = composing.check_costs(_question(step), self._checker)
            cap = self._checker.prompt_tokens or inf
            again = most + self._checker.counter.most(reply) + AGAIN_TOKENS
            tokens = min(most, cap) + min(again, cap) + 2 * HELD_TOKENS
            return StepCosts(Range(0, 2), Range(0, tokens), Range(0, 2 * reply))
        fields: Sequence[Field] = ()
        n_replies = 1.0
        is_number = (
            action.cost == "text" and self._calls.graph.gives[step.output] is ValueType.NUMBER
        )
        if "claims" in action.traits or is_number:
            fields = (Field(step.output),)
        elif action.extracts:
            # imported on use: few plans extract
            from pearl.replies.extracted import wanted_fields

            texts = [each.value for each in step.arguments if isinstance(each, String)]
            fields = wanted_fields(texts[-1], is_all=action.extracts_all)
            n_replies = costs.calls.upper
        if not fields or n_replies == inf:
            return StepCosts(ANY, ANY, ANY) if fields else StepCosts()
        from pearl.interpreter.record_claims import check_costs

        replies = int(n_replies), self._reply_tokens
        return self._of_requests(*check_costs(fields, *replies, self._checker))

    def _of_requests(self, n: float, tokens: float, replied: float) -> StepCosts:
        """Costs of requests to the checker, each of which may be repeated."""
        if inf in (n, tokens):
            return StepCosts(ANY, ANY, ANY)
        cap = self._checker.prompt_tokens or inf
        most = min(2 * (tokens + replied) + n * (AGAIN_TOKENS + HELD_TOKENS), 2 * n * cap)
        return StepCosts(Range(0, 2 * n), Range(0, most), Range(0, 2 * replied))

    # -----------------------------------------------------------------------------------------
    # Tables, and rows that are reduced

    def _of_table(self, step: Step, action: Action) -> StepCosts:
        """Costs of a question about a table: one query, and its repetitions if it cannot be used."""
        # imported on use: few plans query a table
        from pearl.interpreter.table_steps import query_costs

        given, question = self._calls.values(step, self._values)
        question = as_text(question)
        literal = None if self._unknown.are_in(question) else question
        n_rows = 0
        if isinstance(given, str):  # the value depends on an earlier step
            n_rows = self._possible_rows(step.arguments[0], as_rows(given)).n
        costs, most = query_costs(step.output, action, literal, given, n_rows, self._limits)
        self._hold(step.output, PossibleRows(most, inf if most else 0))
        return costs

    def _of_reduction(self, step: Step) -> StepCosts:
        """Costs of reducing rows: exact but for merging if the rows are known, else bounded by their tokens."""
        # imported on use: few plans reduce rows
        from pearl.interpreter.reducing import Reducer, is_grouped

        reducer = Reducer(step, self._values, self._calls)
        given, task = self._possible_rows(step.arguments[0], reducer.rows), reducer.task
        rows, cap = given.rows, self._limits.prompt_tokens
        most = self._counter.most(self._reply_tokens)
        actions = map(self._calls.graph.checked.action, self._calls.graph.steps)
        are_groups = is_grouped(rows) if rows else any("groups" in each.traits for each in actions)
        n_groups, n = given.n if are_groups else min(1, given.n), given.n if are_groups else most
        written = n_groups * (most + SEAM_TOKENS) + (given.tokens if are_groups else 0)
        self._hold(step.output, PossibleRows(n, written))
        is_known = given.is_certain and not (given.unknown or self._unknown.are_in(reducer.x))
        if rows is not None and is_known:
            reducer.rows = rows
            parts = map(reducer.parts, reducer.groups)
            return sum((self._of_parts(task, tasks) for tasks in parts), StepCosts())
        n, tokens = given.n, given.tokens
        if rows is not None:
            every = [each for row in rows.every for each in (row, *row.members, *row.possible)]
            n = len(every)
            tokens = self._tokens(Rows(tuple(every))) + n * given.answer_tokens
        tokens += n * 2 * (row_steps.ITEM_TOKENS + self._seam)
        frame, merging = self._unknown.tokens(self._calls.request(task).prompt), StepCosts()
        n_calls = float(n_groups)
        if cap is not None and n_groups:
            room = self._room(task, frame).least - row_steps.ITEM_TOKENS
            if tokens > room:  # of three neighbouring parts, two are together longer than the room
                n_more = ceil(3 * tokens / room) if room > 0 and tokens < inf else inf
                n_calls += n_more
                merging = self._merging(task, Range(0, 1 + n_more)).or_nothing
                if n_groups > 1:  # any group may have the parts
                    merging = self._costs(Range(0, n_more), Range(0, n_more * cap))
        prompts = n_calls * (frame.upper + 2 * self._seam + 1) + tokens if n_calls else 0
        return self._costs(Range(0, n_calls), Range(0, prompts)) + merging

    # -----------------------------------------------------------------------------------------
    # Steps that are carried out row by row

    def _by_row(self, step: Step) -> StepCosts:
        """Costs of a step that is carried out row by row; records the rows that the step may return."""
        row_step = self._row_requests.step(step, self._values)
        given = whole = self._possible_rows(step.arguments[0], row_step.rows)
        task, widest = row_step.task, 0.0
        if row_step.is_over:
            row_step, given, widest = self._over(row_step, given)
        if self._unknown.are_in(*task.labels, *(value for _, value in task.arguments)):
            given = replace(given, is_certain=False)
        texts = given.texts(row_step)
        known_rows = None if texts is None else given.rows
        row_step = self._row_requests.quoted(row_step, known_rows, is_certain=given.is_certain)
        n, tokens = given.n, given.tokens
        costs, long = self._row_requests.costs(
            row_step, texts, n, tokens, is_certain=given.is_certain
        )
        for text in long:
            alone = self._row_requests.alone(row_step, step, text)
            costs += self._formed(alone, self._ask(alone))
        if row_step.n_needed is not None or not given.is_certain:  # calls may end after the first
            costs = costs.or_nothing
        asked = self._unknown.tokens(" ".join(value for _, value in task.arguments)).upper
        self.checked = self._of_requests(
            *row_steps.check_costs(row_step, texts, n, tokens, asked, self._checker)
        )
        self._hold(step.output, self._read_rows(step, row_step, whole, widest))
        return costs

    def _over(self, row_step: RowStep, given: PossibleRows) -> tuple[RowStep, PossibleRows, float]:
        """Replace the rows of RESOLVE by the pairs of names that it may judge; also return the maximum tokens of a name."""
        n, tokens = given.n, given.tokens + given.n * given.answer_tokens
        widest, (field,) = tokens, (value for _, value in row_step.task.arguments)
        if given.rows is not None and not self._unknown.are_in(field):
            column = read_column(given.rows, field)
            if column.name not in given.unknown:
                names = [self._counter.bounds(name)[1] for name in {*column.values} if name]
                n, tokens, widest = len(names), sum(names), max(names, default=0)
                if given.is_certain:
                    row_step = row_step.over(given.rows)
                    pairs = row_step.rows
                    possible = PossibleRows(len(pairs), self._tokens(pairs), pairs, is_certain=True)
                    return row_step, possible, widest
        n_pairs = min(MAX_PAIRS, n * MAX_PARTNERS // 2)
        return (
            row_step,
            PossibleRows(n_pairs, MAX_PARTNERS * tokens + n_pairs * SEAM_TOKENS),
            widest,
        )

    def _read_rows(
        self, step: Step, row_step: RowStep, given: PossibleRows, widest: float
    ) -> PossibleRows:
        """The rows that a step carried out row by row may return."""
        task = row_step.task
        if task.kind == "pick":
            return replace(given, n=min(given.n, task.n_picks), is_certain=False)
        if task.kind == "yes_no":
            return replace(given, is_certain=False)
        answer = float(widest or self._row_requests.reply_tokens(task, 1))
        if row_step.is_each:
            answer = self._counter.most(self._reply_tokens)
        rows = given.rows and replace(given.rows, column=step.output, is_answered=True)
        if rows is not None:
            rows = replace(rows, rows=tuple(row.with_column(step.output, None) for row in rows))
        tokens = given.tokens + given.n * (answer + 4 * self._seam)
        unknown = given.unknown | {step.output}
        return PossibleRows(given.n, tokens, rows, given.is_certain, unknown, answer)

    # -----------------------------------------------------------------------------------------
    # Steps that read a text

    def _of_text(self, step: Step, action: Action) -> StepCosts:
        """Costs of a step that a model answers from a document or from its inputs; keeps a placeholder for its reply."""
        task, _ = self._calls.task(step, self._texts)
        costs = self._formed(task, self._ask(task))
        if action.extracts_all:
            n = costs.calls.upper * self._reply_tokens
            self._hold(step.output, PossibleRows(0 if n == inf else int(n), n))
            return costs
        most = self._counter.most(self._reply_tokens)
        self._texts[step.output] = self._unknown.new(most)
        if task.gives is ValueType.LIST:
            most *= 4  # an entry may have had no bullet
        self._values[step.output] = self._unknown.new(most + UNDECIDED_TOKENS)
        return costs + self._of_looks(step, task)

    def _of_looks(self, step: Step, task: ActionTask) -> StepCosts:
        """Costs of further searches of a step that may find nothing: a prompt for each search, and one for other queries."""
        # imported on use: few plans read passages
        from pearl.interpreter.looking import NEAR_TOKENS, words_task

        n, costs, search = (
            self._calls.n_looks,
            StepCosts(),
            self._calls.search_of(step, task.document or ""),
        )
        if not n or search is None or not (search[1] or self._is_cut(task, search[0])):
            return costs
        frame = self._unknown.tokens(self._calls.request(replace(task, document="")).prompt)
        most = frame.upper + NEAR_TOKENS + self._retrieved(None, ANY)
        look = self._costs(ONE, Range(0, most).up_to(self._limits.prompt_tokens))
        for _ in range(n):
            costs += self._formed(task, look).or_nothing
        words = words_task(task)
        return costs + self._formed(words, self._costs(ONE, self._prompt(words))).or_nothing

    def _is_cut(self, task: ActionTask, view: SearchedDocument) -> bool:
        """Whether a step may be shown passages of the document, instead of all of it."""
        cap, strategy = self._limits.prompt_tokens, self._limits.strategy
        prompt = self._unknown.tokens(self._calls.request(task).prompt, task.document or "").upper
        is_long = cap is not None and prompt + PROMPT_MARGIN + requests.MERGING_TOKENS > cap
        return strategy == "retrieve" or (strategy == "auto" and view.is_corpus and is_long)

    def _costs(self, calls: Range, tokens: Range) -> StepCosts:
        """Costs of calls whose prompts have these tokens in all."""
        return StepCosts(calls, tokens, Range(calls.least, calls.upper * self._reply_tokens))

    def _prompt(self, task: ActionTask) -> Range:
        """Tokens of a prompt, at most the limit, as a longer prompt is never sent."""
        tokens = self._unknown.tokens(self._calls.request(task).prompt, task.document or "")
        return tokens.up_to(self._limits.prompt_tokens)

    def _of_parts(self, task: ActionTask, parts: Sequence[ActionTask]) -> StepCosts:
        """Costs of a task whose parts are known, and of merging their results."""
        n = Range(len(parts), len(parts))
        return self._costs(n, sum(map(self._prompt, parts), NONE)) + self._merging(task, n)

    def _formed(self, task: ActionTask, costs: StepCosts) -> StepCosts:
        """Costs of a call whose reply has a form, including a possible repetition."""
        n, most = costs.calls.upper, costs.input_tokens.upper
        reply = self._counter.most(self._reply_tokens) + AGAIN_TOKENS
        if task.action.extracts:
            # imported on use: few plans extract
            from pearl.interpreter.extracting import AGAIN_TOKENS as MORE_TOKENS

            # The request about each part may be repeated, be followed by one for values that break a
            # rule or have no certain place, and by one for what is missing in each further pass.
            n_more = 0 if self._limits.max_prompt_tokens is not None else self._limits.passes
            reply += HELD_TOKENS + n_more * (MORE_TOKENS + AGAIN_TOKENS + HELD_TOKENS)
            calls = Range(costs.calls.least, (2 + n_more) * n)
            return self._costs(
                calls, Range(costs.input_tokens.least, (2 + n_more) * most + n * reply)
            )
        if self._calls.asks_words(task):
            costs += StepCosts(Range(0, 1), Range(0, most + reply), Range(0, self._reply_tokens))
            n, most = costs.calls.upper, costs.input_tokens.upper
        # Any text is read; a broken object, which is asked again, is as rare as a retry.
        if task.gives is ValueType.TEXT:
            return costs
        if inf not in (n, most):
            most += n * HELD_TOKENS
            cap = self._limits.prompt_tokens
            # Either this is the only prompt that is repeated, or it fits the window.
            most += most + reply if cap is None else cap + HELD_TOKENS
        return self._costs(Range(costs.calls.least, n + 1), Range(costs.input_tokens.least, most))

    def _ask(self, task: ActionTask) -> StepCosts:
        """Costs of a task if its reply is not asked for again."""
        texts, document = [value for _, value in task.arguments], task.document
        is_open = self._unknown.are_in(document or "", *texts)
        if document is None:
            if not is_open:
                self._calls.whole(task)  # raises if it does not fit
            return self._costs(ONE, self._prompt(task))
        strategy, may_split = self._limits.strategy, self._limits.max_parts is None
        if not is_open:
            # The passages that are shown may depend on a ranking by a server.
            is_split = may_split and self._calls.is_split(document)
            if not self._calls.may_wait or strategy == "full" or is_split:
                return self._of_parts(task, awaited(self._calls.pieces(task, document))[1])
        cap = self._limits.prompt_tokens
        frame = self._unknown.tokens(self._calls.request(replace(task, document="")).prompt)
        whole = self._unknown.tokens(self._calls.request(task).prompt, document)
        length, room = self._unknown.tokens(document), self._room(task, frame)
        fits = cap is None or (whole.upper <= cap and length.upper <= room.least)
        if strategy == "full" or (fits and strategy != "retrieve"):
            return self._costs(ONE, whole.up_to(cap))
        is_split = self._calls.is_split(document)
        if strategy == "retrieve" or (self._calls.corpus(document) is not None and not is_split):
            most = frame.upper + self._retrieved(document, room)
            if strategy == "auto":  # the document may also fit as a whole
                most = max(most, whole.upper)
            return self._costs(ONE, Range(frame.least, most).up_to(cap))
        assert cap is not None
        parts = self._parts(document, length, room)
        around, wide = frame.upper + 2 * self._seam + 1, self._unknown.widest(document)
        most = min(parts.upper * cap, parts.upper * around + wide)
        least = parts.least * max(0, frame.least - 2 * self._seam - 1)
        if may_split and not self._unknown.are_in(document):  # all of it is read
            least += self._counter.bounds(document)[0]
        return self._costs(parts, Range(min(least, most), most)) + self._merging(task, parts)

    def _room(self, task: ActionTask, frame: Range) -> Range:
        """Bounds of the tokens that a prompt has left for the document, for any inputs."""
        cap = self._limits.prompt_tokens
        if cap is None:
            return ANY
        bare = self._calls.request(replace(task, parts=())).messages
        around = self._unknown.tokens("".join(message.content for message in bare))
        widest = cap - int(around.least) + len(bare) + 2 * self._seam - PROMPT_MARGIN
        if widest <= 0:
            raise context.full_window()
        # The budget shrinks by the excess of prompts that turn out too long.
        excess = self._counter.most(widest) - widest + PROMPT_MARGIN + 2 * self._seam
        return Range(int(max(0, cap - max(frame.upper, around.upper) - excess)), widest)

    def _parts(self, document: str, length: Range, room: Range) -> Range:
        """Bounds of the number of chunks of a document."""
        is_known, most = not self._unknown.are_in(document), self._limits.max_parts
        n = max(1, len(document)) if is_known else inf
        if most is not None:
            return Range(1, min(most, n))
        if length.upper == inf or room.least < 1:
            return Range(1, n)
        size = chunk_size(int(room.least))
        if not is_known or room.least < SMALL_PART:
            return Range(1, min(n, PARTS * ceil(length.upper / size)))
        # A chunk size in between may give more parts.
        sizes = [chunk_size(int(room.upper))]
        while (smaller := chunk_size(sizes[-1] - 1)) >= size:
            sizes.append(smaller)
        counts = [1 if at >= length.upper else len(self._calls.cut(document, at)) for at in sizes]
        return Range(min(counts) if length.least > room.upper else 1, max(counts))

    def _retrieved(self, document: str | None, room: Range) -> int:
        """Maximum tokens of the passages in a prompt, of one document or (None) of any."""
        limit, whole = self._limits.max_retrieved, context.PASSAGE_TOKENS + context.GAP_TOKENS
        gap = self._counter.bounds(context.GAP)[1] + 2 * self._seam
        # Each passage has at least one token, and `context.GAP_TOKENS` for the gap before it.
        most = self._counter.most(limit) + gap * (limit // (1 + context.GAP_TOKENS) + 1)
        is_plain = document is not None and self._calls.corpus(document) is None
        has_room = limit >= whole and (room.most is None or room.least >= whole)
        if document is None or not (is_plain and has_room) or self._unknown.are_in(document):
            return most
        n = len(chunks(document, context.PASSAGE_TOKENS, self._counter.count)) if document else 0
        return min(most, self._counter.bounds(document)[1] + gap * (n + 1))

    def _merging(self, task: ActionTask, parts: Range) -> StepCosts:
        """Costs of merging the results of parts."""
        if parts.upper <= 1 or task.action.extracts:
            return StepCosts()
        none = self._unknown.tokens(self._calls.request(replace(task, parts=())).prompt)
        least = int(parts.least > 1)
        if inf in (parts.upper, none.upper):
            return self._costs(Range(least, parts.upper - 1), Range(none.least * least, None))
        n, cap = int(parts.upper), self._limits.prompt_tokens
        marks = self._counter.bounds(f"<part {n}>\n\n</part {n}>\n\n")[1] + 2 * self._seam
        text = self._counter.most(self._reply_tokens) + marks
        frame = none.upper + self._counter.bounds(str(n))[1] + self._seam
        # This many results certainly fit one call.
        sure = (
            n
            if cap is None
            else int((cap - ceil(frame) - PROMPT_MARGIN) // (text + requests.MARK_TOKENS))
        )
        n_calls = _most_merges(n, sure)
        # Every result is merged once, including those of all merging calls but the last.
        most = n_calls * frame + (n + n_calls - 1) * text
        most = most if cap is None else min(most, n_calls * cap)
        return self._costs(Range(least, n_calls), Range(min(none.least * least, most), most))


def _most_merges(n: int, sure: int) -> int:
    """Maximum calls that merge `n` results into one, if any `sure` of them fit one call."""
    half, n_calls, left = (sure + 1) // 2, 1, n  # a group that turns out too long is halved
    if half < 2:
        return n - 1
    while left > sure:
        left = min(left // half + 1, left - 1)
        n_calls += left
    return min(n_calls, n - 1)


def _question(step: Step) -> str:
    """The question that a composed answer answers; "" if an earlier step writes it."""
    question = step.arguments[0]
    return question.value if isinstance(question, String) else ""
