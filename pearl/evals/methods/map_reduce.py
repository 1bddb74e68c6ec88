"""The question is asked of every part of the document, the results are merged, then mapped."""

from __future__ import annotations

from dataclasses import replace

from pearl.context import fit
from pearl.errors import ExecutionError
from pearl.evals.methods import Effort, Prediction, answered
from pearl.pipeline import Pearl
from pearl.samples import Sample
from pearl.sources import Document
from pearl.trace import Trace

DESCRIPTION = "one call a part, results merged, answer in words, then mapped to the options"
NEEDS_OPTIONS = False


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample.

    Under a budget, the parts are those of the document's best passages: as many calls as the budget
    has room for, one of them for merging.
    """
    if effort.token_budget is not None:
        document = _within(pearl, sample, document, effort.token_budget, effort.part_tokens)
    answer = await pearl.answer(
        sample.question, document, context="map-reduce", window=effort.part_tokens, trace=trace
    )
    return await answered(pearl, sample, answer, trace)


def _within(
    pearl: Pearl, sample: Sample, document: Document, budget: int, part_tokens: int
) -> Document:
    """The document, cut to what so many calls of so many tokens can read."""
    n_parts = budget // part_tokens - 1
    if n_parts < 1:
        raise ExecutionError(
            f"a budget of {budget:,} tokens has no room for one part and its merging",
            help=f"give at least {2 * part_tokens:,} tokens, or make the parts smaller",
        )
    # Of a call, half is kept for the prompt and the reply, and for parts that end early.
    room = n_parts * part_tokens // 2
    shown = fit(
        document.text,
        strategy="retrieve",
        budget=room,
        count=pearl.limits.counter.count,
        query=sample.question,
        max_retrieved=room,
    )
    return replace(document, text=shown.texts[0])
