"""What `pearl execute` wrote → records: its answers are mapped to the options and scored.

Where the rows carry their options and what is right, as rows of `pearl plan --data` do, nothing but
the mapping is asked of a model.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pearl.data.journal import reason as first_reason
from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.log import EvalRecord, Key, Price
from pearl.evals.scorers import EXACT
from pearl.evals.scoring import reason, score
from pearl.llm import Usage
from pearl.pipeline import Pearl
from pearl.runs.scheduling import as_completed

__all__ = ["EXECUTED", "score_results"]

EXECUTED = "executed"
"""What such records give as their method."""


async def score_results(
    pearl: Pearl,
    samples: Sequence[Sample],
    *,
    price: Price | None = None,
    scorer: str = EXACT,
    done: Collection[Key] = (),
    until: Callable[[Iterator[Sample]], Iterator[Sample]] = iter,
) -> AsyncGenerator[EvalRecord, None]:
    """Score the answers of a results file.

    Args:
        pearl: Who maps answers to options.
        samples: The rows; what `execute` wrote is in their `extra`.
        price: For the cost; of the run and of the mapping.
        scorer: Of answers in words.
        done: What need not be scored again.
        until: May end the work early; what is under way is finished.

    Yields:
        One record a row, as they are done. Closing it cancels the rest.
    """
    done = frozenset(done)
    todo = (sample for sample in samples if (sample.id, EXECUTED, 0) not in done)

    async def one(sample: Sample) -> EvalRecord:
        return await _record(pearl, sample, price, scorer)

    async with aclosing(
        as_completed(until(todo), one, pearl.client.settings.concurrency)
    ) as records:
        async for record in records:
            yield record


class _Lenient(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Step(_Lenient):
    output: str = ""
    calls: int = 0
    why: str = ""


class _Usage(_Lenient):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class _Result(_Lenient):
    """What `execute` writes beside what the row of the task said."""

    status: str | None = None
    answer: str | None = None
    plan: str | None = None
    error: Any = None
    steps: tuple[_Step, ...] = ()
    coverage: float | None = None
    usage: _Usage = _Usage()
    duration_s: float = 0.0


async def _record(pearl: Pearl, sample: Sample, price: Price | None, scorer: str) -> EvalRecord:
    began = time.monotonic()
    record = EvalRecord(
        sample=sample.id,
        method=EXECUTED,
        status="failed",
        question=sample.question,
        # In a row of a result, `document` is the name of a document.
        document=sample.document.text if isinstance(sample.document, Document) else "",
        subsets=tuple(sorted(sample.subsets)),
        options=sample.options,
        gold=sample.gold,
        reference=sample.reference,
    )
    try:
        result = _Result.model_validate(sample.extra)
    except ValidationError as error:
        return record.model_copy(update={"error": f"no row of a result: {first_reason(error)}"})
    answer = result.answer or ""
    usage = Usage(result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_tokens)
    n_calls = sum(step.calls for step in result.steps)
    update: dict[str, Any] = {"answer": answer, "plan": result.plan, "coverage": result.coverage}
    if result.status not in ("answered", "nothing_found"):
        update["error"] = _why(result)
    elif sample.options:
        try:
            choice = await pearl.choose(sample.question, sample.options, answer=answer)
        except Exception as error:  # noqa: BLE001 - the boundary of a sample: recorded and counted
            update["error"] = reason(error)
        else:
            update |= {"status": "answered", "reply": choice.reply, "choice": choice.index}
            usage, n_calls = usage + choice.usage, n_calls + choice.n_calls
    else:
        update["status"] = "answered"
    update |= {
        "n_calls": n_calls,
        "usage": usage,
        "cost_usd": price.cost_usd(usage) if price else None,
        "duration_s": round(result.duration_s + time.monotonic() - began, 4),
    }
    record = record.model_copy(update=update)
    return record.model_copy(update={"score": score(record, scorer)})


def _why(result: _Result) -> str:
    error = result.error
    if result.status == "undecided":
        step = next((step for step in result.steps if step.why), _Step())
        return f"undecided: step '{step.output}': {step.why}".partition("\n")[0]
    if isinstance(error, dict):
        return f"{error.get('type', 'error')}: {error.get('message', '')}".partition("\n")[0]
    return "the row has no answer"
