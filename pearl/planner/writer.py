"""Question + library + examples → `CheckedPlan`, without the document.

A bounded repair loop: machine-applicable fixes are applied first, for they are free; what remains
goes back to the model, every diagnostic at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pearl.dsl.checker import MAX_STEPS, CheckedPlan, compile_plan, mend_plan
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.forms import (
    header_constraint,
    line_constraint,
    plan_constraint,
    steps_constraint,
)
from pearl.dsl.decoding.grammar import MAX_WRITTEN_STEPS
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
from pearl.llm.reply_limits import reply_limit
from pearl.planner.examples import Example
from pearl.planner.prompt import (
    Rejected,
    plan_messages,
    rejection_messages,
    repair_messages,
    steps_messages,
)
from pearl.trace import ConstraintRefused, PlanAttempted, Trace

__all__ = ["MAX_REPAIRS", "Attempt", "Rejected", "one_line", "write_plan"]

MAX_REPAIRS = 4
"""Times a model is shown what is wrong with its plan, by default."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One round of planning.

    Attributes:
        reply: What the model wrote.
        text: The same after mending: what `diagnostics` have their positions in.
        notes: What was forgiven and which fixes were applied.
        diagnostics: What was still wrong; empty if the plan was accepted.
    """

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
    ladder: ConstraintFallback | None = None,
    trace: Trace | None = None,
) -> CheckedPlan:
    """Have a plan written, mended and checked.

    Args:
        question: What the plan shall answer; not blank.
        library: The actions it may call.
        model: Who writes it.
        examples: Shown to the model, in order.
        max_repairs: Rounds after the first one.
        max_steps: Longer plans are refused.
        max_output_tokens: Tokens of one reply at most; None for `reply_limits`' own.
        rejected: Valid plans that were run in vain, and why.
        ladder: What the model is held to; None for what it can be.
        trace: Every attempt is added to it.

    Raises:
        UsageError: The question is blank or no valid text.
        PlanningError: No valid plan came out; `.attempts` has every one that was read. A reply that
            repeats itself ends the attempts: asked again, the model would do the same.
        ModelError: The model gave no usable reply.
    """
    question = one_line(question)
    messages = first = (
        *plan_messages(question, library, examples),
        *rejection_messages(rejected),
    )
    attempts: list[Attempt] = []
    ladder = ladder or ConstraintFallback(model.constrains)
    limits = _Limits(max_steps, model.window, max_output_tokens)
    writer = _Writer(library, model, ladder, limits, trace)
    for round in range(max_repairs + 1):
        task = PlanTask(question, library, round, len(rejected))
        try:
            completion, rung = await writer.write(messages, task)
        except ModelError as error:
            if error.kind != "repetition":
                raise
            if trace is not None:
                trace.append(_endless(error, round, model.name, ladder.rung.name))
            raise PlanningError(
                f"no valid plan after {_counted(len(attempts) + 1)}; {error.message}",
                attempts=attempts,
                help=f"{error.help}; --fallback direct answers without a plan",
            ) from error
        reading = read(completion.text, tolerant=True)
        text, fixed = mend_plan(reading.text, library, max_steps=max_steps)
        checked: CheckedPlan | None = None
        found: tuple[Diagnostic, ...] = ()
        try:
            checked = compile_plan(text, library, max_steps=max_steps)
            found = _unread(checked)
        except PlanError as error:
            found = error.diagnostics
        attempt = Attempt(completion.text, text, (*reading.notes, *fixed), found, completion.usage)
        attempts.append(attempt)
        if trace is not None:
            trace.append(
                _event(attempt, round, completion.model, rung.name, reading.original, reading.text)
            )
        if checked is not None and not found:
            return replace(checked, plan=replace(checked.plan, question=question))
        messages = repair_messages(first, text, found)
    last = next(d for d in attempts[-1].diagnostics if d.severity == "error")
    raise PlanningError(
        f"no valid plan after {_counted(len(attempts))}; last problem: {last.message} [{last.code}]",
        attempts=attempts,
        help="--trace FILE keeps every attempt; --fallback direct answers without a plan",
    )


def _unread(checked: CheckedPlan) -> tuple[Diagnostic, ...]:
    """What is wrong with a plan that is valid and never reads the document: it would answer from nothing."""
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


@dataclass(frozen=True, slots=True)
class _Limits:
    """How long a plan and a reply may be, as `write_plan` is told."""

    max_steps: int
    window: int | None
    max_output_tokens: int | None

    def reply_tokens(self, task: PlanTask) -> int:
        return reply_limit(task, self.window, self.max_output_tokens, max_steps=self.max_steps)


class _Writer:
    """Has a text written that is a plan, or should be one, on the best rung that there is."""

    def __init__(
        self,
        library: ActionLibrary,
        model: Model,
        ladder: ConstraintFallback,
        limits: _Limits,
        trace: Trace | None,
    ) -> None:
        self._library = library
        self._model = model
        self._ladder = ladder
        self._limits = limits
        self._n_written = min(limits.max_steps, MAX_WRITTEN_STEPS)
        self._trace = trace

    async def write(
        self, messages: tuple[Message, ...], task: PlanTask
    ) -> tuple[Completion, ConstraintLevel]:
        """The reply, and what the model was held to.

        Raises:
            ModelError: There is no usable reply.
        """
        return await self._ladder.ask(lambda rung: self._on(rung, messages, task), self._refused)

    async def _on(
        self, rung: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        if rung.name in ("library", "json"):
            return await self._in_two_phases(rung, messages, task)
        constraint: Constraint | None = None
        if rung.by is not None:
            kind = line_constraint if rung.name == "lines" else plan_constraint
            constraint = kind(
                self._library, max_steps=self._n_written, max_text=self._ladder.max_text
            )
        return await self._ask(rung, messages, task, constraint)

    async def _in_two_phases(
        self, rung: ConstraintLevel, messages: tuple[Message, ...], task: PlanTask
    ) -> Completion:
        """New actions first: only when they are known can a grammar know all that may be called."""
        max_text = self._ladder.max_text
        first = await self._ask(
            rung, messages, task, header_constraint(self._library, max_text=max_text)
        )
        declared = {action.name: action for action in read(first.text, tolerant=True).actions}
        header = print_header(declared.values())
        known = self._library.extended(declared.values())
        try:
            constraint = steps_constraint(known, max_steps=self._n_written, max_text=max_text)
        except LibraryError as error:  # what all actions take, only outputs are
            raise ModelError(error.message, kind="unconstrained") from error
        second = await self._ask(rung, steps_messages(messages, header), task, constraint)
        return replace(second, text=f"{header}\n\n{second.text}", usage=first.usage + second.usage)

    async def _ask(
        self,
        rung: ConstraintLevel,
        messages: tuple[Message, ...],
        task: PlanTask,
        constraint: Constraint | None,
    ) -> Completion:
        request = Request(messages, task, self._limits.reply_tokens(task))
        return await self._model.complete(constrained(request, constraint, rung.by))

    def _refused(self, rung: ConstraintLevel, error: ModelError) -> None:
        if self._trace is not None:
            self._trace.append(ConstraintRefused(constraint=rung.name, reason=error.message))


def _counted(n: int) -> str:
    return f"{n} attempt{'s' if n > 1 else ''}"


def _endless(error: ModelError, round: int, model: str, rung: ConstraintLevelName) -> PlanAttempted:
    """The attempt that came to repeat itself, for the trace: what it took counts."""
    return PlanAttempted(
        round=round, model=model, reply=error.reply, diagnostics=(error.message,),
        constraint=rung, usage=error.usage or Usage(),
    )  # fmt: skip


def _event(
    attempt: Attempt, round: int, model: str, rung: ConstraintLevelName, original: str, mended: str
) -> PlanAttempted:
    """The attempt for the trace; each note is rendered over the text it was made for."""
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
        constraint=rung,
        usage=attempt.usage,
    )


def one_line(question: str) -> str:
    """A question on one line, as plan files have it.

    Raises:
        UsageError: It is blank or no valid text.
    """
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
