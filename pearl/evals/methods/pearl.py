"""A plan is written without the document and run over it; its answer in words is mapped."""

from __future__ import annotations

from typing import Literal

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.evals.methods import Effort, Prediction, answered
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = "plan, run over the document, answer in words, then mapped to the options"
NEEDS_OPTIONS = False


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    answer = await pearl.ask(
        sample.question,
        document,
        history=sample.history,
        token_budget=effort.token_budget,
        trace=trace,
    )
    status: Literal["answered", "fell_back"] = (
        "answered" if answer.method == "plan" else "fell_back"
    )
    return await answered(pearl, sample, answer, trace, status)
