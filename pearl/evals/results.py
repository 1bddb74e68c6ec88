"""What `pearl execute` wrote → records: its answers are mapped to the options and scored.

Where the rows carry their options and what is right, as rows of `pearl plan --data` do, nothing but
the mapping is asked of a model.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Any

from pearl.errors import PearlError
from pearl.evals.log import Key, Price, Record
from pearl.evals.scorers import score
from pearl.llm import Usage
from pearl.pipeline import Pearl
from pearl.samples import Sample
from pearl.scheduling import as_completed
from pearl.trace import Trace

__all__ = ["EXECUTED", "score_results"]

EXECUTED = "executed"
"""What such records give as their method."""


async def score_results(
    pearl: Pearl,
    samples: Sequence[Sample],
    *,
    price: Price | None = None,
    done: Collection[Key] = (),
    until: Callable[[Iterator[Sample]], Iterator[Sample]] = iter,
) -> AsyncIterator[Record]:
    """Score the answers of a results file.

    Args:
        pearl: Who maps answers to options.
        samples: The rows; what `execute` wrote is in their `extra`.
        price: For the cost; of the run and of the mapping.
        done: What need not be scored again.
        until: May end the work early; what is under way is finished.

    Yields:
        One record a row, as they are done.
    """
    done = frozenset(done)
    todo = (sample for sample in samples if (sample.id, EXECUTED, 0) not in done)

    async def one(sample: Sample) -> Record:
        return await _record(pearl, sample, price)

    async for record in as_completed(until(todo), one, pearl.concurrency):
        yield record


async def _record(pearl: Pearl, sample: Sample, price: Price | None) -> Record:
    row = sample.extra
    began = time.monotonic()
    answer = str(row.get("answer") or "")
    update: dict[str, Any] = {"answer": answer, "plan": row.get("plan")}
    usage = _usage(row)
    n_calls = sum(int(step.get("calls", 0)) for step in row.get("steps") or ())
    if row.get("status") != "answered":
        update["error"] = _reason(row)
    elif sample.options:
        trace = Trace(sample.id)
        try:
            choice = await pearl.choose(sample.question, sample.options, answer=answer, trace=trace)
        except PearlError as error:
            update["error"] = f"{type(error).__name__}: {error.message}"
        else:
            update |= {"status": "answered", "reply": choice.reply, "choice": choice.index}
            usage, n_calls = usage + choice.usage, n_calls + choice.n_calls
    else:
        update["status"] = "answered"
    record = Record(
        sample=sample.id,
        method=EXECUTED,
        status="failed",
        question=sample.question,
        document=str(row.get("document_name") or ""),
        subsets=tuple(sorted(sample.subsets)),
        options=sample.options,
        gold=sample.gold,
        reference=sample.reference,
        coverage=row.get("coverage"),
        n_calls=n_calls,
        usage=usage,
        cost_usd=price.cost_usd(usage) if price else None,
        duration_s=round(float(row.get("duration_s") or 0.0) + time.monotonic() - began, 4),
    ).model_copy(update=update)
    return record.model_copy(update={"score": score(record)})


def _usage(row: Any) -> Usage:
    spent = row.get("usage") or {}
    return Usage(
        spent.get("input_tokens", 0), spent.get("output_tokens", 0), spent.get("cached_tokens", 0)
    )


def _reason(row: Any) -> str:
    error = row.get("error")
    if isinstance(error, dict):
        return f"{error.get('type', 'error')}: {error.get('message', '')}".partition("\n")[0]
    return "the row has no answer"
