"""The question and its options are shown, and no document: what a model knows or guesses without reading."""

from __future__ import annotations

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.methods import Effort, Prediction, standalone
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = "one call with the options and without the document: a baseline"
NEEDS_OPTIONS = True
READS_NOTHING = True


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    question = await standalone(pearl, sample, trace)
    choice = await pearl.choose(
        question, sample.options, token_budget=effort.token_budget, trace=trace
    )
    return Prediction("answered", choice=choice)
