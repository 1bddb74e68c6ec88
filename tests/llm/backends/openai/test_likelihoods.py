"""Log-likelihoods from servers: what is sent, and what may come back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from pearl.errors import ModelError
from pearl.llm import Message, Model, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.openai import create
from tests.llm.backends.asking import used
from tests.models import answer_task, log_likelihoods
from tests.server import Canned, Seen, Server, completion, error

TASK = answer_task("Who?", "")
CANDIDATES = ("abc", "abd", "b")


def ids(text: str) -> list[int]:
    return [ord(character) for character in text]


def chance(before: list[int], token: int) -> float:
    """Log-likelihood of a letter: a model of its own, in which what comes before matters."""
    weights = {each: 1 + (each * 7 + sum(before)) % 13 for each in range(97, 107)}
    return math.log(weights[token] / sum(weights.values()))


WANTED = [
    sum(chance(ids("P:") + ids(each)[:i], token) for i, token in enumerate(ids(each)))
    for each in CANDIDATES
]


def llamacpp(seen: Seen, n_told: int = 2) -> dict[str, Any]:
    if seen.path == "/apply-template":
        return {"prompt": "P:"}
    if seen.path == "/tokenize":
        return {"tokens": ids(seen.body["content"])}
    assert seen.path == "/v1/completions"
    assert seen.body["max_tokens"] == 1
    prompt = seen.body["prompt"]
    ((token, bias),) = seen.body["logit_bias"]
    assert bias > 100
    told = sorted(range(97, 107), key=lambda each: -chance(prompt, each))[:n_told]
    top = [{"id": each, "logprob": chance(prompt, each)} for each in told]
    taken = {"id": token, "logprob": chance(prompt, token), "top_logprobs": top}
    usage = {"prompt_tokens": len(prompt), "completion_tokens": 1}
    return {"choices": [{"text": "", "logprobs": {"content": [taken]}}], "usage": usage}


def vllm(seen: Seen) -> dict[str, Any]:
    if seen.path == "/tokenize":
        if "messages" in seen.body:
            assert seen.body["add_generation_prompt"]
            return {"tokens": ids("P:"), "count": 2}
        assert not seen.body["add_special_tokens"]
        return {"tokens": ids(seen.body["prompt"])}
    assert seen.path == "/v1/completions"
    choices = []
    for index, prompt in enumerate(seen.body["prompt"]):
        told: list[dict[str, Any] | None] = [None, {"58": {"logprob": -1.0}}]
        for i, token in enumerate(prompt[2:], start=2):
            value = {"logprob": chance(prompt[:i], token), "rank": 3, "decoded_token": "x"}
            told.append({str(token): value})
        choices.append({"index": index, "text": "", "prompt_logprobs": told})
    return {"choices": choices[::-1], "usage": {}}


def rated(
    server: Server, kind: str | None, reply: Callable[[Seen], dict[str, Any]]
) -> tuple[float, ...]:
    server.answer = lambda seen: Canned(reply(seen))
    model = create("m", ModelSettings(base_url=server.url, server=kind))

    async def ask(model: Model) -> tuple[float, ...]:
        return await log_likelihoods(model, "Who?", CANDIDATES)

    return used(model, ask)


@pytest.mark.parametrize(
    ("kind", "reply"), [("llamacpp", llamacpp), ("llguidance", llamacpp), ("vllm", vllm)]
)
def test_likelihoods_are_the_sums_of_their_tokens(
    openai_server: Server, kind: str, reply: Callable[[Seen], dict[str, Any]]
) -> None:
    assert rated(openai_server, kind, reply) == pytest.approx(WANTED)


def test_known_likelihoods_are_not_requested_again(openai_server: Server) -> None:
    rated(openai_server, "llamacpp", lambda seen: llamacpp(seen, n_told=10))
    # "abc" takes three; "d" and "b" were told beside its letters.
    assert sum(seen.path == "/v1/completions" for seen in openai_server.requests) == 3


def test_refused_likelihoods_change_no_parameter(openai_server: Server) -> None:
    """The error may quote the request, and names its temperature then."""

    def refuse(seen: Seen) -> Canned:
        if seen.path == "/v1/completions":
            return Canned(error(f"prompt_logprobs is not supported: {seen.body}"), 400)
        return Canned(vllm(seen) if seen.path == "/tokenize" else completion())

    openai_server.models, openai_server.answer = ["m"], refuse
    settings = ModelSettings(base_url=openai_server.url, server="vllm")

    async def ask(model: Model) -> None:
        with pytest.raises(ModelError, match="prompt_logprobs is not supported"):
            await log_likelihoods(model, "Who?", CANDIDATES)
        await model.complete(Request((Message("user", "Who?"),), TASK, temperature=0.5))

    used(create("m", settings), ask)
    paths = [seen.path for seen in openai_server.requests]
    assert paths.count("/v1/completions") == 1
    assert openai_server.requests[-1].body["temperature"] == 0.5


@pytest.mark.parametrize("kind", ["sglang", "ollama", "generic", "openai", None])
def test_other_kinds_get_no_request_for_likelihoods(
    openai_server: Server, kind: str | None
) -> None:
    with pytest.raises(ModelError, match="does not report likelihoods"):
        rated(openai_server, kind, llamacpp)
    assert not openai_server.requests


def spoilt(
    reply: Callable[[Seen], dict[str, Any]], spoil: Callable[[dict[str, Any]], object]
) -> Callable[[Seen], dict[str, Any]]:
    """A server whose choices are changed."""

    def changed(seen: Seen) -> dict[str, Any]:
        data = reply(seen)
        for choice in data.get("choices", ()):
            spoil(choice)
        return data

    return changed


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("llamacpp", spoilt(llamacpp, lambda c: c["logprobs"]["content"][0].update(id=106))),
        ("llamacpp", spoilt(llamacpp, lambda c: c.update(logprobs=None))),
        ("vllm", spoilt(vllm, lambda c: c["prompt_logprobs"].pop())),
        ("vllm", spoilt(vllm, lambda c: c["prompt_logprobs"][-1].clear())),
        (
            "vllm",
            spoilt(
                vllm,
                lambda c: c["prompt_logprobs"][-1].update(
                    {str(token): {"logprob": 5.0} for token in range(97, 107)}
                ),
            ),
        ),
    ],
)
def test_likelihoods_of_other_tokens_are_malformed(
    openai_server: Server, kind: str, reply: Callable[[Seen], dict[str, Any]]
) -> None:
    with pytest.raises(ModelError) as caught:
        rated(openai_server, kind, reply)
    assert caught.value.kind == "malformed"
