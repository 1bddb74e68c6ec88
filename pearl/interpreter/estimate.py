"""The steps of a plan → lower and upper bounds of their calls and tokens, before a run."""

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
from pearl.interpreter.bounds import NONE, Range, StepCosts
from pearl.interpreter.checking import CLAIM_TOKENS, MAX_CLAIMS, frame_costs
from pearl.interpreter.context import (
    GAP,
    GAP_TOKENS,
    PASSAGE_TOKENS,
    ContextLimits,
    ContextOverflowError,
    awaited,
    fail_step,
    full_window,
)
from pearl.interpreter.requests import (
    MARK_TOKENS,
    MERGING_TOKENS,
    PROMPT_MARGIN,
    RequestBuilder,
    chunk_size,
)
from pearl.interpreter.row_steps import (
    ITEM_TOKENS,
    MAX_BESIDE,
    MAX_ROUNDS,
    RowRequests,
    RowStep,
    check_numbers,
    claimed_kinds,
)
from pearl.llm import ActionTask
from pearl.llm.reply_limits import items_limit


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
        """Bounds of the tokens of a text with a counted part; without placeholders, exact except at seams."""
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


ITEMS_AGAIN_TOKENS = 64
"""Maximum tokens added to a request that is repeated or constrained to a form."""


@dataclass(frozen=True)
class PossibleRows:
    """The rows that a value may have."""

    n: int
    tokens: float  # maximum; may be infinite
    rows: Rows | None = None
    is_certain: bool = False
    unknown: frozenset[str] = frozenset()
    answer_tokens: float = 0.0

    def texts(self, row_step: RowStep) -> list[str] | None:
        """The different texts that a model may have to read; None if they are unknown."""
        if self.rows is None or self.rows.column in self.unknown:
            return None
        return row_step.texts(self.rows)


BULLET_TOKENS = 3  # of an entry without its text

SEAM_TOKENS = 8  # Maximum tokens of the separators in a computed text

NUMBER_TOKENS = 400  # Maximum tokens of a number: 300 digits, each at least one token

UNDECIDED_TOKENS = 128  # Maximum tokens of the text in place of an undecided value

HELD_TOKENS = 64  # Maximum tokens added to a prompt for a JSON reply

AGAIN_TOKENS = 288  # Maximum tokens of the request to repeat a reply in the right form

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
        self.escalated = StepCosts()  # of the last step
        self.checked = StepCosts()  # of the last step
        self._calls = calls
        self._limits = calls.limits
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
            if action.composes and costs != StepCosts():
                self.checked = self._of_checker(step)
            elif self._checker.check != "off" and (
                "claims" in action.traits
                or (
                    action.cost == "text"
                    and self._calls.graph.gives[step.output] is ValueType.NUMBER
                )
            ):
                self.checked = self._of_claims((Field(step.output),), 1)
            elif action.extracts and self._checker.check != "off":
                # imported on use: few plans extract
                from pearl.replies.extracted import wanted_fields

                short = [each.value for each in step.arguments if isinstance(each, String)][-1]
                self.checked = self._of_claims(
                    wanted_fields(short, is_all=action.extracts_all), costs.calls.upper
                )
            elif is_by_row:
                self.checked = by.checked
            if step.output not in self._always:
                costs = costs.or_nothing
        except (ValueError, ExecutionError) as error:
            fail_step(step, error)
        return costs

    def _within(self, limits: ContextLimits) -> CostEstimator:
        """An estimator of the same plan with the limits of another model."""
        other = copy(self)
        other._calls, other._limits = self._calls.within(limits), limits
        other._row_requests = RowRequests(other._calls)
        other._counter, other._seam = limits.counter, limits.counter.most(0)
        other._reply_tokens = limits.reply_tokens
        return other

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
        elif action.extracts_all:
            task, _ = self._calls.task(step, self._texts)
            costs = self._formed(task, self._ask(task))
            n = costs.calls.upper * self._reply_tokens
            self._hold(step.output, PossibleRows(0 if n == inf else int(n), n))
            return costs
        elif action.asks_table:
            return self._of_table(step, action)
        else:
            task, _ = self._calls.task(step, self._texts)
            costs = self._formed(task, self._ask(task)) + self._of_looks(step, task)
            most = self._counter.most(self._reply_tokens)
            self._texts[step.output] = self._unknown.new(most)
            if task.gives is ValueType.LIST:
                most *= 4  # an entry may have had no bullet
            self._values[step.output] = self._unknown.new(most + UNDECIDED_TOKENS)
            return costs
        return StepCosts()

    def _of_looks(self, step: Step, task: ActionTask) -> StepCosts:
        """Costs of looking again, if the step may find nothing in passages: a prompt for each look, and one for queries."""
        # imported on use: few plans read passages
        from pearl.interpreter.looking import NEAR_TOKENS, words_task

        n, costs = self._calls.n_looks, StepCosts()
        search = self._calls.search_of(step, task.document or "")
        if not n or search is None or not (search[1] or self._is_cut(task, search[0])):
            return costs
        frame = self._unknown.tokens(self._calls.request(replace(task, document="")).prompt)
        most = frame.upper + NEAR_TOKENS + self._retrieved(None, Range(0, None))
        prompt = Range(0, most).up_to(self._limits.prompt_tokens)
        for _ in range(n):
            costs += self._formed(task, self._costs(prompt, 0, 1)).or_nothing
        words = words_task(task)
        return costs + self._formed(words, self._costs(self._prompt(words), 0, 1)).or_nothing

    def _is_cut(self, task: ActionTask, view: SearchedDocument) -> bool:
        """Whether a step may be shown passages of the document, instead of all of it."""
        cap, strategy = self._limits.prompt_tokens, self._limits.strategy
        prompt = self._unknown.tokens(self._calls.request(task).prompt, task.document or "").upper
        is_long = cap is not None and prompt + PROMPT_MARGIN + MERGING_TOKENS > cap
        return strategy == "retrieve" or (strategy == "auto" and view.is_corpus and is_long)

    def _of_composer(self, step: Step) -> StepCosts:
        """Costs of the last step: no call if fewer than two results are decided."""
        n_parts = len({each.name for each in step.references()})
        if self._limits.compose == "off" or n_parts < 2:
            return StepCosts()
        from pearl.interpreter.composing import max_prompt_tokens

        most = max_prompt_tokens(_question(step), self._counter)
        cap = self._limits.prompt_tokens
        return StepCosts(
            Range(0, 1), Range(0, most if cap is None else min(most, cap)),
            Range(0, self._reply_tokens),
        )  # fmt: skip

    def _of_checker(self, step: Step) -> StepCosts:
        """Costs of checking a composed answer: no call if nothing is left to be checked."""
        from pearl.interpreter.composing import check_costs

        if self._checker.check == "off":
            return StepCosts()
        most, reply = check_costs(_question(step), self._checker)
        cap = self._checker.prompt_tokens or inf
        again = most + self._checker.counter.most(reply) + AGAIN_TOKENS
        tokens = min(most, cap) + min(again, cap) + 2 * HELD_TOKENS
        return StepCosts(Range(0, 2), Range(0, tokens), Range(0, 2 * reply))

    def _of_claims(self, fields: Sequence[Field], n_replies: float) -> StepCosts:
        """Costs of checking the values of fields."""
        # imported on use: few plans extract
        from pearl.interpreter.record_claims import check_costs

        if n_replies == inf:
            return StepCosts(Range(0, inf), Range(0, inf), Range(0, inf))
        n, tokens, replied = check_costs(fields, int(n_replies), self._reply_tokens, self._checker)
        return self._of_requests(n, tokens, replied)

    def _of_verdicts(self, row_step: RowStep, given: PossibleRows) -> StepCosts:
        """Costs of checking what passages of rows decided; a passage is a part of its row."""
        check = self._checker.check
        is_asked = row_step.task.is_quoted or check == "all"
        is_asked &= row_step.task.kind in claimed_kinds(check) and not row_step.is_each
        if check == "off" or not (is_asked and given.n):
            return StepCosts()
        if inf in (given.n, given.tokens):
            return StepCosts(Range(0, inf), Range(0, inf), Range(0, inf))
        counter, texts = self._checker.counter, given.texts(row_step)
        character = "x" if texts is not None and all(map(str.isascii, texts)) else "é"
        asked = " ".join(value for _, value in row_step.task.arguments)
        beside = self._unknown.tokens(asked).upper + counter.at_most(character * MAX_BESIDE)
        n = -(-int(given.n) // MAX_CLAIMS)
        frame, reply = frame_costs(self._checker)
        tokens = counter.most(int(given.tokens)) + given.n * (beside + CLAIM_TOKENS) + n * frame
        return self._of_requests(n, tokens, n * reply)

    def _of_requests(self, n: int, tokens: float, replied: float) -> StepCosts:
        """Costs of requests to the checker, each of which may be repeated."""
        cap = self._checker.prompt_tokens or inf
        most = min(2 * (tokens + replied) + n * (AGAIN_TOKENS + HELD_TOKENS), 2 * n * cap)
        return StepCosts(Range(0, 2 * n), Range(0, most), Range(0, 2 * replied))

    def _of_table(self, step: Step, action: Action) -> StepCosts:
        """Costs of a question about a table: one query, and its repetitions if it cannot be used."""
        # imported on use: few plans query a table
        from pearl.interpreter.table_steps import query_costs

        given, question = self._calls.values(step, self._values)
        question = as_text(question)
        known = None if self._unknown.are_in(question) else question
        n_rows = 0
        if isinstance(given, str):  # the value depends on an earlier step
            n_rows = self._possible_rows(step.arguments[0], as_rows(given)).n
        costs, most = query_costs(step.output, action, known, given, n_rows, self._limits)
        self._hold(step.output, PossibleRows(most, inf if most else 0))
        return costs

    def _possible_rows(self, argument: Argument, rows: Rows) -> PossibleRows:
        """The rows that an argument may have."""
        if isinstance(argument, Reference) and argument.name in self._possible:
            return self._possible[argument.name]
        marks = [value for value in rows.values if self._unknown.are_in(value)]
        if not marks:
            return self._known(rows)
        most = self._unknown.tokens("\n".join(marks)).upper
        # Every entry of a text has at least one token.
        return PossibleRows(len(rows) + (0 if most == inf else int(most)), most)

    def _hold(self, output: str, possible: PossibleRows) -> None:
        """Create a placeholder for rows that are unknown or have unknown values."""
        self._possible[output] = possible
        mark = self._unknown.new(possible.tokens + UNDECIDED_TOKENS)
        self._values[output] = self._texts[output] = mark

    def _formed(self, task: ActionTask, costs: StepCosts) -> StepCosts:
        """Costs of a call whose reply has a form, including a possible repetition."""
        if task.action.extracts:
            # imported on use: few plans extract
            from pearl.interpreter.extracting import AGAIN_TOKENS as MORE_TOKENS

            # The request about each part may be repeated, be followed by one for values that break a
            # rule or have no certain place, and by one for what is missing in each further pass.
            n = costs.calls.upper
            n_more = 0 if self._limits.max_prompt_tokens is not None else self._limits.passes
            added = self._counter.most(self._reply_tokens) + AGAIN_TOKENS + HELD_TOKENS
            added += n_more * (MORE_TOKENS + AGAIN_TOKENS + HELD_TOKENS)
            most = None if costs.calls.most is None else (2 + n_more) * costs.calls.most
            return StepCosts(
                Range(costs.calls.least, most),
                Range(costs.input_tokens.least, (2 + n_more) * costs.input_tokens.upper + n * added),
                Range(costs.output_tokens.least, (2 + n_more) * n * self._reply_tokens),
            )  # fmt: skip
        if self._calls.asks_words(task):
            added = self._counter.most(self._reply_tokens) + AGAIN_TOKENS
            first = Range(0, costs.input_tokens.upper + added)
            costs += StepCosts(Range(0, 1), first, Range(0, self._reply_tokens))
        # Any text is read; a broken object, which is asked again, is as rare as a retry.
        if task.gives is ValueType.TEXT:
            return costs
        cap = self._limits.prompt_tokens
        calls = costs.calls + Range(0, 1)
        most = costs.input_tokens.upper
        if most < inf and costs.calls.upper < inf:
            most += costs.calls.upper * HELD_TOKENS
            # Either this is the only prompt that is repeated, or it fits the window.
            added = self._counter.most(self._reply_tokens) + AGAIN_TOKENS
            most += cap + HELD_TOKENS if cap is not None else most + added
        return StepCosts(
            calls, Range(costs.input_tokens.least, most),
            Range(costs.output_tokens.least, calls.upper * self._reply_tokens),
        )  # fmt: skip

    def _search(self, step: Step, action: Action) -> None:
        """Keep the rows of a search, or their bounds if the search cannot run now."""
        values = self._calls.values(step, self._values)
        known = [value for value in values if not isinstance(value, SearchedDocument | Rows)]
        is_known = not self._unknown.are_in(*map(as_text, known))
        if is_known and not self._calls.may_wait:
            found = awaited(by_search.search(action, self._calls.searcher, values))
            self._values[step.output] = self._texts[step.output] = found.rows
            return
        n: int | None = None
        with suppress(ValueError):  # the value depends on an earlier step
            n = whole_number(number_of(known[-1]), "K", least=1)
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
        values = self._calls.values(step, self._values)
        # Known rows have no placeholders, and their text may be long.
        shown = ["" if isinstance(value, Rows) else as_text(value) for value in values]
        if not self._unknown.are_in(*shown):
            try:
                value = native.compute(action, values)
            except EmptyListError:
                value = []
            except UnclearNumberError as error:
                if not list(step.references()):
                    raise
                value = f"undecided: {error}"
            is_rows = isinstance(value, Rows)
            self._values[step.output] = value
            self._texts[step.output] = value if is_rows else as_text(value)
            return
        held = {
            i for i, a in enumerate(step.arguments) if getattr(a, "name", None) in self._possible
        }
        is_list = action.returns is action.parameter(0).type is ValueType.LIST
        tries = "tries" in action.traits
        if held and (is_list or tries or "figures" in action.traits):
            given = [
                self._possible_rows(argument, as_rows(value))
                for i, (argument, value) in enumerate(zip(step.arguments, values, strict=True))
                if tries or i in held or action.parameter(i).type is ValueType.LIST
            ]
            is_open = self._unknown.are_in(*shown[1:])
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
        self,
        action: Action,
        given: Sequence[PossibleRows],
        values: Sequence[Value],
        *,
        is_open: bool,
    ) -> PossibleRows:
        """The rows that a native action over possible rows may return."""
        first, traits = given[0], action.traits
        by_columns = not traits.isdisjoint(("by_field", "condition"))
        if "tries" in action.traits:
            return PossibleRows(max(each.n for each in given), max(each.tokens for each in given))
        is_known = by_columns and not is_open and first.rows is not None
        if is_known and (known := self._computed(action, first, values)) is not None:
            return known
        if "selects" in traits:
            if "first" in traits and not is_open and first.rows is not None:
                n = min(first.n, whole_number(number_of(values[1]), "N", least=1))
                each = (self._tokens(replace(first.rows, rows=(row,))) for row in first.rows)
                tokens = sum(nlargest(n, each)) + n * (first.answer_tokens + 4 * self._seam)
                return PossibleRows(n, tokens, answer_tokens=first.answer_tokens)
            return replace(first, is_certain=False)
        tokens = sum(each.tokens for each in given)
        n = sum(each.n for each in given)
        if "multiplies" in traits:
            n = prod(each.n for each in given)
            tokens *= n + 1
        if "figures" in traits:
            tokens += NUMBER_TOKENS * n
        return PossibleRows(n, tokens + 4 * self._seam * n + first.answer_tokens * n)

    def _computed(
        self, action: Action, first: PossibleRows, values: Sequence[Value]
    ) -> PossibleRows | None:
        """The result of the action over all possible rows, if it reads known columns only."""
        assert first.rows is not None
        try:
            column = read_column(first.rows, as_text(values[1])).name
            if column in first.unknown:
                if not action.traits.isdisjoint(("groups", "condition")):
                    return None
                return replace(first, rows=replace(first.rows, column=column))
            result = native.compute(action, [first.rows, *values[1:]])
        except ValueError:
            return None
        if not isinstance(result, Rows):
            return None
        tokens = self._tokens(result)
        if result.column in first.unknown:  # a model will write these values
            tokens += len(result) * (first.answer_tokens + 4 * self._seam)
        unknown = first.unknown
        if "groups" in action.traits and not first.is_certain:
            unknown |= {size_field(result.column)}
        return replace(first, rows=result, n=len(result), tokens=tokens, unknown=unknown)

    def _tokens(self, rows: Rows) -> float:
        """Maximum tokens of the text of rows."""
        text = "\n".join(row.text or row.value or "" for row in rows)
        values = "\n".join(shown_text(row) or "" for row in rows)
        gap = self._counter.bounds("\n[...]\n- undecided: ")[1] + 4 * self._seam
        return self._counter.bounds(text)[1] + self._counter.bounds(values)[1] + len(rows) * gap

    def _known(self, rows: Rows) -> PossibleRows:
        """Rows that are known."""
        return PossibleRows(len(rows), self._tokens(rows), rows, is_certain=True)

    def _of_reduction(self, step: Step) -> StepCosts:
        """Costs of reducing rows: close if they are known, else by the number of their tokens."""
        # imported on use: few plans reduce rows
        from pearl.interpreter.reducing import Reducer, is_grouped

        reducer = Reducer(step, self._values, self._calls)
        given, task = self._possible_rows(step.arguments[0], reducer.rows), reducer.task
        rows, cap = given.rows, self._limits.prompt_tokens
        most = self._counter.most(self._reply_tokens)
        actions = map(self._calls.graph.checked.action, self._calls.graph.steps)
        are_groups = is_grouped(rows) if rows else any("groups" in each.traits for each in actions)
        n_groups, n = given.n if are_groups else min(1, given.n), given.n if are_groups else most
        said = n_groups * (most + SEAM_TOKENS) + (given.tokens if are_groups else 0)
        self._hold(step.output, PossibleRows(n, said))
        is_known = given.is_certain and not (given.unknown or self._unknown.are_in(reducer.x))
        if rows is not None and is_known:
            reducer.rows, costs = rows, StepCosts()
            for tasks in map(reducer.parts, reducer.groups):
                n = len(tasks)
                merging = self._merging(task, Range(max(1, n), max(1, n)))
                costs += self._costs(sum(map(self._prompt, tasks), NONE), n, n, merging)
            return costs
        n, tokens = given.n, given.tokens
        if rows is not None:
            every = [each for row in rows.every for each in (row, *row.members, *row.possible)]
            n = len(every)
            tokens = self._tokens(Rows(tuple(every))) + n * given.answer_tokens
        tokens += n * 2 * (ITEM_TOKENS + self._seam)
        frame, merging = self._unknown.tokens(self._calls.request(task).prompt), (NONE, NONE)
        n_calls = float(n_groups)
        if cap is not None and n_groups:
            room = self._available_tokens(task, frame, cap).least - ITEM_TOKENS
            if tokens > room:  # of three neighbouring parts, two are together longer than the room
                n_more = ceil(3 * tokens / room) if room > 0 and tokens < inf else inf
                n_calls += n_more
                calls, merged = self._merging(task, Range(0, 1 + n_more))
                more = Range(0, n_more), Range(0, n_more * cap)
                merging = more if n_groups > 1 else (calls.or_nothing, merged.or_nothing)
        prompts = n_calls * (frame.upper + 2 * self._seam + 1) + tokens if n_calls else 0
        return self._costs(Range(0, prompts), 0, n_calls, merging)

    def _by_row(self, step: Step) -> StepCosts:
        """Costs of a step that is carried out row by row; records the rows that the step may return."""
        row_step = self._row_requests.step(step, self._values)
        given = whole = self._possible_rows(step.arguments[0], row_step.rows)
        task, widest = row_step.task, 0.0
        if row_step.is_over:
            row_step, given, widest = self._over(row_step, given)
        if self._unknown.are_in(*task.labels, *(value for _, value in task.arguments)):
            given = replace(given, is_certain=False)
        known = None if given.texts(row_step) is None else given.rows
        row_step = self._row_requests.quoted(row_step, known, is_certain=given.is_certain)
        task = row_step.task
        costs = StepCosts()
        if task.kind == "pick":
            costs = self._picking(row_step, given)
        else:
            texts = given.texts(row_step)
            costs = (
                self._unknown_texts(row_step, given) if texts is None
                else self._known_texts(step, row_step, texts, is_certain=given.is_certain)
            )  # fmt: skip
            if row_step.n_needed is not None:  # its calls may end after the first
                costs = costs.or_nothing
        self.checked = self._of_verdicts(row_step, given)
        self._hold(step.output, self._read_rows(step, row_step, whole, widest))
        return costs

    def _over(self, row_step: RowStep, given: PossibleRows) -> tuple[RowStep, PossibleRows, float]:
        """The step over the pairs of names that it may make of rows, these, and the maximum tokens of a name."""
        n, tokens = given.n, given.tokens + given.n * given.answer_tokens
        widest, (field,) = tokens, (value for _, value in row_step.task.arguments)
        if given.rows is not None and not self._unknown.are_in(field):
            column = read_column(given.rows, field)
            if column.name not in given.unknown:
                names = [self._counter.bounds(name)[1] for name in {*column.values} if name]
                n, tokens, widest = len(names), sum(names), max(names, default=0)
                if given.is_certain:
                    row_step = row_step.over(given.rows)
                    return row_step, self._known(row_step.rows), widest
        n_pairs = min(MAX_PAIRS, n * MAX_PARTNERS // 2)
        tokens = MAX_PARTNERS * tokens + n_pairs * SEAM_TOKENS
        return row_step, PossibleRows(n_pairs, tokens), widest

    def _read_rows(
        self, step: Step, row_step: RowStep, given: PossibleRows, widest: float
    ) -> PossibleRows:
        """The rows that a step carried out row by row may return."""
        task, unknown = row_step.task, given.unknown | {step.output}
        if task.kind == "pick":
            return replace(given, n=min(given.n, task.n_picks), is_certain=False)
        if task.kind == "yes_no":
            return replace(given, is_certain=False)
        most = items_limit(replace(task, items=("",)), self._counter, self._limits.max_item_tokens)
        answer = float(
            self._counter.most(self._reply_tokens) if row_step.is_each else widest or most
        )
        rows = given.rows and replace(given.rows, column=step.output, is_answered=True)
        if rows is not None:
            rows = replace(rows, rows=tuple(row.with_column(step.output, None) for row in rows))
        tokens = given.tokens + given.n * (answer + 4 * self._seam)
        return PossibleRows(given.n, tokens, rows, given.is_certain, unknown, answer)

    def _known_texts(
        self, step: Step, row_step: RowStep, texts: Sequence[str], *, is_certain: bool
    ) -> StepCosts:
        batches, long = self._row_requests.batches(row_step, texts)
        n = len(batches)
        prompts = sum(self._counter.count(self._row_requests.request(b).prompt) for b in batches)
        replies = sum(items_limit(b, self._counter, self._limits.max_item_tokens) for b in batches)
        rounds = self._rounds
        most = n
        if not is_certain and self._limits.prompt_tokens is not None:
            # Fewer items may fill calls less well, but two neighbouring calls never fit into one.
            most = min(len(texts), 2 * n + 1) if n else 0
            frame = self._row_requests.frame_tokens(row_step.task)
            prompts += (most - n) * frame
        costs = StepCosts(
            Range(n, most * rounds),
            Range(prompts, prompts * rounds + most * rounds * ITEMS_AGAIN_TOKENS),
            Range(n, replies * rounds),
        )
        for text in long:
            alone = self._row_requests.alone(row_step, step, text)
            costs += self._formed(alone, self._ask(alone))
        return costs if is_certain else costs.or_nothing

    @property
    def _rounds(self) -> int:
        """Maximum requests for the items of one batch."""
        return 1 if self._limits.is_constrained else MAX_ROUNDS

    def _unknown_texts(self, row_step: RowStep, given: PossibleRows) -> StepCosts:
        """Costs of rows with unknown texts."""
        task, n = row_step.task, given.n
        if given.tokens == inf or row_step.is_each:
            any_number = Range(0, None)
            return StepCosts(any_number, any_number, any_number)
        calls = ceil(n / self._limits.items_per_call)
        # Without a constraint, texts that begin and end alike are in calls of their own.
        if not self._limits.is_constrained:
            calls = min(n, 2 * calls)
        cap, frame = self._limits.prompt_tokens, self._row_requests.frame_tokens(task)
        if cap is not None:
            calls = min(n, 2 * calls + 2 * ceil(given.tokens / max(1, cap - frame)))
        most = calls * self._rounds
        labels = replace(task, items=("",) * n)
        replies = items_limit(labels, self._counter, self._limits.max_item_tokens)
        tokens = most * (frame + ITEMS_AGAIN_TOKENS) + self._rounds * (
            given.tokens + n * (ITEM_TOKENS + 2 * self._seam)
        )
        return StepCosts(
            Range(0, most), Range(0, tokens), Range(0, replies * self._rounds + most * 16),
        )  # fmt: skip

    def _picking(self, row_step: RowStep, given: PossibleRows) -> StepCosts:
        """Costs of selecting the best rows in rounds: each call selects the best rows of one group."""
        task, k = row_step.task, row_step.task.n_picks
        texts = given.texts(row_step)
        n = given.n if texts is None else len(texts)
        size = max(self._limits.items_per_call, k + 1)
        is_exact = given.is_certain and texts is not None and self._limits.prompt_tokens is None
        calls = depth = 0
        items = 0
        left = n
        while left:
            groups = ceil(left / size)
            calls, depth, items = calls + groups, depth + 1, items + left
            kept = (groups - 1) * min(k, size) + min(k, left - (groups - 1) * size)
            if groups == 1 or kept >= left:
                break
            left = kept
        if self._limits.prompt_tokens is not None:
            calls, depth, items = 2 * n + 1 if n else 0, n, items * max(1, depth)
        rounds = 1 if self._limits.is_constrained else 1 + self._limits.max_reasks
        tokens = inf
        if given.tokens < inf:
            share = given.tokens if texts is None else sum(map(self._counter.count, texts))
            tokens = rounds * (
                calls * (self._row_requests.frame_tokens(task) + ITEMS_AGAIN_TOKENS) + depth * share
            )
            tokens += rounds * items * (ITEM_TOKENS + 2 * self._seam)
        reply = items_limit(
            replace(task, items=("",) * size), self._counter, self._limits.max_item_tokens
        )
        least = calls if is_exact else 0
        return StepCosts(
            Range(least, calls * rounds), Range(0, tokens), Range(least, calls * rounds * reply),
        )  # fmt: skip

    def _prompt(self, task: ActionTask) -> Range:
        """Tokens of a prompt, capped at the limit: a longer one is never sent."""
        tokens = self._unknown.tokens(self._calls.request(task).prompt, task.document or "")
        return tokens.up_to(self._limits.prompt_tokens)

    def _ask(self, task: ActionTask) -> StepCosts:
        texts = [value for _, value in task.arguments]
        if task.document is None:
            if not self._unknown.are_in(*texts):
                self._calls.whole(task)
            return self._costs(self._prompt(task), 1, 1)
        document = task.document
        if self._unknown.are_in(document, *texts) or self._is_ranked(document):
            return self._vague(task, document)
        _, pieces = awaited(self._calls.pieces(task, document))
        tokens = NONE
        for piece in pieces:
            tokens += self._prompt(piece)
        merging = self._merging(task, Range(len(pieces), len(pieces)))
        return self._costs(tokens, len(pieces), len(pieces), merging)

    def _is_ranked(self, document: str) -> bool:
        """Whether the passages of a document depend on a ranking by a server."""
        is_split = self._limits.max_parts is None and self._calls.is_split(document)
        return self._calls.may_wait and self._limits.strategy != "full" and not is_split

    def _costs(
        self,
        tokens: Range,
        least: int,
        most: float | None,
        merging: tuple[Range, Range] = (NONE, NONE),
    ) -> StepCosts:
        calls = Range(least, most) + merging[0]
        output = Range(calls.least, calls.upper * self._reply_tokens)
        return StepCosts(calls, tokens + merging[1], output)

    def _vague(self, task: ActionTask, document: str) -> StepCosts:
        """Costs of a step that reads a document and has unknown inputs."""
        cap, strategy = self._limits.prompt_tokens, self._limits.strategy
        frame = self._unknown.tokens(self._calls.request(replace(task, document="")).prompt)
        length = self._unknown.tokens(document)
        available = Range(0, None) if cap is None else self._available_tokens(task, frame, cap)
        prompt = self._unknown.tokens(self._calls.request(task).prompt, document)
        fits = cap is None or (prompt.upper <= cap and length.upper <= available.least)
        if strategy == "full" or (fits and strategy != "retrieve"):
            return self._costs(prompt.up_to(cap), 1, 1)
        is_split = self._calls.is_split(document)
        if strategy == "retrieve" or (self._calls.corpus(document) is not None and not is_split):
            most = frame.upper + self._retrieved(document, available)
            if strategy == "auto":  # the document may also fit as a whole
                most = max(most, prompt.upper)
            return self._costs(Range(frame.least, most).up_to(cap), 1, 1)
        assert cap is not None
        return self._in_parts(task, document, frame, length, available, cap)

    def _in_parts(
        self,
        task: ActionTask,
        document: str,
        frame: Range,
        length: Range,
        available: Range,
        cap: int,
    ) -> StepCosts:
        """Costs of a step whose document may have to be split."""
        is_known = not self._unknown.are_in(document)
        parts = self._parts(document, length, available, is_known)
        n_parts, most = parts.upper, parts.upper * cap
        wide = self._unknown.widest(document)
        if n_parts < inf and frame.upper < inf and wide < inf:
            most = min(most, n_parts * (frame.upper + 2 * self._seam + 1) + ceil(wide))
        least = parts.least * max(0, frame.least - 2 * self._seam - 1)
        if is_known and self._limits.max_parts is None:
            least += self._counter.bounds(document)[0]
        merging = self._merging(task, parts)
        tokens = Range(min(least, most), most)
        return self._costs(tokens, int(parts.least), parts.most, merging)

    def _available_tokens(self, task: ActionTask, frame: Range, cap: int) -> Range:
        """Bounds of the prompt budget for the document, for any inputs."""
        bare = self._calls.request(replace(task, parts=())).messages
        around = self._unknown.tokens("".join(message.content for message in bare))
        widest = cap - int(around.least) + len(bare) + 2 * self._seam - PROMPT_MARGIN
        if widest <= 0:
            raise full_window()
        longest = max(frame.upper, around.upper)
        if longest == inf:
            return Range(0, widest)
        # The budget shrinks by the excess of prompts that turn out too long.
        excess = self._counter.most(widest) - widest
        narrow = cap - ceil(longest) - excess - PROMPT_MARGIN - 2 * self._seam
        return Range(max(0, narrow), widest)

    def _parts(self, document: str, length: Range, available: Range, is_known: bool) -> Range:
        """Bounds of the number of chunks of a document."""
        least, n = 1, len(document) if is_known else inf
        if self._limits.max_parts is not None:
            # The chunk size follows the budget, not a sixteenth.
            return Range(1, max(1, min(self._limits.max_parts, n)))
        if length.upper == inf or available.most is None or available.least < 1:
            pass
        elif not is_known or available.least < SMALL_PART:
            n = min(n, PARTS * ceil(length.upper / chunk_size(int(available.least))))
        else:
            counts: list[int] = []
            at = chunk_size(int(available.most))
            while at >= chunk_size(int(available.least)):
                fits = at >= length.upper
                counts.append(1 if fits else len(self._calls.cut(document, at)))
                at = chunk_size(at - 1)
            n = max(counts)
            least = min(counts) if length.least > available.most else 1
        return Range(least, max(1, n))

    def _retrieved(self, document: str | None, available_tokens: Range) -> int:
        """Maximum tokens of the passages that a step is shown of a document, or None, of any."""
        limit = self._limits.max_retrieved
        gap = self._counter.bounds(GAP)[1] + 2 * self._seam
        # Each passage has at least one token, and `GAP_TOKENS` for the gap before it.
        most = self._counter.most(limit) + gap * (limit // (1 + GAP_TOKENS) + 1)
        whole = PASSAGE_TOKENS + GAP_TOKENS
        if document is None:
            return most
        is_plain = self._calls.corpus(document) is None
        has_room = available_tokens.most is None or available_tokens.least >= whole
        if is_plain and not self._unknown.are_in(document) and limit >= whole and has_room:
            n = len(chunks(document, PASSAGE_TOKENS, self._counter.count)) if document else 0
            most = min(most, self._counter.bounds(document)[1] + gap * (n + 1))
        return most

    def _merging(self, task: ActionTask, parts: Range) -> tuple[Range, Range]:
        """Calls that merge the results of the chunks, and the tokens of their prompts."""
        if parts.most == 1 or task.action.extracts:
            return NONE, NONE
        none = self._unknown.tokens(self._calls.request(replace(task, parts=())).prompt)
        least = int(parts.least > 1)
        tokens = none.least * least
        if parts.most is None or none.most is None:
            return Range(least, parts.upper - 1), Range(tokens, None)
        n = int(parts.most)
        marks = self._counter.bounds(f"<part {n}>\n\n</part {n}>\n\n")[1] + 2 * self._seam
        text = self._counter.most(self._reply_tokens) + marks
        frame = none.most + self._counter.bounds(str(n))[1] + self._seam
        cap = self._limits.prompt_tokens
        n_calls = _most_merges(n, frame, text, cap)
        # Every result is merged once, including those of all merging calls but the last.
        summed = n_calls * frame + (n + n_calls - 1) * text
        most = summed if cap is None else min(summed, n_calls * cap)
        return Range(least, n_calls), Range(min(tokens, most), most)


def _most_merges(n: int, frame: float, text: float, cap: int | None) -> int:
    """Maximum calls that merge results until one is left."""
    if cap is None:
        return 1
    # This many results certainly fit one call.
    sure = int((cap - ceil(frame) - PROMPT_MARGIN) // (text + MARK_TOKENS))
    half = (sure + 1) // 2  # a group that turns out too long is halved
    total = 0
    left = n
    while left > 1:
        if left <= sure:
            return min(total + 1, n - 1)
        if half < 2:
            return n - 1
        groups = min(left // half + 1, left - 1)
        total += groups
        left = groups
    return min(total, n - 1)


def _question(step: Step) -> str:
    """The question that a composed answer answers; "" if an earlier step writes it."""
    question = step.arguments[0]
    return question.value if isinstance(question, String) else ""
