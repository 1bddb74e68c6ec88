"""The method `oracle`: the right passages are shown, and nothing else of the document."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Pearl, Trace
from pearl.errors import UsageError
from pearl.evals.methods import Effort, load_method
from pearl.evals.runner import refuse_unfit
from pearl.llm import ChooseTask
from tests.evals.asking import acting, sample

PASSAGES = ("His sister Ada kept the oars.", "The buyer paid with a clock")


def test_the_model_is_shown_the_right_passages_and_no_others() -> None:
    asked, model = sample(gold_passages=PASSAGES), acting(step="A clock.")
    found = asyncio.run(
        load_method("oracle").predict(Pearl(model), asked, asked.load(), Effort(), Trace())
    )
    (shown,) = (
        request.prompt for request in model.requests if not isinstance(request.task, ChooseTask)
    )
    assert "\n\n".join(PASSAGES) in shown
    assert "rotten" not in shown
    assert found.text == "A clock."


def test_samples_without_gold_passages_are_refused_before_any_call() -> None:
    known, unknown = sample("q1", gold_passages=PASSAGES), sample("q2", gold_passages=())
    refuse_unfit([known], ["oracle", "direct"])
    refuse_unfit([known, unknown], ["direct", "oracle"])
    refuse_unfit([unknown], ["direct"])
    with pytest.raises(UsageError, match="no sample has any"):
        refuse_unfit([unknown], ["direct", "oracle"])
