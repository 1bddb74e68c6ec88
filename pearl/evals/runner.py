"""Run methods on samples, which gives records: the units of work and the scores."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, field
from msgspec.structs import replace

from pearl.data.samples import Sample
from pearl.documents.digest import digest, file_sha256
from pearl.documents.document import Document
from pearl.documents.words import words
from pearl.dsl.graph import build_graph
from pearl.errors import DataError, PearlError, UsageError
from pearl.evals.log import Call, EvalLog, EvalRecord, Header, PlanShape
from pearl.evals.methods import Effort, Prediction, load_method
from pearl.evals.scorers import EXACT, load_scorer
from pearl.interpreter.chooser import read_choice
from pearl.interpreter.cost_ranges import Range, StepCosts
from pearl.llm import Usage
from pearl.llm.prices import Price
from pearl.pipeline import Pearl
from pearl.planner.examples import Example, asked_again
from pearl.runs.executors import RecordUnit, Resources, local
from pearl.runs.identity import prompt_digests, run_config
from pearl.trace import OptionChosen, PlanAttempted, Trace


def right_option(options: Sequence[str], reference: str) -> int | None:
    """The index of the only option that equals a reference answer, or None.

    Example:
        >>> right_option(["a mill", "The boat"], "boat.")
        1
    """
    found = [i for i, option in enumerate(options) if words(option) == words(reference)]
    return found[0] if len(found) == 1 else None


def score(record: EvalRecord, scorer: str = EXACT) -> float:
    """1 for the correct option, else 0; for free text, the scorer's value."""
    if record.status == "failed":
        return 0.0
    if record.gold is not None:
        return float(record.choice == record.gold)
    if record.reference is None:
        return 0.0
    try:
        return load_scorer(scorer).score(record.answer, record.reference)
    except PearlError:
        raise
    except Exception as error:  # a scorer may be a plug-in
        raise UsageError(
            f"the scorer '{scorer}' failed: {reason(error)}",
            help="fix it, or name another --scorer: replies are stored",
        ) from error


def reason(error: Exception) -> str:
    """The text of an error in a record: its type and the first line of its message."""
    first = str(error).partition("\n")[0].encode(errors="backslashreplace").decode()
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def rescored(log: EvalLog, scorer: str | None = None) -> EvalLog:
    """Parse the replies of a log again and rescore its records; calls no model."""
    header = replace(log.header, scorer=scorer or log.header.scorer)
    records = []
    for record in log.records:
        if record.status != "failed" and record.options:
            choice = read_choice(record.reply, record.options)
            record = replace(record, choice=choice)
        records.append(replace(record, score=score(record, header.scorer)))
    return EvalLog(header, tuple(records))


def scorable(samples: Iterable[Sample]) -> tuple[list[Sample], list[DataError]]:
    """The samples that can be evaluated, and why the others cannot."""
    fit: list[Sample] = []
    unfit: list[DataError] = []
    for sample in samples:
        if not sample.question:
            unfit.append(DataError(f"sample '{sample.id}' has no question"))
        elif sample.document is None:
            unfit.append(DataError(f"sample '{sample.id}' has no document"))
        elif sample.gold is not None:
            fit.append(sample)
        elif sample.reference is None:
            unfit.append(DataError(f"sample '{sample.id}' has no gold option and no reference"))
        elif not sample.options:
            fit.append(sample)
        elif (gold := right_option(sample.options, sample.reference)) is not None:
            fit.append(dataclasses.replace(sample, gold=gold))
        else:
            unfit.append(
                DataError(
                    f"sample '{sample.id}' has a reference that does not equal exactly one option"
                )
            )
    return fit, unfit


def refuse_known(samples: Iterable[Sample], bank: Iterable[Example]) -> None:
    """Refuse an evaluation on questions whose plans are among the examples of the prompt."""
    known = asked_again(bank, [sample.question for sample in samples])
    if known:
        first, more = known[0], f" and {len(known) - 1} more" if len(known) > 1 else ""
        where = f"remove {first.path.name} from the bank, or " if first.path else ""
        raise DataError(
            f"the bank of examples contains a question of the evaluation: {first.question!r}{more}",
            help=f"{where}make the bank with --except DATA, or use another bank (--examples)",
        )


def refuse_unfit(samples: Sequence[Sample], methods: Iterable[str]) -> None:
    """Refuse an evaluation if records would have the same key, or if a method would always fail."""
    ids = Counter(sample.id for sample in samples)
    twice = next((id for id, n in ids.items() if n > 1), None)
    if twice is not None:
        raise DataError(f"two samples have the id '{twice}'", help="give each sample its own id")
    bare = next((sample.id for sample in samples if not sample.options), None)
    has_passages = any(sample.gold_passages for sample in samples)
    for name in methods:
        method = load_method(name)
        if getattr(method, "NEEDS_PASSAGES", False) and not has_passages:
            raise UsageError(
                f"method '{name}' needs gold passages, but no sample has any",
                help="give them as 'gold_passages', an array of texts",
            )
        if method.NEEDS_OPTIONS and bare is not None:
            raise UsageError(
                f"method '{name}' shows options, but sample '{bare}' has none",
                help="leave it out: --methods pearl,direct",
            )


def samples_digest(samples: Iterable[Sample]) -> str:
    """SHA-256 of all parts of the samples that affect results, in hexadecimal."""

    @cache
    def content_of(document: Document | Path) -> str:
        if isinstance(document, Document):
            return f"{document.name} {document.digest}"
        try:
            return file_sha256(document)
        except OSError:  # unreadable, so its samples will fail
            return document.name

    def deciding(sample: Sample) -> str:
        read = None if sample.document is None else content_of(sample.document)
        parts: list[object] = [
            sample.id, sample.question, sample.options, sample.gold, sample.reference,
            sorted(sample.subsets), read,
        ]  # fmt: skip
        return json.dumps(parts + ([sample.gold_passages] if sample.gold_passages else []))

    return digest(map(deciding, samples)).hex()


class Evaluation(Struct, frozen=True):
    """The methods, seeds and settings to run over every sample."""

    methods: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    temperature: float | None = None
    effort: Effort = field(default_factory=Effort)
    price: Price | None = None
    scorer: str = EXACT

    def units(self, samples: Iterable[Sample]) -> Iterator[EvalUnit]:
        """Every unit of work, document by document: a document is read once for all methods and seeds."""
        by_document: dict[object, list[Sample]] = {}
        for sample in samples:
            by_document.setdefault(sample.document, []).append(sample)
        for sample in chain.from_iterable(by_document.values()):
            for seed in self.seeds:
                for name in self.methods:
                    id = f"{sample.id}/{name}/{seed}"
                    yield EvalUnit(id, sample.loader, sample.source, sample, name, seed, self)


async def evaluate(
    pearl: Pearl, samples: Sequence[Sample], evaluation: Evaluation
) -> AsyncGenerator[EvalRecord, None]:
    """Run every method over every `scorable` sample, without a store."""
    refuse_unfit(samples, evaluation.methods)
    refuse_known(samples, pearl.material.examples)
    found = local.run(pearl, evaluation.units(samples))
    async with aclosing(found) as outcomes:
        async for outcome in outcomes:
            yield convert(outcome.to_dict(), EvalRecord)


@dataclass(frozen=True, slots=True)
class EvalUnit(RecordUnit):
    """One sample under one method and one seed."""

    sample: Sample
    method: str
    seed: int
    evaluation: Evaluation

    @property
    def depends_on(self) -> Sequence[str]:
        """The sample, the method, the seed and the effort; not the scorer."""
        sample, evaluation = self.sample, self.evaluation
        asked = (
            sample.question, sample.options, sample.gold, sample.reference, sorted(sample.subsets),
            self.method, self.seed, evaluation.temperature, evaluation.effort.token_budget,
            evaluation.effort.part_tokens,
        )  # fmt: skip
        return (json.dumps(asked),)

    @property
    def shard_key(self) -> str:
        """All units of a sample are in one shard, which reads its document."""
        return self.sample.id

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """At least one call: the number of others depends on the plan or the document."""
        some = Range(1, inf)
        return f"({self.method})", StepCosts(some, some, some)

    async def perform(self, resources: Resources, trace: Trace) -> EvalRecord:
        """Predict and score; an error goes into the record."""
        began = time.monotonic()
        method = load_method(self.method)
        temperature = self.evaluation.temperature
        seed = self.seed if self.seed or temperature is not None else None
        pearl = resources.once(  # of this method and seed, with its own plans and costs
            (EvalUnit, self.method, self.seed, temperature),
            lambda: resources.pearl.unshared(seed, temperature, scope=f"eval {self.method}"),
        )
        sample, fields = self.sample, dict[str, Any]()
        try:
            assert self.document is not None
            document = await resources.document(self.document)
            effort = self.evaluation.effort
            prediction = await method.predict(pearl, sample, document, effort, trace)
            fields = _said(prediction, pearl)
        except Exception as error:
            if resources.is_over(error):
                raise
            fields = {"status": "failed", "error": reason(error)}
        if fields.get("coverage") is None:  # the share that the request for a choice contains
            shown = (event.coverage for event in trace if isinstance(event, OptionChosen))
            fields["coverage"] = next((share for share in shown if share is not None), None)
        record = EvalRecord(
            sample=sample.id, method=self.method, seed=self.seed, question=sample.question,
            document=sample.document_name, subsets=tuple(sorted(sample.subsets)),
            options=sample.options, gold=sample.gold, reference=sample.reference,
            n_calls=trace.n_calls, usage=trace.usage,
            planning_usage=sum((e.usage for e in trace if isinstance(e, PlanAttempted)), Usage()),
            duration_s=round(time.monotonic() - began, 4),
            calls=tuple(
                Call(
                    key=reply.key, purpose=purpose, step=step, model=reply.completion.model,
                    fingerprint=reply.completion.fingerprint,
                    temperature=reply.completion.temperature,
                )
                for purpose, step, reply in trace.replied
            ),
            **fields,
        )  # fmt: skip
        return graded(record, self.evaluation)


def graded(record: EvalRecord, evaluation: Evaluation) -> EvalRecord:
    """The record with its score and its cost."""
    price = evaluation.price
    cost_usd = price.cost_usd(record.usage) if price else None
    return replace(record, cost_usd=cost_usd, score=score(record, evaluation.scorer))


def _said(prediction: Prediction, pearl: Pearl) -> dict[str, Any]:
    """The fields of a record that come from a prediction."""
    choice, answer = prediction.choice, prediction.answer
    fields: dict[str, Any] = {
        "status": prediction.status,
        "answer": prediction.text,
        "reply": choice.reply if choice else "",
        "choice": choice.index if choice else None,
    }
    if answer is not None:
        fields["coverage"] = answer.coverage
        if not answer.has_answer:
            fields |= {"status": "failed", "error": f"{answer.status}: {answer.why}"}
        if answer.method == "plan":
            checked = pearl.compile(answer.plan)
            levels = build_graph(checked).levels()
            fields["plan"] = answer.plan
            fields["shape"] = PlanShape(
                n_steps=len(answer.steps),
                n_calls=sum(step.n_calls for step in answer.steps),
                depth=len(levels),
                width=max(map(len, levels)),
            )
    return fields


def describe(
    pearl: Pearl,
    samples: Sequence[Sample],
    evaluation: Evaluation,
    *,
    data: str = "",
    n_bad_rows: int = 0,
) -> Header:
    """The header of a log."""
    header = {
        **run_config(pearl),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data,
        "data_sha256": samples_digest(samples),
        "n_samples": len(samples),
        "n_bad_rows": n_bad_rows,
        "prompts": prompt_digests(),
        "mapper": pearl.clients["mapper"].name if any(each.options for each in samples) else None,
        "methods": evaluation.methods,
        "seeds": evaluation.seeds,
        "temperature": evaluation.temperature,
        "token_budget": evaluation.effort.token_budget,
        "part_tokens": evaluation.effort.part_tokens,
        "price": evaluation.price,
        "scorer": evaluation.scorer,
    }
    return convert(header, Header)
