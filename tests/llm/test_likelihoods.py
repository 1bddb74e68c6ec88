"""Log-likelihoods through the middleware: counted, shared and kept like replies."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import BudgetError, ModelError
from pearl.llm import Constrains, Message, Request
from pearl.llm.client import Client
from pearl.llm.messages import read_numbers, write_numbers
from pearl.llm.middleware.budget import Budget
from pearl.llm.middleware.caching import request_key
from tests.models import MemoryReplies, Reading, answer_task, log_likelihoods

MESSAGES = (Message("user", "Which action?"),)
TASK = answer_task("Which action?", "")


class Rating(Reading):
    """Rates candidates by their length."""

    constrains = Constrains(likelihoods=True)


def rating() -> Rating:
    return Rating(lambda request: write_numbers([-len(each) for each in request.candidates]))


def rated(client: Client, *candidates: str) -> tuple[float, ...]:
    return asyncio.run(log_likelihoods(client, MESSAGES[0].content, candidates))


def test_equal_requests_are_sent_once_and_kept() -> None:
    model, replies = rating(), MemoryReplies()
    client = Client(model=model, replies=replies)
    assert rated(client, "ab", "c") == rated(client, "ab", "c") == (-2.0, -1.0)
    assert rated(client, "a", "bc") == (-1.0, -2.0)
    assert len(model.requests) == 2
    other = rating()
    assert rated(Client(model=other, replies=replies), "ab", "c") == (-2.0, -1.0)
    assert other.requests == []


def test_many_equal_numbers_are_no_repetition() -> None:
    candidates = [chr(0x4E00 + i) for i in range(400)]
    assert set(rated(Client(model=rating()), *candidates)) == {-1.0}


def test_candidates_count_towards_the_budget() -> None:
    budget = Budget(max_tokens=2_000)
    client = Client(model=rating(), budget=budget)
    assert rated(client, "FIND") == (-4.0,)
    with pytest.raises(BudgetError):
        rated(client, "word " * 4_000)


@pytest.mark.parametrize(
    "text", ["-1.0", "-1.0 -2.0 -3.0", "-1.0 nan", "-1.0 -inf", "-1.0 2.0", "a b"]
)
def test_invalid_likelihoods_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match="does not report likelihoods of the 2 candidates"):
        read_numbers(text, 2, "m")


@given(st.lists(st.floats(max_value=0.0, allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_survive_their_text(values: list[float]) -> None:
    assert read_numbers(write_numbers(values), len(values), "m") == tuple(values)


def test_the_key_tells_candidates_apart() -> None:
    plain = Request(MESSAGES, TASK)
    keys = {
        request_key(replace(plain, candidates=candidates), "m")
        for candidates in ((), ("a",), ("a", "b"), ("ab",), ("b", "a"))
    }
    assert len(keys) == 5
