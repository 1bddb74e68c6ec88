"""A parameter of requests is declared once: cache keys, bodies of every API, batches, traces and settings follow from it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.llm import Completion, Request, Sampling, declared, parameter
from pearl.llm.backends import ModelSettings, create_model, providers
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.api import Accepted
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.client import Client, ClientSettings
from pearl.llm.middleware.caching import parameters_key, request_key
from pearl.trace import ModelAttempted, Trace
from tests.llm.backends.asking import REQUEST, complete
from tests.models import Acting, MemoryReplies
from tests.server import Canned, Server, error


class Extended(Request, frozen=True):
    """A request with one more parameter, declared as the others."""

    zz_p: float | None = parameter("zz_p", chat="zz_p", messages=None, gemini="zzP")


ASKED = Extended(REQUEST.messages, REQUEST.task, zz_p=0.25)
ENDPOINT = Endpoint("http://localhost/v1", "m", "")


def test_a_new_parameter_is_in_every_body_and_in_the_cache_key_and_reported_where_it_has_no_name() -> (
    None
):
    accepted = Accepted(ENDPOINT)
    bodies = {name: servers.load(name).body(ASKED, "m", accepted) for name in servers.names()}
    for name, body in bodies.items():
        form = servers.load(name).api.form
        assert (body.get("zz_p"), "zz_p" in accepted.left_out(ASKED, form)) == (
            (None, True) if name == "anthropic" else (0.25, False)
        )
    assert ASKED.named("gemini")["zzP"] == 0.25
    assert len({request_key(replace(ASKED, zz_p=p), "model") for p in (None, 0.25, 0.5)}) == 3


def test_keys_of_existing_stores_hold() -> None:
    """Of every parameter that is set, whatever its name; those of earlier versions as they were written then."""
    assert (
        parameters_key(REQUEST.parameters, "max_output_tokens", "temperature", "seed")
        == "(None, 0.0, None)"
    )
    assert len(
        {request_key(replace(REQUEST, **{name: 1}), "m") for name in declared(Request)}
    ) == len(declared(Request))


@pytest.mark.parametrize("name", sorted(declared(Sampling)))
def test_a_setting_is_a_parameter_of_every_call_also_of_an_evaluation(name: str) -> None:
    value = {"seed": 7}.get(name, 0.5)
    asked: list[Request] = []

    async def answer(request: Request) -> str:
        asked.append(request)
        return "ok"

    client = Client(ClientSettings(Acting(answer), **{name: value}), replies=MemoryReplies())

    async def main() -> None:
        for model in (
            client,
            client.unshared(),
            client.unshared(scope="eval"),
            client.unshared(3, 0.25),
        ):
            await model.complete(REQUEST)
        await client.complete(replace(REQUEST, **{name: 0}))

    asyncio.run(main())
    drawn = {"seed": 3, "temperature": 0.25}.get(name, value)
    assert [getattr(request, name) for request in asked] == [value, value, value, drawn, 0]


@pytest.mark.parametrize(
    "name", [name for name, each in declared(Sampling).items() if each["wire"]["chat"] == name]
)
def test_a_parameter_that_a_server_rejects_is_left_out_from_then_on_and_reported(
    name: str, openai_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Seen in the body by its own name: a word of the message is no name."""
    openai_server.next(Canned(error(f"Unsupported parameter: '{name}'", param=name), 400))
    model = create_model("openai:m", ModelSettings(openai_server.url, 20.0))
    request = replace(REQUEST, **dict.fromkeys(declared(Sampling), 1))
    replies = [complete(model, request), complete(model, request)]
    assert [name in seen.body for seen in openai_server.requests] == [True, False, False]
    assert [reply.left_out for reply in replies] == [(name,), (name,)]
    assert replies[0].temperature == (None if name == "temperature" else 1)
    assert [record.getMessage() for record in caplog.records] == [f"m is asked without: {name}"]


def test_a_trace_tells_the_parameters_and_what_was_left_out(openai_server: Server) -> None:
    client = Client(
        ClientSettings("anthropic:m", base_url=openai_server.url, api_key_env="", seed=3, top_p=0.5)
    )
    openai_server.answer = lambda seen: Canned(
        {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    )
    told: list[Any] = []

    async def main() -> Completion:
        from pearl.llm.middleware.wrappers import ProgressListener

        trace = Trace(listener=told.append)
        return await ProgressListener(client, trace.progressed).complete(
            replace(REQUEST, max_output_tokens=9)
        )

    assert asyncio.run(main()).left_out == ("seed",)
    (attempted,) = (event for event in told if isinstance(event, ModelAttempted))
    assert attempted.parameters == {"temperature": 0.0, "top_p": 0.5, "seed": 3, "max_tokens": 9}
    assert attempted.left_out == ("seed",)


def test_a_trace_has_a_parameter_without_a_name_in_chat_completions_by_its_own() -> None:
    class Other(Request, frozen=True):
        top_a: float | None = parameter("top_a", chat=None, messages="top_a", gemini=None)

    asked = Other(REQUEST.messages, REQUEST.task, top_a=0.25)
    assert asked.told == {"temperature": 0.0, "top_a": 0.25}
    assert asked.named("chat") == {"temperature": 0.0}


def test_a_parameter_is_declared_once() -> None:
    with pytest.raises(ValueError, match="'top_p' is declared already"):
        parameter("top_p", chat="nucleus", messages=None, gemini=None)


def test_a_provider_has_fields_and_names_of_its_own(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As lines of providers.toml, which is how Mistral's servers get a seed."""
    odd = replace(providers()["groq"], fields={"safe_prompt": True}, names={"top_p": "nucleus"})
    request = replace(REQUEST, seed=3, top_p=0.5)
    settings = ModelSettings(openai_server.url, 20.0, api_key_env="")
    complete(odd.create("m", settings), request)
    complete(create_model("mistral:m", settings), request)
    load = servers.load
    kind = replace(load("vllm"), fields={"cache": 1}, names={"top_p": "mass"})
    monkeypatch.setattr(servers, "load", lambda name: kind if name == "odd" else load(name))
    complete(create_model("mistral:m", replace(settings, server="odd")), request)
    complete(odd.create("m", replace(settings, server="odd")), request)
    first, second, of_kind, of_both = (seen.body for seen in openai_server.requests)
    assert (of_kind["random_seed"], of_kind["mass"], of_kind["cache"]) == (3, 0.5, 1)
    assert (of_both["nucleus"], of_both["cache"], of_both["safe_prompt"]) == (0.5, 1, True)
    assert not {"seed", "top_p"} & of_kind.keys()
    assert (first["safe_prompt"], first["nucleus"], first["seed"]) == (True, 0.5, 3)
    assert (second["random_seed"], second["top_p"]) == (3, 0.5)
    assert not {"top_p", "random_seed"} & first.keys()
    assert "seed" not in second


@pytest.mark.parametrize("own", ["max_out", "maxOut"])
def test_a_limit_that_is_too_large_is_lowered_under_the_providers_own_name(
    openai_server: Server, own: str
) -> None:
    odd = replace(providers()["groq"], names={"max_tokens": own})
    model = odd.create("m", ModelSettings(openai_server.url, 20.0, api_key_env=""))
    openai_server.next(Canned(error(f"{own} is too large: it must be at most 5000"), 400))
    complete(model, replace(REQUEST, max_output_tokens=8_000))
    assert [seen.body[own] for seen in openai_server.requests] == [8_000, 4_000]


def test_a_rejection_with_a_word_that_holds_the_name_of_the_limit_is_not_about_it() -> None:
    accepted = Accepted(ENDPOINT, names={"max_tokens": "max"})
    body = {"max": 8_000, "messages": []}
    assert accepted.mended(body, "an image exceeds the maximum size") is None
    assert accepted.mended(body, "max is too large") == body | {"max": 4_000}


def test_replies_to_requests_with_other_fields_are_not_taken_for_each_other() -> None:
    plain, safe, unsafe = (
        replace(providers()["groq"], fields=fields).create("m", ModelSettings(api_key_env=""))
        for fields in ({}, {"safe_prompt": True}, {"safe_prompt": False})
    )
    assert plain.identity == "groq:m@https://api.groq.com/openai/v1"
    assert len({plain.identity, safe.identity, unsafe.identity}) == 3
