"""Build the requests of a step from the values of earlier steps; nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from functools import cached_property, partial
from itertools import chain
from math import inf
from typing import Any, TypeVar

from msgspec.structs import replace

from pearl.actions.searching import SearchedDocument, order, placed, shown_by_document, with_tables
from pearl.actions.values import Value, as_text
from pearl.documents.document import Document, part_spans
from pearl.documents.evidence import Verifier
from pearl.documents.evidence.finding import TableRowFinder
from pearl.documents.rows import Rows, document_rows
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Argument, ListLiteral, Number, Reference, Step, String, is_data
from pearl.dsl.signatures import CTX, ValueType
from pearl.errors import Span, UsageError
from pearl.interpreter.context import (
    Context,
    ContextLimits,
    ContextOverflowError,
    Shown,
    fetch,
    fit_prompt,
    off_loop,
    retrieve,
    split,
    too_long,
)
from pearl.interpreter.prompt import (
    action_messages,
    again_messages,
    combine_messages,
)
from pearl.interpreter.provenance import joined
from pearl.llm import ActionTask, Message, Request
from pearl.replies.raw import says_not_stated
from pearl.retrieval.search import Searcher

T = TypeVar("T")

MARK_TOKENS = 16  # Tokens reserved for the tags around a part that is merged

PROMPT_MARGIN = 64  # Safety margin of a prompt in tokens: token counts are not additive

MERGING_TOKENS = 1_000
"""Maximum tokens by which the frame of a merging prompt exceeds that of a reading prompt."""

n_more_readers: ContextVar[Callable[[], int]] = ContextVar("n_more_readers", default=int)
"""Returns how many other tasks will read the document; set by executors."""


class RequestBuilder:
    """Builds the requests of the steps of one plan over one document."""

    def __init__(
        self,
        graph: PlanGraph,
        document: Document,
        limits: ContextLimits,
        searcher: Searcher | None = None,
    ) -> None:
        self.graph = graph
        self.limits = limits
        self.searcher = searcher or Searcher()
        self.searched = SearchedDocument(document)
        self.document = document
        self._views = {
            each.name: SearchedDocument(each.document, document.text, each.start)
            for each in document.sources
        } or {CTX: self.searched}
        for name in {name for step in graph.steps for name in _contexts(step)} - self._views.keys():
            if name == CTX:
                raise UsageError(
                    "the plan reads CTX, but only sources are given", help="name a document, too"
                )
            raise UsageError(
                f"the plan reads source '{name}', which is not given",
                help=f"--source {name}=PATH gives a file or a folder",
            )
        self._of_text = {view.document.text: view for view in self._views.values()}
        self.beside: dict[str, tuple[Span, ...]] = {}
        """By text, the spans of passages, with their tables, that steps read in place of the document."""
        self._rows: dict[str, Rows] = {}
        self._question = graph.checked.question
        self._cuts: dict[tuple[str, int], tuple[str, ...]] = {}
        self._last: tuple[ActionTask, tuple[Message, ...]] | None = None
        self._n_pieces: dict[str, int] = {}  # Text read by several steps → its parts
        self._finished: set[str] = set()

    def within(self, limits: ContextLimits) -> RequestBuilder:
        """A copy with the limits of another model."""
        other = copy(self)
        other.limits = limits
        other._cuts, other._last, other._n_pieces = {}, None, {}
        return other

    def read_by(self, step: Step) -> list[SearchedDocument]:
        """What a step reads: the document, or the sources named in its arguments."""
        return [self._views[name] for name in _contexts(step)]

    def values(self, step: Step, earlier: Mapping[str, Value]) -> list[Any]:
        """The values of a step's arguments; `CTX` becomes the form of the document that its parameter reads."""
        action = self.graph.checked.action(step)
        values: list[Any] = []
        for i, argument in enumerate(step.arguments):
            if not (isinstance(argument, Reference) and argument.is_context):
                values.append(self._value(argument, earlier))
                continue
            name, reads = argument.name, action.parameter(i).reads
            view = self._views[name]
            if reads == "rows" and name not in self._rows:
                self._rows[name] = document_rows(view.document).moved(view.start)
            if reads == "rows":
                values.append(self._rows[name])
            else:
                is_searched = reads in ("passages", "table")
                values.append(view if is_searched else view.document.text)
        return values

    @cached_property
    def verifier(self) -> Verifier:
        """Looks quotes up in the document."""
        return Verifier(self.document.text, TableRowFinder(self.document))

    def length(self, step: Step) -> int:
        """Number of characters of the document in a step's arguments."""
        return sum(len(view.document.text) for view in self.read_by(step))

    def coverage(self, rows: Rows) -> float | None:
        """The fraction of the document that prompts show as rows; None if no row belongs to the document."""
        if rows.is_answered or not any(row.spans for row in rows):
            return None
        text = self.document.text
        firsts = [row.spans[0].start for row in rows if row.spans]
        spans = [view.span for view in self._views.values()]
        among = [s for s in spans if any(s.start <= first < s.end for first in firsts)]
        # The headings of joined files belong to no row.
        files = [
            file for _, file in part_spans(text, self.document.parts)
            if any(span.start <= file.start < span.end for span in among)
        ] or [Span(0, len(text))]  # fmt: skip
        ends = (Span(end, end) for file in files for end in (file.start, file.end))
        whole = (span for row in rows if row.value == row.text for span in row.spans)
        n = sum(span.end - span.start for span in joined(text, chain(ends, whole)))
        # Prompts show only one field of other rows.
        n += sum(len(row.value or "") for row in rows if row.spans and row.value != row.text)
        return min(1.0, n / max(1, sum(file.end - file.start for file in files)))

    def task(self, step: Step, earlier: Mapping[str, Value]) -> tuple[ActionTask, str | None]:
        """The task of a step, and the earlier output that it reads in place of the document, if any."""
        action = self.graph.checked.action(step)
        document: str | None = None
        arguments: list[tuple[str, str]] = []
        inputs: set[str] = set()
        passages: Value | None = None
        values = self.values(step, earlier)
        for i, (argument, raw) in enumerate(zip(step.arguments, values, strict=True)):
            parameter = action.parameter(i)
            if parameter.type is ValueType.CONTEXT:
                if isinstance(argument, Reference) and argument.is_context:
                    document = raw
                else:
                    passages = raw
                continue
            value = as_text(raw)
            arguments.append((parameter.name, value))
            if isinstance(argument, ListLiteral) or is_data(argument):
                inputs.add(parameter.name)
        if passages is not None:
            query = " ".join(text for _, text in arguments)
            document = self._in_place(step, passages, query)
        task = ActionTask(
            step.output, action, tuple(arguments), document, step.explanation, self._question,
            frozenset(inputs), self.graph.gives[step.output],
            step.output in self.graph.lists_of_numbers,
        )  # fmt: skip
        return task, None if passages is None else document

    def _in_place(self, step: Step, given: Value, query: str) -> str:
        """The text that a step reads in place of the document: earlier results, or passages with tables, under the names of their documents."""
        if not isinstance(given, Rows):
            return as_text(given)
        is_found = all("rank" in row.fields and row.value == row.text for row in given.rows)
        if not is_found or not any(view.is_corpus for view in self._views.values()):
            return given.as_context()
        passages = [placed(row, 0, 0.0) for row in given.rows]
        passages = with_tables(passages, query, self.searched)
        spans = []
        for passage in passages:
            # Its table header, which is shown above its rows, belongs to it.
            n = len(passage.text) - (passage.span.end - passage.span.start)
            head = passage.text[: max(0, n)]
            start = self.document.text.rfind(head, 0, passage.span.start)
            spans.append(Span(start, passage.span.end) if n > 0 <= start else passage.span)
        self.beside[step.output] = tuple(spans)
        return shown_by_document(passages)

    @cached_property
    def heads(self) -> dict[str, Hashable]:
        """For each step that reads the document as text, a key of what precedes it in prompts: steps of equal keys share a prefix cache."""
        heads: dict[str, Hashable] = {}
        for step in self.graph.steps:
            action = self.graph.checked.action(step)
            is_text = action.cost == "text" and not (action.asks_table or action.reads_rows)
            if is_text and (names := _contexts(step)):
                gives = self.graph.gives[step.output]
                form: Hashable = gives if self.limits.is_constrained else None
                form = form if names[0] == CTX else (names[0], form)
                heads[step.output] = step.output if action.extracts else form
        return heads

    def finished(self, step: Step) -> None:
        """Note that a step sends no more requests."""
        self._finished.add(step.output)

    def request(self, task: ActionTask) -> Request:
        """The request of a task."""

        def n_later() -> int:
            """Expected number of later requests with the same prefix."""
            if task.output not in self.heads:
                return 0
            head = self.heads[task.output]
            others = self.heads.keys() - self._finished - {task.output}
            n_own = sum(self.heads[output] == head for output in others)
            return n_own + (n_more_readers.get()() if head is None else 0)

        n_pieces = 0 if task.parts is not None else self._n_pieces.get(task.document or "", 0)
        if task.parts is None:
            messages = self._action_messages(task)
        else:
            messages = combine_messages(task, task.parts)
        return Request(
            messages, task, max_output_tokens=self.limits.reply_tokens,
            n_later=n_later if n_pieces else int, n_between=n_pieces,
        )  # fmt: skip

    def _action_messages(self, task: ActionTask) -> tuple[Message, ...]:
        """The messages of a task; the last ones are cached, because they are first measured and then sent."""
        last = self._last  # Read once, because threads share it
        if last is None or last[0] is not task:
            last = self._last = task, action_messages(task)
        return last[1]

    def asks_words(self, task: ActionTask) -> bool:
        """Whether a small model first answers in words: only if the step asks the question itself."""
        # For other steps, two turns bring no improvement (docs/figures.md).
        is_read = task.document is not None and task.parts is None and "QUESTION" not in task.inputs
        return self.limits.answers_first and is_read and "QUESTION" in dict(task.arguments)

    def again(
        self, request: Request, reply: str, why: str, wanted: ValueType | None
    ) -> Request | None:
        """The request after an unusable reply, with the reason; None if it does not fit."""
        return self.following(request, again_messages(request.messages, reply, why, wanted))

    def following(self, request: Request, messages: tuple[Message, ...]) -> Request | None:
        """A request with messages that continue another one; None if it is too long, or if both together exceed the budget."""
        again, share = replace(request, messages=messages), self.limits.max_prompt_tokens
        count = self.limits.counter.count
        if share is not None and count(request.prompt) + count(again.prompt) > share:
            return None
        return None if self._excess(messages, request.document or "") > 0 else again

    def roomier(self, request: Request) -> Request | None:
        """The same request with a higher reply limit; None if the limit is already at its maximum."""
        limits = self.limits
        n_tokens = limits.counter.count(request.prompt)
        share = limits.max_prompt_tokens
        if limits.max_output_tokens is not None or (share is not None and 2 * n_tokens > share):
            return None
        room = 2 * limits.reply_tokens
        if limits.window is not None:
            room = min(room, limits.window - n_tokens - PROMPT_MARGIN)
        if room <= limits.reply_tokens:
            return None
        return replace(request, max_output_tokens=room)

    def fits(self, task: ActionTask) -> bool:
        """Whether a task with its document fits one call."""
        return self._excess(action_messages(task), task.document or "") <= 0

    def whole(self, task: ActionTask) -> ActionTask:
        """Return a task without a document if it fits one call; else raise an error."""
        if self._excess(action_messages(task)) > 0:
            raise ContextOverflowError(
                "the step's inputs do not fit the model's window",
                help="use a model with a larger window, or shorten what earlier steps return",
            )
        return task

    async def pieces(self, task: ActionTask) -> tuple[Context, tuple[ActionTask, ...]]:
        """Select what a step reads of its document; one task for each part."""
        document, most = task.document or "", self.limits.prompt_tokens
        if most is not None and self.limits.strategy in ("auto", "full"):
            # The length alone may show that all of it fits.
            prompt = "".join(message.content for message in self._action_messages(task))
            if self.limits.counter.at_most(prompt) + MERGING_TOKENS + PROMPT_MARGIN <= most:
                self._n_pieces[document] = 1
                return Context("full", (document,), 1.0), (task,)
        context = await fit_prompt(
            await off_loop(len(document), partial(self.available_tokens, task)),
            partial(self._fit, task, document),
            lambda text: self._excess(action_messages(replace(task, document=text)), text),
        )
        if context.strategy != "retrieve" and context.coverage == 1.0:
            self._n_pieces |= dict.fromkeys(context.texts, len(context.texts))
        return context, tuple(replace(task, document=text) for text in context.texts)

    def cut(self, document: str, available_tokens: int) -> tuple[str, ...]:
        """Split a document that is too long for one call; the parts do not depend on the step."""
        key = (document, available_tokens)
        if key not in self._cuts:
            self._cuts[key] = split(document, available_tokens, self.limits.counter.count)
        return self._cuts[key]

    def groups(self, task: ActionTask, texts: Sequence[str]) -> list[list[str]]:
        """Group results so that each group fits one merging call and is as long as possible."""
        available_tokens = self.available_tokens(task)
        if available_tokens is None:
            return [list(texts)]
        sized = ((text, self.limits.counter.count(text) + MARK_TOKENS) for text in texts)
        whole = packed(sized, available_tokens)
        groups = [part for group in whole for part in self._parted(task, group)]
        if len(groups) == len(texts):
            raise ContextOverflowError(
                "the results over two parts of the document do not fit one call",
                help="use a model with a larger window, or a lower --max-output-tokens",
            )
        return groups

    def available_tokens(self, task: ActionTask) -> int | None:
        """Tokens available for the document in a call of this task."""
        most = self.limits.prompt_tokens
        if most is None:
            return None
        bare = combine_messages(task, [])  # The longest frame of this step's prompts
        around = sum(self.limits.counter.count(message.content) for message in bare)
        return most - around - PROMPT_MARGIN

    async def _fit(self, task: ActionTask, document: str, room: int | None) -> Context:
        """Select what a prompt, or each of several, shows of a document."""
        limits, strategy, n_tokens = self.limits, self.limits.strategy, 0
        # Without a limit, the whole document is shown, so it need not be counted.
        if room is not None or strategy == "map-reduce":
            n_tokens = await off_loop(len(document), partial(limits.counter.count, document))
        fits = room is None or n_tokens <= room
        # Extraction reads everything: a value that is not shown would seem to be missing
        extracts = task.action.extracts
        if not document or (fits and (extracts or strategy in ("auto", "full"))):
            return Context("full", (document,), 1.0)
        if strategy == "full" and not extracts:
            raise too_long(n_tokens, room)
        if not (extracts or self.is_split(document)):
            view, corpus = self._of_text.get(document), self.corpus(document)
            shown = Shown(limits, [query_of(task)], self.searcher, corpus)
            context = await retrieve(document, room, shown)
            if view is None or corpus is not None or context.spans is None:
                return context
            return replace(context, spans=tuple(span.moved(view.start) for span in context.spans))
        is_whole = extracts or limits.max_parts is None
        size = chunk_size(room) if room is not None and not fits and is_whole else room or n_tokens
        parts = await off_loop(len(document), partial(self.cut, document, size))
        if extracts and room is not None:
            frame, share = (limits.prompt_tokens or 0) - room, limits.max_prompt_tokens
            is_over = share is not None and n_tokens + len(parts) * frame > share
            if strategy == "full" or is_over:
                raise ContextOverflowError(
                    f"the document has {n_tokens:,} tokens, a call has room for {room:,}",
                    help="extraction reads the whole document: use --context auto, or a larger model",
                )
        if is_whole or len(parts) <= (limits.max_parts or 0):
            return Context("map-reduce", parts, 1.0)
        best = await order(self.searcher, [query_of(task)], parts)
        best_parts = tuple(parts[i] for i in sorted(best[: limits.max_parts]))
        coverage = sum(map(len, best_parts)) / max(1, sum(map(len, parts)))
        return Context("map-reduce", best_parts, coverage)

    def _value(self, argument: Argument, earlier: Mapping[str, Value]) -> Value:
        match argument:
            case Reference(name=name):
                return self._views[name].document.text if argument.is_context else earlier[name]
            case ListLiteral():
                entries: list[str] = []
                for item in argument.items:
                    value = self._value(item, earlier)
                    rows = value.values if isinstance(value, Rows) else [as_text(value)]
                    texts = value if isinstance(value, list) else rows
                    is_output = isinstance(item, Reference)
                    entries += [text for text in texts if not (is_output and says_not_stated(text))]
                return entries
            case String() | Number():
                return argument.value

    async def further(
        self, task: ActionTask, view: SearchedDocument, queries: Sequence[str], seen: Sequence[Span]
    ) -> Context:
        """The passages that match queries best and were not shown before, as many as fit the prompt."""
        available = await off_loop(len(view.document.text), partial(self.available_tokens, task))
        most = self.limits.max_retrieved
        shown = Shown(self.limits, queries, self.searcher, view, seen)
        return await fit_prompt(
            most if available is None else min(available, most),
            lambda room: fetch(view, room or most, shown),
            lambda text: self._excess(action_messages(replace(task, document=text)), text),
        )

    def search_of(self, step: Step, document: str) -> tuple[SearchedDocument, str] | None:
        """The corpus that a step can search again (None for none), and the output whose search it reads, "" if it searched itself."""
        if (view := self._of_text.get(document)) is not None:
            return view, ""
        given = [each.name for each in step.arguments[:1] if isinstance(each, Reference)]
        for each in self.graph.steps:
            is_search = each.output in given and self.graph.checked.action(each).searches
            if is_search and (read := self.read_by(each)):
                return read[0], each.output
        return None

    @property
    def n_looks(self) -> int:
        """How often a step may search again after finding nothing; 0 with a token budget, which covers one prompt."""
        return self.limits.looks if self.limits.max_prompt_tokens is None else 0

    def is_last(self, step: Step) -> bool:
        """Whether no step but the composer uses a result."""
        readers = (each for each in self.graph.steps if each is not self.graph.composer)
        return all(step.output != r.name for each in readers for r in each.references())

    def corpus(self, document: str) -> SearchedDocument | None:
        """The corpus whose whole text this is; None for other texts."""
        view = self._of_text.get(document)
        return view if view is not None and view.is_corpus else None

    def is_split(self, document: str) -> bool:
        """Whether a document that is too long is read in parts."""
        strategy = self.limits.strategy
        return strategy == "map-reduce" or (strategy == "auto" and self.corpus(document) is None)

    def _parted(self, task: ActionTask, group: list[str]) -> Iterator[list[str]]:
        """Halve a group until its prompt fits."""
        if len(group) == 1 or self._excess(combine_messages(task, group)) <= 0:
            yield group
            return
        middle = len(group) // 2
        yield from self._parted(task, group[:middle])
        yield from self._parted(task, group[middle:])

    def _excess(self, messages: tuple[Message, ...], document: str = "") -> int:
        """Tokens by which a prompt exceeds the limit; 0 if it fits."""
        most = self.limits.prompt_tokens
        if most is None:
            return 0
        prompt = "\n\n".join(message.content for message in messages)
        return self.limits.counter.excess(prompt, most, document)


def chunk_size(available_tokens: int) -> int:
    """The chunk size in tokens for a prompt budget, rounded down.

    At most a sixteenth smaller than the budget. So steps whose inputs differ slightly in length
    read the same chunks, which hit the server's prefix cache and whose number is known in advance.

    Example:
        >>> chunk_size(118_000), chunk_size(117_000), chunk_size(7)
        (114688, 114688, 7)
    """
    return available_tokens - available_tokens % (1 << max(0, available_tokens.bit_length() - 5))


def packed(sized: Iterable[tuple[T, int]], room: float, most: float = inf) -> list[list[T]]:
    """Divide things of known sizes, in order, into groups of at most `most` that fit the room; a larger one is alone."""
    groups: list[list[T]] = []
    used = 0
    for each, n in sized:
        if not groups or len(groups[-1]) >= most or used + n > room:
            groups.append([])
            used = 0
        groups[-1].append(each)
        used += n
    return groups


def _contexts(step: Step) -> list[str]:
    """The document and sources that a step reads, without repeats."""
    return list(dict.fromkeys(each.name for each in step.references() if each.is_context))


def query_of(task: ActionTask) -> str:
    """The query for ranking the passages of a task."""
    return " ".join([*(value for _, value in task.arguments), task.explanation])
