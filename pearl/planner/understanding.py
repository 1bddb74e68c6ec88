"""What is asked → what is planned: a question that is clear by itself, with absolute periods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pearl.data.turns import Turn
from pearl.llm import Model
from pearl.planner.periods import Calendar, resolve_periods
from pearl.planner.standalone import make_standalone
from pearl.trace import QuestionUnderstood, Trace

__all__ = ["Understood", "understand"]


@dataclass(frozen=True, slots=True)
class Understood:
    """A question as it is planned.

    Attributes:
        asked: As it was asked.
        question: Clear by itself.
        notes: Why it could not be made clear, if so; which periods were put in, by which date, and
            which are open.
    """

    asked: str
    question: str
    notes: tuple[str, ...] = ()

    @property
    def says_more(self) -> bool:
        """Whether there is something to tell: another question, or notes."""
        return self.question != self.asked or bool(self.notes)


async def understand(
    question: str,
    model: Model,
    *,
    history: Sequence[Turn] = (),
    calendar: Calendar | None = None,
    max_output_tokens: int | None = None,
    trace: Trace | None = None,
) -> Understood:
    """Make a question clear by itself; the model is asked only where there is a history.

    Args:
        question: One line.
        model: Rewrites a question that follows others.
        history: The turns before it, the first one first.
        calendar: What relative periods refer to; None to leave them as they are.
        max_output_tokens: Of a reply of the model; None for a limit by the kind of request.
        trace: Told where there is something to tell, or the model is asked.

    Raises:
        ModelError: The model cannot be asked.
    """
    made = await make_standalone(question, history, model, max_output_tokens=max_output_tokens)
    alone, notes = made.question, made.notes
    if calendar is not None:
        alone, periods = resolve_periods(alone, calendar)
        notes += periods
    understood = Understood(question, alone, notes)
    if trace is not None and (understood.says_more or made.n_calls):
        trace.append(
            QuestionUnderstood(
                asked=question,
                question=alone,
                notes=notes,
                usage=made.usage,
                n_calls=made.n_calls,
                n_cached=made.n_cached,
            )
        )
    return understood
