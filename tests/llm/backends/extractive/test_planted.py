"""The whole way over generated documents: question → plan → checked → steps → first quote."""

from __future__ import annotations

import asyncio
import re

import pytest

from pearl.actions.library import load_library
from pearl.documents.document import Document
from pearl.documents.tokens import Counter
from pearl.dsl.checker import compile_plan
from pearl.dsl.graph import build_graph
from pearl.interpreter.context import ContextLimits
from pearl.interpreter.execution import run
from pearl.llm import PlanTask, Request
from pearl.llm.backends.extractive import ExtractiveModel
from pearl.trace import Trace
from tests.llm.backends.extractive.planted import Planted, plant


def first_quote(planted: Planted) -> str:
    """What is quoted first in the first output of the answer."""
    model, library = ExtractiveModel(), load_library("seed")

    async def answer() -> str:
        reply = await model.complete(Request((), PlanTask(planted.question, library)))
        checked = compile_plan(reply.text, library)
        limits = ContextLimits(Counter.for_model(model.name))
        results = await run(build_graph(checked), Document(planted.text), model, limits, Trace())
        return next(result.reply for result in results if result.output == checked.outputs[0])

    quoted: list[str] = re.findall(r"^> (.*)$", asyncio.run(answer()), re.M)
    return quoted[0] if quoted else ""


def share_found(seeds: range) -> float:
    planted = [plant(seed) for seed in seeds]
    return sum(first_quote(one) == one.fact for one in planted) / len(planted)


def test_the_fact_is_quoted_first() -> None:
    assert share_found(range(10)) >= 0.95


@pytest.mark.slow
def test_the_fact_is_quoted_first_in_200_documents() -> None:
    assert share_found(range(200)) >= 0.95


def test_the_generator_plants_one_fact_everywhere() -> None:
    documents = [plant(seed, n_words=(300, 400)) for seed in range(84)]
    assert {one.place for one in documents} >= {0.0, 0.5, 1.0}
    assert len({one.question for one in documents}) > 70
    for one in documents:
        assert " ".join(one.text.split()).count(one.fact) == 1
        assert one.question not in one.text


def test_the_generator_repeats_itself() -> None:
    assert plant(3) == plant(3)
