"""Question + library + examples → `CheckedPlan`, without the document.

A bounded repair loop: machine-applicable fixes are applied first, because they are free; the
remaining diagnostics go back to the model, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pearl.documents.document import DocumentKind
from pearl.dsl.checker import MAX_STEPS, CheckedPlan, compile_plan, mend_plan
from pearl.dsl.completeness import COUNTS_BEST
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.forms import (
    header_constraint,
    line_constraint,
    plan_constraint,
    steps_constraint,
)
from pearl.dsl.decoding.grammar import MAX_WRITTEN_STEPS
from pearl.dsl.decoding.weak import weak_plan_constraint
from pearl.dsl.parser import read
from pearl.dsl.printer import print_header
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import (
    Diagnostic,
    LibraryError,
    ModelError,
    PlanError,
    PlanningError,
    UsageError,
    render_diagnostics,
)
from pearl.llm import Completion, Message, Model, PlanTask, Request, Usage
from pearl.llm.fallback import ConstraintFallback, ConstraintLevel, ConstraintLevelName
from pearl.llm.messages import constrained
from pearl.planner.examples import Example
from pearl.planner.finishing import finish_plan, n_reading_steps
from pearl.planner.meant import not_meant
from pearl.planner.profile import FULL, PlannerProfile
from pearl.planner.prompt import (
    Rejected,
    plan_messages,
    rejection_messages,
    repair_messages,
    short_plan_messages,
    steps_messages,
)
from pearl.planner.spans import question_words
from pearl.trace import ConstraintRefused, PlanAttempted, Trace

MAX_REPAIRS = 4
"""Default number of repair rounds."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One round of planning."""

    reply: str
    text: str
    notes: tuple[Diagnostic, ...]
    diagnostics: tuple[Diagnostic, ...]
    usage: Usage


async def write_plan(
    question: str,
    library: ActionLibrary,
    model: Model,
    *,
    examples: Sequence[Example] = (),
    max_repairs: int = MAX_REPAIRS,
    max_steps: int = MAX_STEPS,
    max_output_tokens: int | None = None,
    rejected: Sequence[Rejected] = (),
    card: str = "",
    advice: str = "",
    kind: DocumentKind = "document",
    fallback: ConstraintFallback | None = None,
    profile: PlannerProfile = FULL,
    trace: Trace | None = None,
) -> CheckedPlan:
    """Write, repair and check a plan."""
    question = one_line(question)
    messages = first = (
        *first_messages(question, library, examples, card, advice, kind, profile),
        *rejection_messages(rejected),
    )
    attempts: list[Attempt] = []
    doubted: CheckedPlan | None = None
    fallback = fallback or ConstraintFallback(model.constrains)
    n_written = max_steps
    if profile.max_steps is not None:
        n_written = min(n_reading_steps(question, profile.max_steps), max_steps)
    limits = _Limits(max_steps, n_written, model.window, max_output_tokens, profile)
    writer = _Writer(library, model, fallback, limits, trace)
    asked, n_cached = {messages}, 0
    for round in range(max_repairs + 1):
        task = PlanTask(question, library, round, len(rejected), kind)
        try:
            completion, level = await writer.write(messages, task)
        except ModelError as error:
            if error.kind != "repetition":
                raise
            if trace is not None:
                trace.append(_endless(error, round, model.name, fallback.level.name, card, profile))
            raise PlanningError(
                f"no valid plan after {_counted(len(attempts) + 1)}; {error.message}",
                attempts=attempts,
                help=f"{error.help}; --fallback direct answers without a plan",
            ) from error
        n_cached += writer.n_cached > 0
        reading = read(completion.text, tolerant=True)
        fixed: Sequence[Diagnostic]
        if profile.is_explained:
            text, fixed = mend_plan(reading.text, library, max_steps=max_steps)
        else:
            text, fixed = finish_plan(
                reading.text, question, library, max_written=n_written, max_steps=max_steps
            )
        checked: CheckedPlan | None = None
        found: tuple[Diagnostic, ...] = ()
        try:
            checked = compile_plan(text, library, max_steps=max_steps, question=question)
            found = unread(checked) + not_meant(completion.text, checked, question)
            if not found and round == 0 < max_repairs and (found := _of_best(checked)):
                doubted = checked  # told once, for it may be what the question asks for
        except PlanError as error:
            found = error.diagnostics
        attempt = Attempt(completion.text, text, (*reading.notes, *fixed), found, completion.usage)
        attempts.append(attempt)
        if trace is not None:
            trace.append(
                _event(
                    attempt, round, completion.model, level.name, reading.original, reading.text,
                    card, profile, writer,
                )
            )  # fmt: skip
        if checked is not None and not found:
            return checked.asking(question)
        messages = repair_messages(first, text, found)
        if messages in asked:  # the reply would be the cached one
            break
        asked.add(messages)
    if doubted is not None:
        return doubted.asking(question)
    last = next(d for d in attempts[-1].diagnostics if d.severity == "error")
    cached = f", {n_cached} of them cached" if n_cached else ""
    raise PlanningError(
        f"no valid plan after {_counted(len(attempts))}{cached}; last problem: {last.message} [{last.code}]",
        attempts=attempts,
        help="--trace FILE keeps every attempt; --fallback direct answers without a plan",
    )


def first_messages(
    question: str,
    library: ActionLibrary,
    examples: Sequence[Example],
    card: str,
    advice: str,
    kind: DocumentKind,
    profile: PlannerProfile,
) -> tuple[Message, ...]:
    """The prompt of a profile; arguments as of `plan_messages`."""
    if profile.is_explained:
        return plan_messages(question, library, examples, card, advice, kind)
    assert profile.max_steps is not None
    n_steps = n_reading_steps(question, profile.max_steps)
    return short_plan_messages(question, library, examples, n_steps, card)


def unread(checked: CheckedPlan) -> tuple[Diagnostic, ...]:
    """Diagnostics of a valid plan that never reads the document."""
    references = [reference for step in checked.plan.steps for reference in step.references()]
    if any(reference.is_context for reference in references):
        return ()
    return (
        Diagnostic(
            "unread-document",
            "no step reads the document",
            checked.plan.steps[0].action_span,
            help="give CTX to the step that finds what the others go on from",
        ),
    )


def _of_best(checked: CheckedPlan) -> tuple[Diagnostic, ...]:
    """Diagnostics of a valid plan that counts the best passages of a search."""
    return tuple(note for note in checked.notes if note.code == COUNTS_BEST)


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits on plans and replies given to `write_plan`."""

    max_steps: int
    n_written: int
    window: int | None
    max_output_tokens: int | None
    profile: PlannerProfile

    def reply_tokens(self, task: PlanTask) -> int:
        return self.profile.reply_tokens(task, self.window, self.max_output_tokens, self.max_steps)


class _Writer:
    """Requests a plan under the strongest constraint that the model supports."""

    def __init__(
        self,
        library: ActionLibrary,
        model: Model,
        fallback: ConstraintFallback,
        limits: _Limits,
        trace: Trace | None,
    ) -> None:
        self._library = library
        self._model = model
        self._fallback = fallback
        self._limits = limits
        self._n_written = min(limits.n_written, MAX_WRITTEN_STEPS)
        self._profile = limits.profile
        self._trace = trace
        self.n_calls = 0
        self.n_cached = 0

    async def write(
        self, messages: tuple[Message, ...], task: PlanTask
    ) -> tuple[Completion, ConstraintLevel]:
        """Return the reply and the constraint level it was written under."""
        self.n_calls = self.n_cached = 0
        return await self._fallback.ask(
            lambda level: self._on(level, messages, task), self._refused, self._flaw
        )

    def _flaw(self, text: str) -> str | None:
        """Why a reply does not keep to its constraint; steps of a short one need no explanation."""
        errors = read(text, tolerant=not self._profile.is_explained).errors
        return next((broken.message for broken in errors), None)

    async def _on(
        self, level: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        if not self._profile.is_explained:
            return await self._in_short(level, messages, task)
        if level.name in ("library", "json"):
            return await self._in_two_phases(level, messages, task)
        constraint: Constraint | None = None
        if level.by is not None:
            kind = line_constraint if level.name == "lines" else plan_constraint
            constraint = kind(
                self._library, max_steps=self._n_written, max_text=self._fallback.max_text
            )
        return await self._ask(level, messages, task, constraint)

    async def _in_short(
        self, level: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        """Request steps alone; an endless reply counts as far as it goes, for it may begin with them."""
        if level.by == "line":  # one grammar does
            level = level._replace(by="grammar")
        words = question_words(task.question)
        try:
            constraint = weak_plan_constraint(
                words, task.question, self._library, max_steps=self._n_written
            )
        except LibraryError as error:
            raise ModelError(error.message, kind="unconstrained") from error
        try:
            return await self._ask(level, messages, task, constraint)
        except ModelError as error:
            if error.kind not in ("repetition", "truncated") or not error.reply:
                raise
            return Completion(error.reply, self._model.name, error.usage or Usage())

    async def _in_two_phases(
        self, level: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        """Request the new actions first: the grammar of the steps needs all action names."""
        max_text = self._fallback.max_text
        first = await self._ask(
            level, messages, task, header_constraint(self._library, max_text=max_text)
        )
        declared = {action.name: action for action in read(first.text, tolerant=True).actions}
        header = print_header(declared.values())
        known = self._library.extended(declared.values())
        try:
            constraint = steps_constraint(known, max_steps=self._n_written, max_text=max_text)
        except LibraryError as error:  # every action needs an output of another one
            raise ModelError(error.message, kind="unconstrained") from error
        second = await self._ask(level, steps_messages(messages, header), task, constraint)
        return replace(second, text=f"{header}\n\n{second.text}", usage=first.usage + second.usage)

    async def _ask(
        self,
        level: ConstraintLevel,
        messages: tuple[Message, ...],
        task: PlanTask,
        constraint: Constraint | None,
    ) -> Completion:
        request = Request(messages, task, self._limits.reply_tokens(task))
        completion = await self._model.complete(constrained(request, constraint, level.by))
        self.n_calls += 1
        self.n_cached += completion.is_remembered
        return completion

    def _refused(self, level: ConstraintLevel, error: ModelError) -> None:
        if self._trace is not None:
            self._trace.append(ConstraintRefused(constraint=level.name, reason=error.message))


def _counted(n: int) -> str:
    return f"{n} attempt{'s' if n > 1 else ''}"


def _endless(
    error: ModelError,
    round: int,
    model: str,
    level: ConstraintLevelName,
    card: str,
    profile: PlannerProfile,
) -> PlanAttempted:
    """The trace event of a repetitive reply, with its token usage."""
    return PlanAttempted(
        round=round, model=model, reply=error.reply, diagnostics=(error.message,),
        constraint=level, usage=error.usage or Usage(), shape=card, profile=profile.name,
    )  # fmt: skip


def _event(
    attempt: Attempt,
    round: int,
    model: str,
    level: ConstraintLevelName,
    original: str,
    mended: str,
    card: str,
    profile: PlannerProfile,
    writer: _Writer,
) -> PlanAttempted:
    """The trace event of an attempt; each note is rendered over the text it refers to."""
    lenient = [d for d in attempt.notes if d.severity == "note"]
    fixed = [d for d in attempt.notes if d.severity != "note"]
    return PlanAttempted(
        round=round,
        model=model,
        reply=attempt.reply,
        notes=(
            *(render_diagnostics([d], original, "reply") for d in lenient),
            *(f"fixed: {d.message} [{d.code}]" for d in fixed),
        ),
        diagnostics=tuple(
            render_diagnostics([d], attempt.text, "plan") for d in attempt.diagnostics
        ),
        constraint=level,
        usage=attempt.usage,
        shape=card,
        profile=profile.name,
        n_calls=max(1, writer.n_calls),  # a reply that was cut off may count, too
        n_cached=writer.n_cached,
    )


def one_line(question: str) -> str:
    """Normalise a question to one line, as in plan files."""
    if not isinstance(question, str):
        raise UsageError(
            f"a question is a str, not a {type(question).__name__}",
            help='the question comes first: pearl.ask("Who ...?", document)',
        )
    line = " ".join(question.split())
    if not line:
        raise UsageError("the question is empty", help='ask something: pearl ask "Who ...?" FILE')
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the question is not valid text: half a character at position {error.start + 1}",
            help="retype it; a lone surrogate cannot be encoded as UTF-8",
        ) from None
    return line
