"""Ask a model for the result of a step: constrain the reply, repeat the request once, merge parts, keep the beginning of cut-off replies."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.dates import find_dates, readings, why_unstated
from pearl.documents.evidence.finding import find_quotes, is_passage
from pearl.documents.lexicon import words_in
from pearl.documents.passages import sentences
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import ValueType
from pearl.errors import ModelError
from pearl.interpreter.context import ContextLimits, off_loop
from pearl.interpreter.prompt import formed_messages, words_messages
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import ActionTask, Completion, Model, Request, Usage
from pearl.llm.concurrency import gather
from pearl.llm.fallback import ConstraintFallback, Level, reply_fallback
from pearl.llm.flaws import loop_in
from pearl.llm.messages import constrained, without_texts
from pearl.llm.middleware.caching import ItemCache
from pearl.replies.step_replies import Reply, begun, read_reply, reply_constraint
from pearl.trace import CallFailed, ModelCalled, Purpose, Trace, constraint_refused

MIN_WORDS = 8
"""Minimum words of a reply that is compared with the instructions: shorter ones may be names in them."""
MIN_SENTENCE = 4  # Minimum words of a sentence of the instructions that counts as repeated
MIN_TIMES = 4  # Minimum repetitions of the same words that make a reply a loop
MIN_COPIED = 60  # Minimum words of a reply that counts as a copy of the beginning of the document
UNQUOTED = "the reply quotes no passage"


def is_unproven(reply: Reply, wanted: ValueType) -> bool:
    """Whether a reply is free text without quotes, as refusals, questions and errors are."""
    is_free = wanted is ValueType.TEXT or (wanted is ValueType.LIST and reply.is_formed)
    if not is_free or reply.state != "found" or reply.quotes:
        return False
    return not any(map(is_passage, find_quotes(reply.plain)))


def unstated_date(reply: Reply, task: ActionTask) -> str:
    """Why a date in a reply is unsupported: neither its quotes nor the step contain it; "" if all dates are supported."""
    if not reply.quotes or task.gives not in (ValueType.TEXT, ValueType.LIST):
        return ""
    said = "\n".join(reply.value) if isinstance(reply.value, list) else str(reply.value)
    if not (dates := find_dates(said)):
        return ""
    known = "\n".join((*reply.quotes, task.question, *(value for _, value in task.arguments)))
    if not readings(said):  # In longer texts, not every sentence has a quote
        known = "\n".join((known, task.document or "", *(task.parts or ())))
    for each in dates:
        shown = said[each.start : each.end].strip()
        without_year = " ".join(re.sub(r"(?<!^)\d{4}", "", shown).split())  # It may stand elsewhere
        if (why := why_unstated(known, shown)) and why_unstated(known, without_year):
            return why
    return ""


def why_hollow(text: str, request: Request) -> str:
    """Why a reply has no content of its own (an echo of the instructions, a loop); "" if it has."""
    words = _words(text)
    task = request.task
    if len(words) < MIN_SENTENCE or not isinstance(task, ActionTask):
        return ""
    # An echo consists only of words of the instructions, not of the document or earlier results.
    inputs = [value for name, value in task.arguments if name in task.inputs]
    # A reply repeated after a second request is no echo of it: that request quotes the reply.
    replies = [message.content for message in request.messages if message.role == "assistant"]
    given = [task.document or "", *(task.parts or ()), *inputs, *replies]
    sentences = (task.question, task.explanation, task.action.definition)
    is_echo = words in map(_instruction_words, sentences)
    if len(words) >= MIN_WORDS and not is_echo:
        instructions = "\n".join(m.content for m in request.messages if m.role != "assistant")
        folded = instructions.casefold()
        # Without all words there is no echo; this test takes a tenth of the time of the next one.
        if all(word in folded for word in words):
            for each in (*given, task.question):  # A part of a question may be an earlier answer
                instructions = instructions.replace(each, "\n|\n") if each else instructions
            is_echo = _has(instructions, words)
    if is_echo and not any(_has(each, words) for each in given):
        return "the reply repeats its instructions"
    if len(words) < MIN_WORDS:
        return ""
    # Words that are repeated so often begin again within that part of them
    said = f" {' '.join(words)} "
    start = f" {' '.join(words[: len(words) - len(words) // MIN_TIMES])} "
    shift = said.find(start, 1)
    if shift > 0 and said.startswith(said[shift:]):
        return "the reply is the same words over and over"
    if len(words) >= MIN_COPIED and task.document and len(task.document) > 2 * len(text):
        beginning = " ".join(task.document[: 2 * len(text)].split())
        if beginning.startswith(" ".join(text.split())):
            return "the reply is the beginning of the document"
    return ""


def _has(text: str, words: list[str]) -> bool:
    return f" {' '.join(words)} " in f" {' '.join(_words(text))} "


def _words(text: str) -> list[str]:
    return words_in(text.casefold())


_instruction_words = lru_cache(256)(_words)  # They are those of all documents


CUT_SHORT = frozenset({"truncated", "repetition"})
"""Kinds of `ModelError` whose reply is the beginning of a usable one."""


class TextReply(Struct, frozen=True):
    """The reply to a request and its repetitions, as read and as `said`; `truncated` says why it may be wrong."""

    reply: Reply
    said: str
    truncated: str = ""
    n_levels: int = 0

    @property
    def text(self) -> str:
        """The reply without quotes, as text."""
        return self.reply.plain


def why_short(error: ModelError, text: str) -> str:
    """The note on a reply whose end is missing."""
    if error.kind == "truncated" and not error.reply:
        return "the reply is only reasoning, without an answer"
    what = "was cut off at its limit" if error.kind == "truncated" else "repeated itself"
    kept = "its beginning is kept" if text else "it has no whole sentence"
    return f"the reply {what}; {kept}"


def kept_text(text: str) -> str:
    """The beginning of a cut-off text up to its last complete line or sentence; for a loop, only the first repetition."""
    loop = loop_in(text)
    if loop is not None:
        at = text.find(loop)
        text = text[: at + len(loop)] + "\n" if at >= 0 else text
    lines, _, last = text.rpartition("\n")
    # The last sentence may end with a part of a word.
    *whole_ones, _ = [span.end for span in sentences(last)] or [0]
    whole = last[: whole_ones[-1]] if whole_ones else ""
    return "\n".join(part for part in (lines, whole) if part.strip()).rstrip()


class Reader(Struct, frozen=True):
    """A model for some calls of a run, with the limits of its prompts and its cached replies."""

    model: Model
    limits: ContextLimits
    fallback: ConstraintFallback | None = None
    items: ItemCache | None = None


class Asker:
    """Asks a model for the results of steps; `escalation` decides what stays undecided, `checker` checks claims."""

    def __init__(self, reader: Reader, calls: RequestBuilder, trace: Trace) -> None:
        self._model = reader.model
        self.calls = calls
        self.fallback = reader.fallback or reply_fallback(reader.model.constrains)
        self.trace = trace
        self.items = reader.items
        self.escalation: Asker | None = None
        self.checker: Asker | None = None
        self.outputs: set[str] = set()
        """The steps that have replies of this model, cached ones included."""
        self.spent: dict[str, tuple[int, Usage]] = {}
        """By step, the calls of all models of the run, including failed ones, and their tokens."""
        self.cut_prompts: dict[str, str] = {}
        """By step, why the server may have read only a part of its prompt."""

    def of(self, reader: Reader) -> Asker:
        """An asker of the same run for another model."""
        other = Asker(reader, self.calls.within(reader.limits), self.trace)
        other.spent, other.cut_prompts = self.spent, self.cut_prompts
        return other

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    @property
    def reads_prompts(self) -> bool:
        """Whether replies depend on prompts; False for scripted replies."""
        return self._model.reads_prompts

    async def over_pieces(
        self, step: Step, task: ActionTask, pieces: Sequence[ActionTask],
        kept: Callable[[TextReply], Awaitable[TextReply]] | None = None,
    ) -> TextReply:  # fmt: skip
        """Read every part of a document and merge the results, in order; `kept` reduces a reply before the merge."""

        async def read(purpose: Purpose, task: ActionTask, *, is_last: bool = False) -> TextReply:
            reply = await (self.read if is_last else self._ask_for)(step, purpose, task)
            return reply if kept is None else await kept(reply)

        if len(pieces) == 1:
            return await read("step", pieces[0], is_last=True)
        replies = list(await gather([read("part", piece) for piece in pieces]))
        texts, n_levels = [reply.text for reply in replies], 1
        while len(groups := self.calls.groups(task, texts)) > 1:
            merging = [replace(task, parts=tuple(group)) for group in groups if len(group) > 1]
            replies += (merged := await gather([read("combine", each) for each in merging]))
            rest = iter(merged)
            texts = [next(rest).text if len(group) > 1 else group[0] for group in groups]
            n_levels += 1
        last = await read("combine", replace(task, parts=tuple(groups[0])), is_last=True)
        flaw = next(filter(None, (reply.truncated for reply in replies)), last.truncated)
        return replace(last, truncated=flaw, n_levels=n_levels)

    async def read(self, step: Step, purpose: Purpose, task: ActionTask) -> TextReply:
        """Get the result of a step; the request is repeated once if the reply cannot be parsed."""
        request = self.calls.request(task)
        if self.calls.asks_words(task):
            request = await self._answered(step, task, request)
        read = await self._ask_for(step, purpose, task, request)
        # A cut-off reply cannot have its form.
        if read.reply.why and not read.truncated:
            again = self.calls.again(request, read.said, read.reply.why, task.gives)
            if again is not None:
                read = await self._ask_for(step, "again", task, again)
        # People write scripted replies, and the embedded model computes its own.
        if is_unproven(read.reply, task.gives) and self.reads_prompts:
            read = replace(read, truncated=read.truncated or UNQUOTED)
        find_date = partial(unstated_date, read.reply, task)
        why = read.truncated or await off_loop(len(task.document or ""), find_date)
        return replace(read, truncated=why)

    async def _answered(self, step: Step, task: ActionTask, request: Request) -> Request:
        """Ask for an answer in words; return the request that asks for its form."""
        question = dict(task.arguments)["QUESTION"]
        in_words = replace(request, messages=words_messages(task, question))
        try:
            said = await self.ask(step, "step", in_words, None, lambda text: None)
        except ModelError as error:
            if error.kind not in CUT_SHORT:
                raise
            return request
        formed = formed_messages(in_words.messages, said.text, task.gives)
        return self.calls.following(in_words, formed) or request

    async def _ask_for(
        self, step: Step, purpose: Purpose, task: ActionTask, request: Request | None = None
    ) -> TextReply:
        """Get the reply to a task, or the beginning of one that was cut off."""
        request = request or self.calls.request(task)
        constraint: Constraint | None = reply_constraint(task.gives, self.fallback.max_text)
        cut, checked = list[ModelError](), list[Reply]()

        def flaw(text: str) -> str | None:
            checked.append(_read(text, task))
            is_fine = self.fallback.is_required or checked[-1].is_formed
            return None if is_fine else "the reply has another form"

        while True:
            try:
                completion = await self.ask(step, purpose, request, constraint, flaw)
                reply = checked.pop() if checked else _read(completion.text, task)
                why = why_hollow(reply.plain, request)
                if why and self.calls.limits.is_strict:
                    raise ModelError(why, kind="malformed", reply=completion.text)
                return TextReply(reply, completion.text, why)
            except ModelError as error:
                if error.kind not in CUT_SHORT or self.calls.limits.is_strict:
                    raise
                cut.append(error)
                if not error.reply.strip():  # Some decoders fill a form with blanks up to the limit
                    constraint = None
            # More room would only make a loop longer.
            may_end = len(cut) == 1 and cut[0].kind == "truncated"
            roomier = self.calls.roomier(request) if may_end else None
            if roomier is None:
                break
            purpose, request = "again", roomier
        last, first = (begun(error.reply, task.gives, kept_text) for error in (cut[-1], cut[0]))
        text = last or first
        why = why_short(cut[-1], text)
        unread = Reply("undecided", f"undecided: {why}", why=why)
        return TextReply(_read(text, task) if text else unread, text, why)

    async def ask(
        self,
        step: Step,
        purpose: Purpose,
        request: Request,
        constraint: Constraint | None,
        flaw: Callable[[str], str | None],
        unheld: Callable[[], Request] | None = None,
    ) -> Completion:
        """Send a request, with the form of its reply as a constraint if the model supports it."""
        self.outputs.add(step.output)
        began = time.monotonic()
        try:
            if constraint is None:
                completion = await self._model.complete(request)
            else:

                def complete(level: Level) -> Awaitable[Completion]:
                    nonlocal request
                    request = unheld() if level is None and unheld is not None else request
                    return self._model.complete(constrained(request, constraint, level))

                completion, _ = await self.fallback.ask(
                    complete,
                    lambda level, error: self.trace.append(constraint_refused(level, error)),
                    flaw,
                )
        except ModelError as error:
            failed = call_failed(step.output, purpose, self._model.name, request, error, began)
            self.trace.append(failed)
            self._spend(step, error.usage or Usage())
            raise
        self._spend(step, completion.usage)
        if completion.cut_prompt:
            self.cut_prompts.setdefault(step.output, completion.cut_prompt)
        called = ModelCalled(
            step=step.output, purpose=purpose, model=completion.model,
            duration_s=time.monotonic() - began, usage=completion.usage,
            is_remembered=completion.is_remembered, prefix=completion.prefix,
            prompt=without_texts(request.messages), reply=completion.text, reasoning=completion.reasoning,
        )  # fmt: skip
        self.trace.append(called)
        return completion

    def _spend(self, step: Step, usage: Usage) -> None:
        n_calls, before = self.spent.get(step.output, (0, Usage()))
        self.spent[step.output] = n_calls + 1, before + usage


def _read(text: str, task: ActionTask) -> Reply:
    """Read a reply to a step; its source is the input of the step, or the merged results."""
    given = "\n".join(value for _, value in task.arguments)
    source = ""
    if task.gives is not ValueType.TEXT:  # Because a document may be long
        source = "\n".join((task.document or "", given) if task.parts is None else task.parts)
    return read_reply(
        text, task.gives, source=source, given=f"{given}\n{task.question}",
        is_of_numbers=task.is_of_numbers,
    )  # fmt: skip


def call_failed(
    step: str, purpose: Purpose, model: str, request: Request, error: ModelError, began: float
) -> CallFailed:
    """The trace event of a failed call; `began` is a time of the monotonic clock."""
    return CallFailed(
        step=step, purpose=purpose, model=model, kind=error.kind,
        prompt=without_texts(request.messages), reply=error.reply,
        duration_s=time.monotonic() - began, usage=error.usage or Usage(), is_sent=error.is_sent,
    )  # fmt: skip
