"""The document and the options are shown at once; the model reasons before it chooses."""

from __future__ import annotations

from pearl.evals.methods import Effort, Prediction
from pearl.pipeline import Pearl
from pearl.samples import Sample
from pearl.sources import Document
from pearl.trace import Trace

DESCRIPTION = "one call over the document with the options shown; reasons, then the letter"
NEEDS_OPTIONS = True


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    choice = await pearl.choose(
        sample.question,
        sample.options,
        document=document,
        is_reasoned=True,
        token_budget=effort.token_budget,
        trace=trace,
    )
    return Prediction("answered", choice=choice)
