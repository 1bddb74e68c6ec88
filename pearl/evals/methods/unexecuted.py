"""An ablation of `pearl`: its plan is not run, but shown with the question in one call over the document.

Source: Sun et al., PEARL: Prompting Large Language Models to Plan and Execute Actions Over Long Documents (2023).
"""

from __future__ import annotations

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.dsl.nodes import print_plan
from pearl.evals.methods import Effort, Prediction, answered, standalone
from pearl.pipeline import Pearl
from pearl.trace import Trace

DESCRIPTION = "as pearl without execution: one call over the document with the plan in the prompt, then mapped"
NEEDS_OPTIONS = False


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample."""
    question = await standalone(pearl, sample, trace)
    card = pearl.card(document)
    checked = await pearl.planner.write(
        question, pearl.calls(trace), card=card, kind=document.kind, trace=trace
    )
    steps = " ".join(line for line in print_plan(checked.plan).splitlines() if line[:1].isdigit())
    asked = f"{question} Answer by these steps, and say only what the last one gives: {steps}"
    answer = await pearl.answer(asked, document, token_budget=effort.token_budget, trace=trace)
    return await answered(pearl, sample, answer, trace)
