"""The question is asked of the document at once; the answer in words is mapped."""

from __future__ import annotations

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.methods import Effort, Prediction, answered, standalone
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = "one call over the document, answer in words, then mapped to the options"
NEEDS_OPTIONS = False


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    question = await standalone(pearl, sample, trace)
    answer = await pearl.answer(question, document, token_budget=effort.token_budget, trace=trace)
    return await answered(pearl, sample, answer, trace)
