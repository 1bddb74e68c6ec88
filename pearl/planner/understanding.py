"""What is asked → what is planned: a question that is clear by itself, with absolute periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pearl.data.samples import Turn
from pearl.dsl.checker import CheckedPlan
from pearl.llm import Model
from pearl.planner.earlier_answers import PLACEHOLDER, earlier_answers, filled, filled_plan
from pearl.planner.periods import Calendar, resolve_periods
from pearl.planner.standalone import make_standalone
from pearl.trace import QuestionUnderstood, Trace


@dataclass(frozen=True, slots=True)
class Understood:
    """A question as it is planned."""

    asked: str
    question: str
    notes: tuple[str, ...] = ()
    planned: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)

    def filled(self, plan: CheckedPlan) -> CheckedPlan:
        """A plan with the answers in place of the placeholders."""
        return filled_plan(plan, self.answers, self.question)

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
    """Make a question clear by itself; the model is asked only where there is a history."""
    made = await make_standalone(question, history, model, max_output_tokens=max_output_tokens)
    alone, notes = made.question, made.notes
    if calendar is not None:
        alone, periods = resolve_periods(alone, calendar)
        notes += periods
    used = {*PLACEHOLDER.findall(alone)}
    answers = {
        name: answer for name, answer in earlier_answers(question, history).items() if name in used
    }
    told = filled(alone, answers)
    understood = Understood(question, told, notes, alone, answers)
    if trace is not None and (understood.says_more or made.n_calls):
        trace.append(
            QuestionUnderstood(
                asked=question,
                question=told,
                notes=notes,
                usage=made.usage,
                n_calls=made.n_calls,
                n_cached=made.n_cached,
            )
        )
    return understood
