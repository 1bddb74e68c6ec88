"""The requests of a step → the model's reply: constrained, repeated, merged or truncated."""

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
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import ActionTask, Completion, Model, Request, Usage
from pearl.llm.concurrency import gather
from pearl.llm.fallback import ConstraintFallback, ConstraintLevel
from pearl.llm.flaws import loop_in
from pearl.llm.messages import constrained, without_texts
from pearl.replies.typed import Reply, follows_form, read_reply, reply_constraint
from pearl.trace import CallFailed, ConstraintRefused, ModelCalled, Purpose, Trace

MIN_WORDS = 8
"""Minimum words of a reply that is checked."""

MIN_TIMES = 4

MIN_COPIED = 60
"""Minimum words of a copy of the document's beginning."""

_WORD = lazy_pattern(r"\w+")


def why_hollow(text: str, request: Request) -> str:
    """Why the reply to a step says nothing; "" if it may."""
    words = _words(text)
    task = request.task
    if len(words) < MIN_WORDS or not isinstance(task, ActionTask):
        return ""
    if any(words[period:] == words[:-period] for period in range(1, len(words) // MIN_TIMES + 1)):
        return "the reply is the same words over and over"
    if len(words) >= MIN_COPIED and task.document and len(task.document) > 2 * len(text):
        beginning = " ".join(task.document[: 2 * len(text)].split())
        if beginning.startswith(" ".join(text.split())):
            return "the reply is the beginning of the document"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


CUT_SHORT = frozenset({"truncated", "repetition"})
"""Kinds of `ModelError` whose reply is the beginning of a usable one."""


@dataclass(frozen=True, slots=True)
class Said:
    """The reply to a request and to its repetition."""

    text: str
    usage: Usage
    n_calls: int = 1
    truncated: str = ""


def why_short(error: ModelError, text: str) -> str:
    """The note on a reply of which only the beginning is kept."""
    what = "was cut off at its limit" if error.kind == "truncated" else "repeated itself"
    kept = "its beginning is kept" if text else "nothing of it is whole"
    return f"the reply {what}; {kept}"


_END = lazy_pattern(r"""[.!?…。！？]["'”’»)\]]*(?=\s)""")
"""The end of a sentence that another text follows: at the very end a word may be cut off."""

_ABBREVIATED = lazy_pattern(
    r"(?:\b(?:[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|vs|etc|No|Nos|approx|ca|cf|Inc|Ltd|Co|Corp)|\d)\.$"
)
"""A full stop that ends no sentence: of an abbreviation, an initial, the number of a list."""


def kept_text(text: str) -> str:
    r"""The beginning of a cut-off text, to the end of its last whole line or sentence; "" if none is whole.

    A loop at the end is left out, but for the first time it says what it repeats.

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
class TextRead:
    """The result of reading a text."""

    text: str
    reply: Reply
    usage: Usage
    n_calls: int
    truncated: str = ""


class Asker:
    """Asks the model of a run for the results of its steps."""

    def __init__(
        self, model: Model, calls: RequestBuilder, fallback: ConstraintFallback, trace: Trace
    ) -> None:
        self._model = model
        self._calls = calls
        self.fallback = fallback
        self._trace = trace

    async def read_document(self, step: Step, task: ActionTask) -> TextRead:
        """Read one row as a document of its own."""
        _, pieces = await self._calls.pieces(task, task.document or "")
        return await self.over_pieces(step, task, pieces)

    async def over_pieces(
        self, step: Step, task: ActionTask, pieces: Sequence[ActionTask]
    ) -> TextRead:
        """Read every piece of a document and merge the results, in order, into one."""
        if len(pieces) == 1:
            return await self.read(step, "step", pieces[0])
        parts = await gather(
            [self._ask_for(step, "part", self._calls.request(p), task.gives) for p in pieces]
        )
        said, texts = list(parts), [part.text for part in parts]
        while len(groups := self._calls.groups(task, texts)) > 1:
            merged = await gather([self._merge(step, task, group) for group in groups])
            texts = [each.text for each in merged]
            said += merged
        read = await self.read(step, "combine", replace(task, parts=tuple(groups[0])))
        return replace(
            read,
            usage=sum((each.usage for each in said), read.usage),
            n_calls=sum(each.n_calls for each in said) + read.n_calls,
            truncated=next((each.truncated for each in said if each.truncated), read.truncated),
        )

    async def _merge(self, step: Step, task: ActionTask, group: list[str]) -> Said:
        if len(group) == 1:
            return Said(group[0], Usage(), 0)
        request = self._calls.request(replace(task, parts=tuple(group)))
        return await self._ask_for(step, "combine", request, task.gives)

    async def read(
        self, step: Step, purpose: Literal["step", "combine"], task: ActionTask
    ) -> TextRead:
        """Get the result of a step; the request is repeated once if the reply cannot be parsed."""
        request = self._calls.request(task)
        wanted, is_of_numbers = task.gives, task.is_of_numbers
        source = "" if wanted is ValueType.TEXT else _source(task)  # a document is long
        said = await self._ask_for(step, purpose, request, wanted)
        if not said.text:
            unread = Reply("undecided", f"undecided: {said.truncated}", why=said.truncated)
            return TextRead("", unread, said.usage, said.n_calls, said.truncated)
        reply = read_reply(said.text, wanted, source=source, is_of_numbers=is_of_numbers)
        first = TextRead(said.text, reply, said.usage, said.n_calls, said.truncated)
        if not reply.why or said.truncated:  # what does not end will not have a form
            return first
        again = self._calls.again(request, said.text, reply.why, wanted)
        if again is None:
            return first
        said = await self._ask_for(step, "again", again, wanted)
        reply = read_reply(
            said.text, wanted, source=source, is_second=True, is_of_numbers=is_of_numbers
        )
        n_calls = first.n_calls + said.n_calls
        return TextRead(said.text, reply, first.usage + said.usage, n_calls, said.truncated)

    async def _ask_for(
        self, step: Step, purpose: Purpose, request: Request, wanted: ValueType
    ) -> Said:
        """Get a reply of a type; of one that does not end, its beginning."""
        try:
            completion = await self._ask_of_type(step, purpose, request, wanted)
            why = why_hollow(completion.text, request)
            if why and self._calls.limits.is_strict:
                raise ModelError(why, kind="malformed", reply=completion.text)
            return Said(completion.text, completion.usage, 1, why)
        except ModelError as error:
            if error.kind not in CUT_SHORT or self._calls.limits.is_strict:
                raise
            first = error
        last, n_calls, usage = first, 1, first.usage or Usage()
        # A loop has no end: more room would only make it longer.
        roomier = self._calls.roomier(request) if first.kind == "truncated" else None
        if roomier is not None:
            n_calls = 2
            try:
                completion = await self._ask_of_type(step, "again", roomier, wanted)
                why = why_hollow(completion.text, request)
                return Said(completion.text, usage + completion.usage, 2, why)
            except ModelError as error:
                if error.kind not in CUT_SHORT:
                    raise
                last, usage = error, usage + (error.usage or Usage())
        text = kept_text(last.reply) or kept_text(first.reply)
        return Said(text, usage, n_calls, why_short(last, text))

    async def _ask_of_type(
        self, step: Step, purpose: Purpose, request: Request, wanted: ValueType
    ) -> Completion:
        """Send a request for a reply of a type."""
        constraint = reply_constraint(wanted, self.fallback.max_text)

        def flaw(text: str) -> str | None:
            return None if follows_form(text, wanted) else "the reply has another form"

        return await self.ask(step, purpose, request, constraint, flaw)

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
                    lambda level, error: self._trace.append(
                        ConstraintRefused(constraint=level.name, reason=error.message)
                    ),
                    flaw,
                )
        except ModelError as error:
            self._trace.append(
                CallFailed(
                    step=step.output,
                    purpose=purpose,
                    model=self._model.name,
                    kind=error.kind,
                    prompt=without_texts(request.messages),
                    reply=error.reply,
                    duration_s=time.monotonic() - began,
                    usage=error.usage or Usage(),
                    is_sent=error.is_sent,
                )
            )
            raise
        self._trace.append(
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


def _source(task: ActionTask) -> str:
    """The full input of a step, or the results that are merged."""
    if task.parts is not None:
        return "\n".join(task.parts)
    return "\n".join((task.document or "", *(value for _, value in task.arguments)))
