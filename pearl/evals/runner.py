"""Samples × methods × seeds → units of work, each with a record for its row.

Whatever goes wrong with one sample is recorded with it, and the rest goes on: `except Exception`
stands here because this is the boundary of a sample.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from pearl.data.samples import Sample
from pearl.data.turns import Turn
from pearl.dsl.graph import build_graph
from pearl.evals.corpora import AskedCorpus, found, found_before_failure
from pearl.evals.log import EvalRecord, Key, PlanShape
from pearl.evals.methods import Effort, Prediction, load_method
from pearl.evals.programs import carried_out
from pearl.evals.samples import refuse_known, refuse_unfit
from pearl.evals.scorers import EXACT
from pearl.evals.scoring import reason, score
from pearl.interpreter.bounds import Range, StepCosts
from pearl.llm import Usage
from pearl.llm.concurrency import SingleFlight
from pearl.llm.prices import Price
from pearl.pipeline import Pearl
from pearl.runs.executors import Listener, RecordUnit, local
from pearl.runs.resources import Resources
from pearl.trace import OptionChosen, PlanAttempted, PlanChosen, Trace

History = Literal["gold", "own", "none"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What to run over every sample."""

    methods: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    temperature: float | None = None
    effort: Effort = field(default_factory=Effort)
    price: Price | None = None
    scorer: str = EXACT
    history: History = "gold"
    corpus: AskedCorpus | None = None

    def units(self, samples: Iterable[Sample]) -> Iterator[EvalUnit]:
        """Every unit of work, document by document: each is read once for all methods and seeds."""
        by_document: dict[object, list[Sample]] = {}
        dialogues: dict[str, list[Sample]] = {}
        for sample in samples:
            by_document.setdefault(sample.document, []).append(sample)
            if sample.dialogue and self.history == "own":
                dialogues.setdefault(sample.dialogue, []).append(sample)
        for sample in chain.from_iterable(by_document.values()):
            load, source = sample.loader, sample.source
            if self.corpus is not None:
                load, source = self.corpus.load, self.corpus.source
            turns = dialogues.get(sample.dialogue, ())
            before = tuple(one for one in turns if len(one.history) < len(sample.history))
            for seed in self.seeds:
                for name in self.methods:
                    id = f"{sample.id}/{name}/{seed}"
                    yield EvalUnit(id, load, source, sample, name, seed, self, before)


async def evaluate(
    pearl: Pearl,
    samples: Sequence[Sample],
    evaluation: Evaluation,
    *,
    listener: Listener | None = None,
) -> AsyncGenerator[EvalRecord, None]:
    """Run every method over every sample that is `scorable`, and keep nothing."""
    refuse_unfit(samples, evaluation.methods)
    refuse_known(samples, pearl.material.examples)
    found = local.run(pearl, evaluation.units(samples), listener=listener)
    async with aclosing(found) as outcomes:
        async for outcome in outcomes:
            yield EvalRecord.model_validate(outcome.to_json())


@dataclass(frozen=True, slots=True)
class EvalUnit(RecordUnit):
    """One sample under one method and one seed."""

    sample: Sample
    method: str
    seed: int
    evaluation: Evaluation
    before: tuple[Sample, ...] = ()
    """The turns before it, where it is told the method's own answers to them."""

    @property
    def depends_on(self) -> Sequence[str]:
        """The sample, the method, the seed and the effort; not what is made of the answer later."""
        sample, evaluation = self.sample, self.evaluation
        asked = (
            sample.question, sample.options, sample.gold, sample.reference, sorted(sample.subsets),
            self.method, self.seed, evaluation.temperature, evaluation.effort.token_budget,
            evaluation.effort.part_tokens,
        )  # fmt: skip
        told: tuple[object, ...] = ()
        if sample.history:
            turns = [(turn.question, turn.answer) for turn in sample.history]
            told += (evaluation.history, [] if evaluation.history == "none" else turns)
        if sample.dialogue or sample.program:
            told += (sample.dialogue, sample.n_turns, sample.program)
        if evaluation.corpus is not None:
            told += (sample.source, sample.gold_passages)
        return (json.dumps((*asked, *told)),)

    @property
    def shard_key(self) -> str:
        """All that is asked of a sample, and of its conversation, is in one shard: its document is read there."""
        return self.sample.dialogue or self.sample.id

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """A call at least: how many follow is known when the plan, or the document, is."""
        some = Range(1, None)
        return f"({self.method})", StepCosts(some, some, some, some)

    async def perform(self, resources: Resources, trace: Trace) -> EvalRecord:
        """Have the method predict, and score it; what goes wrong is in the record."""
        if not self.sample.dialogue or self.evaluation.history != "own":
            return graded(await self._record(resources, trace), self.evaluation)
        turns = resources.once(_Turns, _Turns)
        return graded(await turns.record(self, resources, trace), self.evaluation)

    async def _record(self, resources: Resources, trace: Trace) -> EvalRecord:
        began = time.monotonic()
        method = load_method(self.method)
        drawn = (self.seed, self.evaluation.temperature)
        pearl = resources.once((EvalUnit, self.method, *drawn), lambda: self._pearl(resources))
        update: dict[str, object] = {}
        try:
            assert self.document is not None
            history = await self._history(resources)
            began = time.monotonic()
            document = await resources.document(self.document)
            effort = self.evaluation.effort
            asked = replace(self.sample, history=history)
            prediction = await method.predict(pearl, asked, document, effort, trace)
            update |= _said(prediction, pearl)
            if prediction.answer is not None and self.evaluation.corpus is not None:
                update |= found(prediction.answer, self.sample, self.evaluation.corpus)
        except Exception as error:
            if resources.is_over(error):
                raise
            update["error"] = reason(error)
            if self.evaluation.corpus is not None:
                update |= found_before_failure(trace, self.sample, self.evaluation.corpus)
        update |= {
            "n_calls": trace.n_calls,
            "usage": trace.usage,
            "planning_usage": sum(
                (e.usage for e in trace if isinstance(e, PlanAttempted | PlanChosen)), Usage()
            ),
            "duration_s": round(time.monotonic() - began, 4),
            "coverage": update.get("coverage", _coverage(trace)),
        }
        record = blank(self.sample, self.method, self.seed, self.sample.document_name)
        return record.model_copy(update=update)

    async def _history(self, resources: Resources) -> tuple[Turn, ...]:
        """The turns before it, as the method is told them."""
        history = self.sample.history
        if self.evaluation.history == "none":
            return ()
        if self.evaluation.history == "gold":
            return history
        turns, answers = resources.once(_Turns, _Turns), dict[int, str]()
        for i, sample in enumerate(self.before):
            unit = replace(self, sample=sample, before=self.before[:i])
            record = await turns.record(unit, resources, Trace())
            answers[len(sample.history)] = "" if record.status == "failed" else record.answer
        return tuple(replace(turn, answer=answers.get(i, "")) for i, turn in enumerate(history))

    def _pearl(self, resources: Resources) -> Pearl:
        """One for each method and seed, that plans for itself and pays for itself."""
        temperature = self.evaluation.temperature
        seed = self.seed if self.seed or temperature is not None else None
        return resources.pearl.unshared(seed, temperature, scope=f"eval {self.method}")


class _Turns:
    """The records of turns, each made once: later turns are told their answers."""

    def __init__(self) -> None:
        self._made: dict[Key, EvalRecord] = {}
        self._flights: SingleFlight[EvalRecord] = SingleFlight()

    async def record(self, unit: EvalUnit, resources: Resources, trace: Trace) -> EvalRecord:
        """The record of a unit, with the trace of whoever asks first."""
        key = (unit.sample.id, unit.method, unit.seed)
        if key not in self._made:

            async def make() -> EvalRecord:
                return await unit._record(resources, trace)

            self._made[key] = await self._flights.do(key, make)
        return self._made[key]


def blank(sample: Sample, method: str, seed: int, document: str) -> EvalRecord:
    """A record of a sample that nothing has been said of."""
    return EvalRecord(
        sample=sample.id,
        method=method,
        seed=seed,
        status="failed",
        question=sample.question,
        document=document,
        subsets=tuple(sorted(sample.subsets)),
        rotation_of=sample.rotation_of,
        options=sample.options,
        gold=sample.gold,
        reference=sample.reference,
        dialogue=sample.dialogue,
        turn=len(sample.history) + 1 if sample.dialogue else 0,
        n_turns=sample.n_turns,
        gold_program=sample.program,
    )


def graded(record: EvalRecord, evaluation: Evaluation) -> EvalRecord:
    """The record with its score and its cost; what it says of the answer stays."""
    price = evaluation.price
    cost_usd = price.cost_usd(record.usage) if price else None
    return record.model_copy(
        update={"cost_usd": cost_usd, "score": score(record, evaluation.scorer)}
    )


def _said(prediction: Prediction, pearl: Pearl) -> dict[str, object]:
    """The fields of a record that come from a prediction."""
    choice, answer = prediction.choice, prediction.answer
    fields: dict[str, object] = {
        "status": prediction.status,
        "answer": prediction.text,
        "reply": choice.reply if choice else "",
        "choice": choice.index if choice else None,
    }
    if answer is not None:
        fields["coverage"] = answer.coverage
        if answer.agreement is not None:
            fields["confidence"] = answer.agreement.confidence
        if not answer.has_answer:
            fields |= {"status": "failed", "error": f"{answer.status}: {answer.why}"}
        if answer.method == "plan":
            checked = pearl.compile(answer.plan)
            levels = build_graph(checked).levels()
            fields["plan"] = answer.plan
            fields["program"] = carried_out(answer, checked) if answer.has_answer else ""
            fields["shape"] = PlanShape(
                n_steps=len(answer.steps),
                n_calls=sum(step.n_calls for step in answer.steps),
                depth=len(levels),
                width=max(map(len, levels)),
            )
    return fields


def _coverage(trace: Trace) -> float | None:
    """The share of the document that a choice by the document was shown."""
    shown = [event.coverage for event in trace if isinstance(event, OptionChosen)]
    return next((share for share in shown if share is not None), None)
