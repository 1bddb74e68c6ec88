"""As `direct`, over the passages that match the question best."""

from __future__ import annotations

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.methods import Effort, Prediction, answered, standalone
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = "one call over the best passages, answer in words, then mapped to the options"
NEEDS_OPTIONS = False


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    budget = min(effort.token_budget or effort.part_tokens, effort.part_tokens)
    question = await standalone(pearl, sample, trace)
    answer = await pearl.answer(question, document, token_budget=budget, trace=trace)
    return await answered(pearl, sample, answer, trace)
