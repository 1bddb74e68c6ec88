"""Score results of `execute` as records of an evaluation, and describe it in the header of a log."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from pearl.data.samples import Sample
from pearl.documents.digest import text_sha256
from pearl.documents.document import Document
from pearl.errors import DataError
from pearl.evals.log import EvalRecord, Header
from pearl.evals.runner import Evaluation, blank, calls_of, graded, reason, samples_digest
from pearl.interpreter.cost_ranges import Range, StepCosts
from pearl.interpreter.row import ResultRow, StepData, read_row
from pearl.pipeline import Pearl
from pearl.plugins.version import __version__
from pearl.runs.executors import RecordUnit, Resources
from pearl.runs.identity import prompt_digests, run_config
from pearl.trace import Trace

EXECUTED = "executed"  # The method of these records


@dataclass(frozen=True, slots=True)
class ResultUnit(RecordUnit):
    """A row of results to score."""

    sample: Sample
    evaluation: Evaluation

    @property
    def depends_on(self) -> Sequence[str]:
        """Depend on nothing else: the source is the whole row."""
        return ()

    def costs(self, pearl: Pearl) -> tuple[str, StepCosts]:
        """At most one call, to map the answer to an option."""
        most = Range(0, 1 if self.sample.options else 0)
        tokens = Range(0, inf if self.sample.options else 0)
        return "(results)", StepCosts(most, tokens, tokens)

    async def perform(self, resources: Resources, trace: Trace) -> EvalRecord:
        """Map the answer to an option, if the sample has options, and score it."""
        return graded(await _record(resources, self.sample, trace), self.evaluation)


def result_units(samples: Iterable[Sample], evaluation: Evaluation) -> Iterator[ResultUnit]:
    """A unit for each row of results; the output of `execute` is in the `extra` of the samples."""
    for sample in samples:
        said = json.dumps(sample.to_dict(), sort_keys=True, default=str)
        yield ResultUnit(sample.id, None, text_sha256(said), sample, evaluation)


async def _record(resources: Resources, sample: Sample, trace: Trace) -> EvalRecord:
    began = time.monotonic()
    pearl = resources.once(ResultUnit, lambda: resources.pearl.unshared(scope="eval results"))
    # In a row of a result, `document` is the name of a document.
    document = sample.document.text if isinstance(sample.document, Document) else ""
    record = blank(sample, EXECUTED, 0, document)
    problems: list[str] = []
    try:
        row = read_row(sample.extra, problems)
    except DataError as error:
        problems.append(error.message)
    if problems:
        first = problems[0].partition(" and is left out")[0]
        return replace(record, error=f"not a row of results: {first}")
    answer, usage = row.answer, row.usage.restored()
    n_calls = sum(step.calls for step in row.steps)
    update: dict[str, Any] = {"answer": answer, "plan": row.plan or None, "coverage": row.coverage}
    if row.status not in ("answered", "degraded", "nothing_found"):
        update["error"] = _why(row)
    elif sample.options:
        try:
            choice = await pearl.choose(sample.question, sample.options, answer=answer, trace=trace)
        except Exception as error:
            if resources.is_over(error):
                raise
            update["error"] = reason(error)
        else:
            update |= {"status": "answered", "reply": choice.reply, "choice": choice.index}
            usage, n_calls = usage + choice.usage, n_calls + choice.n_calls
    else:
        update["status"] = "answered"
    update |= {
        "calls": calls_of(trace),
        "n_calls": n_calls,
        "usage": usage,
        "duration_s": round(row.duration_s + time.monotonic() - began, 4),
    }
    return replace(record, **update)


def _why(row: ResultRow) -> str:
    if row.status in ("undecided", "refused"):
        step = next((step for step in row.steps if step.why), StepData())
        return f"{row.status}: step '{step.output}': {step.why}".partition("\n")[0]
    if row.error is not None:
        return f"{row.error.type or 'error'}: {row.error.message}".partition("\n")[0]
    return "the row has no answer"


def describe(
    pearl: Pearl,
    samples: Sequence[Sample],
    evaluation: Evaluation,
    *,
    data: str = "",
    n_bad_rows: int = 0,
) -> Header:
    """The header of a log."""
    if evaluation.methods == (EXECUTED,):
        said = {model for each in samples if isinstance(model := each.extra.get("model"), str)}
        made = dict.fromkeys(("domain", "library", "library_sha256", "bank", "context"), "")
        how: dict[str, Any] = {
            **made,
            "pearl_version": __version__,
            "model": "several" if len(said) > 1 else "".join(said),
            "n_actions": 0,
            "n_examples": 0,
            "temperature": None,
        }
    else:
        how = {
            **run_config(pearl),
            "prompts": prompt_digests(),
            "temperature": evaluation.temperature,
            "token_budget": evaluation.effort.token_budget,
            "part_tokens": evaluation.effort.part_tokens,
        }
    header = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data,
        "data_sha256": samples_digest(samples),
        "n_samples": len(samples),
        "n_bad_rows": n_bad_rows,
        "methods": evaluation.methods,
        "seeds": evaluation.seeds,
        "price": evaluation.price,
        "scorer": evaluation.scorer,
        "mapper": pearl.clients["mapper"].name if any(each.options for each in samples) else None,
    }
    return convert(header | how, Header)
