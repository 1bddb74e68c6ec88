"""Steps that are carried out row by row → bounds of their calls and tokens, before they run.

As long as only native steps came before, the rows are known, and so are the calls. After a model
has filtered or labelled them, the rows that may be left bound what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from math import ceil

from pearl.actions import native
from pearl.actions.by_row import shown_text
from pearl.actions.columns import read_column
from pearl.actions.searching import SearchedDocument
from pearl.actions.values import Value, as_text
from pearl.documents.rows import Rows
from pearl.documents.tokens import Counter
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import Action
from pearl.interpreter.bounds import Range, StepCosts
from pearl.interpreter.limits import ContextLimits
from pearl.interpreter.row_requests import ITEM_TOKENS, RowRequests, RowStep
from pearl.interpreter.row_steps import MAX_ROUNDS
from pearl.llm import ActionTask
from pearl.llm.reply_limits import items_limit

AGAIN_TOKENS = 64
"""Maximum tokens added to a request that is repeated, or held to a form."""

SELECTING = frozenset({
    "WHERE", "HAVING", "RANKED", "SORT", "UNIQUE", "INTERSECT", "DIFFERENCE", "SAMPLE",
})  # fmt: skip
"""Native actions whose rows are rows of their first argument."""

MULTIPLYING = frozenset({"PAIRS", "MATCH", "NEAR"})
"""Native actions that give rows for pairs of rows."""


@dataclass(frozen=True)
class PossibleRows:
    """The rows that a value may have."""

    n: int
    tokens: float | None
    rows: Rows | None = None
    is_certain: bool = False
    unknown: frozenset[str] = frozenset()
    answer_tokens: float = 0.0

    def texts(self, row_step: RowStep) -> list[str] | None:
        """The different texts that may have to be asked about; None if they are not known."""
        if self.rows is None or self.rows.column in self.unknown:
            return None
        return row_step.texts(self.rows)


class RowEstimator:
    """Estimates the steps of one plan that are about rows."""

    def __init__(
        self,
        requests: RowRequests,
        limits: ContextLimits,
        costs_alone: Callable[[ActionTask], StepCosts],
    ) -> None:
        self._requests = requests
        self._limits = limits
        self._counter: Counter = limits.counter
        self._alone = costs_alone
        self._seam = self._counter.most(0)

    # -----------------------------------------------------------------------------------------
    # Native actions

    def selected(
        self, action: Action, first: PossibleRows, others: Sequence[PossibleRows | None],
        values: Sequence[Value], *, is_open: bool = False,
    ) -> PossibleRows:  # fmt: skip
        """The rows that a native action over possible rows may give."""
        name = action.name
        n_others = [each.n for each in others if each is not None]
        if not is_open and first.rows is not None and name in ("FIELD", "GROUP", "WHERE"):
            known = self._computed(action, first, values)
            if known is not None:
                return known
        if name in SELECTING:
            return replace(first, is_certain=False)
        tokens = _sum([first.tokens, *(each.tokens for each in others if each is not None)])
        n = first.n
        for other in n_others:
            n = n * other if name in MULTIPLYING else n + other
        if name in MULTIPLYING:
            tokens = None if tokens is None else tokens * (n + 1)
        most = None if tokens is None else tokens + 4 * self._seam * n + first.answer_tokens * n
        return PossibleRows(n, most)

    def _computed(
        self, action: Action, first: PossibleRows, values: Sequence[Value]
    ) -> PossibleRows | None:
        """What the action gives of all rows that are possible, if it reads known columns only."""
        assert first.rows is not None
        try:
            column = read_column(first.rows, as_text(values[1])).name
            if column in first.unknown:
                if action.name != "FIELD":
                    return None
                return replace(first, rows=replace(first.rows, column=column))
            result = native.compute(action, [first.rows, *values[1:]])
        except ValueError:
            return None
        if not isinstance(result, Rows):
            return None
        tokens = self._tokens(result)
        if result.column in first.unknown:  # their values are what a model will say
            tokens += len(result) * (first.answer_tokens + 4 * self._seam)
        return replace(first, rows=result, n=len(result), tokens=tokens)

    def _tokens(self, rows: Rows) -> float:
        """Maximum tokens of rows as a text."""
        text = "\n".join(row.text or row.value or "" for row in rows)
        values = "\n".join(shown_text(row) or "" for row in rows)
        gap = self._counter.bounds("\n[...]\n- undecided: ")[1] + 4 * self._seam
        return self._counter.bounds(text)[1] + self._counter.bounds(values)[1] + len(rows) * gap

    def known(self, rows: Rows) -> PossibleRows:
        """Rows that are known."""
        return PossibleRows(len(rows), self._tokens(rows), rows, is_certain=True)

    # -----------------------------------------------------------------------------------------
    # Actions that search

    def of_passages(self, searched: SearchedDocument, n: int | None) -> PossibleRows:
        """The best `n` passages of a document, of which any may be among them; None for all."""
        tokens = [self._counter.at_most(passage.text) for passage in searched.index.passages]
        tokens = tokens if n is None else nlargest(n, tokens)
        return PossibleRows(len(tokens), sum(tokens) + 4 * self._seam * len(tokens))

    # -----------------------------------------------------------------------------------------
    # Actions that a model carries out

    def step(
        self, step: Step, row_step: RowStep, given: PossibleRows
    ) -> tuple[StepCosts, PossibleRows]:
        """Bounds of a step, and the rows that it may give."""
        task = row_step.task
        answer = float(
            items_limit(replace(task, items=("",)), self._counter, self._limits.max_item_tokens)
        )
        if row_step.is_each:
            answer = float(self._counter.most(self._limits.reply_tokens))
        if task.kind == "pick":
            costs = self._picking(row_step, given)
            n = min(given.n, task.n_picks)
            return costs, replace(given, n=n, is_certain=False)
        if row_step.query:
            return StepCosts(), self._first(step, row_step, given)
        texts = given.texts(row_step)
        costs = (
            self._unknown_texts(row_step, given) if texts is None
            else self._texts(step, row_step, texts, is_certain=given.is_certain)
        )  # fmt: skip
        if task.kind == "yes_no":
            return costs, replace(given, is_certain=False)
        if row_step.k:
            return costs, self._first(step, row_step, given)
        rows = given.rows and replace(given.rows, column=step.output, is_answered=True)
        if rows is not None:
            rows = replace(rows, rows=tuple(row.with_column(step.output, None) for row in rows))
        tokens = (
            None if given.tokens is None else given.tokens + given.n * (answer + 4 * self._seam)
        )
        return costs, PossibleRows(
            given.n, tokens, rows, given.is_certain, given.unknown | {step.output}, answer
        )

    def _first(self, step: Step, row_step: RowStep, given: PossibleRows) -> PossibleRows:
        """The first K of rows, which get a field that is not known."""
        n = min(given.n, row_step.k)
        unknown = given.unknown | {step.output}
        return replace(given, n=n, is_certain=False, unknown=unknown)

    def _texts(
        self, step: Step, row_step: RowStep, texts: Sequence[str], *, is_certain: bool
    ) -> StepCosts:
        batches, long = self._requests.batches(row_step, texts)
        n = len(batches)
        prompts = sum(self._counter.count(self._requests.request(b).prompt) for b in batches)
        replies = sum(items_limit(b, self._counter, self._limits.max_item_tokens) for b in batches)
        rounds = self._rounds
        most = n
        if not is_certain and self._limits.prompt_tokens is not None:
            # Fewer items may fill calls less well, but no two calls in a row could be one.
            most = min(len(texts), 2 * n + 1) if n else 0
            frame = self._requests.frame_tokens(row_step.task)
            prompts += (most - n) * frame
        costs = StepCosts(
            Range(n, most * rounds),
            Range(prompts, prompts * rounds + most * rounds * AGAIN_TOKENS),
            Range(n, replies * rounds),
            Range(min(1, n), rounds if n else 0),
        )
        again = min(self._limits.recheck, len(texts)) if row_step.may_be_rechecked else 0
        if again:
            longest = max(map(self._counter.count, texts)) + ITEM_TOKENS
            frame = self._requests.frame_tokens(row_step.task) + AGAIN_TOKENS + longest
            one = items_limit(replace(row_step.task, items=("",)), self._counter)
            costs = costs.then(
                StepCosts(
                    Range(0, again), Range(0, again * frame), Range(0, again * one), Range(0, 1)
                )
            )
        for text in long:
            costs = costs.beside(self._alone(self._requests.alone(row_step, step, text)))
        return costs if is_certain else costs.or_nothing

    @property
    def _rounds(self) -> int:
        """Requests for the items of one batch at most."""
        return 1 if self._limits.is_constrained else MAX_ROUNDS

    def _unknown_texts(self, row_step: RowStep, given: PossibleRows) -> StepCosts:
        """Costs of rows whose texts are not known."""
        task, n = row_step.task, given.n
        if given.tokens is None or row_step.is_each:
            return StepCosts(Range(0, None), Range(0, None), Range(0, None), Range(0, None))
        calls = ceil(n / self._limits.items_per_call)
        cap, frame = self._limits.prompt_tokens, self._requests.frame_tokens(task)
        if cap is not None:
            calls = min(n, 2 * calls + 2 * ceil(given.tokens / max(1, cap - frame)))
        most = calls * self._rounds
        labels = replace(task, items=("",) * n)
        replies = items_limit(labels, self._counter, self._limits.max_item_tokens)
        tokens = most * (frame + AGAIN_TOKENS) + self._rounds * (
            given.tokens + n * (ITEM_TOKENS + 2 * self._seam)
        )
        return StepCosts(
            Range(0, most), Range(0, tokens), Range(0, replies * self._rounds + most * 16),
            Range(0, self._rounds if n else 0),
        )  # fmt: skip

    def _picking(self, row_step: RowStep, given: PossibleRows) -> StepCosts:
        """Costs of a tournament: in each round, groups are asked for their best."""
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
        tokens: float | None = None
        if given.tokens is not None:
            share = given.tokens if texts is None else sum(map(self._counter.count, texts))
            tokens = rounds * (
                calls * (self._requests.frame_tokens(task) + AGAIN_TOKENS) + depth * share
            )
            tokens += rounds * items * (ITEM_TOKENS + 2 * self._seam)
        reply = items_limit(
            replace(task, items=("",) * size), self._counter, self._limits.max_item_tokens
        )
        least = calls if is_exact else 0
        return StepCosts(
            Range(least, calls * rounds), Range(0, tokens), Range(least, calls * rounds * reply),
            Range(depth if is_exact else 0, depth * rounds),
        )  # fmt: skip


def _sum(tokens: Sequence[float | None]) -> float | None:
    return None if None in tokens else sum(each for each in tokens if each is not None)
