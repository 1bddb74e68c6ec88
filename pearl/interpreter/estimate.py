"""One step of a plan → lower and upper bounds of its calls and tokens, before it runs.

Unknown outputs of earlier steps are `placeholders` in prompts.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import ceil

from pearl.actions import by_search, native
from pearl.actions.searching import SearchedDocument
from pearl.actions.values import EmptyListError, Value, as_rows, as_text, number_of
from pearl.documents.numbers import UnclearNumberError, whole_number
from pearl.documents.passages import chunks
from pearl.documents.rows import Rows
from pearl.dsl.nodes import Argument, Reference, Step
from pearl.dsl.signatures import Action, ValueType
from pearl.errors import ExecutionError
from pearl.interpreter.bounds import NONE, Range, StepCosts, longer, most_merges
from pearl.interpreter.context import GAP, GAP_TOKENS, PASSAGE_TOKENS, ContextOverflowError
from pearl.interpreter.offloading import at_once
from pearl.interpreter.placeholders import Placeholders
from pearl.interpreter.requests import PROMPT_MARGIN, RequestBuilder, chunk_size
from pearl.interpreter.row_estimate import PossibleRows, RowEstimator
from pearl.interpreter.row_requests import RowRequests, check_numbers
from pearl.llm import ActionTask, CombineTask, ItemsTask
from pearl.llm.messages import block

SEAM_TOKENS = 8
"""Maximum tokens of the separators in a computed text."""

NUMBER_TOKENS = 400
"""Maximum tokens of a number: 300 digits, each at least one token."""

UNDECIDED_TOKENS = 128
"""Maximum tokens of the text in place of an undecided value."""

HELD_TOKENS = 64
"""Maximum tokens added to a prompt for a JSON reply."""

AGAIN_TOKENS = 288
"""Maximum tokens of the request to repeat a reply in the right form."""

SMALL_PART = 48
"""Minimum chunk size in tokens for which a document is split in order to be counted."""

PARTS = 24
"""Upper bound of the number of chunks, relative to perfectly filled chunks.

Of two adjacent chunks one is at least half full, except before a paragraph, a sentence or a word
that is too long for one chunk, which is rare. The rest is a margin for words that are counted one
by one, which rounds up.
"""


class CostEstimator:
    """Estimates the cost of the steps of a plan, in order."""

    def __init__(self, calls: RequestBuilder) -> None:
        self._calls = calls
        self._limits = calls.limits
        self._counter = calls.limits.counter
        self._values: dict[str, Value] = {}
        self._texts: dict[str, Value] = {}
        self._possible: dict[str, PossibleRows] = {}
        self._row_requests = RowRequests(calls)
        self._rows = RowEstimator(self._row_requests, calls.limits, self._alone)
        self._unknown = Placeholders(calls.limits.counter, calls.texts)
        self._depths: dict[str, Range] = {}
        self._reply_tokens = calls.limits.reply_tokens
        self._seam = self._counter.most(0)

    @property
    def path(self) -> Range:
        """Calls on the longest chain of dependent steps so far."""
        longest = NONE
        for depth in self._depths.values():
            longest = longer(longest, depth)
        return longest

    def step(self, step: Step) -> StepCosts:
        """Estimate the next step."""
        action = self._calls.graph.checked.action(step)
        check_numbers(step, action)
        if action.searches:
            self._search(step, action)
            costs = StepCosts()
        elif action.is_native:
            self._compute(step, action)
            costs = StepCosts()
        elif action.reads_rows:
            costs = self._by_row(step)
        elif action.asks_table:
            costs = self._of_table(step, action)
        else:
            task, _ = self._calls.task(step, self._texts)
            try:
                costs = self._formed(task, self._ask(task))
            except ContextOverflowError as error:
                raise ExecutionError(
                    f"step '{step.output}' ({step.action}): {error.message}",
                    step=step.output, help=error.help,
                ) from error  # fmt: skip
            self._reply_to(step.output, task)
        before = NONE
        for reference in step.references():
            before = longer(before, self._depths.get(reference.name, NONE))
        self._depths[step.output] = before + costs.depth
        return costs

    def _by_row(self, step: Step) -> StepCosts:
        """Costs of a step that is carried out row by row."""
        row_step = self._row_requests.step(step, self._values)
        given = self._possible_rows(step.arguments[0], row_step.rows)
        if self._is_open(row_step.task):
            given = replace(given, is_certain=False)
        costs, possible = self._rows.step(step, row_step, given)
        self._hold(step.output, possible)
        return costs

    def _of_table(self, step: Step, action: Action) -> StepCosts:
        """Costs of a question of a table: a query, and again where it cannot be used."""
        from pearl.interpreter.table_estimate import query_costs  # late: few plans ask a table

        given, question = self._calls.asked(step, self._values)
        known = None if self._unknown.are_in(question) else question
        n_rows = 0
        if isinstance(given, str):  # an earlier step gives it
            n_rows = self._possible_rows(step.arguments[0], as_rows(given)).n
        try:
            costs, possible = query_costs(step.output, action, known, given, n_rows, self._limits)
        except (ValueError, ContextOverflowError) as error:
            raise ExecutionError(
                f"step '{step.output}' ({step.action}): {error}", step=step.output
            ) from error
        self._hold(step.output, possible)
        return costs

    def _is_open(self, task: ItemsTask) -> bool:
        """Whether what is asked about rows is not known yet."""
        texts = [*task.labels, *(value for _, value in task.arguments)]
        return any(map(self._unknown.are_in, texts))

    def _alone(self, task: ActionTask) -> StepCosts:
        """Costs of a row that is read as a document of its own."""
        return self._formed(task, self._ask(task))

    def _possible_rows(self, argument: Argument, rows: Rows) -> PossibleRows:
        """The rows that an argument may stand for."""
        if isinstance(argument, Reference) and argument.name in self._possible:
            return self._possible[argument.name]
        marks = [value for value in rows.values if self._unknown.are_in(value)]
        if not marks:
            return self._rows.known(rows)
        most = self._unknown.tokens("\n".join(marks)).most
        # Every entry of a text has a token at least.
        return PossibleRows(len(rows) + int(most or 0), most)

    def _hold(self, output: str, possible: PossibleRows) -> None:
        """Create a placeholder for rows that are not known, or have values that are not."""
        self._possible[output] = possible
        mark = self._unknown.new(
            None if possible.tokens is None else possible.tokens + UNDECIDED_TOKENS
        )
        self._values[output] = self._texts[output] = mark

    def _reply_to(self, output: str, task: ActionTask) -> None:
        """Create placeholders for a model's reply and for the value parsed from it."""
        most = self._counter.most(self._reply_tokens)
        self._texts[output] = self._unknown.new(most)
        if task.gives is ValueType.LIST:
            most *= 4  # an entry may have had no bullet of its own
        self._values[output] = self._unknown.new(most + UNDECIDED_TOKENS)

    def _formed(self, task: ActionTask, costs: StepCosts) -> StepCosts:
        """Costs of a call whose reply has a form, including a possible repetition."""
        if task.gives is ValueType.TEXT:
            return costs
        cap = self._limits.prompt_tokens
        calls = costs.calls + Range(0, 1)
        output = None if calls.most is None else calls.most * self._reply_tokens
        most = costs.input_tokens.most
        if most is not None and costs.calls.most is not None:
            most += costs.calls.most * HELD_TOKENS
            # Either this is the only prompt that is repeated, or it fits the window.
            added = self._counter.most(self._reply_tokens) + AGAIN_TOKENS
            most += cap + HELD_TOKENS if cap is not None else most + added
        return StepCosts(
            calls, Range(costs.input_tokens.least, most), Range(costs.output_tokens.least, output),
            costs.depth + Range(0, 1), costs.prefixes,
        )  # fmt: skip

    def _search(self, step: Step, action: Action) -> None:
        """Hold the rows that a search gives, or bounds of them where it cannot be run."""
        values = self._calls.searched_values(step, self._values)
        known = [value for value in values if not isinstance(value, SearchedDocument | Rows)]
        is_known = not any(self._unknown.are_in(as_text(value)) for value in known)
        if is_known and not self._calls.may_wait:
            try:
                found = at_once(by_search.search(action, self._calls.searcher, values))
            except ValueError as error:
                raise ExecutionError(str(error), step=step.output) from error
            if found is not None:
                self._values[step.output] = self._texts[step.output] = found.rows
                return
        n: int | None = None
        with suppress(ValueError):  # an earlier step gives it
            n = whole_number(number_of(known[-1]), "K", least=1)
        first = values[0]
        if isinstance(first, SearchedDocument):
            possible = self._rows.of_passages(first, n)
        else:
            possible = self._possible_rows(step.arguments[0], as_rows(first))
            least = possible.n if n is None else min(n, possible.n)
            possible = replace(possible, n=least, is_certain=False)
        self._hold(step.output, possible)

    def _compute(self, step: Step, action: Action) -> None:
        values = self._calls.values(step, self._values)
        # What is known of a document has no placeholders, and may be long.
        shown = ["" if isinstance(value, Rows) else as_text(value) for value in values]
        if not any(map(self._unknown.are_in, shown)):
            try:
                value = native.compute(action, values)
            except EmptyListError:
                value = []
            except ValueError as error:
                if not (isinstance(error, UnclearNumberError) and list(step.references())):
                    raise ExecutionError(str(error), step=step.output) from error
                value = f"undecided: {error}"
            is_rows = isinstance(value, Rows)
            self._values[step.output] = value
            self._texts[step.output] = value if is_rows else as_text(value)
            return
        if action.returns is ValueType.LIST and action.parameter(0).type is ValueType.LIST:
            given = [
                self._possible_rows(argument, as_rows(value))
                if action.parameter(i).type is ValueType.LIST else None
                for i, (argument, value) in enumerate(zip(step.arguments, values, strict=True))
            ]  # fmt: skip
            if any(isinstance(a, Reference) and a.name in self._possible for a in step.arguments):
                assert given[0] is not None
                is_open = any(map(self._unknown.are_in, shown[1:]))
                possible = self._rows.selected(action, given[0], given[1:], values, is_open=is_open)
                self._hold(step.output, possible)
                return
        n: float | None = 0.0
        for text, value in zip(shown, values, strict=True):
            most = self._unknown.widest(as_text(value) if isinstance(value, Rows) else text)
            n = None if n is None or most is None else n + most + SEAM_TOKENS
        if action.returns in (ValueType.NUMBER, ValueType.BOOL):
            n = NUMBER_TOKENS
        elif action.returns is ValueType.LIST and n is not None:
            n *= 4  # items of at least one token become lines: "- item"
        mark = self._unknown.new(None if n is None else n + UNDECIDED_TOKENS)
        self._values[step.output] = self._texts[step.output] = mark

    def _prompt(self, task: ActionTask) -> Range:
        """Tokens of a prompt, capped at the limit: a longer one is never sent."""
        tokens = self._unknown.tokens(self._calls.request(task).prompt, task.document or "")
        return tokens.up_to(self._limits.prompt_tokens)

    def _ask(self, task: ActionTask) -> StepCosts:
        texts = [value for _, value in task.arguments]
        if task.document is None:
            if not any(map(self._unknown.are_in, texts)):
                self._calls.whole(task)
            return self._costs(self._prompt(task), 1, 1)
        document = task.document
        if any(map(self._unknown.are_in, [document, *texts])) or self._is_ranked(document):
            return self._vague(task, document)
        found = at_once(self._calls.pieces(task, document))
        if found is None:
            return self._vague(task, document)
        _, pieces = found
        tokens = NONE
        for piece in pieces:
            tokens += self._prompt(piece)
        merging = self._merging(task, Range(len(pieces), len(pieces)))
        prefixes = tuple(map(self._prefix, pieces))
        return self._costs(tokens, len(pieces), len(pieces), merging, prefixes)

    def _is_ranked(self, document: str) -> bool:
        """Whether what is shown of a document is chosen by what may have to wait."""
        is_split = self._limits.max_parts is None and self._calls.is_split(document)
        return self._calls.may_wait and self._limits.strategy != "full" and not is_split

    def _prefix(self, piece: ActionTask) -> str:
        """The prefix of a prompt with a text: everything before the instruction."""
        head, body = self._calls.request(piece).messages
        end = len(block("text", piece.document or ""))
        return f"{head.content}\n\n{body.content[:end]}"

    def _costs(
        self,
        tokens: Range,
        least: int,
        most: int | None,
        merging: tuple[Range, Range] = (NONE, NONE),
        prefixes: tuple[str, ...] = (),
    ) -> StepCosts:
        calls = Range(least, most) + merging[0]
        most_output = None if calls.most is None else calls.most * self._reply_tokens
        output = Range(calls.least, most_output)
        return StepCosts(calls, tokens + merging[1], output, Range(1, 1) + merging[0], prefixes)

    def _vague(self, task: ActionTask, document: str) -> StepCosts:
        """Costs of a step that reads a document and has unknown inputs."""
        limits, cap = self._limits, self._limits.prompt_tokens
        frame = self._unknown.tokens(self._calls.request(replace(task, document="")).prompt)
        length = self._unknown.tokens(document)
        is_known = not self._unknown.are_in(document)
        available_tokens = (
            Range(0, None) if cap is None else self._available_tokens(task, frame, cap)
        )
        if limits.strategy == "retrieve":
            shown = self._retrieved(document, available_tokens, is_known)
            most = None if frame.most is None else frame.most + shown
            return self._costs(Range(frame.least, most).up_to(cap), 1, 1)
        prompt = self._unknown.tokens(self._calls.request(task).prompt, document)
        fits = cap is None or (
            prompt.most is not None and prompt.most <= cap
            and length.most is not None and length.most <= available_tokens.least
        )  # fmt: skip
        if fits or limits.strategy == "full":
            prefixes = (self._prefix(task),) if is_known else ()
            return self._costs(prompt.up_to(cap), 1, 1, prefixes=prefixes)
        assert cap is not None
        if self._calls.corpus(document) is not None and not self._calls.is_split(document):
            shown = self._retrieved(document, available_tokens, is_known=False)
            most = None if frame.most is None else frame.most + shown
            either = longer(prompt, Range(frame.least, most))  # it may fit after all
            return self._costs(replace(either, least=frame.least).up_to(cap), 1, 1)
        return self._in_parts(task, document, frame, length, available_tokens, cap)

    def _in_parts(
        self,
        task: ActionTask,
        document: str,
        frame: Range,
        length: Range,
        available_tokens: Range,
        cap: int,
    ) -> StepCosts:
        """Costs of a step whose document may have to be split."""
        is_known = not self._unknown.are_in(document)
        parts = self._parts(document, length, available_tokens, is_known)
        n_parts = None if parts.most is None else int(parts.most)
        most: float | None = None if n_parts is None else n_parts * cap
        # Heads of tables are shown in each part again.
        wide = None if self._calls.apart(document) else self._unknown.widest(document)
        if n_parts is not None and frame.most is not None and wide is not None:
            most = min(n_parts * cap, n_parts * (frame.most + 2 * self._seam + 1) + ceil(wide))
        least = parts.least * max(0, frame.least - 2 * self._seam - 1)
        if is_known and self._limits.max_parts is None:
            least += self._counter.bounds(document)[0]
        tokens = Range(least if most is None else min(least, most), most)
        prefixes: tuple[str, ...] = ()
        if parts.least > 1 and chunk_size(int(available_tokens.least)) == chunk_size(
            int(available_tokens.most or 0)
        ):
            cut = self._calls.cut(document, chunk_size(int(available_tokens.least)))
            prefixes = tuple(self._prefix(replace(task, document=text)) for text in cut.texts)
        merging = self._merging(task, parts)
        return self._costs(tokens, int(parts.least), n_parts, merging, prefixes)

    def _available_tokens(self, task: ActionTask, frame: Range, cap: int) -> Range:
        """Bounds of the prompt budget for the document, for any inputs."""
        bare = self._calls.request(CombineTask(task, ())).messages
        around = self._unknown.tokens("".join(message.content for message in bare))
        widest = cap - int(around.least) + len(bare) + 2 * self._seam - PROMPT_MARGIN
        if widest <= 0:
            raise ContextOverflowError(
                "the step's own inputs fill the model's window",
                help="use a model with a larger window, or shorten what earlier steps return",
            )
        if frame.most is None or around.most is None:
            return Range(0, widest)
        # The budget shrinks by the excess of prompts that turn out too long.
        excess = self._counter.most(widest) - widest
        narrow = cap - ceil(max(frame.most, around.most)) - excess - PROMPT_MARGIN - 2 * self._seam
        return Range(max(0, narrow), widest)

    def _parts(
        self, document: str, length: Range, available_tokens: Range, is_known: bool
    ) -> Range:
        """Bounds of the number of chunks of a document."""
        least, n = 1, len(document) if is_known else None
        if length.most is None or available_tokens.most is None or available_tokens.least < 1:
            pass
        elif not is_known or available_tokens.least < SMALL_PART:
            n = PARTS * ceil(length.most / chunk_size(int(available_tokens.least)))
            is_apart = self._calls.apart(document) is not None
            n = (len(document) if is_apart else min(n, len(document))) if is_known else n
        else:
            found: list[int] = []
            at = chunk_size(int(available_tokens.most))
            while at >= chunk_size(int(available_tokens.least)):
                found.append(len(self._calls.cut(document, at).texts) if at < length.most else 1)
                at = chunk_size(at - 1)
            n = max(found)
            least = min(found) if length.least > available_tokens.most else 1
        most = self._limits.max_parts
        if most is not None:  # then the chunk size follows the budget, not a sixteenth
            return Range(1, max(1, min(most, len(document)) if is_known else most))
        return Range(least, n if n is None else max(1, n))

    def _retrieved(self, document: str, available_tokens: Range, is_known: bool) -> int:
        """Maximum tokens of the passages that a step is shown."""
        limit = self._limits.max_retrieved
        gap = self._counter.bounds(GAP)[1] + 2 * self._seam
        # Each passage has at least one token, and `GAP_TOKENS` for the gap before it.
        most = self._counter.most(limit) + gap * (limit // (1 + GAP_TOKENS) + 1)
        whole = PASSAGE_TOKENS + GAP_TOKENS
        if (
            is_known
            and self._calls.apart(document) is None
            and limit >= whole
            and (available_tokens.most is None or available_tokens.least >= whole)
        ):
            n = len(chunks(document, PASSAGE_TOKENS, self._counter.count)) if document else 0
            most = min(most, self._counter.bounds(document)[1] + gap * (n + 1))
        return most

    def _merging(self, task: ActionTask, parts: Range) -> tuple[Range, Range]:
        """Calls that merge the results of the chunks, and the tokens of their prompts."""
        if parts.most == 1:
            return NONE, NONE
        none = self._unknown.tokens(self._calls.request(CombineTask(task, ())).prompt)
        least = Range(1, None) if parts.least > 1 else Range(0, None)
        tokens = none.least if parts.least > 1 else 0
        if parts.most is None or none.most is None:
            most = None if parts.most is None else parts.most - 1
            return Range(least.least, most), Range(tokens, None)
        n = int(parts.most)
        marks = self._counter.bounds(f"<part {n}>\n\n</part {n}>\n\n")[1] + 2 * self._seam
        text = self._counter.most(self._reply_tokens) + marks
        frame = none.most + self._counter.bounds(str(n))[1] + self._seam
        cap = self._limits.prompt_tokens
        n_calls = most_merges(n, frame, text, cap)
        # Every result is merged once, including those of all merging calls but the last.
        summed = n_calls * frame + (n + n_calls - 1) * text
        most = summed if cap is None else min(summed, n_calls * cap)
        return Range(least.least, n_calls), Range(min(tokens, most), most)
