"""Make a bank of examples from training questions: plans that reached the gold answer without having seen it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from msgspec import Struct, convert

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.dsl.nodes import print_plan
from pearl.dsl.parser import parse
from pearl.errors import ExecutionError, ModelError, PearlError
from pearl.interpreter.context import ContextOverflowError
from pearl.interpreter.cost_ranges import Range, StepCosts
from pearl.llm import Usage
from pearl.pipeline import Pearl
from pearl.planner.examples import Example, spread
from pearl.planner.prompt import Rejected
from pearl.runs.executors import RecordUnit, Resources
from pearl.runs.identity import RunConfig
from pearl.trace import Trace

Outcome = Literal["kept", "wrong", "repeated", "failed"]


class Try(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One plan and its outcome."""

    plan: str
    answer: str = ""
    reply: str = ""
    choice: int | None = None
    """Index of the option, from 0; None if the answer names none or the plan failed."""
    error: str | None = None


class CurationHeader(RunConfig, frozen=True, kw_only=True):
    """The header of a curation journal: data and settings."""

    kind: Literal["pearl-curation"] = "pearl-curation"
    v: Literal[1] = 1
    data: str
    retries: int


class CurationRow(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A training question with every plan that was tried."""

    id: str
    index: int  # Index in the data, from 0
    question: str
    gold: int
    outcome: Outcome
    """`kept`: the last plan reached the gold answer; `wrong`: none did; `repeated`: the planner repeated a plan that was wrong before; `failed`: no plan, no reply, or a context overflow."""
    tries: tuple[Try, ...] = ()
    error: str | None = None
    usage: Usage = Usage()

    @property
    def status(self) -> str:
        """The name of the outcome in records."""
        return self.outcome


def trainable(samples: Iterable[Sample]) -> list[Sample]:
    """The samples that can be used: those with question, document and gold option."""
    return [
        sample
        for sample in samples
        if sample.question and sample.document is not None and sample.gold is not None
    ]


@dataclass(frozen=True, slots=True)
class CurateUnit(RecordUnit):
    """One training sample that needs a plan."""

    sample: Sample
    index: int
    retries: int

    @property
    def depends_on(self) -> Sequence[str]:
        """The question, its options and the right one, and how often a plan may be wrong."""
        sample = self.sample
        return (json.dumps((sample.question, sample.options, sample.gold, self.retries)),)

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """At least one plan and one step."""
        return "(plans tried)", StepCosts(*[Range(2, inf)] * 3)

    async def perform(self, resources: Resources, trace: Trace) -> CurationRow:
        """Have plans written and run until one reaches the gold option."""
        pearl, sample = resources.pearl, self.sample
        assert self.document is not None
        assert sample.gold is not None
        tries: list[Try] = []
        outcome: Outcome = "failed"
        problem: str | None = None
        try:
            document = await resources.document(self.document)
            outcome = await _try(pearl, sample, document, self.retries, tries, trace)
        except PearlError as error:
            if resources.is_over(error):
                raise
            problem = error.message
        return CurationRow(
            id=sample.id, index=self.index, question=sample.question, gold=sample.gold,
            outcome=outcome, tries=tuple(tries), error=problem, usage=trace.usage,
        )  # fmt: skip

    def row(self, result: Struct | None, error: Exception | None) -> Mapping[str, Any] | None:
        """The row for a file, with its outcome as `status` too."""
        row = RecordUnit.row(self, result, error)
        return row and {"status": row["outcome"], **row}


def curate_units(samples: Iterable[Sample], retries: int = 2) -> Iterator[CurateUnit]:
    """A unit for each sample."""
    for index, sample in enumerate(samples):
        yield CurateUnit(sample.id, sample.loader, sample.source, sample, index, retries)


def curated(row: Mapping[str, Any], unit: CurateUnit) -> CurationRow:
    """The stored row of a unit, with the present index of its sample."""
    fields = {name: value for name, value in row.items() if name != "status"}
    return convert({**fields, "index": unit.index}, CurationRow)


async def _try(
    pearl: Pearl, sample: Sample, document: Document, retries: int, tries: list[Try], trace: Trace
) -> Outcome:
    """Write and run plans until one gives the right answer; each plan is added to `tries`."""
    rejected: list[Rejected] = []
    for _ in range(retries + 1):
        checked = await pearl.plan(sample.question, rejected=rejected, trace=trace)
        plan = print_plan(checked.plan)
        if any(plan == each.plan for each in tries):
            return "repeated"
        try:
            answer = await pearl.execute(checked, document, trace=trace)
        except ExecutionError as error:
            if isinstance(error.__cause__, ModelError | ContextOverflowError):
                raise  # the server failed, or the window is too small, not the plan
            tries.append(Try(plan=plan, error=error.message))
            rejected.append(Rejected(plan, "failed", error.step or ""))
            continue
        if answer.why:
            tries.append(Try(plan=plan, error=answer.why))
            unsure = sorted(
                (s for s in answer.steps if s.state == "undecided"), key=lambda s: s.is_native
            )
            rejected.append(Rejected(plan, "undecided", unsure[0].output if unsure else ""))
            continue
        choice = await pearl.choose(
            sample.question, sample.options, answer=answer.unlabelled, trace=trace
        )
        tries.append(Try(plan=plan, answer=answer.text, reply=choice.reply, choice=choice.index))
        if choice.index == sample.gold:
            return "kept"
        rejected.append(Rejected(plan))
    return "wrong"


def choose_bank(rows: Iterable[CurationRow], max_examples: int) -> list[Example]:
    """The examples of a bank: all kept plans, or the most diverse of them."""
    kept = sorted((row for row in rows if row.outcome == "kept"), key=lambda row: row.index)
    examples: dict[str, Example] = {}
    for row in kept:  # one example per question
        plan = parse(row.tries[-1].plan)
        examples.setdefault(row.question, Example(row.question, plan))
    return spread(list(examples.values()), max_examples)
