"""The document and the options are shown at once."""

from __future__ import annotations

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.methods import Effort, Prediction, chosen
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = "one call over the document with the options shown; the letter alone"
NEEDS_OPTIONS = True


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    return await chosen(pearl, sample, document, effort, trace)
