"""`pearl models` as people meet it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from pearl.llm import overview
from pearl.llm.backends import ModelSettings
from pearl.plugins import names
from tests.cli.terminal import Terminal
from tests.server import Canned, Server


def test_everything_that_can_be_asked_is_listed_with_what_it_takes(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XAI_API_KEY", "sk-0123456789abcdefgh")
    told = json.loads(pearl("models", "--json"))
    by_name = {row["name"]: row for row in told["backends"]}
    assert set(by_name) >= set(names("pearl.llm.backends"))
    if "llamacpp" in by_name:  # of contrib
        asked = ("takes", "extra", "constrains", "tokenizes")
        wanted = ["PATH.gguf", "llamacpp", ["grammar", "json"], True]
        assert [by_name["llamacpp"][name] for name in asked] == wanted
    assert by_name["extractive"]["embeddings"] is True
    assert by_name["ollama"]["address"] == "http://localhost:11434/v1"
    assert by_name["openai"]["constrains"] is None
    kinds = {row["name"]: row for row in told["server_kinds"]}
    assert kinds["ollama"]["constrains"] == ["json"]
    keys = {row["name"]: (row["key"], row["key_is_set"]) for row in told["servers"]}
    assert keys["xai"] == ("XAI_API_KEY", True)
    assert keys["vllm"] == ("", False)
    assert told["prices"]["usd_per_million"]["gpt-4o"]["input_usd"] == 2.5
    assert told["windows"]["gpt-4o"] == 128_000
    assert [row["name"] for row in told["embeddings"]] == list(names("pearl.llm.embedders"))
    said = pearl("models")
    assert "key in XAI_API_KEY (set)" in said
    assert "sk-0123456789" not in said + json.dumps(told)
    for each in (*by_name, *kinds, *keys, *told["prices"]["usd_per_million"]):
        assert f"  {each} " in said


def test_a_server_is_asked_what_it_has(pearl: Terminal, openai_server: Server) -> None:
    listed = [
        {"id": "own", "max_model_len": 4_096},
        {"id": "gpt-4o"},
        {"id": "odd\nname\x1b[31m", "max_model_len": "8192"},
    ]
    openai_server.listing = Canned({"data": listed})
    on = ("--base-url", openai_server.url)
    said = pearl("models", "vllm:", *on)
    assert [line.split() for line in said.splitlines()] == [
        ["own", "window", "4,096"],
        ["gpt-4o", "window", "128,000", "(by", "its", "name),", "input=2.5,cached=1.25,output=10,batch=0.5"],
        ["odd\\nname\\x1b[31m"],
    ]  # fmt: skip
    own, known, odd = json.loads(pearl("models", "openai:", *on, "--json"))
    assert own == {"id": "own", "window": 4_096, "is_told": True, "price": None}
    assert (known["is_told"], known["price"]["output_usd"]) == (False, 10.0)
    assert odd["window"] is None
    assert pearl("models", "openai:gpt", *on).startswith("gpt-4o ")
    assert pearl("models", "openai:nothing", *on) == ""
    assert "lists no models" in pearl.talk
    assert openai_server.n_listings == 4
    assert not openai_server.requests


def test_servers_of_this_machine_are_asked_without_a_key(
    pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_API_KEY", "sk-0123456789abcdefgh")
    asked: list[ModelSettings] = []
    real = overview.served_models

    async def served(spec: str, settings: ModelSettings) -> list[overview.Served]:
        asked.append(settings)
        there = openai_server.url if spec == "vllm:" else "http://127.0.0.1:9/v1"
        return await real(spec, replace(settings, base_url=there))

    monkeypatch.setattr(overview, "served_models", served)
    said = pearl("doctor")
    assert "server vllm" in said
    assert "http://localhost:8000/v1 has test-model" in said
    assert "--model vllm:test-model" in said
    assert said.partition("not running: ")[2].partition("\n")[0].count("(http") == len(asked) - 1
    assert {settings.api_key_env for settings in asked} == {""}
