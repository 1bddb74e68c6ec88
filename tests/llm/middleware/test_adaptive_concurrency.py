"""How many calls are made at once: as many as the server takes."""

from __future__ import annotations

import asyncio

from pearl.errors import ModelError
from pearl.llm.middleware.adaptive_concurrency import COOLDOWN_S, AdaptiveConcurrency
from pearl.llm.middleware.limiter import Limited
from tests.llm.middleware.gated import Gated, settle, start


def test_places_grow_while_they_are_needed_and_shrink_once_per_episode() -> None:
    places = AdaptiveConcurrency(most=100, start=10)
    for _ in range(10):
        places.on_reply(0.0)
    assert places.n == 20  # twice as many in the time of one call
    places.on_refused()
    assert places.n == 16
    places.on_trouble(0.0)
    for _ in range(100):
        places.on_reply(COOLDOWN_S - 1)
    assert places.n == 16
    for _ in range(17):
        places.on_reply(COOLDOWN_S)
    assert places.n == 17
    for _ in range(10_000):
        places.on_reply(COOLDOWN_S)
    assert places.n == 100
    for _ in range(100):
        places.on_refused()
    assert places.n == 1


def test_faults_of_the_server_take_no_place_away() -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 8)
        for prompt in "abcdef":
            tasks = start(limited, prompt)
            await settle()
            model.fail(prompt, ModelError("internal", kind="transport"))
            await asyncio.gather(*tasks, return_exceptions=True)
        assert limited.limits.n_places == 8
        assert limited.limits.requests_per_s is None

    asyncio.run(main())


def test_a_refusal_at_random_holds_up_its_own_call_alone() -> None:
    async def main() -> None:
        model = Gated()
        limited = Limited(model, 4)
        limited._learned.faults.share = 0.05
        tasks = start(limited, "a", "b")
        await settle()
        model.fail("a", ModelError("slow down", kind="rate_limited", retry_after_s=34.0))
        await settle()
        tasks += start(limited, "c", "d", "e")
        await settle()
        assert model.begun == [*"abcde"]
        assert (limited.limits.n_places, limited.limits.requests_per_s) == (4, None)
        assert (limited.limits.n_sent, limited.limits.n_refused) == (5, 1)
        for prompt in "bcde":
            model.answer(prompt)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_places_are_given_back_when_refusals_were_none_of_their_doing() -> None:
    places = AdaptiveConcurrency(most=100, start=10)
    for _ in range(10):
        places.on_reply(0.0)
    for _ in range(5):
        places.on_refused()
        places.on_trouble(0.0)
    assert places.n == 6
    places.restore()
    assert places.n == 20
    places.on_reply(1.0)
    assert places.n == 21
    places.on_refused()
    places.restart()
    for _ in range(7):
        places.on_reply(1.0)
    assert places.n == 8, "each reply brings another, as before the first refusal"
