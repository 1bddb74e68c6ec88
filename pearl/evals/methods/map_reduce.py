"""The question is asked of every part of the document, the results are merged, then mapped.

Under a budget, only the parts that match the question best are read: as many as the budget has room
for, their merging included.
"""

from __future__ import annotations

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.methods import Effort, Prediction, answered, standalone
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = "one call a part, results merged, answer in words, then mapped to the options"
NEEDS_OPTIONS = False


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    question = await standalone(pearl, sample, trace)
    answer = await pearl.answer(
        question,
        document,
        context="map-reduce",
        part_tokens=effort.part_tokens,
        token_budget=effort.token_budget,
        trace=trace,
    )
    return await answered(pearl, sample, answer, trace)
