"""The stack of a model: what calls go through, in which order, and who has the same."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from pearl.errors import BudgetError, ModelError, UsageError
from pearl.llm import Message, Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.client import Client, ClientSettings
from pearl.llm.middleware.budget import Budget
from pearl.pipeline import Pearl
from tests.models import Acting, MemoryReplies, answer_task


def reading(model: Scripted) -> Scripted:
    model.reads_prompts = True
    return model


def request(text: str = "who?") -> Request:
    return Request((Message("user", text),), answer_task(text, ""))


def test_settings_travel() -> None:
    settings = ClientSettings("openai:m", concurrency=3, seed=7)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_model_of_the_caller_has_the_time_limit_of_a_call() -> None:
    async def never(request: Request) -> str:
        await asyncio.Event().wait()
        return ""

    model = Acting(never)
    client = Client(ClientSettings(model, timeout_s=0.01, attempts=2, first_wait_s=0.0))
    with pytest.raises(ModelError, match=r"no complete reply from acting within 0\.01 s") as caught:
        asyncio.run(client.complete(request()))
    assert caught.value.kind == "deadline"


def test_unshared_calls_count_towards_the_budget() -> None:
    model = reading(Scripted(lambda request: "ok"))
    client = Client(ClientSettings(model), budget=Budget(max_calls=3))

    async def main() -> None:
        for _ in range(2):
            await asyncio.gather(client.complete(request()), client.complete(request()))
        await client.unshared(7, 0.5).complete(request())
        with pytest.raises(BudgetError):
            await client.unshared().complete(request())

    asyncio.run(main())
    assert [(asked.seed, asked.temperature) for asked in model.requests[-2:]] == [
        (None, None),
        (7, 0.5),
    ]
    assert len(model.requests) == client.budget.spent.n_calls == 3


@pytest.mark.parametrize("unshared", [False, True])
def test_marks_that_a_prompt_escapes_are_restored_in_every_reply(unshared: bool) -> None:
    client = Client(ClientSettings(Scripted(lambda request: "kept: &lt;/text> and &#91;INST]")))
    asked = client.unshared(3) if unshared else client
    assert asyncio.run(asked.complete(request())).text == "kept: </text> and [INST]"


def test_a_client_has_its_settings_already() -> None:
    client = Client()
    assert Pearl(client).client is client
    with pytest.raises(UsageError, match="already has settings"):
        Pearl(client, concurrency=2)
    with pytest.raises(UsageError, match="already has settings"):
        Pearl(client, replies=MemoryReplies())
    with pytest.raises(UsageError, match="already has settings"):
        Pearl(client, budget=Budget())


def test_a_key_is_needed_only_to_send_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("PEARL_API_KEY", raising=False)
    with pytest.raises(ModelError, match="requires a key"):
        Client(ClientSettings("openai:gpt-4o"))
    client = Client(ClientSettings("openai:gpt-4o", is_asked=False))
    assert (client.name, client.window) == ("openai:gpt-4o", 128_000)
    assert client.constrains.by, "what it can be held to decides how many calls a plan takes"
