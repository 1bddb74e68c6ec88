"""As `direct`, over the right passages: what an answer is worth where retrieval makes no mistake.

A row of a Markdown table is shown with the head of its table, which says what its cells are. Where a sample names no
passage, all of its own document is right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from pearl.data.samples import Sample
from pearl.documents.document import Document, from_text
from pearl.evals.methods import Effort, Prediction, answered, standalone
from pearl.pipeline import Pearl
from pearl.retrieval.index import IndexedDocument
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
    if isinstance(document, IndexedDocument):  # a corpus is asked, and one document of it is right
        document = await asyncio.to_thread(sample.load)
    if sample.gold_passages:
        shown = "\n\n".join(_with_heads(sample.gold_passages, document.text))
        document = from_text(shown, document.name)
    question = await standalone(pearl, sample, trace)
    answer = await pearl.answer(question, document, token_budget=effort.token_budget, trace=trace)
    return await answered(pearl, sample, answer, trace)


def _with_heads(passages: Sequence[str], text: str) -> Iterator[str]:
    """The passages; rows of one table become one, below its head."""
    lines = text.split("\n")
    places = {line: i for i, line in reversed(list(enumerate(lines)))}
    tables: dict[int, list[str]] = {}
    for passage in passages:
        first = places.get(passage) if passage.startswith("|") else None
        if first is None:
            yield passage
            continue
        while first > 0 and lines[first - 1].startswith("|"):
            first -= 1
        tables.setdefault(first, lines[first : first + 2]).append(passage)
    yield from ("\n".join(dict.fromkeys(table)) for table in tables.values())
