"""Question + library + examples → `CheckedPlan`, without the document.

A bounded repair loop: machine-applicable fixes are applied first, for they are free; what remains
goes back to the model, every diagnostic at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pearl.dsl.checker import MAX_STEPS, CheckedPlan, compile_plan, mend_plan
from pearl.dsl.parser import read
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import Diagnostic, PlanError, PlanningError, UsageError, render_diagnostics
from pearl.fewshot import Example
from pearl.llm import Model, PlanTask, Request, Usage
from pearl.prompts.planning import (
    Rejected,
    plan_messages,
    rejection_messages,
    repair_messages,
)
from pearl.trace import PlanAttempted, Trace

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
    rejected: Sequence[Rejected] = (),
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
        rejected: Valid plans that were run in vain, and why.
        trace: Every attempt is added to it.

    Raises:
        UsageError: The question is blank or no valid text.
        PlanningError: No valid plan came out; `.attempts` has every one.
        ModelError: The model gave no usable reply.
    """
    question = one_line(question)
    messages = first = (
        *plan_messages(question, library, examples),
        *rejection_messages(rejected),
    )
    attempts: list[Attempt] = []
    for round in range(max_repairs + 1):
        task = PlanTask(question, library, round, len(rejected))
        completion = await model.complete(Request(messages, task))
        reading = read(completion.text, tolerant=True)
        text, fixed = mend_plan(reading.text, library, max_steps=max_steps)
        checked: CheckedPlan | None = None
        found: tuple[Diagnostic, ...] = ()
        try:
            checked = compile_plan(text, library, max_steps=max_steps)
        except PlanError as error:
            found = error.diagnostics
        attempt = Attempt(completion.text, text, (*reading.notes, *fixed), found, completion.usage)
        attempts.append(attempt)
        if trace is not None:
            trace.append(_event(attempt, round, completion.model, reading.original, reading.text))
        if checked is not None:
            return replace(checked, plan=replace(checked.plan, question=question))
        messages = repair_messages(first, text, found)
    last = next(d for d in attempts[-1].diagnostics if d.severity == "error")
    rounds = f"{len(attempts)} attempt{'s' if len(attempts) > 1 else ''}"
    raise PlanningError(
        f"no valid plan after {rounds}; last problem: {last.message} [{last.code}]",
        attempts=attempts,
        help="--trace FILE keeps every attempt; --fallback direct answers without a plan",
    )


def _event(attempt: Attempt, round: int, model: str, original: str, mended: str) -> PlanAttempted:
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
        usage=attempt.usage,
    )


def one_line(question: str) -> str:
    """A question on one line, as plan files have it.

    Raises:
        UsageError: It is blank or no valid text.
    """
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
