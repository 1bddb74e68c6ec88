"""As `direct`, over the right passages: what an answer is worth where retrieval makes no mistake."""

from __future__ import annotations

from pearl.data.samples import Sample
from pearl.documents.document import Document, from_text
from pearl.evals.methods import Effort, Prediction, answered
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = (
    "one call over the passages that the sample names as right, answer in words, then mapped"
)
NEEDS_OPTIONS = False
NEEDS_PASSAGES = True


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    right = from_text("\n\n".join(sample.gold_passages), document.name)
    answer = await pearl.answer(
        sample.question, right, token_budget=effort.token_budget, trace=trace
    )
    return await answered(pearl, sample, answer, trace)
