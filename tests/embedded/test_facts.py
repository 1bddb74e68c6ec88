"""How often the right sentence is quoted, on questions that were written by reading, not by rule.

The documents are shipped with the package. The questions ask in other words than the text has,
much of it in dialogue and pronouns: the floors are what matching of words reaches there.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from pearl.actions.library import load_library
from pearl.documents.document import Document
from pearl.documents.tokens import Counter
from pearl.dsl.checker import compile_plan
from pearl.dsl.graph import build_graph
from pearl.embedded import ExtractiveModel
from pearl.interpreter.context import ContextLimits
from pearl.interpreter.execution import run
from pearl.interpreter.model_calls import Reader
from pearl.llm import PlanTask, Request
from pearl.plugins.files import read_data
from pearl.trace import Trace

FACTS = Path(__file__).with_name("document_facts.jsonl")


async def quoted(model: ExtractiveModel, question: str, document: Document) -> list[str]:
    """Every quote of the answer, in its order."""
    library = load_library("seed")
    reply = await model.complete(Request((), PlanTask(question, library)))
    checked = compile_plan(reply.text, library).asking(question)
    limits = ContextLimits(Counter.for_model(model.name))
    results = await run(build_graph(checked), document, {"main": Reader(model, limits)}, Trace())
    shown = [result.reply for result in results if result.output in checked.outputs]
    return re.findall(r"^> (.*)$", "\n".join(shown), re.M)


def shares(model: ExtractiveModel) -> dict[str, float]:
    """Share of the facts quoted first, among the first three quotes, and at all."""
    places: list[int] = []
    for row in FACTS.read_text(encoding="utf-8").splitlines():
        fact = json.loads(row)
        document = Document(read_data("documents", "demo", f"{fact['document']}.txt"))
        quotes = asyncio.run(quoted(model, fact["question"], document))
        # A quote may be the longer one (with the words around a speech) or a part of the fact.
        hits = [
            i
            for i, q in enumerate(quotes)
            if fact["quote"] in q or (len(q) > 25 and q in fact["quote"])
        ]
        places.append(hits[0] if hits else len(quotes) + 100)
    return {
        name: sum(place < most for place in places) / len(places)
        for name, most in (("first", 1), ("top 3", 3), ("anywhere", 100))
    }


@pytest.mark.slow
def test_the_share_of_facts_quoted_does_not_fall() -> None:
    found = shares(ExtractiveModel())
    assert found["first"] >= 0.25, found
    assert found["top 3"] >= 0.45, found
    assert found["anywhere"] >= 0.55, found
