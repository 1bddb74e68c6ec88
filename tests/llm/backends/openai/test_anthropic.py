"""Anthropic's Messages API, on loopback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.dsl.decoding.constraint import Constraint, JsonForm, closed_object
from pearl.errors import ModelError, ModelErrorKind
from pearl.llm import Completion, Model, Usage
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.client import Client
from pearl.llm.middleware.budget import Budget
from pearl.llm.prices import Price
from tests.llm.backends.asking import READ, REQUEST, complete, failure, used
from tests.server import Canned, Seen, Server

KEY = "sk-ant-very-secret-0123456789"


@pytest.fixture
def model(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv("MY_KEY", KEY)
    openai_server.takes_constraints = True
    return create_model(
        "anthropic:claude", ModelSettings(openai_server.url, 20.0, api_key_env="MY_KEY")
    )


def message(text: str = "Ada.", stop_reason: str | None = "end_turn", **more: Any) -> Canned:
    usage = {
        "input_tokens": 20, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 4_000, "output_tokens": 5,
    }  # fmt: skip
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "text", "text": text},
    ]
    return Canned(
        {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-9", "content": content,
         "stop_reason": stop_reason, "stop_sequence": None, "usage": usage, **more}
    )  # fmt: skip


def test_a_request_and_its_reply(model: Model, openai_server: Server) -> None:
    openai_server.next(message())
    request = replace(REQUEST, max_output_tokens=70, seed=3)
    assert complete(model, request) == Completion(
        "Ada.", "claude-9", Usage(4_320, 5, 4_000, n_written_tokens=300), reasoning="Hm.",
        temperature=0.0, left_out=("seed",),
    )  # fmt: skip
    (seen,) = openai_server.requests
    assert seen.path == "/v1/messages"
    assert seen.body == {
        "model": "claude", "max_tokens": 70, "temperature": 0.0, "system": "Be brief.",
        "messages": [{"role": "user", "content": "Who?"}],
    }  # fmt: skip
    assert seen.headers["x-api-key"] == KEY
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen.headers


@pytest.mark.parametrize(("kept_s", "ttl"), [(300.0, "5m"), (3_600.0, "1h")])
def test_a_prefix_to_be_cached_is_a_text_with_a_mark(
    model: Model, openai_server: Server, kept_s: float, ttl: str
) -> None:
    openai_server.next(message(), message())
    complete(model, READ)
    complete(model, replace(READ, kept_s=kept_s))
    plain, marked = (seen.body["messages"] for seen in openai_server.requests)
    text = "<text>\nAda😀 sold it.\n</text>"
    assert plain == [{"role": "user", "content": f"{text}\n\nWho?"}]
    mark = {"type": "ephemeral", "ttl": ttl}
    head = {"type": "text", "text": text, "cache_control": mark}
    assert marked == [{"role": "user", "content": [head, {"type": "text", "text": "\n\nWho?"}]}]


def test_a_reply_is_held_to_json_of_a_schema(model: Model, openai_server: Server) -> None:
    """Rejected keywords are in its description, as by `transform_schema` of the official client 2.13.0."""
    name = {"type": "string", "pattern": "^[A-Z]", "maxLength": 9}
    number = {"type": "number", "minimum": 0, "maximum": 9, "description": "Year."}
    names = {"type": "array", "items": {"anyOf": [name, number]}, "minItems": 1, "maxItems": 3}
    form = JsonForm(closed_object({"names": names}), lambda data: data["names"][0], hint="")
    rejected = ("maxItems", "maxLength", "pattern", "minimum", "maximum")

    def answer(seen: Seen) -> Canned:
        output = seen.body["output_config"]
        if any(f'"{name}":' in json.dumps(output) for name in rejected):
            error = "output_config.format.schema: property 'pattern' is not supported"
            return Canned({"error": {"type": "invalid_request_error", "message": error}}, 400)
        if "Who" in seen.prompt:
            return message('{"names": ["Ada"]}')
        (sentence,) = output["format"]["schema"]["properties"]["sentence"]["enum"]
        return message(json.dumps({"sentence": sentence}))

    openai_server.answer = answer
    constraint = Constraint("names", "start: /.+/\n", json_form=form)
    request = replace(REQUEST, constraint=constraint, constrain_by="json")
    assert complete(model, request).text == "Ada"
    schema = closed_object({
        "names": {
            "type": "array", "minItems": 1, "description": "{maxItems: 3}",
            "items": {"anyOf": [
                {"type": "string", "description": "{pattern: ^[A-Z], maxLength: 9}"},
                {"type": "number", "description": "Year.\n\n{minimum: 0, maximum: 9}"},
            ]},
        }
    })  # fmt: skip
    output = openai_server.requests[-1].body["output_config"]
    assert output == {"format": {"type": "json_schema", "schema": schema}}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (message(stop_reason="max_tokens"), "truncated"),
        (message(stop_reason="model_context_window_exceeded"), "truncated"),
        (message(stop_reason="refusal"), "refused"),
        (message(stop_reason="refusal", stop_details={"type": "refusal", "explanation": "No."}), "refused"),
        (message(stop_reason="pause_turn"), "transport"),
        (message("  "), "empty"),
        (message(content=[]), "empty"),
        (message(content="Ada."), "malformed"),
        (Canned({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529), "transport"),
        (Canned({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}}, 429), "rate_limited"),
        (Canned({"type": "error", "error": {"type": "rate_limit_error", "message": "Spent",
            "details": {"error_code": "enforced_spend_limit_reached"}}}, 429), "quota"),
        (Canned({"type": "error", "error": {"type": "authentication_error", "message": "key"}}, 401), "auth"),
        (Canned({"type": "error", "error": {"type": "billing_error", "message": "credit"}}, 402), "quota"),
        (Canned({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), "transport"),
        (Canned("<html>Overloaded</html>", 529), "transport"),
    ],
)  # fmt: skip
def test_what_is_no_reply(
    model: Model, openai_server: Server, reply: Canned, kind: ModelErrorKind
) -> None:
    openai_server.next(reply)
    failure(model, kind)


@pytest.mark.parametrize(
    "usage",
    [None, "many", {"input_tokens": "x"}, {"input_tokens": 1, "cache_read_input_tokens": {}}],
)
def test_a_usage_that_says_nothing_costs_no_reply(
    model: Model, openai_server: Server, usage: Any
) -> None:
    openai_server.next(message(usage=usage))
    assert complete(model).text == "Ada."


@pytest.mark.usefixtures("_no_waits")
def test_an_overloaded_server_has_billed_nothing(model: Model, openai_server: Server) -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    openai_server.next(Canned({"type": "error", "error": error}, 529), message())
    budget = Budget(price=Price(input_usd=0, output_usd=10), max_cost_usd=1.0)
    client = Client(model=model, budget=budget)
    assert complete(client, replace(REQUEST, max_output_tokens=70_000)).text == "Ada."
    assert budget.spent.n_unsure_calls == 0


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ("input length and `max_tokens` exceed context limit: 190000 + 8000 > 192000", [8_000, 4_000, 8_000]),
        ("max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens", [8_000, 4_000, 4_000]),
        ("max_tokens: 8000 exceeds max_completion_tokens of this model", [8_000, 4_000, 4_000]),
    ],
)  # fmt: skip
def test_a_limit_that_is_too_large_is_halved(
    model: Model, openai_server: Server, said: str, limits: list[int]
) -> None:
    """For all later requests, unless it is too large together with this prompt only."""
    error = {"type": "invalid_request_error", "message": said}
    openai_server.next(Canned({"type": "error", "error": error}, 400), message(), message())
    for _ in range(2):
        complete(model, replace(REQUEST, max_output_tokens=8_000))
    assert [seen.body["max_tokens"] for seen in openai_server.requests] == limits


def test_a_limit_that_is_refused_for_another_reason_is_not_halved(
    model: Model, openai_server: Server
) -> None:
    error = {"type": "invalid_request_error", "message": "max_tokens: not an integer"}
    openai_server.next(Canned({"type": "error", "error": error}, 400))
    with pytest.raises(ModelError, match="not an integer"):
        complete(model, replace(REQUEST, max_output_tokens=8_000))
    assert len(openai_server.requests) == 1


def test_the_whole_listing_is_read_with_windows_and_short_names(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit, Anthropic lists 20 models."""
    monkeypatch.setenv("MY_KEY", KEY)
    old = {"id": "claude-old-20251001", "type": "model", "max_input_tokens": 30_000}
    openai_server.listing = lambda seen: Canned(
        {"data": [old] if seen.path.endswith("?limit=1000") else [], "has_more": False}
    )
    model = create_model(
        "anthropic:claude-old-20251001",
        ModelSettings(openai_server.url, 20.0, api_key_env="MY_KEY"),
    )
    assert isinstance(model, OpenAIModel)
    assert model.window == 30_000
    assert "claude-old" in used(model, lambda model: model.served())


def test_a_gateway_that_speaks_openais_api_is_named(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ModelSettings(openai_server.url, 20.0, server="generic", api_key_env="")
    assert complete(create_model("anthropic:claude", settings)).text == "ok"
