"""Actions drafted by SmolLM2: a row for every question, and nothing is asked twice."""

from __future__ import annotations

import asyncio

import pytest

from pearl.actions.library import load_library
from pearl.llm.client import Client, ClientSettings
from pearl.mining.miner import Miner, Question
from tests.models import MemoryReplies
from tests.real.smollm2 import LIBRARY, QUESTIONS, Watched

pytestmark = pytest.mark.slow


def test_every_question_has_a_row_and_replies_are_asked_for_once(smollm2: Watched) -> None:
    replies = MemoryReplies()

    async def rows() -> list[tuple[str, str]]:
        client = Client(ClientSettings(smollm2), replies=replies)
        miner = Miner(client, load_library(LIBRARY), max_output_tokens=48)
        mined = [await miner.ask(Question(str(i), i, q)) for i, q in enumerate(QUESTIONS[:2])]
        for row in mined:
            assert row.status in {"mined", "unread", "failed"}
            assert bool(row.error) == (row.status == "failed")
        return [(row.id, row.reply) for row in mined]

    before = len(smollm2.requests)
    first = asyncio.run(rows())
    n_asked = len(smollm2.requests) - before
    assert n_asked >= len(QUESTIONS[:2])
    assert asyncio.run(rows()) == first
    n_again = len(smollm2.requests) - before - n_asked
    assert n_again == n_asked - len(replies.replies), "only what has no whole reply"
