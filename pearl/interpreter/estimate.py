"""Plan → lower and upper bounds of the calls and tokens of its steps, before a run.

Prompts that are known before the first call are built and counted as in a run. For values that a model will
write or select, a `Bound` limits the tokens that they can add.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from heapq import nlargest
from math import ceil, inf, prod

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions import by_search, native
from pearl.actions.by_row import shown_text
from pearl.actions.resolving import MAX_PAIRS, MAX_PARTNERS
from pearl.actions.searching import SearchedDocument
from pearl.actions.values import EmptyListError, Value, as_rows, as_text, number_of
from pearl.documents.numbers import UnclearNumberError, whole_number
from pearl.documents.rows import Rows
from pearl.dsl.fields import Field
from pearl.dsl.nodes import Argument, Reference, Step, String, items_of
from pearl.dsl.signatures import Action, ValueType
from pearl.errors import ExecutionError
from pearl.interpreter import checking, composing, context, extracting, record_claims, row_steps
from pearl.interpreter.context import ContextLimits, ContextOverflowError, awaited, fail_step
from pearl.interpreter.cost_ranges import ANY, NONE, ONE, Range, StepCosts
from pearl.interpreter.field_values import MAX_SHOWN
from pearl.interpreter.looking import NEAR_TOKENS
from pearl.interpreter.reducing import Reducer, is_grouped
from pearl.interpreter.requests import MARK_TOKENS, PROMPT_MARGIN, RequestBuilder, chunk_size
from pearl.interpreter.row_steps import ITEM_TOKENS, RowRequests, RowStep, check_numbers
from pearl.llm import ActionTask, ItemsTask
from pearl.llm.reply_limits import items_limit
from pearl.replies.extracted import wanted_fields

UNKNOWN = "x"  # Placeholder in prompts for text that a model will write; its tokens are added

# Maximum tokens of the tags around a value in a prompt, of a number (300 digits, at least one
# token each), and of the text that replaces an undecided value
AROUND_TOKENS, NUMBER_TOKENS, UNDECIDED_TOKENS = 8, 400, 128

UNKNOWN_TOKENS = 32  # Maximum tokens of all placeholders for unknown values in a prompt

# Maximum tokens added to a prompt to ask for JSON, to repeat a request for the form, and to
# repeat a batch
HELD_TOKENS, AGAIN_TOKENS, BATCH_AGAIN_TOKENS = 64, 288, 64

BULLET_TOKENS = 3  # Maximum tokens that the mark of a list entry takes

MAX_RATIO = 4  # Maximum ratio of two models' token counts of one text

SMALL_PART = 48  # Smallest chunk size in tokens for which the document is split to count the parts


class Bound(Struct, frozen=True):
    """An upper bound of a value that is unknown before the run."""

    n: float  # Maximum rows, or entries of a text
    tokens: float  # Maximum tokens
    rows: Rows | None = None  # The rows from which its rows will be selected, if they are known
    answer: float = 0.0  # Maximum tokens that a model writes as the value of each row


class CostEstimator:
    """Estimates the cost of the steps of a plan, in order."""

    def __init__(
        self, calls: RequestBuilder, rows: ContextLimits | None = None,
        escalate: ContextLimits | None = None, *, checker: ContextLimits | None = None,
    ) -> None:  # fmt: skip
        self.escalated = StepCosts()  # Costs of the last step by the escalation model
        self.checked = StepCosts()  # Costs of the last step by the checker
        self._values: dict[str, Value] = {}
        self._bounds: dict[str, Bound] = {}  # By output, of steps whose values are unknown
        # Whether a search needs an embedder: a forecast does not call one
        self._waits = calls.searcher.method.NEEDS_VECTORS
        self._always = {calls.graph.steps[i].output for i in calls.graph.always}
        self._checker = checker or calls.limits
        self._use(calls)
        self._by_rows = self._within(rows) if rows else self
        self._escalation = self._within(escalate) if escalate else None

    def _use(self, calls: RequestBuilder) -> None:
        self._calls, self._limits = calls, calls.limits
        self._row_requests = RowRequests(calls)
        self._counter = calls.limits.counter
        self._seam = self._counter.most(0)
        # Maximum tokens of a reply within a later prompt
        self._reply = self._counter.most(calls.limits.reply_tokens)

    def _within(self, limits: ContextLimits) -> CostEstimator:
        """An estimator of the same plan with the limits of another model."""
        other = copy(self)
        other._use(self._calls.within(limits))
        return other

    def step(self, step: Step) -> StepCosts:
        """Estimate the costs of the next step."""
        action = self._calls.graph.checked.action(step)
        check_numbers(step, action)
        self.escalated = self.checked = self._by_rows.checked = StepCosts()
        is_by_row = action.cost == "rows"
        by = self._by_rows if is_by_row else self
        try:
            if self._escalation and (is_by_row or action.extracts):
                with suppress(ContextOverflowError):
                    self.escalated = self._escalation._of_step(step, action).or_nothing
            costs = by._of_step(step, action)
            is_checked = is_by_row or action.composes
            self.checked = by.checked if is_checked else self._of_checks(step, action, costs)
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
            return self._of_rows(step)
        elif action.asks_table:
            # Imported on use: few plans query a table
            from pearl.interpreter.table_steps import query_costs

            given, question = self._calls.values(step, self._values)
            literal = None if self._unknown(step.arguments[1]) else as_text(question)
            n_rows = int(sum(bound.n for bound in self._unknown(step.arguments[0])))
            costs, most = query_costs(step.output, action, literal, given, n_rows, self._limits)
            self._hold(step.output, Bound(most, inf if most else 0))
            return costs
        else:
            return self._of_text(step, action)
        return StepCosts()

    # --- What a step gives to later ones ---

    def _unknown(self, *arguments: Argument) -> list[Bound]:
        """The bounds of the unknown values in arguments."""
        items = [item for each in arguments for item in items_of(each)]
        names = [item.name for item in items if isinstance(item, Reference)]
        return [self._bounds[name] for name in names if name in self._bounds]

    def _more(self, *arguments: Argument) -> float:
        """Maximum tokens that the unknown values of arguments add to a prompt."""
        around = AROUND_TOKENS + 2 * self._seam
        return sum(bound.tokens + around for bound in self._unknown(*arguments))

    def _bound(self, argument: Argument, value: Value) -> Bound:
        unknown = self._unknown(argument)
        if isinstance(argument, Reference) and unknown:
            return unknown[0]
        rows = as_rows(value)
        known = Bound(len(rows), self._tokens(rows), rows)
        return _together([known, *unknown]) if unknown else known

    def _hold(self, output: str, bound: Bound) -> None:
        """Store the bound of an output whose value is unknown, with a placeholder as its value."""
        self._bounds[output] = replace(bound, tokens=bound.tokens + UNDECIDED_TOKENS)
        self._values[output] = UNKNOWN

    def _tokens(self, rows: Rows) -> float:
        """Maximum tokens of the text of rows."""
        text = "\n".join(row.text or row.value or "" for row in rows)
        values = "\n".join(shown_text(row) or "" for row in rows)
        gap = self._counter.bounds("\n[...]\n- undecided: ")[1] + 4 * self._seam
        return self._counter.bounds(text)[1] + self._counter.bounds(values)[1] + len(rows) * gap

    def _best(self, bound: Bound, n: float) -> Bound:
        """The bound of the longest `n` of the rows."""
        if n >= bound.n or bound.rows is None:
            return Bound(min(n, bound.n), bound.tokens)
        each = (self._tokens(replace(bound.rows, rows=(row,))) for row in bound.rows)
        return Bound(n, sum(nlargest(int(n), each)) + n * bound.answer)

    def _search(self, step: Step, action: Action) -> None:
        """Store the rows of a search, or their bound if the search cannot be run now."""
        values = self._calls.values(step, self._values)
        if not self._unknown(*step.arguments) and not self._waits:
            search = awaited(by_search.search(action, self._calls.searcher, values))
            self._values[step.output] = search.rows
            return
        n: float = inf
        with suppress(ValueError):  # Its value may depend on an earlier step
            n = whole_number(number_of(values[-1]), "K", least=1)
        if isinstance(first := values[0], SearchedDocument):  # May find any passage
            each = [self._counter.at_most(passage.text) for passage in first.index.passages]
            each = nlargest(int(min(n, len(each))), each)
            self._hold(step.output, Bound(len(each), sum(each) + 4 * self._seam * len(each)))
        else:
            self._hold(step.output, self._best(self._bound(step.arguments[0], first), n))

    def _compute(self, step: Step, action: Action) -> None:
        """Store the value of a native action, or its bound if it depends on an unknown value."""
        values = self._calls.values(step, self._values)
        if self._unknown(*step.arguments):
            self._hold(step.output, self._computed(step, action, values))
            return
        try:
            value = native.compute(action, values)
        except EmptyListError:
            value = []
        except UnclearNumberError as error:
            if not list(step.references()):
                raise
            value = f"undecided: {error}"
        self._values[step.output] = value

    def _computed(self, step: Step, action: Action, values: Sequence[Value]) -> Bound:
        """The bound of the result of a native action."""
        given = [self._bound(*each) for each in zip(step.arguments, values, strict=True)]
        first, traits = given[0], action.traits
        is_open = bool(self._unknown(*step.arguments[1:]))
        if "first" in traits and not is_open:
            return self._best(first, whole_number(number_of(values[1]), "N", least=1))
        if first.rows is not None and not is_open and traits & {"by_field", "condition"}:
            with suppress(ValueError):  # The candidate rows are known
                result = as_rows(native.compute(action, [first.rows, *values[1:]]))
                if "groups" in traits:  # Their sizes are unknown
                    return Bound(len(result), first.tokens + self._tokens(result))
                tokens = self._tokens(result) + len(result) * first.answer
                answer = first.answer if "condition" in traits else 0
                return Bound(len(result), tokens, result, answer)
        if "selects" in traits:
            return first
        if "tries" not in traits and action.returns in (ValueType.NUMBER, ValueType.BOOL):
            return Bound(NUMBER_TOKENS, NUMBER_TOKENS)
        every = _together(given)
        n, tokens = every.n, every.tokens + AROUND_TOKENS * len(given)
        if "multiplies" in traits:
            n = prod(each.n for each in given) if all(each.n for each in given) else 0
            tokens *= n + 1
        if "figures" in traits:
            tokens += NUMBER_TOKENS * n
        return Bound(n, tokens + (BULLET_TOKENS * n if action.returns is ValueType.LIST else 0))

    # --- Composed answers, and what the checker is asked ---

    def _of_composer(self, step: Step) -> StepCosts:
        """Costs of composing the answer and of its check: at most one call, none if fewer than two results are decided."""
        if self._limits.compose == "off" or len({each.name for each in step.references()}) < 2:
            return StepCosts()
        first = step.arguments[0]
        question = first.value if isinstance(first, String) else ""  # An earlier step writes it
        if self._checker.check != "off":
            self.checked = self._of_requests(1, *composing.check_costs(question, self._checker))
        most = composing.max_prompt_tokens(question, self._counter)
        return self._costs(Range(0, 1), Range(0, most).up_to(self._limits.prompt_tokens))

    def _of_checks(self, step: Step, action: Action, costs: StepCosts) -> StepCosts:
        """Costs of checking the values that a model read."""
        if self._checker.check == "off" or not costs.calls.upper:
            return StepCosts()
        fields, n_replies = list[Field](), 1.0
        is_number = self._calls.graph.gives[step.output] is ValueType.NUMBER
        if "claims" in action.traits or (is_number and action.cost == "text"):
            fields = [Field(step.output)]
        elif action.extracts:
            texts = [each.value for each in step.arguments if isinstance(each, String)]
            fields = list(wanted_fields(texts[-1], is_all=action.extracts_all))
            if (n_replies := costs.calls.upper) == inf:
                return StepCosts(ANY, ANY, ANY)
        lists = [field for field in fields if field.is_list]
        n = n_replies * (len(fields) - len(lists))
        n += n_replies * self._limits.reply_tokens // record_claims.ENTRY_TOKENS if lists else 0
        # All values are shown, every quote with all of its places, and the entries around an entry. A place
        # with what is around it is a part of the document, which may be shorter than a reply.
        n_places, length = MAX_SHOWN + bool(lists), len(self._calls.document.text)
        beside = n_places * min(2 * checking.MAX_AROUND, length)
        beside += record_claims.AROUND_ENTRY * bool(lists)
        whole = self._checker.counter.bounds(self._calls.document.text)[1]
        quoted = MAX_SHOWN * min(n_replies * self._reply, n * whole)
        return self._of_claims(n, n_replies * self._reply + quoted, beside)

    def _of_claims(self, n: float, shown: float, beside: int) -> StepCosts:
        """Costs of checking `n` claims of `shown` tokens in all, each with `beside` characters of surrounding document."""
        frame, reply = checking.frame_costs(self._checker)
        widest = "x" if self._calls.document.text.isascii() else "é"
        each = self._checker.counter.at_most(widest * beside) + checking.CLAIM_TOKENS
        # For a list, a sample is checked before the rest.
        n_requests = inf if n == inf else ceil(n / checking.MAX_CLAIMS) + (n > checking.MAX_CLAIMS)
        tokens = shown + n * each + n_requests * frame if n else 0
        return self._of_requests(n_requests, tokens, reply)

    def _of_requests(self, n: float, tokens: float, reply: int) -> StepCosts:
        """Costs of requests to the checker, each of which may be repeated once."""
        most = 2 * (tokens + n * reply) + n * (AGAIN_TOKENS + HELD_TOKENS)
        if self._checker.prompt_tokens is not None:
            most = min(most, 2 * n * self._checker.prompt_tokens)
        return StepCosts(Range(0, 2 * n), Range(0, most), Range(0, 2 * n * reply))

    # --- Rows that are reduced ---

    def _of_reduction(self, step: Step) -> StepCosts:
        """Costs of reducing rows: if the rows are known, exact except for merging; else bounded by their tokens."""
        reducer = Reducer(step, self._values, self._calls)
        given, task = self._bound(step.arguments[0], reducer.rows), reducer.task
        actions = map(self._calls.graph.checked.action, self._calls.graph.steps)
        is_known, cap = not self._unknown(*step.arguments), self._limits.prompt_tokens
        are_groups = (
            is_grouped(reducer.rows)
            if is_known
            else any({"groups", "figures"} & each.traits for each in actions)
        )
        n_groups = given.n if are_groups else min(1, given.n)
        written = n_groups * (self._reply + AROUND_TOKENS) + (given.tokens if are_groups else 0)
        self._hold(step.output, Bound(n_groups if are_groups else self._reply, written))
        if is_known:
            parts = map(reducer.parts, reducer.groups)
            return sum((self._of_parts(task, tasks) for tasks in parts), StepCosts())
        more, seams = self._more(*step.arguments[1:]), 2 * self._seam + 1
        frame = self._prompt(task, more).upper + seams
        merging = self._prompt(replace(task, parts=()), more).upper + seams
        tokens = given.tokens + given.n * 2 * (ITEM_TOKENS + self._seam)
        n_more: float = 0
        if cap is not None and n_groups and tokens + merging + ITEM_TOKENS + PROMPT_MARGIN > cap:
            room = self._least_room(cap, max(frame, merging))
            # Two neighbouring parts together exceed the room, else they would be one; any two
            # results may be merged.
            n_more = ceil(3 * tokens / room) if room > ITEM_TOKENS and tokens < inf else inf
        n = n_groups + n_more
        reading = self._costs(Range(0, n), Range(0, n * frame + tokens if n else 0))
        return reading + self._costs(Range(0, n_more), Range(0, n_more * (cap or 0)))

    # --- Steps that are carried out row by row ---

    def _of_rows(self, step: Step) -> StepCosts:
        """Costs of a step that is carried out row by row; also stores the bound of its rows."""
        row_step = self._row_requests.step(step, self._values)
        given = self._bound(step.arguments[0], row_step.rows)
        more, is_known = self._more(*step.arguments[1:]), not self._unknown(*step.arguments)
        task = row_step.task
        bound = given
        if task.kind == "pick":
            bound = self._best(given, task.n_picks)
        elif task.kind != "yes_no":
            answer = self._items_limit(task, 1) + more
            if row_step.is_each:
                answer = self._reply
            if row_step.is_over:  # A pair has the name of another row, too
                answer = self._best(given, 1).tokens
            answer += 4 * self._seam
            tokens = given.tokens + given.n * answer
            bound = Bound(given.n, tokens, given.rows, given.answer + answer)
        self._hold(step.output, bound)
        if row_step.is_over and is_known:
            row_step = row_step.over()
            given = Bound(len(row_step.rows), self._tokens(row_step.rows), row_step.rows)
        elif row_step.is_over:  # The text of a pair has the names of its rows
            n_pairs = min(MAX_PAIRS, given.n * MAX_PARTNERS // 2)
            given = Bound(n_pairs, MAX_PARTNERS * given.tokens + n_pairs * AROUND_TOKENS)
        rows = None if given.answer else given.rows  # A model writes text of the others
        row_step = self._row_requests.quoted(row_step, rows, is_certain=is_known)
        texts = None if rows is None else row_step.texts(rows)
        costs, long = self._of_batches(row_step, texts, given, more, is_known=is_known)
        for text in long:
            alone = self._row_requests.alone(row_step, step, text)
            costs += self._formed(alone, self._ask(alone, more)[0])
        check, task = self._checker.check, row_step.task  # Which may ask for quotes now
        is_asked = (task.is_quoted or check == "all") and not row_step.is_each
        if check != "off" and is_asked and task.kind in row_steps.claimed_kinds(check):
            asked = sum(self._counter.bounds(value)[1] for _, value in task.arguments) + more
            tokens = MAX_RATIO * (given.tokens + given.n * asked)
            self.checked = self._of_claims(given.n, tokens, row_steps.MAX_BESIDE)
        # A LIMIT may end the calls after the first.
        return costs if is_known and row_step.n_needed is None else costs.or_nothing

    def _of_batches(
        self, row_step: RowStep, texts: list[str] | None, given: Bound, more: float, *, is_known: bool
    ) -> tuple[StepCosts, Sequence[str]]:  # fmt: skip
        """Costs of asking about rows in batches, with `more` unknown tokens each; also return the texts that are too long for a batch."""
        limits, task, n, tokens = self._limits, row_step.task, given.n, given.tokens
        if more == inf or (texts is None and (inf in (n, tokens) or row_step.is_each)):
            return StepCosts(ANY, ANY, ANY), ()
        frame = self._row_requests.frame_tokens(task) + more
        room = max(1, (limits.prompt_tokens or 10**12) - frame)
        widest = tokens
        if texts is not None:
            own = [self._counter.count(text) for text in texts]
            n, tokens, widest = len(own), sum(own), max(own, default=0)
        around = n * (ITEM_TOKENS + 2 * self._seam)
        n_fit = room // (widest + ITEM_TOKENS)  # Number of rows that fit any call
        per_call, n_rounds = limits.items_per_call, row_steps.MAX_ROUNDS
        least, prompts, long = 0, 0, list[str]()
        if task.kind == "pick":
            per_call, n_rounds = max(per_call, task.n_picks + 1), row_steps.MAX_IDLE
            calls, n_levels = _tournament(int(n), task.n_picks, int(min(n_fit, per_call)))
            least = calls if n_fit >= per_call else 0
            most = calls * frame + n_levels * (tokens + around)
            replies = calls * self._items_limit(task, per_call)
        elif texts is not None:
            batches, long = self._row_requests.batches(row_step, texts)
            least = calls = len(batches)
            prompts = sum(
                self._counter.count(self._row_requests.request(b).prompt) for b in batches
            )
            if calls and not is_known and n_fit < per_call:
                # Calls with shorter batches may be less full, but two neighbouring batches never
                # fit one call.
                calls = min(int(n), 2 * calls + 1)
            most = prompts + (calls - least) * frame + calls * more
            replies = sum(self._items_limit(each, len(each.items)) for each in batches) + n * more
        else:
            # Without a constraint, texts with the same beginning or end are asked about in
            # separate calls.
            calls = ceil(n / per_call) * (1 if limits.is_constrained else 2)
            calls = min(int(n), 2 * (calls + ceil(tokens / room)))
            most = calls * frame + tokens + around
            replies = self._items_limit(task, n) + n * more + calls * 16
        n_rounds = 1 if limits.is_constrained else n_rounds
        return StepCosts(
            Range(least, n_rounds * calls),
            Range(prompts, n_rounds * (most + calls * BATCH_AGAIN_TOKENS)),
            Range(least, n_rounds * replies),
        ), long

    def _items_limit(self, task: ItemsTask, n: float) -> float:
        """Maximum tokens of a reply to `n` items."""
        return items_limit(replace(task, items=("",) * int(n)), self._counter)

    # --- Steps that read a text ---

    def _of_text(self, step: Step, action: Action) -> StepCosts:
        """Costs of a step that a model answers from a document or its inputs; also stores the bound of its reply."""
        task, _ = self._calls.task(step, self._values)
        read = [
            each for i, each in enumerate(step.arguments)
            if action.parameter(i).type is ValueType.CONTEXT
        ]  # fmt: skip
        document = self._more(*read)
        more = self._more(*step.arguments) - document if document < inf else document
        costs, is_cut = self._ask(task, more, document)
        costs = self._formed(task, costs)
        if action.extracts_all:
            n = costs.calls.upper * self._limits.reply_tokens
            self._hold(step.output, Bound(n, n))
            return costs
        tokens = self._reply * (1 + BULLET_TOKENS if task.gives is ValueType.LIST else 1)
        self._hold(step.output, Bound(self._reply, tokens))
        # It may find nothing and search again: one prompt each, and one that asks for other queries
        n, search = self._calls.n_looks, self._calls.search_of(step, task.document or "")
        if n and search is not None and (search[1] or is_cut):
            most = (
                self._prompt(replace(task, document=""), more).upper + NEAR_TOKENS + self._retrieved
            )
            look = self._costs(ONE, Range(0, most).up_to(self._limits.prompt_tokens))
            # The reply with other queries is a list, whose request may be repeated.
            looks = [self._formed(task, look)] * n + [self._repeated(look)]
            costs += sum(looks, StepCosts()).or_nothing
        return costs

    def _costs(self, calls: Range, tokens: Range) -> StepCosts:
        """Costs of calls with these tokens in all."""
        return StepCosts(calls, tokens, Range(calls.least, calls.upper * self._limits.reply_tokens))

    def _prompt(self, task: ActionTask, more: float = 0) -> Range:
        """Tokens of a prompt; unknown values add up to `more`."""
        prompt, document = self._calls.request(task).prompt, task.document or ""
        if not more:
            return Range(*self._counter.bounds_with(prompt, document))
        least, most = self._counter.bounds(prompt, document)
        return Range(max(0, least - UNKNOWN_TOKENS), most + more)

    def _of_parts(self, task: ActionTask, parts: Sequence[ActionTask]) -> StepCosts:
        """Costs of a task whose parts are known, and of merging their results."""
        n = Range(len(parts), len(parts))
        prompts = (self._prompt(part).up_to(self._limits.prompt_tokens) for part in parts)
        return self._costs(n, sum(prompts, NONE)) + self._merging(task, n, 0)

    def _repeated(self, costs: StepCosts) -> StepCosts:
        """Costs with one more call, which repeats a request together with its reply."""
        most = costs.input_tokens.upper + costs.calls.upper * HELD_TOKENS
        # The repeated prompt is either the only one, or it fits the window.
        again = most + self._reply + AGAIN_TOKENS
        again = min(again, (self._limits.prompt_tokens or inf) + HELD_TOKENS)
        calls = Range(costs.calls.least, costs.calls.upper + 1)
        return self._costs(calls, Range(costs.input_tokens.least, most + again))

    def _formed(self, task: ActionTask, costs: StepCosts) -> StepCosts:
        """Costs of a call whose reply must have a form, including a possible repetition."""
        if task.action.extracts:
            # Each request about a part may be repeated, followed by one about values that break a
            # rule or have no certain place, and by one for missing values in each further pass.
            n_more = 1 + self._limits.passes
            n, tokens = costs.calls, costs.input_tokens
            added = self._reply + n_more * (extracting.AGAIN_TOKENS + AGAIN_TOKENS + HELD_TOKENS)
            most = (1 + n_more) * tokens.upper + n.upper * (added + HELD_TOKENS)
            return self._costs(Range(n.least, (1 + n_more) * n.upper), Range(tokens.least, most))
        if self._calls.asks_words(task):
            costs = self._repeated(costs)
        # Text needs no form; a broken object, which is asked for again, is as rare as a retry.
        return costs if task.gives is ValueType.TEXT else self._repeated(costs)

    def _ask(self, task: ActionTask, more: float, unread: float = 0) -> tuple[StepCosts, bool]:
        """Costs of a task without repetitions, and whether it may be shown passages; its inputs may add `more` tokens, an unknown document `unread`."""
        document, cap, strategy = task.document, self._limits.prompt_tokens, self._limits.strategy
        if document is None:
            if not more:
                self._calls.whole(task)  # Raises an error if it does not fit
            return self._costs(ONE, self._prompt(task, more).up_to(cap)), False
        is_split = self._calls.is_split(document) or task.action.extracts
        # A server's ranking may decide which passages are shown.
        if not (more or unread) and (strategy == "full" or is_split or not self._waits):
            found, parts = awaited(self._calls.pieces(task))
            return self._of_parts(task, parts), found.strategy == "retrieve"
        whole = self._prompt(task, more + unread)
        frame = self._prompt(replace(task, document=""), more)
        around = max(frame.upper, self._prompt(replace(task, parts=()), more).upper)
        length = Range(*self._counter.bounds(document))
        length = Range(0, length.upper + unread) if unread else length
        fits = cap is None or max(whole.upper, around + length.upper + PROMPT_MARGIN) <= cap
        if strategy == "full" or (fits and (is_split or strategy == "auto")):
            return self._costs(ONE, whole.up_to(cap)), False
        if not is_split:
            most = frame.upper + self._retrieved
            if strategy == "auto":  # The whole document may also fit
                most = max(most, whole.upper)
            return self._costs(ONE, Range(frame.least, most).up_to(cap)), True
        assert cap is not None
        n = Range(1, inf) if unread else self._parts(document, length, cap, around)
        most = min(n.upper * cap, n.upper * (frame.upper + 2 * self._seam + 1) + length.upper)
        least = frame.least + length.least
        costs = self._costs(n, Range(min(max(0, least - 2 * self._seam), most), most))
        return costs + self._merging(task, n, more), False

    def _least_room(self, cap: int, frame: float) -> float:
        """Minimum tokens that a prompt leaves for a document; less than its room, as prompts that turn out too long are reduced."""
        return 2 * cap - self._counter.most(cap) - frame - 2 * (PROMPT_MARGIN + self._seam)

    def _parts(self, document: str, length: Range, cap: int, frame: float) -> Range:
        """Bounds of the number of chunks of a known document."""
        if (room := self._least_room(cap, frame)) < SMALL_PART:
            return Range(1, max(1, len(document)))
        sizes = [chunk_size(cap)]
        while sizes[-1] > chunk_size(int(room)):
            sizes.append(chunk_size(sizes[-1] - 1))
        # A chunk size in between may give more parts.
        n = max(len(self._calls.cut(document, size)) for size in sizes)
        return Range(min(n, max(1, length.least // cap)), n)

    @property
    def _retrieved(self) -> float:
        """Maximum tokens of the passages in a prompt."""
        limit, gap = self._limits.max_retrieved, self._counter.bounds(context.GAP)[1]
        # Each passage has at least one token, and `context.GAP_TOKENS` for the gap before it.
        n_gaps = limit // (1 + context.GAP_TOKENS) + 1
        return self._counter.most(limit) + (gap + 2 * self._seam) * n_gaps

    def _merging(self, task: ActionTask, parts: Range, more: float) -> StepCosts:
        """Costs of merging the results of parts; each call merges at least two results into one."""
        n, cap = parts.upper, self._limits.prompt_tokens or inf
        if n <= 1 or task.action.extracts:
            return StepCosts()
        frame = self._prompt(replace(task, parts=()), more)
        around, text = frame.upper + MARK_TOKENS, self._reply + 2 * (MARK_TOKENS + self._seam)
        calls = 1 if around + n * text + PROMPT_MARGIN <= cap else n - 1
        most = min(calls * around + (n + calls - 1) * text, calls * cap)
        least = int(parts.least > 1)
        return self._costs(Range(least, calls), Range(min(least * frame.least, most), most))


def _together(bounds: Sequence[Bound]) -> Bound:
    """The bound of several values taken together."""
    return Bound(sum(each.n for each in bounds), sum(each.tokens for each in bounds))


def _tournament(n: int, k: int, size: int) -> tuple[int, int]:
    """Maximum calls and rounds of a tournament in groups of at least `size` rows, whose best `k` advance."""
    if size <= k:  # At least one row of every group but the last drops out
        return (2 * n + 1, n) if n else (0, 0)
    calls = n_levels = 0
    while n:
        groups = ceil(n / size)
        calls, n_levels = calls + groups, n_levels + 1
        n = (groups - 1) * k + min(k, n - (groups - 1) * size) if groups > 1 else 0
    return calls, n_levels
