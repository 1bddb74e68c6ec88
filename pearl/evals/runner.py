"""Samples × methods × seeds → units of work, each with a record for its row.

Whatever goes wrong with one sample is recorded with it, and the rest goes on: `except Exception`
stands here because this is the boundary of a sample.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from pearl.data.samples import Sample
from pearl.documents.digest import digest, file_sha256
from pearl.documents.document import Document
from pearl.dsl.graph import build_graph
from pearl.errors import DataError, UsageError
from pearl.evals.log import EvalRecord, PlanShape
from pearl.evals.methods import Effort, Prediction, load_method
from pearl.evals.scorers import EXACT
from pearl.evals.scoring import reason, right_option, score
from pearl.interpreter.bounds import Range, StepCosts
from pearl.llm import Usage
from pearl.llm.prices import Price
from pearl.pipeline import Pearl
from pearl.planner.examples import Example, asked_again
from pearl.runs.executors import Listener, RecordUnit, local
from pearl.runs.resources import Resources
from pearl.trace import OptionChosen, PlanAttempted, Trace

__all__ = [
    "EvalUnit",
    "Evaluation",
    "blank",
    "evaluate",
    "graded",
    "refuse_known",
    "refuse_unfit",
    "samples_digest",
    "scorable",
]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What to run over every sample.

    Attributes:
        methods: Names, in the order of the report.
        seeds: One run a seed; each writes plans of its own.
        temperature: Of every call; None for 0.
        price: For the cost of each record; None where it is not known.
        scorer: Of answers in words, where a sample has no options.
    """

    methods: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    temperature: float | None = None
    effort: Effort = field(default_factory=Effort)
    price: Price | None = None
    scorer: str = EXACT

    def units(self, samples: Iterable[Sample]) -> Iterator[EvalUnit]:
        """Every unit of work, document by document: each is read once for all methods and seeds."""
        by_document: dict[object, list[Sample]] = {}
        for sample in samples:
            by_document.setdefault(sample.document, []).append(sample)
        for sample in chain.from_iterable(by_document.values()):
            for seed in self.seeds:
                for name in self.methods:
                    id = f"{sample.id}/{name}/{seed}"
                    yield EvalUnit(id, sample.loader, sample.source, sample, name, seed, self)


def scorable(
    samples: Iterable[Sample], *, with_document: bool = True
) -> tuple[list[Sample], list[DataError]]:
    """The samples that can be evaluated, and why the others cannot.

    Where a sample has options and a reference, the option that the reference is becomes its gold.

    Args:
        samples: Any.
        with_document: Whether they need one; what was answered already does not.
    """
    fit: list[Sample] = []
    unfit: list[DataError] = []
    for sample in samples:
        if not sample.question:
            unfit.append(DataError(f"sample '{sample.id}' has no question"))
        elif sample.document is None and with_document:
            unfit.append(DataError(f"sample '{sample.id}' has no document"))
        elif sample.gold is not None:
            fit.append(sample)
        elif sample.reference is None:
            unfit.append(DataError(f"sample '{sample.id}' does not say what is right"))
        elif not sample.options:
            fit.append(sample)
        elif (gold := right_option(sample.options, sample.reference)) is not None:
            fit.append(replace(sample, gold=gold))
        else:
            unfit.append(DataError(f"sample '{sample.id}' does not say which option is right"))
    return fit, unfit


def refuse_known(samples: Iterable[Sample], bank: Iterable[Example]) -> None:
    """Refuse an evaluation on questions whose plans the model is shown.

    Raises:
        DataError: A question of the bank, told by its words, is among the samples.
    """
    known = asked_again(bank, [sample.question for sample in samples])
    if known:
        first, more = known[0], f" and {len(known) - 1} more" if len(known) > 1 else ""
        where = f"remove {first.path.name} from the bank, or " if first.path else ""
        raise DataError(
            f"the bank of examples holds a question of the evaluation: {first.question!r}{more}",
            help=f"{where}make the bank with --except DATA, or name another (--examples)",
        )


def refuse_unfit(samples: Sequence[Sample], methods: Iterable[str]) -> None:
    """Refuse an evaluation whose records could not be told apart, or would all fail.

    Raises:
        UsageError: There is no such method, or one that needs what a sample does not have.
        DataError: Two samples have the same id.
    """
    ids = Counter(sample.id for sample in samples)
    twice = next((id for id, n in ids.items() if n > 1), None)
    if twice is not None:
        raise DataError(f"two samples have the id '{twice}'", help="give each an id of its own")
    bare = next((sample.id for sample in samples if not sample.options), None)
    unknown = next((sample.id for sample in samples if not sample.gold_passages), None)
    for name in methods:
        method = load_method(name)
        if getattr(method, "NEEDS_PASSAGES", False) and unknown is not None:
            raise UsageError(
                f"method '{name}' is given the right passages, and sample '{unknown}' names none",
                help="a row names them as 'gold_passages', an array of texts",
            )
        if method.NEEDS_OPTIONS and bare is not None:
            raise UsageError(
                f"method '{name}' shows options, and sample '{bare}' has none",
                help="leave it out: --methods pearl,direct",
            )


def samples_digest(samples: Iterable[Sample]) -> str:
    """SHA-256 over all that matters of the samples, in hexadecimal.

    A document in a file counts by what is in it, not by how its path is written.
    """
    return digest(_deciding(samples)).hex()


def _deciding(samples: Iterable[Sample]) -> Iterator[str]:
    files: dict[Path, str] = {}
    for sample in samples:
        document = sample.document
        read: str | None = None
        if isinstance(document, Document):
            read = f"{document.name} {document.digest}"
        elif document is not None:
            if document not in files:
                files[document] = _content(document)
            read = files[document]
        parts = [
            sample.id, sample.question, sample.options, sample.gold, sample.reference,
            sorted(sample.subsets), read,
        ]  # fmt: skip
        yield json.dumps([*parts, sample.gold_passages] if sample.gold_passages else parts)


def _content(path: Path) -> str:
    """The digest of a file, or its name where it cannot be read: its samples will fail."""
    try:
        return file_sha256(path)
    except OSError:
        return path.name


async def evaluate(
    pearl: Pearl,
    samples: Sequence[Sample],
    evaluation: Evaluation,
    *,
    listener: Listener | None = None,
) -> AsyncGenerator[EvalRecord, None]:
    """Run every method over every sample that is `scorable`, and keep nothing.

    Yields:
        One record for each sample, method and seed, in the order of the work. Closing it cancels the
        rest.

    Raises:
        UsageError: There is no such method, or one that shows options where a sample has none.
        DataError: A question of the bank is among the samples, or two samples have the same id.
        BudgetError, PausedError: No call can be made any more.
    """
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

    @property
    def depends_on(self) -> Sequence[str]:
        """The sample, the method, the seed and the effort; not what is made of the answer later."""
        sample, evaluation = self.sample, self.evaluation
        asked = (
            sample.question, sample.options, sample.gold, sample.reference, sorted(sample.subsets),
            self.method, self.seed, evaluation.temperature, evaluation.effort.token_budget,
            evaluation.effort.part_tokens,
        )  # fmt: skip
        return (json.dumps(asked),)

    @property
    def shard_key(self) -> str:
        """All that is asked of a sample is in one shard: its document is read there."""
        return self.sample.id

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """A call at least: how many follow is known when the plan, or the document, is."""
        some = Range(1, None)
        return f"({self.method})", StepCosts(some, some, some, some)

    async def perform(self, resources: Resources, trace: Trace) -> EvalRecord:
        """Have the method predict, and score it; what goes wrong is in the record.

        Raises:
            PearlError: No call of the run can be made any more.
        """
        began = time.monotonic()
        method = load_method(self.method)
        drawn = (self.seed, self.evaluation.temperature)
        pearl = resources.once((EvalUnit, self.method, *drawn), lambda: self._pearl(resources))
        update: dict[str, object] = {}
        try:
            assert self.document is not None
            document = await resources.document(self.document)
            effort = self.evaluation.effort
            prediction = await method.predict(pearl, self.sample, document, effort, trace)
            update |= _said(prediction, pearl)
        except Exception as error:
            if resources.is_over(error):
                raise
            update["error"] = reason(error)
        update |= {
            "n_calls": trace.n_calls,
            "usage": trace.usage,
            "planning_usage": sum(
                (e.usage for e in trace if isinstance(e, PlanAttempted)), Usage()
            ),
            "duration_s": round(time.monotonic() - began, 4),
            "coverage": update.get("coverage", _coverage(trace)),
        }
        record = blank(self.sample, self.method, self.seed, self.sample.document_name)
        return graded(record.model_copy(update=update), self.evaluation)

    def _pearl(self, resources: Resources) -> Pearl:
        """One for each method and seed, that plans for itself and pays for itself."""
        temperature = self.evaluation.temperature
        seed = self.seed if self.seed or temperature is not None else None
        return resources.pearl.unshared(seed, temperature, scope=f"eval {self.method}")


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
        options=sample.options,
        gold=sample.gold,
        reference=sample.reference,
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
        if answer.why:
            fields |= {"status": "failed", "error": f"undecided: {answer.why}"}
        if answer.method == "plan":
            levels = build_graph(pearl.compile(answer.plan)).levels()
            fields["plan"] = answer.plan
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
