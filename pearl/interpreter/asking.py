"""The requests of a step → the reply of the model: constrained, repeated, merged or truncated."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import ValueType
from pearl.errors import ModelError
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.context import ContextLimits
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import ActionTask, Completion, Model, Request, Usage
from pearl.llm.concurrency import gather
from pearl.llm.fallback import ConstraintFallback, ConstraintLevel
from pearl.llm.flaws import loop_in
from pearl.llm.messages import constrained, without_texts
from pearl.llm.middleware.caching import ItemCache
from pearl.replies.typed import (
    Reply,
    begun,
    follows_form,
    in_plain_form,
    read_reply,
    reply_constraint,
)  # fmt: skip
from pearl.trace import CallFailed, ModelCalled, Purpose, Trace, constraint_refused

MIN_WORDS = 8
"""Minimum words of a reply that is checked."""

MIN_TIMES = 4

MIN_COPIED = 60
"""Minimum words of a reply that counts as a copy of the document's beginning."""

_WORD = lazy_pattern(r"\w+")


def why_hollow(text: str, request: Request) -> str:
    """Why a reply to a step has no content of its own; "" if it has content."""
    words = _words(text)
    task = request.task
    if len(words) < MIN_WORDS or not isinstance(task, ActionTask):
        return ""
    if MIN_TIMES * _period(words) <= len(words):
        return "the reply is the same words over and over"
    if len(words) >= MIN_COPIED and task.document and len(task.document) > 2 * len(text):
        beginning = " ".join(task.document[: 2 * len(text)].split())
        if beginning.startswith(" ".join(text.split())):
            return "the reply is the beginning of the document"
    return ""


def _period(words: Sequence[str]) -> int:
    """The shortest distance by which words are their own repetition, by the failure function."""
    borders = [0] * len(words)
    border = 0
    for i in range(1, len(words)):
        while border and words[i] != words[border]:
            border = borders[border - 1]
        border += words[i] == words[border]
        borders[i] = border
    return len(words) - borders[-1]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


CUT_SHORT = frozenset({"truncated", "repetition"})
"""Kinds of `ModelError` whose reply is the beginning of a usable one."""


_UNREAD = Reply("undecided", "")


@dataclass(frozen=True, slots=True)
class TextReply:
    """The reply to a request and its repetitions, with its value if the reply has been parsed."""

    text: str
    usage: Usage
    n_calls: int = 1
    truncated: str = ""
    reply: Reply = _UNREAD


def why_short(error: ModelError, text: str) -> str:
    """The note on a reply if only its beginning is kept."""
    if error.kind == "truncated" and not error.reply:
        return "the reply is only reasoning, without an answer"
    what = "was cut off at its limit" if error.kind == "truncated" else "repeated itself"
    kept = "its beginning is kept" if text else "it has no whole sentence"
    return f"the reply {what}; {kept}"


_END = lazy_pattern(r"""[.!?…。！？]["'”’»)\]]*(?=\s)""")
"""The end of a sentence before more text: at the very end, a word may be cut off."""

_ABBREVIATED = lazy_pattern(
    r"(?:\b(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|No|Nos|approx|ca|cf|Inc|Ltd|Co|Corp)|\d)\.$"
)
"""A full stop within a sentence: of an abbreviation, an initial or a list number."""


def kept_text(text: str) -> str:
    r"""The beginning of a cut-off text, up to its last complete line or sentence; "" if none is complete.

    Of a loop at the end, only the first round is kept.

    Example:
        >>> kept_text("He left at dawn. She wrote to Dr. Lee. Then the bo")
        'He left at dawn. She wrote to Dr. Lee.'
        >>> kept_text("- the hull\n- the sails\n- the mas")
        '- the hull\n- the sails'
        >>> kept_text("12")
        ''
    """
    loop = loop_in(text)
    if loop is not None:
        at = text.find(loop)
        text = text[: at + len(loop)] + "\n" if at >= 0 else text
    lines, _, last = text.rpartition("\n")
    ends = [
        match.end()
        for match in _END.finditer(last)
        if not _ABBREVIATED.search(last[: match.start() + 1])
    ]
    whole = last[: ends[-1]] if ends else ""
    return "\n".join(part for part in (lines, whole) if part.strip()).rstrip()


@dataclass(frozen=True, slots=True)
class Reader:
    """A model for some of the calls of a run, with the limits of its prompts and its cached replies."""

    model: Model
    limits: ContextLimits
    fallback: ConstraintFallback
    items: ItemCache | None


class Asker:
    """Asks a model of a run for the results of its steps; `escalation` asks for what stays undecided, `checker` checks claims."""

    def __init__(
        self,
        model: Model,
        calls: RequestBuilder,
        fallback: ConstraintFallback,
        trace: Trace,
        items: ItemCache | None = None,
    ) -> None:
        self._model = model
        self.calls = calls
        self.fallback = fallback
        self.trace = trace
        self.items = items
        self.escalation: Asker | None = None
        self.checker: Asker | None = None
        self.outputs: set[str] = set()
        """The steps that have replies of this model, cached ones included."""
        self.cut_prompts: dict[str, str] = {}
        """Steps of whose prompts a server may have read only a part, with the reason."""

    def of(self, reader: Reader) -> Asker:
        """The same run with another model."""
        calls = self.calls.within(reader.limits)
        other = Asker(reader.model, calls, reader.fallback, self.trace, reader.items)
        other.cut_prompts = self.cut_prompts
        return other

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    @property
    def has_likelihoods(self) -> bool:
        """Whether the model computes the log-likelihoods of candidates."""
        return self._model.constrains.likelihoods

    async def over_pieces(
        self, step: Step, task: ActionTask, pieces: Sequence[ActionTask]
    ) -> TextReply:
        """Read every piece of a document and merge the results, in order, into one."""
        if len(pieces) == 1:
            return await self.read(step, "step", pieces[0])
        parts = await gather(
            [self._ask_for(step, "part", self.calls.request(p), task.gives) for p in pieces]
        )
        replies, texts = list(parts), [in_plain_form(part.text, task.gives) for part in parts]
        while len(groups := self.calls.groups(task, texts)) > 1:
            merged = await gather([self._merge(step, task, group) for group in groups])
            texts = [in_plain_form(each.text, task.gives) for each in merged]
            replies += merged
        read = await self.read(step, "combine", replace(task, parts=tuple(groups[0])))
        return replace(
            read,
            usage=sum((reply.usage for reply in replies), read.usage),
            n_calls=sum(reply.n_calls for reply in replies) + read.n_calls,
            truncated=next(
                (reply.truncated for reply in replies if reply.truncated), read.truncated
            ),
        )

    async def _merge(self, step: Step, task: ActionTask, group: list[str]) -> TextReply:
        if len(group) == 1:
            return TextReply(group[0], Usage(), 0)
        request = self.calls.request(replace(task, parts=tuple(group)))
        return await self._ask_for(step, "combine", request, task.gives)

    async def read(
        self, step: Step, purpose: Literal["step", "combine"], task: ActionTask
    ) -> TextReply:
        """Get the result of a step; the request is repeated once if the reply cannot be parsed."""
        request = self.calls.request(task)
        first = await self._ask_for(step, purpose, request, task.gives)
        if not first.text:
            unread = Reply("undecided", f"undecided: {first.truncated}", why=first.truncated)
            return replace(first, reply=unread)
        read = _parsed(first, task)
        # A reply that was cut off cannot follow its form.
        again = None
        if read.reply.why and not first.truncated:
            again = self.calls.again(request, first.text, read.reply.why, task.gives)
        if again is None:
            return read
        second = _parsed(await self._ask_for(step, "again", again, task.gives), task)
        n_calls = first.n_calls + second.n_calls
        return replace(second, usage=first.usage + second.usage, n_calls=n_calls)

    async def _ask_for(
        self, step: Step, purpose: Purpose, request: Request, wanted: ValueType
    ) -> TextReply:
        """Get a reply of a type, or the beginning of a reply that was cut off."""
        constraint: Constraint | None = reply_constraint(wanted, self.fallback.max_text)
        usage, cut = Usage(), list[ModelError]()

        def flaw(text: str) -> str | None:
            is_fine = self.fallback.is_required or follows_form(text, wanted)
            return None if is_fine else "the reply has another form"

        while True:
            try:
                completion = await self.ask(step, purpose, request, constraint, flaw)
                why = why_hollow(in_plain_form(completion.text, wanted), request)
                if why and self.calls.limits.is_strict:
                    raise ModelError(why, kind="malformed", reply=completion.text)
                return TextReply(completion.text, usage + completion.usage, 1 + len(cut), why)
            except ModelError as error:
                if error.kind not in CUT_SHORT or self.calls.limits.is_strict:
                    raise
                cut.append(error)
                usage += error.usage or Usage()
                if not error.reply.strip():  # some decoders fill a form with blanks up to the limit
                    constraint = None
            # A loop has no end: more room would only make it longer.
            may_end = len(cut) == 1 and cut[0].kind == "truncated"
            roomier = self.calls.roomier(request) if may_end else None
            if roomier is None:
                break
            purpose, request = "again", roomier
        last, first = (begun(error.reply, wanted, kept_text) for error in (cut[-1], cut[0]))
        text = last or first
        return TextReply(text, usage, len(cut), why_short(cut[-1], text))

    async def ask(
        self,
        step: Step,
        purpose: Purpose,
        request: Request,
        constraint: Constraint | None,
        flaw: Callable[[str], str | None],
        unheld: Request | None = None,
    ) -> Completion:
        """Send a request, constrained to the form of its reply if the model supports that."""
        self.outputs.add(step.output)
        began = time.monotonic()
        try:
            if constraint is None:
                completion = await self._model.complete(request)
            else:

                def complete(level: ConstraintLevel) -> Awaitable[Completion]:
                    nonlocal request
                    request = unheld if level.by is None and unheld is not None else request
                    return self._model.complete(constrained(request, constraint, level.by))

                completion, _ = await self.fallback.ask(
                    complete,
                    lambda level, error: self.trace.append(constraint_refused(level.name, error)),
                    flaw,
                )
        except ModelError as error:
            self.trace.append(
                call_failed(step.output, purpose, self._model.name, request, error, began)
            )
            raise
        if completion.cut_prompt:
            self.cut_prompts.setdefault(step.output, completion.cut_prompt)
        self.trace.append(
            ModelCalled(
                step=step.output,
                purpose=purpose,
                model=completion.model,
                duration_s=time.monotonic() - began,
                usage=completion.usage,
                is_remembered=completion.is_remembered,
                prefix=completion.prefix,
                prompt=without_texts(request.messages),
                reply=completion.text,
                reasoning=completion.reasoning,
            )
        )
        return completion


def _parsed(read: TextReply, task: ActionTask) -> TextReply:
    """A reply to a step with its value, in plain form; its source is the input of the step, or what is merged."""
    given = "\n".join(value for _, value in task.arguments)
    source = ""
    if task.gives is not ValueType.TEXT:  # because a document may be long
        source = "\n".join((task.document or "", given) if task.parts is None else task.parts)
    reply = read_reply(
        read.text, task.gives, source=source, given=f"{given}\n{task.question}",
        is_of_numbers=task.is_of_numbers,
    )  # fmt: skip
    return replace(read, reply=reply, text=in_plain_form(read.text, task.gives))


def call_failed(
    step: str, purpose: Purpose, model: str, request: Request, error: ModelError, began: float
) -> CallFailed:
    """The trace event of a failed call that began at a time of the monotonic clock."""
    return CallFailed(
        step=step, purpose=purpose, model=model, kind=error.kind,
        prompt=without_texts(request.messages), reply=error.reply,
        duration_s=time.monotonic() - began, usage=error.usage or Usage(), is_sent=error.is_sent,
    )  # fmt: skip
