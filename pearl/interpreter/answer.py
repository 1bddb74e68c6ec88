"""Step results → `Answer`: the text, its steps, and verified quotes.

The answer is every output that no step consumes, in step order, joined by a blank line (the rule of
the published system). So every step contributes, the quotes of all steps are evidence, and one
undecided step makes the answer undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pearl.actions.estimates import is_estimate
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, StepReply, Unverified, collect
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import ListLiteral, Step, String
from pearl.errors.in_notebooks import ShownInNotebooks
from pearl.interpreter.agreement import Agreement
from pearl.interpreter.row_evidence import RowEvidence, ranks_at, row_evidence
from pearl.interpreter.step_result import StepResult
from pearl.llm import Usage
from pearl.planner.understanding import Understood
from pearl.trace import AnswerStatus, Trace

__all__ = ["Answer", "compose"]


@dataclass(frozen=True)
class Answer(ShownInNotebooks):
    """An answer with its evidence.

    Attributes:
        question: As it was asked.
        text: The answer.
        evidence: Passages of the document, in the order in which the steps quote them.
        unverified: Quotes that could not be verified, with their step and the reason.
        rows: The rows that the answer is computed from, in the order of the document.
        steps: Every step with its value, in plan order.
        outputs: The steps that form the answer: those whose output no other step uses.
        method: `plan`, or `direct` if there was no valid plan and the fallback was enabled.
        understood: How the question was understood; None where it was planned as it was asked.
        agreement: How far independent plans agree; None where one was written.
    """

    question: str
    text: str
    plan: str
    outputs: tuple[str, ...]
    method: Literal["plan", "direct"]
    document: str
    steps: tuple[StepResult, ...]
    evidence: tuple[Evidence, ...]
    unverified: tuple[Unverified, ...]
    model: str
    usage: Usage
    duration_s: float
    trace: Trace = field(repr=False, compare=False)
    rows: tuple[RowEvidence, ...] = field(default=(), repr=False)
    understood: Understood | None = None
    agreement: Agreement | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def status(self) -> AnswerStatus:
        """`undecided` if a step of the answer is, or any step that has no value therefore.

        `degraded` if the reply to any step was cut off: what follows from it may lack something.
        `nothing_found` if no step of the answer found anything. The answer of several plans is
        `undecided` where different ones are equally frequent.
        """
        if self.agreement is not None and self.agreement.is_tied:
            return "undecided"
        results = {step.output: step for step in self.steps}
        is_unsure = any(results[name].state == "undecided" for name in self.outputs)
        if is_unsure or any(step.is_void for step in self.steps):
            return "undecided"
        if any(step.truncated for step in self.steps):
            return "degraded"
        found_nothing = all(results[name].state == "nothing" for name in self.outputs)
        return "nothing_found" if found_nothing else "answered"

    @property
    def why(self) -> str:
        """Why it is undecided, with the first undecided step or the answers that differ; else ""."""
        if self.agreement is not None and self.agreement.is_tied:
            return self.agreement.why
        unsure = [step for step in self.steps if step.state == "undecided"]
        first = next((step for step in unsure if not step.is_native), next(iter(unsure), None))
        first = None if self.status != "undecided" else first
        return "" if first is None else f"step '{first.output}' ({first.action}): {first.why}"

    @property
    def truncated(self) -> str:
        """What was cut off, with the first step whose reply was; "" if nothing was."""
        cut = next((step for step in self.steps if step.truncated), None)
        return "" if cut is None else f"step '{cut.output}' ({cut.action}): {cut.truncated}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What its text does not say of how it was computed: how dates were read, how it was searched, what was left out."""
        every = (each for step in self.steps for each in (step.rows, step.fetched))
        notes = (note for each in every if each is not None for note in each.notes)
        return tuple(note for note in dict.fromkeys(notes) if not is_estimate(note))

    @property
    def coverage(self) -> float | None:
        """The smallest fraction of the document that a reading step was shown, or None."""
        return min((s.coverage for s in self.steps if s.coverage is not None), default=None)

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON data: one row of a results file."""
        return {
            "status": self.status,
            "question": self.question,
            **_understood(self.understood),
            "document": self.document,
            "answer": self.text,
            "method": self.method,
            "model": self.model,
            "plan": self.plan,
            "evidence": [
                *(each.to_json() for each in self.evidence),
                *(row.to_json() for row in self.rows),
            ],
            "unverified_quotes": [quote.to_json() for quote in self.unverified],
            **({"notes": list(self.notes)} if self.notes else {}),
            **({} if self.agreement is None else {"agreement": self.agreement.to_json()}),
            "steps": [step.to_json() for step in self.steps],
            "coverage": self.coverage,
            "usage": {
                "input_tokens": self.usage.n_input_tokens,
                "output_tokens": self.usage.n_output_tokens,
                "cached_tokens": self.usage.n_cached_tokens,
                **_implausible(self.usage),
            },
            "duration_s": round(self.duration_s, 3),
        }


def _understood(understood: Understood | None) -> dict[str, Any]:
    """The question as it was planned, with its notes; nothing where it was planned as it was asked."""
    if understood is None:
        return {}
    return {"understood": {"question": understood.question, "notes": list(understood.notes)}}


def _implausible(usage: Usage) -> dict[str, int]:
    """The number of calls whose reported usage was implausible and was replaced by our own count."""
    n = usage.n_implausible_calls
    return {"implausible_calls": n} if n else {}


def compose(
    graph: PlanGraph,
    results: Sequence[StepResult],
    document: Document,
    *,
    method: Literal["plan", "direct"],
    model: str,
    usage: Usage,
    duration_s: float,
    trace: Trace,
) -> Answer:
    """Compose the answer and verify every quote of every model step."""
    by_output = {result.output: result for result in results}
    # Quotes in native steps come from their input steps.
    replies = [
        StepReply(result.output, result.reply, _given(step, by_output))
        for step, result in zip(graph.steps, results, strict=True)
        if not result.is_native
    ]
    shown = [by_output[name] for name in graph.checked.outputs]
    unsure = [result for result in results if result.is_void]
    if unsure and not any(result.state == "undecided" for result in shown):
        shown.insert(0, unsure[0])  # a later step used it
    evidence, unverified = collect(replies, document)
    fetched = [(each.output, each.fetched) for each in results if each.fetched is not None]
    if fetched:
        evidence = tuple(
            replace(each, ranks=ranks_at(fetched, each.span.start)) for each in evidence
        )
    outputs = [
        (name, rows) for name in graph.checked.outputs if (rows := by_output[name].rows) is not None
    ]
    return Answer(
        question=graph.checked.plan.question or "",
        text="\n\n".join(result.text for result in shown if result.text.strip()),
        plan=graph.text,
        outputs=graph.checked.outputs,
        method=method,
        document=document.name,
        steps=tuple(results),
        evidence=evidence,
        unverified=unverified,
        model=model,
        usage=usage,
        duration_s=duration_s,
        trace=trace,
        rows=row_evidence(
            outputs, document, fetched, [each.cited for each in results if each.cited is not None]
        ),
    )


def _given(step: Step, results: Mapping[str, StepResult]) -> tuple[str, ...]:
    """Inputs of a step other than the document: texts of the plan and earlier outputs."""
    items = [
        item
        for argument in step.arguments
        for item in (argument.items if isinstance(argument, ListLiteral) else (argument,))
    ]
    texts = [item.value for item in items if isinstance(item, String)]
    outputs = [
        results[each.name].reply or results[each.name].text
        for each in step.references()
        if not each.is_context
    ]
    return (*texts, *outputs)
