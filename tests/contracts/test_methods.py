"""Every file of `pearl/evals/methods/` is a method of answering, tomorrow's file included."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pearl import Pearl, Trace
from pearl.data.samples import Sample
from pearl.embedded import ExtractiveModel
from pearl.evals.methods import Effort, Prediction, load_method
from pearl.llm import ChooseTask, PlanTask, Request
from tests.evals.asking import METHODS, OPTIONS, READING, STORY, run, sample
from tests.models import Acting

QUESTION = "Why did Nils sell the boat?"
SECRETS = ("rotten", "no hands", "oars", "at dawn")
"""In the document, and not in the question."""


def watched() -> Acting:
    """The embedded model, with every request kept."""
    inner = ExtractiveModel()

    async def act(request: Request) -> str:
        return (await inner.complete(request)).text

    return Acting(act)


def predict(name: str, asked: Sample, model: Acting | None = None) -> Prediction:
    async def main() -> Prediction:
        method = load_method(name)
        return await method.predict(
            Pearl(model or watched()), asked, asked.load(), Effort(), Trace()
        )

    return asyncio.run(main())


@pytest.mark.parametrize("name", METHODS)
def test_a_method_describes_itself(name: str) -> None:
    method = load_method(name)
    assert method.DESCRIPTION.strip() == method.DESCRIPTION != ""
    assert "\n" not in method.DESCRIPTION
    assert isinstance(method.NEEDS_OPTIONS, bool)
    assert name == name.lower().replace("_", "-")


@pytest.mark.parametrize("name", [name for name in READING if name != "unexecuted"])
def test_the_method_answers(name: str) -> None:
    record = run(Pearl(watched()), [sample(question=QUESTION)], name)["q1", name, 0]
    assert (record.status, record.choice, record.score, record.error) == ("answered", 0, 1.0, None)
    assert record.n_calls > 0
    assert record.coverage == 1.0


# The embedded model does not read the plan that `unexecuted` adds to the question.
IN_WORDS = [n for n in METHODS if not load_method(n).NEEDS_OPTIONS and n != "unexecuted"]


@pytest.mark.parametrize("name", IN_WORDS)
def test_the_method_answers_in_words(name: str) -> None:
    asked = sample(question=QUESTION, options=(), gold=None, reference="x")
    prediction = predict(name, asked)
    assert "the hull was rotten" in prediction.text
    assert prediction.choice is None


@pytest.mark.parametrize("name", METHODS)
def test_a_method_does_not_use_the_gold_answer(name: str) -> None:
    def seen(**fields: Any) -> tuple[str, object, list[str]]:
        model = watched()
        found = predict(name, sample(question=QUESTION, **fields), model)
        return found.text, found.choice, [request.prompt for request in model.requests]

    first = seen(gold=0)
    other = {
        "reference": "the secret reference",
        "subsets": frozenset({"hard"}),
        "extra": {"gold": "A"},
    }
    for fields in ({"gold": None}, {"gold": 3, **other}):
        assert seen(**fields) == first
    assert "secret reference" not in "".join(first[2])


@pytest.mark.parametrize("name", METHODS)
def test_neither_the_document_nor_the_options_reach_the_planner(name: str) -> None:
    model = watched()
    predict(name, sample(question=QUESTION), model)
    for request in model.requests:
        if isinstance(request.task, PlanTask):
            assert not [secret for secret in (*SECRETS, *OPTIONS) if secret in request.prompt]
            assert STORY.name not in request.prompt


@pytest.mark.parametrize("name", [n for n in METHODS if not load_method(n).NEEDS_OPTIONS])
def test_answers_in_words_are_found_without_the_options(name: str) -> None:
    """The options are shown when the answer is there, and then without the document."""
    model = watched()
    odd = ("The hull was rotten", "Zebras", "Xylophones", "Quartz")
    predict(name, sample(question=QUESTION, options=odd), model)
    for request in model.requests:
        if isinstance(request.task, ChooseTask):
            assert request.task.document is None
            assert "at dawn" not in request.prompt
        else:
            assert "Zebras" not in request.prompt
    texts = {predict(name, sample(question=QUESTION, options=o)).text for o in (odd, OPTIONS[::-1])}
    assert len(texts) == 1


@pytest.mark.parametrize("name", [name for name in METHODS if name not in READING])
def test_a_method_without_reading_is_shown_no_document(name: str) -> None:
    model = watched()
    predict(name, sample(question=QUESTION), model)
    assert model.requests
    for request in model.requests:
        assert not [secret for secret in ("dawn", "clock", "oars") if secret in request.prompt]
