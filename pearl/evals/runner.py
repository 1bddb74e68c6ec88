"""Samples × methods × seeds → records, as they are done.

Whatever goes wrong with one sample is recorded with it, and the rest goes on: `except Exception`
stands here because this is the boundary of a sample.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from pearl.data.samples import Sample
from pearl.documents.digest import digest, file_sha256
from pearl.documents.document import Document
from pearl.dsl.graph import build_graph
from pearl.errors import DataError, UsageError
from pearl.evals.log import EvalRecord, Key, PlanShape, Price
from pearl.evals.methods import Effort, Method, Prediction, load_method
from pearl.evals.scorers import EXACT
from pearl.evals.scoring import reason, right_option, score
from pearl.llm import Usage
from pearl.pipeline import Pearl
from pearl.planner.examples import Example, asked_again
from pearl.runs.executors import Listener
from pearl.runs.scheduling import as_completed
from pearl.trace import OptionChosen, PlanAttempted, Trace

__all__ = [
    "Evaluation",
    "Work",
    "evaluate",
    "refuse_known",
    "refuse_unfit",
    "samples_digest",
    "scorable",
]


Work = tuple[Sample, str, int]
"""A piece of work: a sample, the name of a method, a seed."""


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

    def work(self, samples: Iterable[Sample]) -> Iterator[Work]:
        """Every piece of work, seed by seed, then sample by sample: calls over one document are near."""
        for seed in self.seeds:
            for sample in samples:
                for method in self.methods:
                    yield sample, method, seed


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
        UsageError: There is no such method, or one that shows options where a sample has none.
        DataError: Two samples have the same id.
    """
    ids = Counter(sample.id for sample in samples)
    twice = next((id for id, n in ids.items() if n > 1), None)
    if twice is not None:
        raise DataError(f"two samples have the id '{twice}'", help="give each an id of its own")
    bare = next((sample.id for sample in samples if not sample.options), None)
    for name in methods:
        if load_method(name).NEEDS_OPTIONS and bare is not None:
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
        yield json.dumps(parts)


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
    done: Collection[Key] = (),
    until: Callable[[Iterator[Work]], Iterator[Work]] = iter,
    listener: Listener | None = None,
) -> AsyncGenerator[EvalRecord, None]:
    """Run every method over every sample.

    Args:
        pearl: Model, library and bank.
        samples: Each with a question, a document and what is right.
        evaluation: What to run.
        done: What need not be run again.
        until: May end the work early; what is under way is finished.
        listener: Told of every event of every piece of work.

    Yields:
        One record a piece of work, in the order in which they are done. Closing it cancels the rest.

    Raises:
        UsageError: There is no such method, or one that shows options where a sample has none.
        DataError: A question of the bank is among the samples, or two samples have the same id.
    """
    refuse_unfit(samples, evaluation.methods)
    methods = {name: load_method(name) for name in evaluation.methods}
    refuse_known(samples, pearl.examples)
    is_drawn = len(evaluation.seeds) > 1 or evaluation.temperature is not None
    pearls = {
        seed: pearl.unshared(seed if is_drawn or seed else None, evaluation.temperature)
        for seed in evaluation.seeds
    }
    done = frozenset(done)
    todo = (
        (sample, name, seed)
        for sample, name, seed in evaluation.work(samples)
        if (sample.id, name, seed) not in done
    )

    async def one(piece: Work) -> EvalRecord:
        sample, name, seed = piece
        return await _record(pearls[seed], sample, name, methods[name], seed, evaluation, listener)

    async with aclosing(
        as_completed(until(todo), one, pearl.client.settings.concurrency)
    ) as records:
        async for record in records:
            yield record


async def _record(
    pearl: Pearl,
    sample: Sample,
    name: str,
    method: Method,
    seed: int,
    evaluation: Evaluation,
    listener: Listener | None,
) -> EvalRecord:
    id = f"{sample.id}/{name}/{seed}"
    trace = Trace(id, (lambda event: listener(id, event)) if listener else None)
    began = time.monotonic()
    record = EvalRecord(
        sample=sample.id,
        method=name,
        seed=seed,
        status="failed",
        question=sample.question,
        document=sample.document_name,
        subsets=tuple(sorted(sample.subsets)),
        options=sample.options,
        gold=sample.gold,
        reference=sample.reference,
    )
    update: dict[str, object] = {}
    try:
        document = await asyncio.to_thread(sample.load)
        prediction = await method.predict(pearl, sample, document, evaluation.effort, trace)
        update |= _said(prediction, pearl)
    except Exception as error:  # noqa: BLE001 - the boundary of a sample: recorded and counted
        update["error"] = reason(error)
    update |= {
        "n_calls": trace.n_calls,
        "usage": trace.usage,
        "planning_usage": sum((e.usage for e in trace if isinstance(e, PlanAttempted)), Usage()),
        "cost_usd": evaluation.price.cost_usd(trace.usage) if evaluation.price else None,
        "duration_s": round(time.monotonic() - began, 4),
        "coverage": update.get("coverage", _coverage(trace)),
    }
    record = record.model_copy(update=update)
    return record.model_copy(update={"score": score(record, evaluation.scorer)})


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
