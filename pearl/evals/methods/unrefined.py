"""An ablation of `pearl`: its examples are plans that the model itself drafted, unrefined.

The questions of the bank are planned without any example. Valid drafts are kept as they are: none is run, and none
is refined by what comes of it. Source: as of `unexecuted`.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.errors import PlanningError
from pearl.evals.methods import Effort, Prediction
from pearl.evals.methods import pearl as planned
from pearl.pipeline import Pearl
from pearl.planner.examples import Example
from pearl.trace import Trace

DESCRIPTION = "as pearl with examples that the model drafted for the bank's questions, unrefined"
NEEDS_OPTIONS = False

_DRAFTED: WeakKeyDictionary[Pearl, Pearl] = WeakKeyDictionary()
_LOCKS: WeakKeyDictionary[Pearl, asyncio.Lock] = WeakKeyDictionary()


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample; the first one pays for the drafts."""
    async with _LOCKS.setdefault(pearl, asyncio.Lock()):
        if pearl not in _DRAFTED:
            _DRAFTED[pearl] = await _drafted(pearl, trace)
    return await planned.predict(_DRAFTED[pearl], sample, document, effort, trace)


async def _drafted(pearl: Pearl, trace: Trace) -> Pearl:
    """One that is shown the drafts as its examples."""
    examples = pearl.material.examples
    other = pearl.unshared(pearl.draws.seed, pearl.draws.temperature, scope="eval unrefined")
    other.material.examples = ()

    async def draft(question: str) -> Example | None:
        try:
            checked = await other.planner.write(question, other.calls(trace), trace=trace)
        except PlanningError:
            return None
        return Example(question, checked.plan)

    drafts = await asyncio.gather(*(draft(each.question) for each in examples))
    final = pearl.unshared(pearl.draws.seed, pearl.draws.temperature, scope="eval unrefined")
    final.material.examples = tuple(each for each in drafts if each is not None)
    return final
